"""Directions averaged over neighbours: against loops, and what comes back."""

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

from unpaired.views.features import fit_features
from unpaired.views.smoothed import N_NEIGHBOURS, fit_smoothed
from unpaired.views.stored import map_from_arrays, map_to_arrays

CPU = torch.device("cpu")


@pytest.fixture
def fitted(rng):
    centres = rng.normal(size=(6, 8))
    rows = torch.tensor(centres[rng.integers(6, size=150)] + 0.6 * rng.normal(size=(150, 8)))
    base = fit_features(rows, rng, max_rank=8)
    return rows, base, *fit_smoothed(base, base(rows))


def slow(units, fitted_units, skip_self):
    """Unit sums of a row and its nearest fitted rows, by loops."""
    count = min(N_NEIGHBOURS, len(fitted_units) - 1)
    out = []
    for i, row in enumerate(units):
        others = [j for j in range(len(fitted_units)) if not (skip_self and i == j)]
        near = sorted(others, key=lambda j, r=row: -float(r @ fitted_units[j]))[:count]
        total = row + sum(fitted_units[j] for j in near)
        out.append(total / np.linalg.norm(total))
    return np.array(out)


def test_fitted_rows_are_averaged_over_neighbours_without_themselves(fitted):
    rows, base, found, placed = fitted
    units = normalize(base(rows)).numpy()
    mean = slow(units, units, skip_self=True)
    centred = mean - mean.mean(0)
    scale = np.sqrt((centred**2).sum(1).mean())
    np.testing.assert_allclose(placed, centred / scale, atol=1e-9)
    assert float(placed.square().sum(1).mean()) == pytest.approx(1.0)
    assert found.scale == pytest.approx(scale)


def test_unseen_rows_are_averaged_over_fitted_ones(fitted, rng):
    rows, base, found, _ = fitted
    unseen = torch.tensor(rng.normal(size=(12, 8)))
    units, known = normalize(base(unseen)).numpy(), normalize(base(rows)).numpy()
    expected = (slow(units, known, skip_self=False) - found.offset.numpy()) / found.scale
    np.testing.assert_allclose(found(unseen), expected, atol=1e-9)


def test_fitted_rows_are_placed_near_where_the_fit_placed_them(fitted):
    rows, _, found, placed = fitted
    again = found(rows)  # a row is its own neighbour now, so it weighs twice
    off = (again - placed).square().sum(1).mean()
    assert 0 < float(off) < 0.01


def test_noise_cancels(fitted):
    rows, base, _, placed = fitted
    apart = [
        torch.cdist(z, z).topk(21, 1, largest=False).values.mean() for z in (base(rows), placed)
    ]
    assert float(apart[1]) < 0.7 * float(apart[0])


def test_the_map_comes_back_from_its_arrays_to_the_bit(fitted, rng):
    rows, _, found, _ = fitted
    again = map_from_arrays(map_to_arrays(found), CPU)
    unseen = torch.tensor(rng.normal(size=(9, 8)))
    assert torch.equal(again(rows), found(rows))
    assert torch.equal(again(unseen), found(unseen))


@pytest.mark.parametrize("n", [2, 3, 15])
def test_fewer_rows_than_neighbours(n, rng):
    rows = torch.tensor(rng.normal(size=(n, 4)))
    base = fit_features(rows, rng, max_rank=4)
    found, placed = fit_smoothed(base, base(rows))
    assert torch.isfinite(placed).all()
    assert torch.isfinite(found(rows)).all()
