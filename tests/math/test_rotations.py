"""Rounds of soft partners and Procrustes: as the alternation makes them, and by hand."""

import numpy as np
import pytest
import torch

from unpaired.alignment.alternation import alternate
from unpaired.alignment.critics import CanonicalCritic, Step
from unpaired.math.rotations import climb, closeness, nearest_rotation, overlap, soft_cross
from unpaired.plans.plan import dense_plan, make_pairs
from unpaired.spaces.space import Part
from unpaired.views.view import View


def rotation_of(d, rng):
    return np.linalg.qr(rng.standard_normal((d, d)))[0].astype(np.float32)


def unit(rows):
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def test_products_with_expected_partners_are_those_of_the_soft_plan(rng):
    x, y, scores = (
        rng.standard_normal(shape).astype(np.float32) for shape in ((70, 4), (50, 3), (70, 50))
    )
    plan = dense_plan(torch.tensor(scores), 0.3)
    expected = torch.tensor(x).T @ plan.apply(torch.tensor(y))
    np.testing.assert_allclose(soft_cross(x, y, scores, 0.3), expected.numpy(), atol=1e-3)


def test_scores_that_are_all_the_same_give_the_mean_partner(rng):
    x, y = (rng.standard_normal((n, 3)).astype(np.float32) for n in (40, 30))
    found = soft_cross(x, y, np.full((40, 30), 0.7, np.float32), 0.3)
    np.testing.assert_allclose(found, np.outer(x.sum(0), y.mean(0)), atol=1e-3)


def test_rounds_are_those_of_the_alternation(rng):
    x, y = unit(rng.standard_normal((60, 5))), unit(rng.standard_normal((80, 5)))
    begin = rotation_of(5, rng)
    view = View(None, None, torch.tensor(x), torch.tensor(y))
    pairs = make_pairs(None, 60, 80, torch.device("cpu"))
    critic = CanonicalCritic([view], pairs, even=False)
    steps = [Step(0.3, power=0.0)] * 3
    *_, last = alternate(critic, steps, parts=[Part(0, (torch.tensor(begin), torch.eye(5)))])
    (part,), _ = critic(last.plan, steps[0])
    there = (part.maps[0] @ part.maps[1].T).numpy()
    np.testing.assert_allclose(climb(x, y, begin, [80] * 3, 0.3, rng), there, atol=2e-3)


def test_nearest_rotation_leaves_a_rotation_and_is_orthogonal(rng):
    turn = rotation_of(6, rng)
    np.testing.assert_allclose(nearest_rotation(3 * turn), turn, atol=1e-5)
    found = nearest_rotation(rng.standard_normal((6, 4)).astype(np.float32))
    np.testing.assert_allclose(found.T @ found, np.eye(4), atol=1e-5)


def test_known_pairs_lead_where_nothing_else_does(rng):
    x, y = (unit(rng.standard_normal((50, 4))) for _ in "xy")
    turn = rotation_of(4, rng)
    found = climb(x, y, rotation_of(4, rng), [50] * 3, 0.3, rng, known=100 * turn)
    assert overlap(found, turn) > 0.99


def test_every_round_draws_rows_anew(rng):
    x, turn = unit(rng.standard_normal((400, 6)) * 0.8 ** np.arange(6)), rotation_of(6, rng)
    rough = nearest_rotation(turn + 0.3 * rng.standard_normal((6, 6)).astype(np.float32))
    drawn = [climb(x, x @ turn, rough, [40] * 20, 0.3, np.random.default_rng(s)) for s in (0, 1)]
    assert not np.array_equal(*drawn)
    again = climb(x, x @ turn, rough, [40] * 20, 0.3, np.random.default_rng(0))
    np.testing.assert_array_equal(drawn[0], again)


def test_overlap_is_one_for_the_same_and_none_for_unrelated_rotations(rng):
    one, other = (rotation_of(60, rng) for _ in range(2))
    half = one.copy()
    half[:30] *= -1
    assert overlap(one, one) == pytest.approx(1.0)
    assert overlap(one, half) == pytest.approx(0.0, abs=1e-5)
    assert overlap(one, -one) == pytest.approx(-1.0)
    assert overlap(one, other) == pytest.approx(0.0, abs=5 / 60)
    assert overlap(one[:, :20], one[:, :20]) == pytest.approx(1.0)


def test_rows_are_as_close_as_their_nearest_by_hand():
    x, y = np.eye(2, dtype=np.float32), np.array([[1.0, 0.0]], dtype=np.float32)
    turned = np.array([[0.0, 1.0], [-1.0, 0.0]], dtype=np.float32)
    assert closeness(x, y, np.eye(2, dtype=np.float32)) == pytest.approx((0.5 * (1 + 0) + 1) / 2)
    assert closeness(x, y, turned) == pytest.approx((0.5 * (0 - 1) + 0) / 2)
