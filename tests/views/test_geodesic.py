"""Coordinates from shortest paths: against paths by hand, for fitted rows and for unseen ones."""

import numpy as np
import pytest
import torch
from sklearn.neighbors import kneighbors_graph

from unpaired.views.geodesic import N_NEIGHBOURS, fit_geodesic, nearest
from unpaired.views.stored import map_from_arrays, map_to_arrays

CPU = torch.device("cpu")


def arc(n, rng, noise=0.05):
    """Rows along three quarters of a circle, in order."""
    angle = np.sort(rng.uniform(0, 1.5 * np.pi, n))
    rows = np.column_stack([np.cos(angle), np.sin(angle), noise * rng.standard_normal((n, 2))])
    return torch.tensor(rows)


def slow_paths(rows, n_neighbours):
    """All shortest paths by Floyd and Warshall's loops on the symmetric graph of neighbours."""
    graph = kneighbors_graph(rows, n_neighbours, mode="distance").toarray()
    lengths = np.where(graph > 0, graph, np.inf)
    lengths = np.minimum(lengths, lengths.T)
    np.fill_diagonal(lengths, 0.0)
    for middle in range(len(rows)):
        lengths = np.minimum(lengths, lengths[:, [middle]] + lengths[[middle]])
    return lengths


def test_products_of_coordinates_are_the_centred_kernel_of_path_lengths(rng):
    rows = arc(36, rng)
    found, placed = fit_geodesic(rows, "euclidean", rng)
    count = max(2, min(N_NEIGHBOURS, 35 // 3))
    assert found.n_neighbours == count
    paths = slow_paths(found.base(rows).numpy(), count)
    np.testing.assert_allclose(found.paths, paths, atol=1e-6)
    kernel = -0.5 * paths
    centred = kernel - kernel.mean(0) - kernel.mean(1)[:, None] + kernel.mean()
    values, vectors = np.linalg.eigh(centred)
    positive = (vectors * np.maximum(values, 0.0)) @ vectors.T  # paths need not be Euclidean
    expected = positive / np.trace(positive) * 36
    np.testing.assert_allclose(placed @ placed.T, expected, atol=1e-5)


@pytest.mark.parametrize("metric", ["correlation", "euclidean"])
@pytest.mark.parametrize("n_landmarks", [600, 50])
def test_fitted_rows_are_placed_where_the_fit_placed_them(metric, n_landmarks, rng):
    rows = arc(200, rng)
    found, placed = fit_geodesic(rows, metric, rng, n_landmarks=n_landmarks)
    assert float(placed.square().sum(1).mean()) == pytest.approx(1.0, rel=1e-6)
    torch.testing.assert_close(placed.mean(0), torch.zeros_like(placed[0]), atol=1e-8, rtol=0)
    torch.testing.assert_close(found(rows), placed, atol=1e-4, rtol=0)


def test_what_bends_is_laid_flat(rng):
    rows = arc(300, rng, noise=0.01)
    _, placed = fit_geodesic(rows, "euclidean", rng)
    apart = (placed - placed[0]).square().sum(1)  # the kernel is -D/2: these are path lengths
    assert np.corrcoef(apart, np.arange(300))[0, 1] > 0.98
    straight = (rows - rows[0]).square().sum(1)
    assert np.corrcoef(straight, np.arange(300))[0, 1] < 0.9


def test_unseen_rows_land_between_their_neighbours(rng):
    rows = arc(300, rng)
    kept = torch.arange(300) % 3 != 1
    found, placed = fit_geodesic(rows[kept], "euclidean", rng)
    unseen = found(rows[~kept])
    near = torch.cdist(rows[~kept], rows[kept]).argmin(1)
    off = (unseen - placed[near]).norm(dim=1)
    far = (unseen - placed[torch.tensor(rng.permutation(200))[: len(unseen)]]).norm(dim=1)
    assert float(off.median()) < 0.3 * float(far.median())


def test_parts_that_no_path_joins_are_far_from_each_other(rng):
    rows = torch.tensor(rng.normal(size=(80, 3)))
    rows[40:] += 1000.0
    found, placed = fit_geodesic(rows, "euclidean", rng)
    assert torch.isfinite(placed).all()
    assert torch.isfinite(found.paths).all()
    assert float(found.paths[:40, 40:].min()) > float(found.paths[:40, :40].max())
    torch.testing.assert_close(found(rows), placed, atol=1e-3, rtol=0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_map_comes_back_from_its_arrays_to_the_bit(dtype, rng):
    rows = arc(90, rng).to(dtype)
    found, placed = fit_geodesic(rows, "correlation", rng)
    again = map_from_arrays(map_to_arrays(found), CPU)
    assert torch.equal(again(rows), found(rows))
    unseen = rows[:9] + 0.1
    assert torch.equal(again(unseen), found(unseen))
    assert placed.dtype == found(rows).dtype == dtype


def test_equal_rows_and_few_rows_stay_finite(rng):
    for rows in (torch.ones(12, 3), arc(4, rng), arc(6, rng)[[0, 0, 0, 1, 1, 2]]):
        found, placed = fit_geodesic(rows, "euclidean", rng)
        assert torch.isfinite(placed).all()
        assert torch.isfinite(found(rows)).all()


def test_nearest_rows_by_sorting(rng):
    queries, base = torch.tensor(rng.normal(size=(6, 3))), torch.tensor(rng.normal(size=(9, 3)))
    step, index = nearest(queries, base, 4)
    full = torch.cdist(queries, base)
    torch.testing.assert_close(step, full.sort(1).values[:, :4])
    assert torch.equal(index, full.argsort(1)[:, :4])
    _, others = nearest(base, base, 3, skip_self=True)
    assert not (others == torch.arange(9)[:, None]).any()
    assert nearest(queries, base, 99)[1].shape == (6, 9)
