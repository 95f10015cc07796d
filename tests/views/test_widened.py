"""Coordinates with kernel features of themselves beside them."""

import pytest
import torch

from unpaired.views.features import fit_features
from unpaired.views.stored import map_from_arrays, map_to_arrays
from unpaired.views.widened import Widened

CPU = torch.device("cpu")


@pytest.fixture
def fitted(rng):
    rows = torch.tensor(rng.normal(size=(60, 5)))
    base = fit_features(rows, rng, max_rank=3, metric="euclidean")
    kernel = fit_features(base(rows), rng, max_rank=40, metric="euclidean", bandwidth=1.0)
    return rows, base, kernel, Widened(base, kernel)


def test_coordinates_are_those_of_the_base_and_what_the_kernel_makes_of_them(fitted):
    rows, base, kernel, found = fitted
    placed = base(rows)
    assert torch.equal(found(rows), torch.cat([placed, kernel(placed)], 1))
    lengths = [
        float(part.square().sum(1).mean()) for part in (found(rows)[:, :3], found(rows)[:, 3:])
    ]
    assert lengths == pytest.approx([1.0, 1.0], rel=1e-5)  # each part has its own unit


def test_the_map_comes_back_from_its_arrays_to_the_bit(fitted):
    rows, _, _, found = fitted
    arrays = map_to_arrays(found)
    assert {name.split(".")[1] for name in arrays} == {"base", "kernel"}
    again = map_from_arrays(arrays, CPU)
    unseen = rows[:8] + 0.3
    assert torch.equal(again(rows), found(rows))
    assert torch.equal(again(unseen), found(unseen))
