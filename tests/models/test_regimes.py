"""Every argument in every regime: it changes what is fitted, or it is refused by its name.

Regimes are how much is known: no pair, a handful, some, most, all, and labels of many-to-one. An
argument that is taken and then not used is found here.
"""

from __future__ import annotations

import inspect
from dataclasses import replace

import numpy as np
import pytest

import unpaired
from unpaired import matching
from unpaired._random import derive_seed
from unpaired.alignment import refinement
from unpaired.errors import InputError
from unpaired.models import dmae
from unpaired.models.dmae import LEAST_ROWS
from unpaired.naming import many_to_one
from unpaired.problem.problem import check_problem

N, WIDTH = 100, 12


def two_views(noise=0.4):
    """Two views of 100 rows by the same factors, one of them bent; no partner is evident."""
    rng = np.random.default_rng(0)
    factors = rng.standard_normal((N, 6)) * np.linspace(1.5, 0.7, 6)
    x = np.tanh(factors @ rng.standard_normal((6, WIDTH)))
    y = factors @ rng.standard_normal((6, WIDTH - 2))
    return (side + noise * rng.standard_normal(side.shape) for side in (x, y))


def classes():
    """100 rows of four classes of uneven size, a vector per class, and three labels of each."""
    rng = np.random.default_rng(1)
    truth = rng.permutation(np.repeat(np.arange(4), [40, 30, 20, 10]))
    centres = rng.standard_normal((4, WIDTH)) * np.linspace(2.0, 1.0, 4)[:, None]
    x = centres[truth] + 0.8 * rng.standard_normal((N, WIDTH))
    y = centres @ np.linalg.qr(rng.standard_normal((WIDTH, WIDTH)))[0]
    rows = np.concatenate([np.flatnonzero(truth == cls)[:3] for cls in range(4)])
    return x, y, np.column_stack([rows, truth[rows]])


def regime(name):
    """The relation, both sides and the known pairs of a regime."""
    if name in ("labels", "no labels"):
        x, y, known = classes()
        return "many-to-one", x, y, known if name == "labels" else None
    x, y = two_views()
    known = np.column_stack([np.arange(int(name))] * 2)
    return "one-to-one", x, y, known


REGIMES = ("0", "5", "12", "80", "100", "labels", "no labels")
LEARNED = ("12", "80", "100", "labels", "no labels")
OTHER = {
    "n_latent": 2,
    "hidden": (16, 8),
    "n_components": 4,
    "ridge": 0.3,
    "soft_weight": 0.05,
    "n_rounds": 2,
    "n_epochs": 2,
    "batch_size": 20,
    "learning_rate": 1e-2,
    "random_state": 1,
}


@pytest.fixture(scope="module", autouse=True)
def fewer_rounds():
    """What is refined here is refined for few rounds: no argument goes there by another way."""
    few = replace(refinement.REFINEMENT, n_steady=2, n_steady_near=2, n_growing=3)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(refinement, "REFINEMENT", few)
        yield


@pytest.fixture(scope="module")
def engine(fewer_rounds):
    """The matching engine, asked once for each problem: it does not see learning parameters."""
    known: dict[tuple, matching.Alignment] = {}

    def solve(problem, seed):
        key = (seed, problem.known.tobytes(), problem.x.tobytes(), problem.y.tobytes())
        if key not in known:
            known[key] = matching.solve(problem, seed)
        return known[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(dmae, "solve", solve)
        yield solve


def fit(name, start=None, **params):
    relation, x, y, known = regime(name)
    told = []
    model = unpaired.DMAE(**{"relation": relation, "random_state": 0, **params})
    model.fit(x, y, known, start=start, on_step=told.append)
    return model, model.score_matrix(x, y), told


@pytest.fixture(scope="module")
def plain(engine):
    """The fit of each regime with nothing given."""
    return {name: fit(name) for name in REGIMES}


def same(a, b):
    """Whether two fits agree to the bit in their scores and in their match."""
    fields = ("partner", "confidence", "runner_up", "margin")
    return np.array_equal(a[1], b[1]) and all(
        np.array_equal(getattr(a[0].match_, f), getattr(b[0].match_, f), equal_nan=True)
        for f in fields
    )


def test_the_walk_names_every_parameter():
    parameters = set(inspect.signature(unpaired.DMAE.__init__).parameters) - {"self"}
    assert parameters == {*OTHER, "relation", "device"}
    assert list(inspect.signature(unpaired.DMAE.fit).parameters) == [
        *("self", "x", "y", "pairs"),
        *("start", "on_step"),
    ]


def test_what_networks_and_soft_pairs_read_is_refused_where_there_are_none():
    for given in ({"hidden": (8,)}, {"batch_size": 9}, {"learning_rate": 0.1}):
        with pytest.raises(InputError, match=f"{next(iter(given))} must be left out where n_epo"):
            fit("80", n_epochs=0, **given)
    with pytest.raises(InputError, match="soft_weight must be left out where n_rounds is 0"):
        fit("80", n_rounds=0, soft_weight=0.3)


@pytest.mark.parametrize("name", REGIMES)
def test_a_fit_is_repeated_to_the_bit(name, plain, engine):
    assert same(fit(name), plain[name])


def attempt(name, **given):
    """The fit, or the message with which it was refused."""
    try:
        return fit(name, **given)
    except InputError as error:
        return str(error)


@pytest.mark.parametrize("parameter", sorted(OTHER))
@pytest.mark.parametrize("name", REGIMES)
def test_a_parameter_changes_the_fit_or_is_refused(name, parameter, plain, engine):
    if parameter == "random_state" and name not in LEARNED:
        assert plain[name][0].seed_ == 0  # the engine may reach one answer from any seed
        return
    found = attempt(name, **{parameter: OTHER[parameter]})
    if isinstance(found, str):
        assert found.startswith(f"{parameter} must be left out")
    else:
        assert not same(found, plain[name])


@pytest.mark.parametrize("name", REGIMES)
def test_a_start_changes_the_fit_or_is_refused(name, plain, engine):
    _, x, y, _ = regime(name)
    start = np.random.default_rng(5).integers(len(y), size=len(x))
    found = attempt(name, start=start)
    if isinstance(found, str):
        assert found.startswith("start must be left out")
    else:
        assert not same(found, plain[name])


def test_what_is_refused_is_refused_before_anything_is_done(monkeypatch):
    def never(*arguments, **options):
        raise AssertionError("something was computed")

    monkeypatch.setattr(many_to_one, "match_many_to_one", never)
    for name in ("solve", "learn"):
        monkeypatch.setattr(dmae, name, never)
    refused = {name: [p for p in OTHER if refuses(name, p)] for name in REGIMES}
    learning = [parameter for parameter in OTHER if parameter != "random_state"]
    assert refused == {
        "0": learning,
        "5": learning,
        "12": [],
        "80": [],
        "100": ["soft_weight", "n_rounds"],
        "labels": [],
        "no labels": ["soft_weight", "n_rounds"],
    }


def refuses(name, parameter):
    """Whether a fit is refused for this parameter; else it must begin to compute."""
    try:
        found = attempt(name, **{parameter: OTHER[parameter]})
    except AssertionError:
        return False
    return found.startswith(f"{parameter} must be left out")


def test_the_relation_and_the_device_are_used(plain, engine):
    _, x, y, known = regime("labels")
    one = unpaired.DMAE(random_state=0).fit(x, y)
    assert (one.match_.partner >= 0).sum() == 4
    assert (plain["labels"][0].match_.partner >= 0).all()
    assert same(fit("80", device="cpu"), plain["80"])
    with pytest.raises(InputError, match="device must be"):
        unpaired.DMAE(device="gpu").fit(x, y, known)


# History, notes and what they say


@pytest.mark.parametrize("name", REGIMES)
def test_history_has_an_entry_per_step_and_each_is_told(name, plain, engine):
    model, _, told = plain[name]
    assert told == model.history_
    assert [entry["step"] for entry in told] == list(range(len(told)))
    epochs = 12  # six of either network
    expected = {"12": 6 + epochs + 1, "100": epochs + 1, "no labels": epochs + 1}
    if name in LEARNED:  # with the engine's start, six of nine soft steps are left
        assert len(told) == expected.get(name, 9 + epochs + 1)
    else:
        _, x, y, known = regime(name)
        found = engine(check_problem(x, y, known), derive_seed(0, "match"))
        reached = [entry["dependence"] for entry in found.solution.history]
        assert [entry["dependence"] for entry in told] == reached
        assert reached
    assert all(np.isfinite(value) for entry in told for value in entry.values())


@pytest.mark.parametrize("name", REGIMES)
def test_notes_say_whether_networks_were_trained_and_it_is_so(name, plain):
    model, _, _ = plain[name]
    with_networks = [part for part in model._space.parts if part.towers is not None]
    notes = " ".join(model.notes_)
    if name in LEARNED:
        assert "Networks were trained" in notes
        assert len(with_networks) == 2
        assert any("loss" in entry for entry in model.history_)
    else:
        assert f"No network was trained: with fewer than {LEAST_ROWS} known pairs" in notes
        assert not with_networks
        assert not any("loss" in entry for entry in model.history_)
    assert ("matching engine gave the start" in notes) == (name == "12")
    assert ("Classes were named by the matching engine" in notes) == (name == "no labels")


def test_no_epochs_leave_closed_forms_alone(plain, engine):
    model, scores, told = fit("80", n_epochs=0)
    assert "No network was trained in the last turn." in model.notes_
    assert all(part.towers is None for part in model._space.parts)
    assert not any("loss" in entry for entry in told)
    assert np.abs(scores - plain["80"][1]).max() > 1e-3


# The front door


def plain_problem(kind):
    """Both sides of a problem that takes one of the engine's four ways."""
    rng = np.random.default_rng(2)
    if kind == "tiny":
        x = rng.standard_normal((20, 4))
        return {"x": x, "y": x[rng.permutation(20)] ** 3 + 0.3 * rng.standard_normal((20, 4))}
    if kind == "evident":
        x = rng.standard_normal((N, 6)) * np.linspace(2.0, 1.0, 6)
        turn = np.linalg.qr(rng.standard_normal((6, 6)))[0]
        y = x @ turn + 0.1 * rng.standard_normal((N, 6))
        y[:10] = 2.0 * rng.standard_normal((10, 6))  # strangers
        return {"x": x, "y": y[rng.permutation(N)]}
    if kind == "soft":
        x, y = two_views()
        return {"x": x[:60], "y": y[:60]}
    x, y, _ = classes()
    return {"x": x, "y": y, "relation": "many-to-one"}


def keywords(kind):
    """A value of every keyword that differs from its default."""
    problem = plain_problem(kind)
    n_x, n_y = len(problem["x"]), len(problem["y"])
    rng = np.random.default_rng(3)
    partner = matched(kind).partner
    other = (partner[:4] + 1) % n_y
    other = np.roll(partner[:4], 1) if kind != "many" else other
    weights = np.where(np.arange(n_x) % 2 == 0, 1.0, 2.0)
    return {
        "pairs": np.column_stack([np.arange(4), other]),
        "relation": "many-to-one" if kind != "many" else "one-to-one",
        "forbidden": np.column_stack([np.arange(n_x), partner])[:3],
        "similarity": rng.standard_normal((n_x, n_y)),
        "shared": (rng.standard_normal((n_x, 2)), rng.standard_normal((n_y, 2))),
        "weights": (weights, None),
        "start": rng.permutation(np.resize(np.arange(n_y), n_x)),
        "leave_out": True,
        "min_confidence": 1.0,
        "class_sizes": np.full(n_y, -(-n_x // n_y)),
    }


FOUND: dict[str, unpaired.Match] = {}
KINDS = ("tiny", "evident", "soft", "many")
REFUSED = {("many", "start"), ("many", "leave_out")} | {
    (kind, "class_sizes") for kind in KINDS if kind != "many"
}


def matched(kind):
    """The match with nothing given."""
    if kind not in FOUND:
        FOUND[kind] = unpaired.match(**plain_problem(kind))
    return FOUND[kind]


def told(match):
    """All that a match tells."""
    arrays = [match.partner, match.confidence, match.runner_up, np.nan_to_num(match.margin)]
    facts = (match.relation, match.verdict, repr(match.agreement), repr(match.gap))
    return [array.tolist() for array in arrays], match.objective.per_start, facts


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "keyword",
    ["pairs", "relation", "forbidden", "similarity", "shared", "weights", "start", "leave_out"]
    + ["class_sizes", "min_confidence"],
)
def test_a_keyword_changes_the_match_or_is_refused(kind, keyword):
    value = keywords(kind)[keyword]
    arguments = {**plain_problem(kind), keyword: value}
    if keyword == "relation" and kind in ("evident", "soft"):
        assert matched(kind).relation == "one-to-one"  # a hundred classes take long to name
        return
    if (kind, keyword) in REFUSED:
        with pytest.raises(InputError, match=f"^{keyword} must be"):
            unpaired.match(**arguments)
        return
    found = unpaired.match(**arguments)
    assert told(found) != told(matched(kind))
    if keyword == "pairs":
        np.testing.assert_array_equal(found.partner[value[:, 0]], value[:, 1])
    if keyword == "forbidden":
        assert (found.partner[value[:, 0]] != value[:, 1]).all()
    if keyword == "start":
        assert "given start" in " ".join(found.objective.per_start)
    if keyword == "class_sizes":
        assert np.bincount(found.partner).max() <= value[0]
    if keyword == "min_confidence":
        assert (found.partner >= 0).sum() == (matched(kind).confidence >= value).sum()


def test_the_walk_names_every_keyword():
    parameters = set(inspect.signature(unpaired.match).parameters)
    assert parameters == {*keywords("tiny"), "x", "y", "random_state", "n_jobs"}
    assert set(inspect.signature(unpaired.matching.align).parameters) == parameters - {
        "relation",
        "class_sizes",
    }


@pytest.mark.parametrize(
    "keyword", ["pairs", "forbidden", "similarity", "shared", "weights", "start", "leave_out"]
)
def test_align_takes_a_keyword_as_match_does(keyword):
    arguments = {**plain_problem("tiny"), keyword: keywords("tiny")[keyword]}
    assert told(matching.align(**arguments).match) == told(unpaired.match(**arguments))


@pytest.mark.parametrize("kind", KINDS)
def test_jobs_change_nothing_but_wrong_ones_are_refused(kind):
    problem = plain_problem(kind)
    assert told(unpaired.match(**problem, n_jobs=2)) == told(matched(kind))
    with pytest.raises(InputError, match="n_jobs must be"):
        unpaired.match(**problem, n_jobs=0)


def test_the_seed_reaches_what_is_random():
    """Names of many-to-one groups come from random starts, so their probabilities differ."""
    problem = plain_problem("many")
    assert told(unpaired.match(**problem, random_state=1)) != told(matched("many"))


# The classifier


@pytest.fixture(scope="module")
def pile():
    x, y, known = classes()
    labels = np.full(N, -1)
    labels[known[:, 0]] = known[:, 1]
    return x, y, labels


def classify(pile, with_labels, **params):
    x, y, labels = pile
    given = {"random_state": 0, **params}
    model = unpaired.UnsupervisedClassifier(**given)
    model.fit(x, y, labels if with_labels else None)
    traced = [step.tolist() for step in model.trace_]
    return model.predict_proba(x).tolist(), traced, model.history_


@pytest.mark.parametrize("with_labels", [False, True])
@pytest.mark.parametrize(
    "change",
    [{"classifier": "logistic"}, {"classifier": "svm"}, {"n_rounds": 1}, {"random_state": 1}],
)
def test_a_parameter_of_the_classifier_changes_it(change, with_labels, pile):
    plain, other = classify(pile, with_labels), classify(pile, with_labels, **change)
    if change == {"classifier": "logistic"} and not with_labels:
        assert plain == other  # as its description says
        return
    assert plain != other
    if "classifier" in change:
        assert plain[0] != other[0]


def test_labels_and_a_second_description_change_the_classifier(pile):
    x, y, labels = pile
    fits = [
        unpaired.UnsupervisedClassifier(random_state=0).fit(x, vectors, given).predict_proba(x)
        for vectors, given in ((y, None), (y, labels), ([y, y[:, :3] ** 3], None))
    ]
    assert not np.array_equal(fits[0], fits[1])
    parameters = set(inspect.signature(unpaired.UnsupervisedClassifier.__init__).parameters)
    assert parameters == {"self", "classifier", "n_rounds", "random_state"}
    several = unpaired.UnsupervisedClassifier(random_state=0).fit(x, [y, y[:, :3] ** 3])
    alone = unpaired.UnsupervisedClassifier(random_state=0).fit(x, y)
    assert float(several.match_.objective) != float(alone.match_.objective)
