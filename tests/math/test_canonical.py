"""Canonical maps from moments: against scikit-learn, an eigenproblem, Procrustes, and densities."""

import math
import warnings

import numpy as np
import pytest
import torch
from scipy.linalg import orthogonal_procrustes, sqrtm
from scipy.stats import multivariate_normal
from sklearn.cross_decomposition import CCA

from unpaired.math.canonical import Maps, Moments, canonical_maps, inverse_factor


@pytest.fixture
def views(rng):
    """Two centred views of 80 rows that share two directions."""
    shared = rng.normal(size=(80, 2))
    x = np.c_[shared + 0.3 * rng.normal(size=(80, 2)), rng.normal(size=(80, 2))]
    y = np.c_[shared * [2, 1] + 0.5 * rng.normal(size=(80, 2)), rng.normal(size=(80, 1))]
    x, y = x @ rng.normal(size=(4, 4)), y @ rng.normal(size=(3, 3))
    return torch.tensor(x - x.mean(0)), torch.tensor(y - y.mean(0))


def moments(x, y, weights=None):
    weights = torch.ones(len(x), dtype=x.dtype) if weights is None else weights
    weigh = weights[:, None]
    return Moments((weigh * x).T @ y, (weigh * x).T @ x, (weigh * y).T @ y, float(weights.sum()))


def maps(x, y, ridge=1e-9, width=9, **options):
    return canonical_maps(moments(x, y), (ridge, ridge), width=width, **options)


# Oracles


def test_a_tiny_ridge_agrees_with_scikit_learn(views):
    x, y = views
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn may stop at its iteration limit
        z_x, z_y = CCA(n_components=2, max_iter=5000, tol=1e-12).fit_transform(x, y)
    found = maps(x, y)
    expected = [np.corrcoef(z_x[:, k], z_y[:, k])[0, 1] for k in range(2)]
    np.testing.assert_allclose(found.correlations[:2], expected, atol=1e-4)
    for view, own, theirs in ((x, found.x, z_x), (y, found.y, z_y)):
        for k in range(2):
            same = np.corrcoef((view @ own)[:, k], theirs[:, k])[0, 1]
            assert abs(same) == pytest.approx(1.0, abs=1e-4)


@pytest.mark.parametrize("ridge", [1e-9, 0.5, 20.0])
def test_squared_correlations_solve_the_generalised_eigenproblem(views, ridge):
    x, y = (view.numpy() for view in views)
    cxx, cyy, cxy = x.T @ x / 80, y.T @ y / 80, x.T @ y / 80
    cxx, cyy = cxx + ridge * np.eye(4), cyy + ridge * np.eye(3)
    squares = np.linalg.eigvals(np.linalg.inv(cxx) @ cxy @ np.linalg.inv(cyy) @ cxy.T)
    expected = np.sqrt(np.sort(squares.real.clip(0))[::-1][:3])
    found = maps(*views, ridge=ridge)
    np.testing.assert_allclose(found.correlations, expected, atol=1e-6)
    assert found.dependence == pytest.approx(0.5 * float((expected**2).sum()), rel=1e-6)


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0])
def test_scores_agree_with_the_symmetric_form(views, power):
    """Any whitening W gives the same products, so Cholesky's and the square root's agree."""
    x, y = views
    ridge = 0.3
    found = maps(x, y, ridge=ridge, power=power)
    halves = [
        torch.tensor(np.linalg.inv(sqrtm(v.T @ v / 80 + ridge * np.eye(v.shape[1]))))
        for v in (x.numpy(), y.numpy())
    ]
    left, values, right = torch.linalg.svd(halves[0] @ (x.T @ y / 80) @ halves[1])
    weights = torch.diag(values ** (2 * power))
    other = halves[0] @ left[:, :3] @ weights @ right[:3] @ halves[1]
    torch.testing.assert_close(found.x @ found.y.T, other)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_inverse_factor_whitens_and_is_triangular(rng, dtype):
    root = rng.normal(size=(5, 5))
    matrix = torch.tensor(root @ root.T + 0.1 * np.eye(5), dtype=dtype)
    white = inverse_factor(matrix)
    assert white.dtype == dtype
    torch.testing.assert_close(
        white.T @ matrix @ white, torch.eye(5, dtype=dtype), atol=1e-4, rtol=0
    )
    assert torch.equal(white, white.triu())
    torch.testing.assert_close(white @ white.T, torch.linalg.inv(matrix), atol=1e-3, rtol=1e-3)


def test_power_zero_without_whitening_is_the_rotation_of_procrustes(views):
    x, y = views[0][:, :3], views[1]
    found = maps(x, y, ridge=math.inf, power=0.0)
    rotation, _ = orthogonal_procrustes(x.numpy(), y.numpy())
    np.testing.assert_allclose(found.x @ found.y.T, rotation, atol=1e-9)


@pytest.mark.parametrize("correlation", [0.1, 0.5, 0.9])
def test_half_power_with_full_belief_is_the_log_ratio_of_normal_variates(correlation):
    r = torch.tensor([[correlation]], dtype=torch.float64)
    one = torch.ones(1, 1, dtype=torch.float64)
    found = canonical_maps(Moments(r, one, one, 1.0), (1e-12, 1e-12), width=1, belief=1.0)
    joint = multivariate_normal([0, 0], [[1, correlation], [correlation, 1]]).logpdf
    # what a product of variates adds to the log ratio; squares cancel between the two
    slope = (joint([1.0, 1.0]) - joint([-1.0, 1.0])) / 2
    assert abs(float(found.x * found.y)) == pytest.approx(slope, rel=1e-6)


@pytest.mark.parametrize("power", [0.0, 0.25, 1.0])
@pytest.mark.parametrize("belief", [0.0, 0.8])
def test_directions_are_scaled_by_power_and_belief(views, power, belief):
    flat, scaled = maps(*views, power=0.0), maps(*views, power=power, belief=belief)
    r = flat.correlations
    weights = r**power / (1.0 - (belief * r) ** 2).sqrt()
    torch.testing.assert_close(scaled.x, flat.x * weights)
    torch.testing.assert_close(scaled.y, flat.y * weights)


# Invariants


def test_projections_are_white_and_correlate_as_told(views):
    x, y = views
    found = maps(x, y, power=0.0)
    z_x, z_y = x @ found.x, y @ found.y
    eye = torch.eye(3, dtype=torch.float64)
    torch.testing.assert_close(z_x.T @ z_x / 80, eye, atol=1e-6, rtol=0)
    torch.testing.assert_close(z_y.T @ z_y / 80, eye, atol=1e-6, rtol=0)
    torch.testing.assert_close(z_x.T @ z_y / 80, torch.diag(found.correlations), atol=1e-6, rtol=0)
    assert (found.correlations.diff() <= 0).all()


def test_correlations_feel_no_linear_map_no_order_and_no_swap(views, rng):
    x, y = views
    order = torch.tensor(rng.permutation(80))
    stretch = torch.tensor(rng.normal(size=(4, 4)) + 3 * np.eye(4))
    before = maps(x, y).correlations
    for other in (maps(x @ stretch, 7 * y), maps(x[order], y[order]), maps(y, x)):
        torch.testing.assert_close(other.correlations, before, atol=1e-6, rtol=0)
    assert not torch.allclose(maps(x, y[order]).correlations, before, atol=0.1)


def test_a_pair_of_weight_two_counts_as_two_pairs(views):
    x, y = views
    weights = torch.ones(80, dtype=torch.float64)
    weights[:20] = 2.0
    twice = torch.cat([torch.arange(80), torch.arange(20)])
    weighted = canonical_maps(moments(x, y, weights), (0.1, 0.1), width=3)
    repeated = canonical_maps(moments(x[twice], y[twice]), (0.1, 0.1), width=3)
    torch.testing.assert_close(weighted.x @ weighted.y.T, repeated.x @ repeated.y.T)
    both = moments(x[:30], y[:30]).plus(moments(x[30:], y[30:]))
    for name in ("cross", "own_x", "own_y", "n_pairs"):
        whole = torch.as_tensor(getattr(moments(x, y), name))
        torch.testing.assert_close(torch.as_tensor(getattr(both, name)), whole)


def test_without_whitening_values_are_in_units_of_the_first_and_own_moments_unused(views):
    x, y = views
    none = torch.zeros(0, 0)
    bare = Moments(x.T @ y, none, none, 80.0)
    found = canonical_maps(bare, (math.inf, math.inf), width=9, power=1.0)
    values = torch.linalg.svdvals(x.T @ y)
    torch.testing.assert_close(found.correlations, values / values[0])
    torch.testing.assert_close(found.x @ found.y.T, _powered(x.T @ y, 2.0, values[0]))


def _powered(cross, power, unit):
    left, values, right = torch.linalg.svd(cross, full_matrices=False)
    return left @ torch.diag((values / unit) ** power) @ right


def test_width_caps_directions_and_empty_ones_get_no_weight(views):
    x, y = views
    narrow, wide = maps(x, y, width=2), maps(x, y)
    assert narrow.x.shape == (4, 2)
    assert narrow.y.shape == (3, 2)
    torch.testing.assert_close(narrow.x, wide.x[:, :2])
    flat = torch.cat([x[:, :1], torch.zeros(80, 2, dtype=x.dtype)], 1)
    found = maps(flat, y, ridge=0.1, power=0.0)
    assert found.x[:, 1:].abs().max() < 1e-6  # power 0 would give rounding a full weight
    assert isinstance(found, Maps)


def test_a_ridge_of_each_coordinate_is_added_to_its_own_variance(views):
    x, y = views
    ridges = torch.tensor([0.1, 1.0, 10.0, 100.0], dtype=torch.float64)
    found = canonical_maps(moments(x, y), (ridges, 0.2), width=3, power=0.0)
    padded = x.T @ x / 80 + torch.diag(ridges)
    torch.testing.assert_close(found.x.T @ padded @ found.x, torch.eye(3, dtype=x.dtype))
