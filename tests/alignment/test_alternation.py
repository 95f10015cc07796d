"""The alternation: one round for each step, and rounds that find partners."""

import numpy as np
import pytest
import torch

from unpaired.alignment.alternation import Round, alternate, place_free, standardise
from unpaired.alignment.critics import CanonicalCritic, PeakWeight, Step
from unpaired.plans.plan import dense_plan, hard_plan, make_pairs, plan_of
from unpaired.views.view import LINEAR, View, fit_view

CPU = torch.device("cpu")


def as_view(x, y):
    """Rows that are their own coordinates."""
    return View(None, None, torch.as_tensor(x).float(), torch.as_tensor(y).float())


def test_there_is_one_round_for_each_step_and_rows_of_its_plan_sum_to_one(rng, copies):
    x, y, truth = copies(40, 5, rng)
    critic = CanonicalCritic([as_view(x, y)], make_pairs(None, 40, 40, CPU))
    schedule = [Step(t, power=0.0) for t in (0.8, 0.4, 0.2)]
    start = dense_plan(torch.tensor(rng.standard_normal((40, 40))).float(), 0.5)
    rounds = list(alternate(critic, schedule, start))
    assert [found.step for found in rounds] == schedule
    plan = start
    for found in rounds:
        assert isinstance(found, Round)
        assert found.plan.shape == (40, 40)
        torch.testing.assert_close(found.plan.apply(torch.ones(40, 1)), torch.ones(40, 1))
        parts, dependence = critic(plan, found.step)  # each fits the plan before
        torch.testing.assert_close(found.parts[0].maps[0], parts[0].maps[0])
        assert found.dependence == dependence
        expected = plan_of(*place_free(critic, parts), found.step.temperature)
        torch.testing.assert_close(found.plan.shares, expected.shares)
        plan = found.plan
    assert list(alternate(critic, [], start)) == []


def test_held_scores_join_in_with_the_weight_of_the_step(rng, copies):
    x, y, _ = copies(30, 4, rng)
    critic = CanonicalCritic([as_view(x, y)], make_pairs(None, 30, 30, CPU))
    held = standardise(torch.tensor(rng.standard_normal((30, 30))).float())
    start = dense_plan(held, 0.5)
    (found,) = alternate(critic, [Step(0.3, held=2.0)], start, held=held)
    left, right = place_free(critic, found.parts)
    expected = dense_plan(standardise(left @ right.T) + 2.0 * held, 0.3)
    torch.testing.assert_close(found.plan.shares, expected.shares)
    (loud,) = alternate(critic, [Step(0.3, held=1e6)], start, held=held)
    torch.testing.assert_close(loud.plan.partners(), dense_plan(held, 0.3).partners())


def test_only_the_leading_directions_enter_the_scores_when_told(rng, copies):
    x, y, truth = copies(30, 6, rng)
    critic = CanonicalCritic([as_view(x, y)], make_pairs(None, 30, 30, CPU))
    start = hard_plan(truth, 30, CPU)
    (found,) = alternate(critic, [Step(0.3)], start, width=2)
    left, right = place_free(critic, found.parts, 2)
    assert left.shape == (30, 2)
    torch.testing.assert_close(found.plan.shares, plan_of(left, right, 0.3).shares)


def test_rounds_grow_the_rest_from_eight_pairs(rng):
    right = []
    for _ in range(7):
        factors = rng.standard_normal((150, 6))
        order = rng.permutation(150)
        x = factors @ rng.standard_normal((6, 12)) + 0.3 * rng.standard_normal((150, 12))
        y = (factors @ rng.standard_normal((6, 9)) + 0.3 * rng.standard_normal((150, 9)))[order]
        truth = np.argsort(order)
        known = np.column_stack([np.arange(8), truth[:8]])
        views = [fit_view(LINEAR, torch.tensor(x).float(), torch.tensor(y).float(), rng)]
        critic = CanonicalCritic(views, make_pairs(known, 150, 150, CPU), PeakWeight())
        rounds = list(alternate(critic, [Step(t, ridge=1.0) for t in np.geomspace(0.8, 0.1, 8)]))
        right.append(
            [
                (critic.pairs.free_y[found.plan.partners()].numpy() == truth[8:]).mean()
                for found in (rounds[0], rounds[-1])
            ]
        )
        n_pairs = [critic.moments(found.plan)[0].n_pairs for found in (rounds[0], rounds[-1])]
        assert n_pairs[1] > n_pairs[0]
    before, after = np.median(right, axis=0)
    assert after > 0.75
    assert after > before + 0.15


def test_many_to_one_rows_share_by_themselves(rng):
    x = torch.tensor(rng.standard_normal((20, 3))).float()
    y = torch.tensor(rng.standard_normal((4, 3))).float()
    known = np.array([[0, 1], [1, 1], [2, 0]])
    pairs = make_pairs(known, 20, 4, CPU, many_to_one=True)
    critic = CanonicalCritic([View(None, None, x, y)], pairs)
    (found,) = alternate(critic, [Step(0.5)])
    left, right = place_free(critic, found.parts)
    scores = left @ right.T
    torch.testing.assert_close(
        found.plan.shares, torch.softmax(scores / (0.5 * scores.std(correction=0)), 1)
    )
    assert found.plan.shape == (17, 4)


def test_steps_on_some_rows_draw_them_anew_and_others_take_all(rng, copies):
    x, y, truth = copies(60, 5, rng)
    critic = CanonicalCritic([as_view(x, y)], make_pairs(None, 60, 60, CPU))
    schedule = [Step(0.3, power=0.0, n_rows=20), Step(0.3, power=0.0, n_rows=30), Step(0.3)]
    rounds = list(alternate(critic, schedule, hard_plan(truth, 60, CPU), rng=rng))
    assert [found.plan.shape for found in rounds] == [(20, 20), (30, 30), (60, 60)]
    assert [len(found.pairs.free_x) for found in rounds] == [20, 30, 60]
    first, second = (set(found.pairs.free_x.tolist()) for found in rounds[:2])
    assert not first <= second


def test_scores_of_mean_zero_and_deviation_one(rng):
    scores = standardise(torch.tensor(rng.random((8, 5))) * 7 + 3)
    assert float(scores.mean()) == pytest.approx(0.0, abs=1e-9)
    assert float(scores.std(correction=0)) == pytest.approx(1.0)
    assert torch.equal(standardise(torch.ones(3, 3)), torch.zeros(3, 3))
