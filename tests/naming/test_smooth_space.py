"""The smoothed space by hand."""

import numpy as np

from unpaired.naming import smooth_space
from unpaired.naming.smooth_space import (
    mean_of_rows,
    nearest_neighbours,
    smooth_features,
    unit_rows,
)


def test_neighbours_are_the_largest_inner_products(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    queries, base = rng.standard_normal((7, 4)), rng.standard_normal((30, 4))
    expected = np.sort(np.argsort(-queries @ base.T, axis=1)[:, :5], axis=1)
    np.testing.assert_array_equal(nearest_neighbours(queries, base, 5), expected)
    monkeypatch.setattr(smooth_space, "_BLOCK_ENTRIES", 60)
    np.testing.assert_array_equal(nearest_neighbours(queries, base, 5), expected)
    assert nearest_neighbours(queries, base[:3], 5).tolist() == [[0, 1, 2]] * 7


def test_smoothing_by_hand():
    rows = np.random.default_rng(0).standard_normal((40, 5)).astype(np.float32)
    space = smooth_features(rows, n_neighbours=4, n_rounds=1)
    index = nearest_neighbours(space.whitened, space.whitened, 4)
    means = np.stack([space.whitened[i].mean(0) for i in index])
    expected = means / np.linalg.norm(means, axis=1, keepdims=True)
    np.testing.assert_allclose(space.smoothed, expected, atol=1e-5)
    np.testing.assert_allclose(space.transform(rows[:6]), space.smoothed[:6], atol=1e-5)


def test_rows_are_half_whitened_and_of_unit_length(rng):
    rows = (rng.standard_normal((300, 4)) * [9.0, 3.0, 1.0, 0.3]).astype(np.float32)
    space = smooth_features(rows, n_rounds=0)
    centred = rows - rows.mean(0)
    values, vectors = np.linalg.eigh(centred.T @ centred / 300)
    half = centred @ (vectors * values**-0.25)
    expected = half / np.linalg.norm(half, axis=1, keepdims=True)
    np.testing.assert_allclose(space.wide @ space.wide.T, expected @ expected.T, atol=1e-3)
    np.testing.assert_array_equal(space.smoothed, space.whitened)


def test_surroundings_are_the_mean_of_the_neighbours(rng):
    rows = rng.standard_normal((40, 5)).astype(np.float32)
    space = smooth_features(rows, n_neighbours=4)
    found = space.with_surroundings()
    width = space.wide.shape[1]
    np.testing.assert_array_equal(found[:, :width], space.wide)
    means = np.stack([space.wide[index].mean(0) for index in space.neighbours])
    np.testing.assert_allclose(found[:, width:], unit_rows(means), atol=1e-5)
    np.testing.assert_allclose(space.with_surroundings(rows[:5]), found[:5], atol=1e-4)


def test_means_of_rows(rng):
    rows, index = rng.standard_normal((9, 3)), rng.integers(9, size=(5, 4))
    np.testing.assert_allclose(mean_of_rows(rows, index), rows[index].mean(1))


def test_empty_rows_stay_empty():
    np.testing.assert_array_equal(
        unit_rows(np.array([[0.0, 0.0], [3.0, 4.0]])), [[0, 0], [0.6, 0.8]]
    )
