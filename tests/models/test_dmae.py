"""DMAE: what it finds, keeps and refuses, and that its match is read from its scores."""

import warnings

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import unpaired
from unpaired import _random, matching
from unpaired.evaluation.retrieval import foscttm, recall_at_k
from unpaired.models import dmae
from unpaired.models.dmae import LEAST_ROWS
from unpaired.spaces import space as space_module
from unpaired.spaces.readout import SURE

FAST = {"n_epochs": 1, "hidden": (16,)}
SOFT = {**FAST, "n_rounds": 2}


def two_views(n, rng, noise=0.05, n_factors=6):
    """Two nonlinear views of the same factors; row i of both belongs together."""
    factors = rng.standard_normal((n, n_factors)) * np.linspace(2.0, 0.8, n_factors)
    lift = np.random.default_rng(99)  # the same two worlds for every draw of rows
    to_x, to_y = lift.standard_normal((n_factors, 20)), lift.standard_normal((n_factors, 15))
    x = np.tanh(0.15 * factors @ to_x) + noise * rng.standard_normal((n, 20))
    y = factors @ to_y + noise * rng.standard_normal((n, 15))
    return x, y


def first_rows(n_known):
    """Row i belongs to row i, known for the first rows."""
    return np.column_stack([np.arange(n_known)] * 2)


def test_constructor_only_stores_and_clone_keeps_every_parameter():
    params = {"relation": "one2one", "n_latent": -3, "random_state": 5, "hidden": (7,)}
    model = unpaired.DMAE(**params)  # wrong values are found by fit, not here
    copied = clone(model).get_params()
    assert {name: copied[name] for name in params} == params
    assert model.set_params(relation="many-to-one").relation == "many-to-one"


def test_supervised_retrieval_of_unseen_rows(seed):
    rng = np.random.default_rng(seed)
    x, y = two_views(500, rng)
    model = unpaired.DMAE(random_state=seed).fit(x[:400], y[:400], pairs="aligned")
    scores = model.score_matrix(x[400:], y[400:])
    assert recall_at_k(scores, np.arange(100), ks=(1,))["R@1"] >= 0.9
    np.testing.assert_array_equal(model.match_.partner, np.arange(400))
    np.testing.assert_array_equal(model.match_.confidence, np.ones(400))


def test_ten_percent_of_pairs_solve_the_toy_and_stay_fixed(seed):
    rng = np.random.default_rng(seed)
    x, y = two_views(300, rng)
    order = rng.permutation(300)  # y[i] is the partner of x[order[i]]
    truth = np.argsort(order)
    known = np.column_stack([np.arange(30), truth[:30]])
    model = unpaired.DMAE(random_state=seed).fit(x, y[order], pairs=known)
    np.testing.assert_array_equal(model.match_.partner[:30], truth[:30])
    assert (model.match_.partner == truth).mean() >= 0.9


@pytest.mark.parametrize("n_known", [0, 3])
def test_without_many_pairs_the_answer_is_that_of_the_engine(n_known, seed):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((150, 8)) * np.linspace(3.0, 1.0, 8)
    rotation = np.linalg.qr(rng.standard_normal((8, 8)))[0]
    order = rng.permutation(150)
    y = (x @ rotation + 0.02 * rng.standard_normal((150, 8)))[order]
    truth = np.argsort(order)
    known = np.column_stack([np.arange(n_known), truth[:n_known]])
    model = unpaired.DMAE(random_state=seed).fit(x, y, known)
    assert (model.match_.partner == truth).mean() >= 0.95
    assert model.match_.trusted
    found = unpaired.match(x, y, known, random_state=_random.derive_seed(model.seed_, "match"))
    for name in ("partner", "confidence", "runner_up", "margin"):
        np.testing.assert_array_equal(getattr(model.match_, name), getattr(found, name))
    assert model.match_.objective.per_start == found.objective.per_start
    unseen = rng.standard_normal((40, 8)) * np.linspace(3.0, 1.0, 8)
    assert foscttm(model.score_matrix(unseen, unseen @ rotation)) < 0.02


def test_without_many_pairs_rows_of_y_keep_their_numbers_where_captions_were_merged(rng):
    x = rng.standard_normal((100, 8)) * np.linspace(3.0, 1.0, 8)
    y = x @ np.linalg.qr(rng.standard_normal((8, 8)))[0]
    captions = np.concatenate([y[:1] + 0.01, y])  # two of row 0, and then the others
    pairs = np.array([(0, 0), (0, 1)])
    match = unpaired.DMAE(random_state=0).fit(x, captions, pairs).match_
    assert (match.partner[1:] == np.arange(2, 101)).mean() >= 0.95
    near = np.argsort(np.square(captions[:, None] - y).sum(2), axis=0)  # of each row of y
    second = [next(k for k in near[:, row] if k != match.partner[row]) for row in range(1, 100)]
    assert (match.runner_up[1:] == second).mean() >= 0.8


def test_same_seed_same_bits():
    x, y = two_views(80, np.random.default_rng(0))
    fits = [unpaired.DMAE(**SOFT, random_state=3).fit(x, y, first_rows(12)) for _ in range(2)]
    np.testing.assert_array_equal(fits[0].match_.partner, fits[1].match_.partner)
    np.testing.assert_array_equal(fits[0].transform_x(x), fits[1].transform_x(x))
    assert fits[0].history_ == fits[1].history_


def test_no_seed_draws_one_and_says_which():
    x, y = two_views(40, np.random.default_rng(0))
    first = unpaired.DMAE(**FAST).fit(x, y, pairs="aligned")
    again = unpaired.DMAE(**FAST, random_state=first.seed_).fit(x, y, pairs="aligned")
    np.testing.assert_array_equal(first.transform_y(y), again.transform_y(y))


@pytest.mark.parametrize(("n_x", "n_y"), [(60, 90), (90, 60)])
@pytest.mark.parametrize("n_known", [0, 20])
def test_unequal_sizes_leave_rows_out_one_to_one(n_x, n_y, n_known):
    x, y = two_views(90, np.random.default_rng(0))
    params = SOFT if n_known else {}
    model = unpaired.DMAE(**params, random_state=0).fit(x[:n_x], y[:n_y], first_rows(n_known))
    match = model.match_
    used = match.partner[match.partner >= 0]
    assert len(used) == min(n_x, n_y) == len(set(used.tolist()))
    assert len(match) == n_x
    assert np.isnan(match.margin[match.partner < 0]).all()
    assert (match.confidence[match.partner < 0] == 0).all()


def test_a_row_may_have_several_known_partners():
    x, y = two_views(60, np.random.default_rng(1))
    captions = np.repeat(y, 2, axis=0) + 0.01
    pairs = np.column_stack([np.repeat(np.arange(60), 2), np.arange(120)])
    model = unpaired.DMAE(**FAST, random_state=0).fit(x, captions, pairs=pairs)
    np.testing.assert_array_equal(model.match_.partner, 2 * np.arange(60))
    half = unpaired.DMAE(**SOFT, random_state=0).fit(x, captions, pairs=pairs[:40])
    np.testing.assert_array_equal(half.match_.partner[:20], 2 * np.arange(20))
    assert not set(half.match_.partner[20:].tolist()) & set(range(40))


@pytest.mark.parametrize(
    ("relation", "n_known"), [("one-to-one", 0), ("one-to-one", 12), ("many-to-one", 0)]
)
def test_save_and_load_give_the_same_model(tmp_path, relation, n_known):
    x, y = two_views(70, np.random.default_rng(2))
    y = y[:7] if relation == "many-to-one" else y
    params = {} if relation == "one-to-one" and not n_known else FAST
    model = unpaired.DMAE(**params, relation=relation, random_state=0).fit(
        x, y, first_rows(n_known)
    )
    model.save(tmp_path / "model")
    loaded = unpaired.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.score_matrix(x, y), model.score_matrix(x, y))
    for name in ("partner", "confidence", "runner_up", "margin"):
        np.testing.assert_array_equal(getattr(loaded.match_, name), getattr(model.match_, name))
    assert loaded.match_.objective == model.match_.objective
    assert loaded.match_.objective.per_start == model.match_.objective.per_start
    assert (loaded.history_, loaded.notes_) == (model.history_, model.notes_)
    assert loaded.get_params() == model.get_params()
    for again, before in zip(loaded.trace_, model.trace_, strict=True):
        np.testing.assert_array_equal(again, before)
    assert {p.name for p in (tmp_path / "model").iterdir()} == {"config.json", "arrays.safetensors"}


def test_scores_come_in_blocks_that_agree_with_one_go(monkeypatch):
    x, y = two_views(50, np.random.default_rng(0))
    model = unpaired.DMAE(**FAST, random_state=0).fit(x, y, pairs="aligned")
    whole = model.transform_x(x)
    monkeypatch.setattr(space_module, "BLOCK_ROWS", 7)
    np.testing.assert_allclose(model.transform_x(x), whole, atol=1e-5)


@pytest.mark.parametrize(
    ("x", "y", "n_pairs"),
    [
        (np.arange(20.0)[:, None], np.arange(20.0)[:, None] ** 2, 0),  # 1-d inputs
        (np.arange(20.0)[:, None], np.arange(20.0)[:, None] ** 2, 12),
        (np.c_[np.ones(20), np.random.default_rng(0).random((20, 3))], np.eye(20), 0),
        (np.c_[np.ones(20), np.random.default_rng(0).random((20, 3))], np.eye(20), 20),
        (np.random.default_rng(0).random((12, 10_000)), np.eye(12)[:, :11], 0),
        (np.random.default_rng(0).random((12, 10_000)), np.eye(12)[:, :11], 10),
        (np.random.default_rng(0).random((9, 4)), np.random.default_rng(1).random((5, 3)), 5),
        (np.repeat(np.eye(3), 8, 0), np.repeat(np.eye(3), 8, 0)[:, :2], 16),  # repeated rows
        (1.0 + np.eye(20)[:, 18:], np.random.default_rng(0).random((20, 4)), 16),  # two rows differ
        (1e12 * np.random.default_rng(0).random((20, 3)), 1e-12 * np.eye(20), 16),
    ],
)  # fmt: skip
def test_hard_shapes_never_give_nan(x, y, n_pairs):
    params = {**FAST, "batch_size": 8} if n_pairs >= LEAST_ROWS else {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = unpaired.DMAE(**params, random_state=0).fit(x, y, pairs=first_rows(n_pairs))
    assert np.isfinite(model.score_matrix(x, y)).all()
    assert all(np.isfinite(v) for step in model.history_ for v in step.values())


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"relation": "one"}, 'Unknown relation "one"'),
        ({"n_latent": 0}, "n_latent must be a whole number of at least 1: got 0."),
        ({"learning_rate": "big"}, "learning_rate must be a number of at least 1e-12: got 'big'."),
        ({"ridge": -1.0}, "ridge must be a number"),
        ({"soft_weight": -0.1}, "soft_weight must be a number of at least 0"),
        ({"hidden": 16}, "hidden must be"),
        ({"hidden": (16, 0)}, "hidden must be"),
        ({"device": "gpu"}, 'device must be "auto" or a torch device'),
        ({"random_state": -1}, "random_state must be None, a non-negative integer"),
    ],
)
def test_wrong_parameters_are_named(params, message):
    x, y = two_views(20, np.random.default_rng(0))
    with pytest.raises(unpaired.InputError) as caught:
        unpaired.DMAE(**{**FAST, **params}).fit(x, y, "aligned")
    assert message in str(caught.value)


def test_use_before_fit_and_wrong_width_are_refused():
    x, y = two_views(30, np.random.default_rng(0))
    for use in ("transform_x", "transform_y", "score_matrix"):
        with pytest.raises(NotFittedError, match="call fit first"):
            getattr(unpaired.DMAE(), use)(*([x, y] if use == "score_matrix" else [x]))
    model = unpaired.DMAE(**FAST, random_state=0).fit(x, y, pairs="aligned")
    with pytest.raises(unpaired.InputError, match="20 columns"):
        model.transform_x(x[:, :3])


def test_divergence_is_reported_not_returned():
    x, y = two_views(60, np.random.default_rng(0))
    with pytest.raises(unpaired.ConvergenceError, match="Try a smaller learning_rate"):
        unpaired.DMAE(learning_rate=1e30, n_epochs=20, random_state=0).fit(x, y, "aligned")


# The match is read from the scores


@pytest.mark.parametrize("n_known", [20, 80])
def test_the_match_agrees_with_the_scores(n_known):
    """Free rows are assigned, and described, by score_matrix itself."""
    x, y = two_views(110, np.random.default_rng(3), noise=0.4)
    y = y[:100]
    model = unpaired.DMAE(**SOFT, random_state=0).fit(x, y, first_rows(n_known))
    free_x, free_y = np.arange(n_known, 110), np.arange(n_known, 100)
    scores = model.score_matrix(x[free_x], y[free_y]).astype(np.float64)
    rows, columns = linear_sum_assignment(-scores)
    partner = np.full(110, -1)
    partner[:n_known] = np.arange(n_known)
    partner[free_x[rows]] = free_y[columns]
    match = model.match_
    np.testing.assert_array_equal(match.partner, partner)
    unit = scores.std()  # margins are told in units of the spread of the scores
    shares = []
    for row, column in zip(rows, columns, strict=True):
        others = np.delete(np.arange(len(free_y)), column)
        best = others[scores[row, others].argmax()]
        assert match.runner_up[free_x[row]] == free_y[best]
        gap = (scores[row, column] - scores[row, best]) / unit
        assert match.margin[free_x[row]] == pytest.approx(gap, rel=1e-3, abs=1e-3)
        shares.append((match.confidence[free_x[row]], scores[row] / unit, column))
    np.testing.assert_array_equal(match.confidence[:n_known], 1.0)
    assert max(share for share, _, _ in shares) <= SURE
    # One temperature explains all confidences: shares of a softmax of the same scores.
    heats = np.geomspace(0.03, 3.0, 40)
    errors = []
    for heat in heats:
        told = [np.exp(s[c] / heat) / np.exp(s / heat).sum() for _, s, c in shares]
        found = [share for share, _, _ in shares]
        errors.append(np.abs(np.minimum(told, SURE) - found).max())
    assert min(errors) < 2e-3


def test_many_to_one_rows_without_a_label_take_their_best_class(seed):
    rng = np.random.default_rng(seed)
    truth = rng.permutation(np.repeat(np.arange(4), 25))
    centres = 3.0 * rng.standard_normal((4, 8))
    x = centres[truth] + 0.5 * rng.standard_normal((100, 8))
    y = centres @ rng.standard_normal((8, 6))
    rows = np.concatenate([np.flatnonzero(truth == cls)[:4] for cls in range(4)])
    known = np.column_stack([rows, truth[rows]])
    model = unpaired.DMAE(**SOFT, relation="many-to-one", random_state=0).fit(x, y, known)
    free = np.setdiff1d(np.arange(100), rows)
    scores = model.score_matrix(x[free], y)
    np.testing.assert_array_equal(model.match_.partner[free], scores.argmax(1))
    np.testing.assert_array_equal(model.match_.partner[rows], truth[rows])
    ordered = np.sort(scores, axis=1)
    expected = (ordered[:, -1] - ordered[:, -2]) / scores.std()
    np.testing.assert_allclose(model.match_.margin[free], expected, rtol=1e-3, atol=1e-3)
    assert (model.match_.partner == truth).mean() > 0.9


def test_classes_that_nobody_named_are_no_surer_than_their_names():
    rng = np.random.default_rng(1)
    centres = 3.0 * rng.standard_normal((3, 8))
    x = centres[rng.integers(3, size=90)] + 0.4 * rng.standard_normal((90, 8))
    model = unpaired.DMAE(**SOFT, relation="many-to-one", random_state=4)
    without = {"soft_weight": None, "n_rounds": None}
    found = model.set_params(**without).fit(x, centres).match_
    named = unpaired.match(x, centres, relation="many-to-one", random_state=4)
    assert (found.confidence <= named.confidence).all()
    assert named.confidence.max() < 0.5  # three names have six orders


def test_scores_are_products_of_the_two_transforms():
    x, y = two_views(60, np.random.default_rng(0))
    for n_known in (0, 30):
        params = FAST if n_known else {}
        model = unpaired.DMAE(**params, random_state=0).fit(x, y, first_rows(n_known))
        product = model.transform_x(x[:7]) @ model.transform_y(y[:9]).T
        np.testing.assert_allclose(model.score_matrix(x[:7], y[:9]), product, atol=1e-4)


def test_the_trace_holds_known_pairs_and_the_partners_of_each_turn():
    x, y = two_views(90, np.random.default_rng(0), noise=0.3)
    model = unpaired.DMAE(**SOFT, random_state=0).fit(x, y, first_rows(70))
    assert len(model.trace_) == 3  # two soft turns and the last
    for pairs in model.trace_:
        np.testing.assert_array_equal(pairs[:70], first_rows(70))
        assert pairs[70:].min() >= 70
        assert len(np.unique(pairs[:, 0])) == len(pairs)
    told = [step["changed"] for step in model.history_ if "changed" in step]
    for before, after, changed in zip(model.trace_, model.trace_[1:], told[1:], strict=False):
        assert changed == pytest.approx((before[70:, 1] != after[70:, 1]).mean())


# Scores without and with pairs


def test_score_tells_a_good_model_from_a_bad_one():
    rng = np.random.default_rng(0)
    x, y = two_views(300, rng)
    good = unpaired.DMAE(**FAST, random_state=0).fit(x[:200], y[:200], pairs="aligned")
    wrong = np.column_stack([np.arange(200), rng.permutation(200)])
    bad = unpaired.DMAE(**FAST, random_state=0).fit(x[:200], y[:200], pairs=wrong)
    assert good.score(x[200:], y[200:], "aligned") > 0.95
    assert bad.score(x[200:], y[200:], "aligned") < 0.7
    assert good.score(x[200:], y[200:], "aligned") == pytest.approx(
        1.0 - foscttm(good.score_matrix(x[200:], y[200:]))
    )
    shuffled = rng.permutation(100)
    assert good.score(x[200:], y[200:][shuffled]) == pytest.approx(good.score(x[200:], y[200:]))
    assert good.score(x[200:], y[200:]) > bad.score(x[200:], y[200:])


def test_grid_search_chooses_without_labels():
    from sklearn.model_selection import GridSearchCV

    x, y = two_views(120, np.random.default_rng(0))
    search = GridSearchCV(unpaired.DMAE(**FAST, random_state=0), {"ridge": [1e-3, 4.0]}, cv=2)
    search.fit(x, y, pairs="aligned")
    assert search.best_params_["ridge"] in (1e-3, 4.0)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


# What it begins from


def test_a_start_of_ones_own_is_checked_and_used():
    x, y = two_views(60, np.random.default_rng(0))
    with pytest.raises(unpaired.InputError, match="start must name rows of y between 0 and 59"):
        unpaired.DMAE(**SOFT).fit(x, y, start=np.full(60, 99))
    with pytest.raises(unpaired.InputError, match="start must hold whole row numbers"):
        unpaired.DMAE(**SOFT).fit(x, y, start=np.arange(60) + 0.5)
    right = unpaired.DMAE(**SOFT, random_state=0).fit(x, y, start=np.arange(60))
    plan = unpaired.DMAE(**SOFT, random_state=0).fit(x, y, start=3.0 * np.eye(60))
    assert np.array_equal(plan.match_.partner, right.match_.partner)
    assert (right.match_.partner == np.arange(60)).mean() > 0.9
    wrong = unpaired.DMAE(**SOFT, random_state=0).fit(x, y, start=np.roll(np.arange(60), 9))
    assert (wrong.match_.partner == np.arange(60)).mean() < 0.5


def test_few_known_pairs_start_from_the_matching_engine(rng, monkeypatch):
    """A start stands for the first rounds, and a known image's captions reach the engine as one."""
    factors = rng.standard_normal((90, 8))
    x = factors @ rng.standard_normal((8, 12)) + 0.3 * rng.standard_normal((90, 12))
    y = np.tanh(factors @ rng.standard_normal((8, 9))) + 0.3 * rng.standard_normal((90, 9))
    twice = np.concatenate([y, y[:12] + 0.1])
    pairs = np.array([(row, row) for row in range(12)] + [(row, 90 + row) for row in range(12)])
    seen = []

    def engine(problem, seed):
        seen.append((len(problem.y), problem.known.tolist()))
        return matching.solve(problem, seed)

    learn, starts = dmae.learn, []

    def learned(*arguments, start, **options):
        starts.append(start)
        return learn(*arguments, start=start, **options)

    monkeypatch.setattr(dmae, "solve", engine)
    monkeypatch.setattr(dmae, "learn", learned)
    model = unpaired.DMAE(n_epochs=0, random_state=0).fit(x, twice, pairs)
    assert float(starts[0].peaks().mean()) > 5 / 78  # a plan with an opinion, of 78 free rows
    assert seen == [(90, [[row, row] for row in range(12)])]
    assert len(model.history_) == 7  # three of nine soft turns are skipped, then the last
    assert model.match_.partner[:12].tolist() == list(range(12))
    assert model.match_.n_y == 102
    assert model.notes_[0] == "The matching engine gave the start."
    model = unpaired.DMAE(n_epochs=0, random_state=0).fit(x, y, first_rows(70))
    assert len(model.history_) == 10
    assert len(seen) == 1


@pytest.mark.parametrize(("related", "level"), [(True, "reliable"), (False, "unreliable")])
def test_held_out_pairs_that_are_named_make_the_verdict_reliable(related, level):
    rng = np.random.default_rng(8)
    x, y = two_views(150, rng, noise=0.01)
    y = y if related else rng.standard_normal(y.shape)
    model = unpaired.DMAE(random_state=0, **SOFT).fit(x, y, pairs=first_rows(50))
    assert model.verdict_.level == level


def test_labels_that_are_held_out_say_how_many_are_named_right():
    rng = np.random.default_rng(9)
    classes, labels = 3.0 * rng.standard_normal((6, 9)), rng.integers(6, size=150)
    x = classes[labels] @ rng.standard_normal((9, 20)) + rng.standard_normal((150, 20))
    pairs = np.column_stack([np.arange(40), labels[:40]])
    model = unpaired.DMAE(relation="many-to-one", random_state=0, **SOFT).fit(x, classes, pairs)
    (said,) = [reason for reason in model.verdict_.reasons if "held out" in reason]
    assert int(said.rpartition(" ")[2].rstrip("%")) >= 80
    assert model.verdict_.level == "reliable"
