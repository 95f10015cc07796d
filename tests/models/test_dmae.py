import warnings
from dataclasses import replace

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from unpaired.matching.soft_match import SURE

import unpaired
from unpaired.evaluation.retrieval import recall_at_k
from unpaired.matching import align
from unpaired.math.dependence import MEASURES

FAST = {"n_rounds": 2, "n_epochs": 1, "hidden": (16,)}
FAST_PAPER = {**FAST, "preset": "paper", "n_pretrain_epochs": 2}


def two_views(n, rng, noise=0.05, n_factors=6):
    """Two nonlinear views of the same factors; row i of both belongs together."""
    factors = rng.standard_normal((n, n_factors)) * np.linspace(2.0, 0.8, n_factors)
    lift = np.random.default_rng(99)  # the same two worlds for every draw of rows
    to_x, to_y = lift.standard_normal((n_factors, 20)), lift.standard_normal((n_factors, 15))
    x = np.tanh(0.15 * factors @ to_x) + noise * rng.standard_normal((n, 20))
    y = factors @ to_y + noise * rng.standard_normal((n, 15))
    return x, y


def test_constructor_only_stores_and_clone_keeps_every_parameter():
    params = {"dependence": "hsci", "n_latent": -3, "random_state": 5, "hidden": (7,)}
    model = unpaired.DMAE(**params)  # wrong values are found by fit, not here
    copied = clone(model).get_params()
    assert {name: copied[name] for name in params} == params
    assert model.set_params(dependence="cka").dependence == "cka"


@pytest.mark.parametrize("dependence", sorted(MEASURES))
def test_supervised_retrieval_of_unseen_rows(dependence, seed):
    rng = np.random.default_rng(seed)
    x, y = two_views(500, rng)
    model = unpaired.DMAE(dependence, n_rounds=4, random_state=seed)
    model.fit(x[:400], y[:400], pairs="aligned")
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
    model = unpaired.DMAE(random_state=seed, n_rounds=4).fit(x, y[order], pairs=known)
    np.testing.assert_array_equal(model.match_.partner[:30], truth[:30])
    assert (model.match_.partner == truth).mean() >= 0.9


def test_no_pairs_on_a_rotated_copy(seed):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((150, 8)) * np.linspace(3.0, 1.0, 8)
    rotation = np.linalg.qr(rng.standard_normal((8, 8)))[0]
    order = rng.permutation(150)
    y = (x @ rotation + 0.02 * rng.standard_normal((150, 8)))[order]
    model = unpaired.DMAE(random_state=seed, n_rounds=3).fit(x, y)
    assert (model.match_.partner == np.argsort(order)).mean() >= 0.95
    changed = [step["changed"] for step in model.history_ if "changed" in step]
    assert len(changed) == len(model.trace_) - 1


def test_same_seed_same_bits():
    x, y = two_views(80, np.random.default_rng(0))
    fits = [unpaired.DMAE(**FAST, random_state=3).fit(x, y, pairs=[[0, 0]] * 1) for _ in range(2)]
    np.testing.assert_array_equal(fits[0].match_.partner, fits[1].match_.partner)
    np.testing.assert_array_equal(fits[0].transform_x(x), fits[1].transform_x(x))
    assert fits[0].history_ == fits[1].history_


def test_no_seed_draws_one_and_says_which():
    x, y = two_views(40, np.random.default_rng(0))
    first = unpaired.DMAE(**FAST).fit(x, y, pairs="aligned")
    again = unpaired.DMAE(**FAST, random_state=first.seed_).fit(x, y, pairs="aligned")
    np.testing.assert_array_equal(first.transform_y(y), again.transform_y(y))


@pytest.mark.parametrize(("n_x", "n_y"), [(60, 90), (90, 60)])
def test_unequal_sizes_leave_rows_out_one_to_one(n_x, n_y):
    x, y = two_views(90, np.random.default_rng(0))
    match = unpaired.DMAE(**FAST, random_state=0).fit(x[:n_x], y[:n_y]).match_
    used = match.partner[match.partner >= 0]
    assert len(used) == min(n_x, n_y) == len(set(used.tolist()))
    assert len(match) == n_x
    assert np.isnan(match.margin[match.partner < 0]).all()


def test_a_row_may_have_several_known_partners():
    x, y = two_views(60, np.random.default_rng(1))
    captions = np.repeat(y, 2, axis=0) + 0.01
    pairs = np.column_stack([np.repeat(np.arange(60), 2), np.arange(120)])
    model = unpaired.DMAE(**FAST, random_state=0).fit(x, captions, pairs=pairs)
    np.testing.assert_array_equal(model.match_.partner, 2 * np.arange(60))
    half = unpaired.DMAE(**FAST, random_state=0).fit(x, captions, pairs=pairs[:40])
    np.testing.assert_array_equal(half.match_.partner[:20], 2 * np.arange(20))
    assert not set(half.match_.partner[20:].tolist()) & set(range(40))


@pytest.mark.parametrize("relation", ["one-to-one", "many-to-one"])
def test_save_and_load_give_the_same_model(tmp_path, relation):
    x, y = two_views(70, np.random.default_rng(2))
    y = y[:7] if relation == "many-to-one" else y
    model = unpaired.DMAE(**FAST, relation=relation, random_state=0).fit(x, y)
    model.save(tmp_path / "model")
    loaded = unpaired.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.score_matrix(x, y), model.score_matrix(x, y))
    for name in ("partner", "confidence", "runner_up", "margin"):
        np.testing.assert_array_equal(getattr(loaded.match_, name), getattr(model.match_, name))
    assert loaded.match_.objective == model.match_.objective
    assert loaded.match_.objective.per_start == model.match_.objective.per_start
    assert loaded.history_ == model.history_
    assert loaded.get_params() == model.get_params()
    assert {p.name for p in (tmp_path / "model").iterdir()} == {"config.json", "arrays.safetensors"}


def test_loading_something_else_says_so(tmp_path):
    with pytest.raises(unpaired.DataError, match=r"does not hold a saved estimator"):
        unpaired.load(tmp_path)


def test_scores_come_in_blocks_that_agree_with_one_go(monkeypatch):
    x, y = two_views(50, np.random.default_rng(0))
    model = unpaired.DMAE(**FAST, random_state=0).fit(x, y, pairs="aligned")
    whole = model.transform_x(x)
    monkeypatch.setattr("unpaired.training.common_space.BLOCK_ROWS", 7)
    np.testing.assert_allclose(model.transform_x(x), whole, atol=1e-6)


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
    known = np.column_stack([np.arange(n_pairs)] * 2) if n_pairs else None
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = unpaired.DMAE(**FAST, batch_size=8, random_state=0).fit(x, y, pairs=known)
    assert np.isfinite(model.score_matrix(x, y)).all()
    assert all(np.isfinite(v) for step in model.history_ for v in step.values())


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"dependence": "hsci"}, 'Unknown dependence "hsci". Did you mean "hsic"? Known: cka'),
        ({"relation": "one"}, 'Unknown relation "one"'),
        ({"n_latent": 0}, "n_latent must be a whole number of at least 1: got 0."),
        ({"learning_rate": "big"}, "learning_rate must be a number of at least 1e-12: got 'big'."),
        ({"bandwidth_x": -1.0}, "bandwidth_x must be a number"),
        ({"random_state": -1}, "random_state must be None, a non-negative integer"),
    ],
)
def test_wrong_parameters_are_named(params, message):
    x, y = two_views(20, np.random.default_rng(0))
    with pytest.raises(unpaired.InputError) as caught:
        unpaired.DMAE(**{**FAST, **params}).fit(x, y)
    assert message in str(caught.value)


def test_use_before_fit_and_wrong_width_are_refused():
    x, y = two_views(30, np.random.default_rng(0))
    with pytest.raises(NotFittedError, match="call fit first"):
        unpaired.DMAE().transform_x(x)
    model = unpaired.DMAE(**FAST, random_state=0).fit(x, y, pairs="aligned")
    with pytest.raises(
        unpaired.InputError, match="x must have the 20 columns seen in fit: it has 3"
    ):
        model.transform_x(x[:, :3])


def test_divergence_is_reported_not_returned():
    x, y = two_views(60, np.random.default_rng(0))
    with pytest.raises(unpaired.ConvergenceError, match="Try a smaller learning_rate"):
        unpaired.DMAE(preset="paper", learning_rate=1e18, random_state=0).fit(x, y, "aligned")


# The published method


@pytest.mark.parametrize("dependence", sorted(MEASURES))
def test_the_papers_preset_learns_saves_and_scores_by_its_ratio(dependence, tmp_path):
    x, y = two_views(120, np.random.default_rng(0))
    model = unpaired.DMAE(dependence, **FAST_PAPER, random_state=0)
    model.fit(x[:90], y[:90], pairs="aligned")
    model.save(tmp_path / "model")
    scores = model.score_matrix(x[90:], y[90:])
    np.testing.assert_allclose(
        unpaired.load(tmp_path / "model").score_matrix(x[90:], y[90:]), scores, rtol=1e-5
    )
    assert np.isfinite(scores).all()
    assert {"reconstruction_x", "reconstruction_y", "dependence", "rank_x"} <= set(
        model.history_[-1]
    )
    np.testing.assert_array_equal(model.match_.partner, np.arange(90))


@pytest.mark.parametrize("relation", ["one-to-one", "many-to-one"])
def test_the_papers_preset_keeps_known_pairs(relation):
    x, y = two_views(60, np.random.default_rng(0))
    y = y if relation == "one-to-one" else y[:6]
    known = [[0, 3], [1, 2], [7, 0]]
    model = unpaired.DMAE("smi", **FAST_PAPER, relation=relation, random_state=0)
    model.fit(x, y, pairs=known)
    np.testing.assert_array_equal(model.match_.partner[[0, 1, 7]], [3, 2, 0])
    np.testing.assert_array_equal(model.match_.confidence[[0, 1, 7]], 1.0)
    assert model.match_.confidence.max() <= 1.0
    assert len(model.trace_) >= 2


def test_the_papers_constants_have_its_values():
    from unpaired.models.presets import PRESETS

    paper = PRESETS["paper"]
    assert (paper.dependence_weight, paper.sum_penalty) == (0.7, 1.0)
    assert paper.bandwidth_x**2 == pytest.approx(2.5)
    assert paper.bandwidth_y**2 == pytest.approx(0.5)
    assert len(paper.hidden) == 2  # and the latent layer: three encoding layers


# Scores without and with pairs


def test_score_tells_a_good_model_from_a_bad_one():
    rng = np.random.default_rng(0)
    x, y = two_views(300, rng)
    good = unpaired.DMAE(**FAST, random_state=0).fit(x[:200], y[:200], pairs="aligned")
    wrong = np.column_stack([np.arange(200), rng.permutation(200)])
    bad = unpaired.DMAE(**FAST, random_state=0).fit(x[:200], y[:200], pairs=wrong)
    assert good.score(x[200:], y[200:], "aligned") > 0.95
    assert bad.score(x[200:], y[200:], "aligned") < 0.7
    shuffled = rng.permutation(100)
    assert good.score(x[200:], y[200:][shuffled]) == pytest.approx(good.score(x[200:], y[200:]))
    assert good.score(x[200:], y[200:]) > bad.score(x[200:], y[200:])


def test_a_ridge_that_is_given_is_taken_as_it_is(monkeypatch):
    asked = []

    def choose(coordinates, rows, config, generator):
        asked.append(config.ridge)
        return config

    monkeypatch.setattr("unpaired.learning.learner.choose_ridge", choose)
    x, y = two_views(40, np.random.default_rng(0))
    unpaired.DMAE(**FAST, ridge=0.5, random_state=0).fit(x, y, pairs="aligned")
    assert not asked
    unpaired.DMAE(**FAST, random_state=0).fit(x, y, pairs="aligned")
    assert len(asked) == 1


def test_grid_search_chooses_without_labels():
    from sklearn.model_selection import GridSearchCV

    x, y = two_views(120, np.random.default_rng(0))
    search = GridSearchCV(unpaired.DMAE(**FAST, random_state=0), {"ridge": [1e-3, 4.0]}, cv=2)
    search.fit(x, y, pairs="aligned")
    assert search.best_params_["ridge"] in (1e-3, 4.0)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_without_pairs_it_takes_over_what_the_engine_found():
    rng = np.random.default_rng(5)
    x = np.r_[rng.standard_normal((60, 6)), rng.standard_normal((60, 6)) + 3]
    y = np.tanh(rng.permutation(x) @ rng.standard_normal((6, 5))) + rng.standard_normal((120, 5))
    model = unpaired.DMAE(random_state=0).fit(x, y)
    found = unpaired.match(x, y, random_state=unpaired._random.derive_seed(model.seed_, "match"))
    np.testing.assert_array_equal(model.match_.partner, found.partner)
    assert model.match_.trusted == found.trusted
    assert np.isfinite(model.score_matrix(x, y)).all()


@pytest.mark.parametrize(
    ("trusted", "kind", "grows"),
    [(True, "one round", True), (False, "one round", False), (True, "self-learned", False)],
)
def test_without_pairs_a_trusted_alignment_grows_and_is_matched_again(
    trusted, kind, grows, monkeypatch, tmp_path
):
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((12, 8))
    x, y = (
        (centres[rng.integers(12, size=150)] + 0.3 * rng.standard_normal((150, 8)))
        @ rng.standard_normal((8, width))
        for width in (12, 10)
    )
    judged = []

    def engine(x, y, known, random_state):
        found = align(x, y, known, random_state=random_state)
        judged.append(replace(found, kind=kind, match=replace(found.match, trusted=trusted)))
        return judged[0]

    monkeypatch.setattr("unpaired.models.dmae.align", engine)
    monkeypatch.setattr("unpaired.models.placing.SHARPNESS", 1e4)
    model = unpaired.DMAE(random_state=0).fit(x, y)
    scores = model.score_matrix(x, y)
    assert np.isfinite(scores).all()
    found = judged[0].match
    assert (model.match_.trusted, model.match_.gap) == (trusted, found.gap)
    if grows:
        rows = np.arange(150)
        assert scores[rows, model.match_.partner].sum() > scores[rows, found.partner].sum()
        assert sorted(model.match_.partner) == rows.tolist()
        assert len(model.trace_) == 2
        assert model.match_.confidence.max() == SURE  # however sharp the scores are
    else:
        assert len(model.trace_) == 1
        np.testing.assert_array_equal(model.match_.partner, found.partner)
    model.save(tmp_path / "model")
    np.testing.assert_allclose(unpaired.load(tmp_path / "model").score_matrix(x, y), scores)


def test_a_start_of_ones_own_is_checked_and_used():
    x, y = two_views(60, np.random.default_rng(0))
    with pytest.raises(unpaired.InputError, match="start must hold a row of y"):
        unpaired.DMAE(**FAST).fit(x, y, start=np.full(60, 99))
    model = unpaired.DMAE(**FAST, random_state=0).fit(x, y, start=np.arange(60))
    assert (model.match_.partner == np.arange(60)).mean() > 0.9


def test_few_known_pairs_start_from_the_matching_engine(rng, monkeypatch):
    """A start stands for the first rounds, and a known image's captions reach the engine as one."""
    factors = rng.standard_normal((150, 8))
    x = factors @ rng.standard_normal((8, 12)) + 0.3 * rng.standard_normal((150, 12))
    y = np.tanh(factors @ rng.standard_normal((8, 9))) + 0.3 * rng.standard_normal((150, 9))
    twice = np.concatenate([y, y[:12] + 0.1])
    pairs = np.array([(row, row) for row in range(12)] + [(row, 150 + row) for row in range(12)])
    seen = []

    def engine(x, y, known, random_state):
        seen.append((len(y), known.tolist()))
        return align(x, y, known, random_state=random_state)

    monkeypatch.setattr("unpaired.models.dmae.align", engine)
    model = unpaired.DMAE(n_epochs=0, random_state=0).fit(x, twice, pairs)
    assert seen == [(150, [[row, row] for row in range(12)])]
    assert len(model.history_) == 6
    assert model.match_.partner[:12].tolist() == list(range(12))
    assert model.match_.n_y == 162
    many = np.column_stack([np.arange(70), np.arange(70)])
    assert len(unpaired.DMAE(n_epochs=0, random_state=0).fit(x, y, many).history_) == 9
    assert len(seen) == 1
