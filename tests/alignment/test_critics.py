"""Critics: moments by loops, maps against Procrustes."""

import math

import numpy as np
import pytest
import torch
from scipy.linalg import orthogonal_procrustes
from sklearn.linear_model import Ridge
from torch.nn.functional import normalize

from unpaired.alignment.alternation import place_free
from unpaired.alignment.critics import CanonicalCritic, PeakWeight, Step, blend, moments_of
from unpaired.math.canonical import Moments, canonical_maps
from unpaired.plans.plan import DensePlan, Pairs, hard_plan, make_pairs
from unpaired.views.view import LINEAR, View, fit_view

CPU = torch.device("cpu")


def as_view(x, y):
    """Rows that are their own coordinates."""
    return View(None, None, torch.as_tensor(x).float(), torch.as_tensor(y).float())


def soft_shares(rng, shape):
    return DensePlan(torch.tensor(rng.dirichlet(np.ones(shape[1]), shape[0])).float())


def test_moments_of_pairs_are_weighted_sums(rng):
    view = as_view(rng.standard_normal((6, 3)), rng.standard_normal((5, 2)))
    pairs, weights = torch.tensor([[0, 1], [0, 2], [3, 2]]), torch.tensor([0.5, 0.25, 2.0])
    found = moments_of(view, pairs, weights)
    listed = list(zip(pairs, weights, strict=True))
    x, y = view.x, view.y
    torch.testing.assert_close(
        found.cross, sum(w * torch.outer(x[i], y[j]) for (i, j), w in listed)
    )
    torch.testing.assert_close(
        found.own_x, sum(w * torch.outer(x[i], x[i]) for (i, _), w in listed)
    )
    torch.testing.assert_close(
        found.own_y, sum(w * torch.outer(y[j], y[j]) for (_, j), w in listed)
    )
    assert found.n_pairs == pytest.approx(2.75)


@pytest.mark.parametrize("trust", [None, PeakWeight(soft_weight=0.6, doubt=0.2)])
@pytest.mark.parametrize("hard", [False, True])
def test_moments_of_a_plan_are_sums_over_all_soft_pairs(trust, hard, rng):
    views = [as_view(rng.standard_normal((6, d)), rng.standard_normal((7, 2))) for d in (3, 4)]
    pairs = make_pairs(None, 6, 7, CPU)
    plan = soft_shares(rng, (6, 7))
    if hard:
        plan = hard_plan(rng.permutation(7)[:6], 7, CPU)
    shares = plan.apply(torch.eye(7))
    critic = CanonicalCritic(views, pairs, trust)
    for view, found in zip(views, critic.moments(plan), strict=True):
        cross, own_x, own_y, total = torch.zeros_like(found.cross), 0.0, 0.0, 0.0
        for i in range(6):
            peak = float(shares[i].max())
            weight = 1.0 if trust is None else 0.6 * peak / (peak + 0.2)
            total += weight
            own_x = own_x + weight * torch.outer(view.x[i], view.x[i])
            for j in range(7):
                share = weight * shares[i, j]
                cross += share * torch.outer(view.x[i], view.y[j])
                own_y = own_y + share * torch.outer(view.y[j], view.y[j])
        torch.testing.assert_close(found.cross, cross)
        torch.testing.assert_close(found.own_x, own_x)
        torch.testing.assert_close(found.own_y, own_y)
        assert found.n_pairs == pytest.approx(total)


def test_trusted_soft_pairs_add_to_known_ones_and_only_free_rows_are_soft(rng):
    view = as_view(rng.standard_normal((6, 3)), rng.standard_normal((6, 2)))
    pairs = make_pairs(np.array([[0, 3], [5, 1]]), 6, 6, CPU)
    plan = soft_shares(rng, (4, 4))
    (found,) = CanonicalCritic([view], pairs, PeakWeight()).moments(plan)
    free = view.take(pairs.free_x, pairs.free_y)
    (soft,) = CanonicalCritic([free], make_pairs(None, 4, 4, CPU), PeakWeight()).moments(plan)
    known = moments_of(view, pairs.known, pairs.weights)
    torch.testing.assert_close(found.cross, soft.cross + known.cross)
    torch.testing.assert_close(found.own_x, soft.own_x + known.own_x)
    assert found.n_pairs == pytest.approx(soft.n_pairs + 2.0)
    alone = CanonicalCritic([view], pairs, PeakWeight())
    torch.testing.assert_close(alone.moments(None)[0].cross, known.cross)


@pytest.mark.parametrize("count", [1, 30, 300])
def test_a_handful_of_known_pairs_is_brought_to_the_size_of_a_diffuse_plan(count, rng):
    soft = Moments(torch.tensor(rng.random((3, 2))) * 1e-3, torch.eye(3), torch.eye(2), 50.0)
    known = Moments(torch.tensor(rng.random((3, 2))) * 70.0, torch.eye(3), torch.eye(2), count)
    found = blend(soft, known)
    added = (found.cross - soft.cross).norm() / soft.cross.norm()
    assert float(added) == pytest.approx(2 * count / (count + 30))
    torch.testing.assert_close(
        normalize(found.cross - soft.cross, dim=(0, 1)), known.cross / known.cross.norm()
    )
    assert found.n_pairs == soft.n_pairs
    assert blend(soft, Moments(torch.zeros(3, 2), torch.eye(3), torch.eye(2), 0.0)) is soft


@pytest.mark.parametrize("power", [0.0, 0.25, 0.5])
@pytest.mark.parametrize("ridge", [math.inf, 1.0])
def test_the_true_matching_gives_maps_that_place_partners_first(power, ridge, rng, copies):
    x, y, truth = copies(200, 8, rng)
    views = [fit_view(LINEAR, torch.tensor(x).float(), torch.tensor(y).float(), rng)]
    critic = CanonicalCritic(views, make_pairs(None, 200, 200, CPU))
    parts, dependence = critic(hard_plan(truth, 200, CPU), Step(0.25, ridge=ridge, power=power))
    left, right = place_free(critic, parts)
    assert ((left @ right.T).argmax(1).numpy() == truth).mean() > 0.97
    wrong, lower = critic(hard_plan(rng.permutation(200), 200, CPU), Step(0.25, ridge, power))
    left, right = place_free(critic, wrong)
    assert ((left @ right.T).argmax(1).numpy() == truth).mean() < 0.1
    if ridge < math.inf:  # values without whitening are in units of the first
        assert lower < 0.5 * dependence


def test_power_zero_without_a_ridge_is_procrustes_rotation(rng, copies):
    x, y, truth = copies(60, 5, rng, noise=0.5)
    plans = [hard_plan(truth, 60, CPU), soft_shares(rng, (60, 60))]
    critic = CanonicalCritic([as_view(x, y)], make_pairs(None, 60, 60, CPU))
    for plan in plans:
        (part,), _ = critic(plan, Step(0.25, power=0.0))
        expected, _ = orthogonal_procrustes(x, plan.apply(torch.tensor(y).float()).numpy())
        np.testing.assert_allclose(part.maps[0] @ part.maps[1].T, expected, atol=1e-4)


def test_maps_are_canonical_maps_with_a_ridge_that_falls_with_the_pairs(rng, copies):
    x, y, truth = copies(50, 4, rng, noise=0.5)
    view, plan = as_view(x, y), hard_plan(truth, 50, CPU)
    pairs = make_pairs(None, 50, 50, CPU)
    step = Step(0.25, ridge=8.0, power=0.5, belief=0.7)
    (part,), dependence = CanonicalCritic([view], pairs, extra_ridges=[0.03])(plan, step)
    moments = moments_of(
        view, torch.tensor(np.column_stack([np.arange(50), truth])), torch.ones(50)
    )
    ridge = 8.0 / 50 + 0.03
    expected = canonical_maps(moments, (ridge, ridge), width=9, power=0.5, belief=0.7)
    torch.testing.assert_close(
        part.maps[0] @ part.maps[1].T, expected.x @ expected.y.T, atol=1e-4, rtol=1e-3
    )
    assert dependence == pytest.approx(expected.dependence, rel=1e-3)
    narrow, _ = CanonicalCritic([view], pairs, width=2)(plan, step)
    assert narrow[0].maps[0].shape == (4, 2)


@pytest.mark.parametrize("side", [0, 1])
def test_one_whitened_side_is_ridge_regression_on_it(side, rng):
    x, y = (rng.standard_normal((20, size)) for size in (7, 5))
    pairs = make_pairs(np.column_stack([np.arange(12)] * 2), 20, 20, CPU)
    whitens = (side == 0, side == 1)
    (part,), _ = CanonicalCritic([as_view(x, y)], pairs, whitens=whitens)(None, Step(1.0, 6.0))
    own, other = ((x, y), (y, x))[side]
    fitted = Ridge(alpha=6.0, fit_intercept=False).fit(own[:12], other[:12])
    expected = fitted.predict(own[12:]) @ other[12:].T  # predictions against the other side
    left, right = (rows[12:] @ m.numpy() for rows, m in zip((x, y), part.maps, strict=True))
    scores = (left @ right.T, right @ left.T)[side]
    factor = (scores * expected).sum() / (expected * expected).sum()
    np.testing.assert_allclose(scores, factor * expected, atol=1e-4 * np.abs(scores).max())


def test_views_are_weighted_so_that_their_scores_spread_alike(rng, copies):
    x, y, truth = copies(80, 6, rng)
    views = [as_view(x, y), as_view(50 * x[:, :2], 0.01 * y)]
    critic = CanonicalCritic(views, make_pairs(None, 80, 80, CPU))
    parts, _ = critic(hard_plan(truth, 80, CPU), Step(0.25))
    for part, view in zip(parts, views, strict=True):
        scores = part.embed(view.x, 0) @ part.embed(view.y, 1).T
        assert float(scores.std()) == pytest.approx(1.0, rel=1e-3)


def test_a_linear_map_is_found_from_few_pairs_whatever_other_rows_are_there(rng, copies):
    """Variances of all rows would not cancel the chance in the covariance of twelve pairs."""
    x, y, truth = copies(500, 6, rng, noise=0.0)
    views = [fit_view(LINEAR, torch.tensor(x).float(), torch.tensor(y).float(), rng)]
    pairs = make_pairs(np.column_stack([np.arange(12), truth[:12]]), 500, 500, CPU)
    critic = CanonicalCritic(views, pairs)
    parts, _ = critic(None, Step(0.25, ridge=1e-3))
    left, right = place_free(critic, parts)
    assert left.shape[0] == right.shape[0] == 488
    found = pairs.free_y[(left @ right.T).argmax(1)].numpy()
    assert (found == truth[12:]).mean() > 0.95


def test_a_plan_over_some_free_rows_names_them_in_their_order():
    pairs = Pairs(torch.zeros(0, 2).long(), torch.zeros(0), torch.tensor([2, 0]), torch.tensor([1]))
    view = as_view(np.eye(3), np.eye(3)[:, [1, 2, 0]])
    critic = CanonicalCritic([view], pairs)
    (part,), _ = critic(hard_plan(np.array([0, -1]), 1, CPU), Step(1.0, power=0.0))
    expected = torch.outer(view.x[2], view.y[1])
    torch.testing.assert_close(part.maps[0][:, :1] @ part.maps[1][:, :1].T, expected)
