"""Rotations from no pairs at all, and soft starts by profiles and given plans."""

import itertools

import numpy as np
import pytest
import torch

from unpaired.alignment.alternation import standardise
from unpaired.alignment.profiles import joined, profile_score, profiles_of
from unpaired.alignment.starts import (
    JOINT,
    OWN,
    axis_start,
    profile_start,
    rotation_between,
    soft_refine,
    soft_starts,
)
from unpaired.plans.plan import DensePlan
from unpaired.views.view import View


def turn(d, rng):
    return np.linalg.qr(rng.standard_normal((d, d)))[0]


def skewed(n, rng, d=4):
    """Rows whose axes differ in shape, so that order and sign can be told."""
    shapes = rng.gamma(np.linspace(1.0, 6.0, d), size=(n, d))
    return ((shapes - shapes.mean(0)) / shapes.std(0) * np.linspace(1.2, 0.8, d)).astype(np.float32)


def test_signed_permutations_of_axes_are_found(rng):
    x = skewed(2000, rng)
    order, sign = rng.permutation(4), rng.choice([-1.0, 1.0], 4)
    expected = np.zeros((4, 4))
    expected[order, np.arange(4)] = sign
    y = (x @ expected)[rng.permutation(2000)].astype(np.float32)
    np.testing.assert_array_equal(axis_start(x, y), expected)


def test_the_axis_start_is_the_best_signed_permutation_of_all(rng):
    x, y = skewed(200, rng, 3), (skewed(150, rng, 3) @ turn(3, rng)).astype(np.float32)
    level = (np.arange(128) + 0.5) / 128
    target = np.quantile(y, level, axis=0)

    def cost(rotation):
        return np.square(np.quantile(x @ rotation, level, axis=0) - target).mean(0).sum()

    trials = []
    for order in itertools.permutations(range(3)):
        for sign in itertools.product([-1.0, 1.0], repeat=3):
            rotation = np.zeros((3, 3))
            rotation[list(order), range(3)] = sign
            trials.append(cost(rotation))
    assert cost(axis_start(x, y)) == pytest.approx(min(trials), rel=1e-4)


def test_profiles_and_soft_rounds_come_near_an_unknown_rotation(rng):
    x = skewed(600, rng)
    rotation = turn(4, rng)
    y = (x @ rotation)[rng.permutation(600)].astype(np.float32)
    first = profile_start(x, y, rng)
    found = soft_refine(x, y, first, rng)
    np.testing.assert_allclose(found @ found.T, np.eye(4), atol=1e-6)
    off = [np.linalg.norm(guess - rotation) for guess in (found, turn(4, rng))]
    assert off[0] < 0.3 < off[1]


def test_the_rotation_between_rows_in_the_same_places_has_no_scale(rng):
    x, rotation = rng.standard_normal((50, 3)).astype(np.float32), turn(3, rng)
    y = (0.2 * x @ rotation).astype(np.float32)
    np.testing.assert_allclose(rotation_between(x, y, np.ones(50)), rotation, atol=1e-5)
    noisy = y.copy()
    noisy[:10] = rng.standard_normal((10, 3))
    weight = np.r_[np.zeros(10), np.ones(40)]  # rows of weight 0 say nothing
    np.testing.assert_allclose(rotation_between(x, noisy, weight), rotation, atol=1e-5)


def test_soft_starts_are_profiles_of_one_view_and_of_all_and_given_plans(rng):
    views = {
        name: View(
            None, None, *(torch.tensor(rng.standard_normal((n, 3))).float() for n in (30, 20))
        )
        for name in ("a", "b")
    }
    profiles = {name: profiles_of(view, directions=False) for name, view in views.items()}
    rows_x, rows_y = torch.arange(0, 30, 2), torch.arange(5, 20)
    given = {"mine": DensePlan(torch.tensor(rng.random((30, 20))).float())}
    found = list(soft_starts(profiles, None, given, rows_x, rows_y))
    names = [(view, start.name) for view, start in found]
    assert names == [(view, name) for view in "ab" for name in (OWN, JOINT, "mine")]
    (_, own), (_, joint), (_, mine) = found[:3]
    left, right = joined([profiles["a"]])
    torch.testing.assert_close(own.held, profile_score(left[rows_x], right[rows_y]))
    left, right = joined(list(profiles.values()))
    torch.testing.assert_close(joint.held, profile_score(left[rows_x], right[rows_y]))
    assert torch.equal(mine.held, joint.held)
    assert own.plan is None is joint.plan
    assert torch.equal(mine.plan.shares, given["mine"].shares[::2, 5:])
    side = standardise(torch.tensor(rng.standard_normal((15, 15))).float())
    _, told = next(soft_starts(profiles, side, {}, rows_x, rows_y))
    torch.testing.assert_close(told.held, standardise(own.held + side))
