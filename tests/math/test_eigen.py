import warnings

import numpy as np
import pytest
import torch
from sklearn.cross_decomposition import CCA

from unpaired.math.eigen import canonical_maps_of_moments, inverse_factor, inverse_sqrt


@pytest.fixture
def views(rng):
    """Two centred views of 60 rows that share two directions."""
    shared = rng.normal(size=(60, 2))
    x = np.c_[shared + 0.3 * rng.normal(size=(60, 2)), rng.normal(size=(60, 2))]
    y = np.c_[shared * [2, 1] + 0.5 * rng.normal(size=(60, 2)), rng.normal(size=(60, 1))]
    x, y = x @ rng.normal(size=(4, 4)), y @ rng.normal(size=(3, 3))
    return torch.tensor(x - x.mean(0)), torch.tensor(y - y.mean(0))


def maps(x, y, ridge=1e-12, n_components=3, **options):
    moments = (x.T @ x / len(x), x.T @ y / len(x), y.T @ y / len(x))
    return canonical_maps_of_moments(
        *moments, ridge_x=ridge, ridge_y=ridge, n_components=n_components, **options
    )


# Oracles


@pytest.mark.parametrize("ridge", [0.0, 0.1, 2.0])
def test_inverse_sqrt_times_itself_inverts(rng, ridge):
    root = rng.normal(size=(4, 4))
    matrix = root @ root.T
    half = inverse_sqrt(torch.tensor(matrix), ridge).numpy()
    padded = matrix + ridge * np.linalg.eigvalsh(matrix).mean() * np.eye(4)
    np.testing.assert_allclose(half @ padded @ half, np.eye(4), atol=1e-7)
    np.testing.assert_allclose(half, half.T, atol=1e-9)


def test_inverse_sqrt_of_a_singular_matrix_leaves_its_null_space_at_zero(rng):
    root = torch.tensor(rng.normal(size=(4, 2)))
    half = inverse_sqrt(root @ root.T, 0.0)
    projector = root @ torch.linalg.pinv(root)
    torch.testing.assert_close(half @ (root @ root.T) @ half, projector, atol=1e-8, rtol=1e-8)


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


@pytest.mark.parametrize("ridge", [1e-12, 0.5])
def test_correlations_solve_the_generalised_eigenproblem(views, ridge):
    x, y = (view.numpy() for view in views)
    cxx, cyy, cxy = x.T @ x / 60, y.T @ y / 60, x.T @ y / 60
    cxx = cxx + ridge * np.trace(cxx) / 4 * np.eye(4)
    cyy = cyy + ridge * np.trace(cyy) / 3 * np.eye(3)
    squares = np.linalg.eigvals(np.linalg.inv(cxx) @ cxy @ np.linalg.inv(cyy) @ cxy.T)
    expected = np.sqrt(np.sort(squares.real.clip(0))[::-1][:3])
    np.testing.assert_allclose(maps(*views, ridge=ridge).correlations, expected, atol=1e-6)


# Invariants


def test_projections_are_white_and_correlate_as_told(views):
    x, y = views
    found = maps(x, y, power=0.0)
    z_x, z_y = x @ found.map_x, y @ found.map_y
    eye = torch.eye(3, dtype=torch.float64)
    torch.testing.assert_close(z_x.T @ z_x / 60, eye, atol=1e-6, rtol=0)
    torch.testing.assert_close(z_y.T @ z_y / 60, eye, atol=1e-6, rtol=0)
    torch.testing.assert_close(z_x.T @ z_y / 60, torch.diag(found.correlations), atol=1e-6, rtol=0)
    assert (found.correlations.diff() <= 0).all()


def test_power_scales_directions_and_components_are_capped(views):
    flat, scaled = maps(*views, power=0.0), maps(*views, power=2.0, n_components=2)
    assert scaled.map_x.shape == (4, 2)
    assert scaled.map_y.shape == (3, 2)
    torch.testing.assert_close(scaled.map_x, flat.map_x[:, :2] * flat.correlations[:2] ** 2)
    torch.testing.assert_close(scaled.map_y, flat.map_y[:, :2] * flat.correlations[:2] ** 2)
    assert maps(*views, n_components=99).correlations.shape == (3,)


def test_correlations_do_not_feel_linear_maps_or_the_order_of_rows(views, rng):
    x, y = views
    order = torch.tensor(rng.permutation(60))
    stretch = torch.tensor(rng.normal(size=(4, 4)) + 3 * np.eye(4))
    before = maps(x, y).correlations
    for other in (maps(x @ stretch, 7 * y), maps(x[order], y[order]), maps(y, x)):
        torch.testing.assert_close(other.correlations, before, atol=1e-6, rtol=0)
    assert not torch.allclose(maps(x, y[order]).correlations, before, atol=0.1)


# Agreement


def test_tiny_ridge_agrees_with_scikit_learn(views):
    x, y = views
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # scikit-learn may stop at its iteration limit
        z_x, z_y = CCA(n_components=2, max_iter=5000, tol=1e-12).fit_transform(x, y)
    expected = [np.corrcoef(z_x[:, k], z_y[:, k])[0, 1] for k in range(2)]
    np.testing.assert_allclose(maps(x, y).correlations[:2], expected, atol=1e-4)
