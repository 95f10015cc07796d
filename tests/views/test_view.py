"""Views: both sides by one kind of map."""

import numpy as np
import pytest
import torch

from unpaired.views.view import GEODESICS, LINEAR, fit_view

NAMES = (LINEAR, *GEODESICS)


@pytest.fixture
def sides(rng):
    return tuple(torch.tensor(rng.standard_normal((n, d))) for n, d in ((80, 6), (70, 5)))


@pytest.mark.parametrize("name", NAMES)
def test_views_hold_what_their_maps_place_with_mean_squared_length_one(name, sides, rng):
    view = fit_view(name, *sides, rng)
    for rows, found, placed in zip(sides, (view.map_x, view.map_y), (view.x, view.y), strict=True):
        assert float(placed.square().sum(1).mean()) == pytest.approx(1.0, rel=1e-5)
        if name in GEODESICS:
            torch.testing.assert_close(found(rows), placed, atol=1e-4, rtol=0)
        else:
            assert torch.equal(found(rows), placed)


def test_some_rows_of_a_view(sides, rng):
    view = fit_view(LINEAR, *sides, rng)
    some = view.take(torch.tensor([3, 1, 3]), torch.tensor([0]))
    assert torch.equal(some.x, view.x[[3, 1, 3]])
    assert torch.equal(some.y, view.y[[0]])
    assert some.map_x is view.map_x


def test_the_same_generator_gives_the_same_view(sides):
    for name in NAMES:
        one, two = (
            fit_view(name, *sides, np.random.default_rng(3), n_landmarks=30) for _ in range(2)
        )
        assert torch.equal(one.x, two.x)
        assert torch.equal(one.y, two.y)
