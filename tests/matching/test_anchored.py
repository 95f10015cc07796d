"""Known pairs as anchors: maps fitted on them, left-out pairs as a judge, plans that grow."""

import numpy as np
import pytest
from unpaired.matching.anchored import drop_worse, grow_plan, known_score, left_out_rank
from unpaired.matching.soft_readout import Placed, embedders
from unpaired.matching.soft_refine import standardise
from unpaired.matching.views import linear_side


@pytest.fixture
def sides():
    """A cloud, a rotated noisy copy in another order, and 20 pairs of them."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal((200, 6))
    rotation = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    order = rng.permutation(200)
    y = (x @ rotation + 0.1 * rng.standard_normal((200, 6)))[order]
    partner = np.argsort(order)
    return x, y, partner, np.column_stack([np.arange(20), partner[:20]])


def mean_rank(scores, partner):
    own = scores[np.arange(len(partner)), partner]
    return (scores > own[:, None]).mean()


def test_known_score_ranks_partners_of_rows_without_a_pair_first(sides):
    x, y, partner, pairs = sides
    scores = known_score([(x, y)], pairs)
    assert scores.shape == (200, 200)
    assert mean_rank(scores[20:], partner[20:]) < 0.05


def test_left_out_rank_is_low_for_true_pairs_and_near_chance_for_false_ones(sides):
    x, y, _, pairs = sides
    false = np.column_stack([pairs[:, 0], np.roll(pairs[:, 1], 1)])
    assert left_out_rank(x, y, pairs) < 0.05
    assert left_out_rank(x, y, false) > 0.3


def test_left_out_rank_of_a_single_pair_is_chance(sides):
    x, y, _, pairs = sides
    assert left_out_rank(x, y, pairs[:1]) == 0.5


def test_left_out_rank_takes_more_pairs_than_folds(sides):
    x, y, partner, _ = sides
    assert left_out_rank(x, y, np.column_stack([np.arange(50), partner[:50]])) < 0.05


def test_drop_worse_keeps_the_rival_that_places_left_out_pairs_best(sides):
    x, y, _, pairs = sides
    noise = np.random.default_rng(1).standard_normal((200, 6))
    coords = {"good": (x, y), "bad": (x, noise), "other": (x, noise)}
    assert drop_worse(["other", "bad", "good"], ["bad", "good"], coords, pairs) == ["other", "good"]


def test_drop_worse_leaves_a_view_without_rival_alone(sides):
    x, y, _, pairs = sides
    assert drop_worse(["bad"], ["bad", "good"], {"bad": (x, y)}, pairs) == ["bad"]


def test_a_plan_grows_beyond_what_eight_pairs_alone_tell(sides):
    x, y, partner, pairs = sides
    coords, few = [(x, y)], pairs[:8]
    near = known_score(coords, few)
    plan = grow_plan(coords, few, near, 0.3)
    assert mean_rank(plan[8:], partner[8:]) < 0.5 * mean_rank(near[8:], partner[8:])


def test_rows_of_known_pairs_are_left_to_the_pairs(sides):
    x, y, _, pairs = sides
    plan = grow_plan([(x, y)], pairs, known_score([(x, y)], pairs), 0.3)
    assert not plan[pairs[:, 0]].any()
    assert not plan[:, pairs[:, 1]].any()
    np.testing.assert_allclose(plan.sum(), 1.0, atol=0.25)


def test_a_plan_takes_sides_of_unequal_size_and_no_free_row(sides):
    x, y, partner, _ = sides
    pairs = np.column_stack([np.arange(30), partner[:30]])
    held = standardise(np.random.default_rng(2).standard_normal((30, 200)).astype(np.float32))
    plan = grow_plan([(x[:30], y)], pairs, held, 0.3)
    assert plan.shape == (30, 200)
    assert not plan.any()


def test_steadied_places_are_the_mean_of_maps_and_ridge_maps(sides):
    x, y, partner, _ = sides
    left, right = linear_side(x), linear_side(y)
    view = Placed(left, right, (left.coords, right.coords))
    cross = left.coords.T @ right.coords[partner]
    plain, steady = (embedders([view], [cross], 0.25, which)[0] for which in ((), (0,)))
    rows, z = x[:40], left.coords
    place = plain(x)[:, :-2]
    penalised = z.T @ z + 1e-3 * np.trace(z.T @ z) * np.eye(z.shape[1])
    fit = np.linalg.solve(penalised, z.T @ (place - place.mean(0)))
    expected = (plain(rows)[:, :-2] + left.embed(rows) @ fit + place.mean(0)) / 2
    np.testing.assert_allclose(steady(rows)[:, :-2], expected, atol=1e-8)
