"""Every method of the registry on toys it must solve, saved, repeated and misused."""

import importlib.util

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import unpaired
from unpaired.baselines.base import TwoViewMethod
from unpaired.errors import DataError, InputError
from unpaired.evaluation.retrieval import both_ways
from unpaired.registry import methods

HAS_POT = importlib.util.find_spec("ot") is not None
GEOMETRIC = ("ks", "convex-ks", "lsom", "gromov-wasserstein")
PARTLY_PAIRED = ("mcca", "deep-mcca", "wasserstein-procrustes")
UNPAIRED = (*GEOMETRIC, *PARTLY_PAIRED)
PAIRED = tuple(name for name in methods if name not in UNPAIRED)
PAPER = [
    "cca",
    "kcca",
    "hsic-cca",
    "deep-cca",
    "hsic-deep-cca",
    "two-way",
    "revise-b",
    "devise",
    "corrnet",
    "correspondence-ae",
    "bimodal-ae",
    "ks",
    "convex-ks",
    "lsom",
    "mcca",
    "deep-mcca",
    "infonce",
    "procrustes",
    "ridge",
    "asif",
    "wasserstein-procrustes",
    "gromov-wasserstein",
]


def make(name, **params):
    if name == "gromov-wasserstein" and not HAS_POT:
        pytest.skip("POT is not installed")
    return methods[name](random_state=0, **params)


def two_views(n, rng, noise=0.05, n_factors=10):
    """Two views of the same factors, one of them bent; row i of both belongs together."""
    factors = rng.standard_normal((n, n_factors)) * np.linspace(1.5, 0.8, n_factors)
    lift = np.random.default_rng(99)  # the same two worlds for every draw of rows
    to_x, to_y = lift.standard_normal((n_factors, 20)), lift.standard_normal((n_factors, 15))
    x = np.tanh(0.15 * factors @ to_x) + noise * rng.standard_normal((n, 20))
    y = factors @ to_y + noise * rng.standard_normal((n, 15))
    return x, y


def isometric(n, rng, noise=0.0):
    """Rows, a shuffled rotation of them, and the true partner of each row of x."""
    x = rng.standard_normal((n, 8)) * np.linspace(3.0, 1.0, 8)
    rotation = np.linalg.qr(rng.standard_normal((8, 8)))[0]
    order = rng.permutation(n)
    y = (x @ rotation + noise * rng.standard_normal((n, 8)))[order]
    return x, y, np.argsort(order)


def clustered(n, rng, n_clusters=60):
    """Views whose rows resemble a few others, as photographs do: what anchors need."""
    centres = rng.standard_normal((n_clusters, 12))
    factors = centres[rng.integers(n_clusters, size=n)] + 0.5 * rng.standard_normal((n, 12))
    turn = np.linalg.qr(np.random.default_rng(7).standard_normal((12, 12)))[0]
    return factors, factors @ turn + 0.02 * rng.standard_normal((n, 12))


def test_every_method_of_the_paper_is_registered():
    assert sorted(methods) == sorted(PAPER)
    assert all(methods.about[name] for name in methods)


@pytest.mark.parametrize("name", PAIRED)
def test_paired_methods_retrieve_unseen_rows(name, seed):
    rng = np.random.default_rng(seed)
    x, y = clustered(2000, rng) if name == "asif" else two_views(1300, rng)
    n = len(x) - 1000
    params = {"n_nearest": 100} if name == "asif" else {}
    model = make(name, **params).fit(x[:n], y[:n], pairs="aligned")
    # Ten times a hundred unseen rows: of one hundred, Procrustes finds 92 with a spread of 2.5.
    recalls = [
        both_ways(model.score_matrix(x[b : b + 100], y[b : b + 100]), np.arange(100), ks=(1,))
        for b in range(n, len(x), 100)
    ]
    assert min(np.mean([r[way] for r in recalls]) for way in recalls[0]) >= 0.9
    np.testing.assert_array_equal(model.match_.partner, np.arange(n))


@pytest.mark.parametrize("name", UNPAIRED)
def test_unpaired_methods_match_from_a_tenth_of_the_pairs(name, seed):
    rng = np.random.default_rng(seed)
    n = 200
    if name in GEOMETRIC:
        x, y, truth = isometric(n, rng, noise=0.02)
    else:
        x, y = two_views(n, rng)
        order = rng.permutation(n)
        y, truth = y[order], np.argsort(order)
    known = np.column_stack([np.arange(n // 10), truth[: n // 10]])
    model = make(name).fit(x, y, pairs=known)
    np.testing.assert_array_equal(model.match_.partner[: n // 10], truth[: n // 10])
    assert (model.match_.partner == truth).mean() >= 0.9


@pytest.mark.parametrize("name", GEOMETRIC)
def test_geometric_methods_need_no_pairs_on_an_isometric_toy(name, seed):
    x, y, truth = isometric(100, np.random.default_rng(seed))
    model = make(name).fit(x, y)
    assert (model.match_.partner == truth).mean() >= 0.9
    assert both_ways(model.score_matrix(x, y[truth]), np.arange(100), ks=(1,))["x->y R@1"] >= 0.9


@pytest.mark.parametrize("name", methods)
def test_same_seed_same_bits_and_a_round_trip_through_files(name, tmp_path):
    x, y = two_views(40, np.random.default_rng(1))
    known = np.column_stack([np.arange(30), np.arange(30)])
    params = {"n_restarts": 2} if name == "wasserstein-procrustes" else {}
    model = make(name, **params).fit(x, y, pairs=known)
    again = clone(model).fit(x, y, pairs=known)
    np.testing.assert_array_equal(model.transform_x(x), again.transform_x(x))
    np.testing.assert_array_equal(model.match_.partner, again.match_.partner)
    model.save(tmp_path / "model")
    loaded = unpaired.load(tmp_path / "model")
    assert type(loaded) is type(model)
    assert loaded.get_params() == model.get_params()
    np.testing.assert_array_equal(loaded.score_matrix(x, y), model.score_matrix(x, y))
    np.testing.assert_array_equal(loaded.match_.partner, model.match_.partner)


@pytest.mark.parametrize("case", ["five pairs", "one column", "constant columns", "small batch"])
@pytest.mark.parametrize("name", methods)
def test_hard_cases_stay_finite(name, case):
    rng = np.random.default_rng(2)
    x, y = two_views(24, rng)
    pairs = np.column_stack([np.arange(16), np.arange(16)])
    params = {}
    if case == "five pairs":
        pairs = pairs[:5]
    elif case == "one column":
        x, y = x[:, :1], y[:, :1]
    elif case == "constant columns":
        x, y = np.c_[x, np.ones((24, 3))], np.c_[np.zeros((24, 2)), y]
    elif "batch_size" in methods[name]().get_params():
        params = {"batch_size": 8}
    model = make(name, **params).fit(x, y, pairs=pairs)
    assert np.isfinite(model.score_matrix(x, y)).all()
    assert all(np.isfinite(step["loss"]) for step in model.history_)


@pytest.mark.parametrize("name", methods)
def test_misuse_is_explained(name):
    x, y = two_views(12, np.random.default_rng(3))
    kind = methods[name]
    with pytest.raises(NotFittedError, match="not fitted yet"):
        kind().transform_x(x)
    with pytest.raises(InputError, match="x must be finite"):
        make(name).fit(np.full((4, 2), np.nan), y)
    with pytest.raises(InputError, match="random_state must be"):
        kind(random_state=-1).fit(x, y, pairs="aligned")
    if issubclass(kind, TwoViewMethod):
        if kind.least_pairs:
            with pytest.raises(InputError, match="learns from known pairs and needs at least 2"):
                kind().fit(x, y)
        for parameter in kind().get_params():
            if parameter.startswith(("n_", "ridge")) and parameter != "n_epochs":
                with pytest.raises(InputError, match=parameter):
                    kind(**{parameter: -1}).fit(x, y, pairs="aligned")


def test_other_columns_than_in_fit_are_named():
    x, y = two_views(30, np.random.default_rng(4))
    model = make("cca").fit(x, y, pairs="aligned")
    with pytest.raises(InputError, match="x must have the 20 columns seen in fit: it has 3"):
        model.transform_x(x[:, :3])


def test_a_missing_pot_is_told(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "ot", None)
    x, y = two_views(12, np.random.default_rng(5))
    with pytest.raises(DataError, match="needs the package POT"):
        methods["gromov-wasserstein"]().fit(x, y)


def test_several_captions_of_one_image(seed):
    rng = np.random.default_rng(seed)
    x, y = two_views(120, rng)
    owner = np.repeat(np.arange(120), 3)
    captions = y[owner] + 0.02 * rng.standard_normal((360, y.shape[1]))
    pairs = np.column_stack([owner, np.arange(360)])
    for name in ("cca", "infonce", "asif", "ks", "mcca"):
        model = make(name).fit(x, captions, pairs=pairs)
        assert np.isfinite(model.score_matrix(x, captions)).all()
    for name in ("cca", "two-way"):
        scores = make(name).fit(x, captions, pairs=pairs).score_matrix(x, captions)
        assert both_ways(scores, owner, ks=(1,))["x->y R@1"] >= 0.9
