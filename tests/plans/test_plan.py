"""Known pairs; plans, dense and sparse, against loops and each other on the same scores."""

import numpy as np
import pytest
import torch

from unpaired.plans import plan as module
from unpaired.plans.plan import (
    DensePlan,
    SparsePlan,
    dense_plan,
    hard_plan,
    make_pairs,
    mean_plan,
    plan_of,
    product_blocks,
    sparse_plan,
)

CPU = torch.device("cpu")


def blocks_of(scores, size):
    rows = torch.arange(len(scores))
    return ((rows[i : i + size], scores[i : i + size]) for i in range(0, len(scores), size))


def dense(plan):
    out = np.zeros(plan.shape)
    out[plan.rows.numpy(), plan.columns.numpy()] = plan.shares.numpy()
    return out


def slow_plan(scores, temperature, n_rounds, relaxation=1.0):
    n_x, n_y = scores.shape
    plan = np.exp((scores - scores.max(1, keepdims=True)) / (temperature * scores.std()))
    for number in range(n_rounds):
        power = relaxation if number else 1.0
        plan /= plan.sum(1, keepdims=True) ** power
        plan *= (n_x / n_y / plan.sum(0)) ** power
    return plan / plan.sum(1, keepdims=True)


# Oracles


@pytest.mark.parametrize("balanced", [True, False])
@pytest.mark.parametrize("block", [3, 100])
def test_a_sparse_plan_of_all_candidates_is_sinkhorns(block, balanced, rng):
    scores = torch.tensor(rng.standard_normal((12, 9)))
    plan = sparse_plan(blocks_of(scores, block), (12, 9), 0.5, balanced, 50)
    expected = slow_plan(scores.numpy(), 0.5, module.N_SPARSE if balanced else 0)
    np.testing.assert_allclose(dense(plan), expected, rtol=1e-6)


@pytest.mark.parametrize("balanced", [True, False])
@pytest.mark.parametrize("shift", [0.0, 40.0])
@pytest.mark.parametrize("block", [5, 100])
def test_a_dense_plan_is_sinkhorns(block, shift, balanced, rng, monkeypatch):
    monkeypatch.setattr(module, "CACHED_ROWS", block)
    scores = torch.tensor(rng.standard_normal((12, 9)) + shift)
    before = scores.clone()
    plan = dense_plan(scores, 0.5, balanced=balanced)
    rounds = module.N_SINKHORN if balanced else 0
    expected = slow_plan(scores.numpy(), 0.5, rounds, module.RELAXATION)
    np.testing.assert_allclose(plan.shares, expected, rtol=1e-6)
    assert torch.equal(scores, before)


@pytest.mark.parametrize("temperature", [0.1, 0.2, 0.4])
def test_a_dense_plan_is_as_near_to_the_limit_as_fifteen_plain_rounds(temperature, rng):
    scores = rng.standard_normal((80, 10)) @ rng.standard_normal((10, 80))
    limit = slow_plan(scores, temperature, 3000)
    plan = dense_plan(torch.tensor(scores), temperature).shares.numpy()
    plain = slow_plan(scores, temperature, 15)
    off, plain_off = (np.abs(found - limit).sum(1).mean() for found in (plan, plain))
    assert off <= max(1.05 * plain_off, 2e-3)  # a thousandth of a row's shares is near enough


def test_candidates_are_the_best_of_rows_and_of_columns(rng):
    scores = torch.tensor(rng.standard_normal((30, 20)))
    plan = sparse_plan(blocks_of(scores, 7), (30, 20), 0.5, True, 3)
    kept = dense(plan) > 0
    expected = np.zeros((30, 20), dtype=bool)
    for row in range(30):
        expected[row, np.argsort(-scores[row].numpy())[:3]] = True
    for column in range(20):
        expected[np.argsort(-scores[:, column].numpy())[:3], column] = True
    np.testing.assert_array_equal(kept, expected)
    np.testing.assert_allclose(dense(plan).sum(1), 1.0)
    alone = sparse_plan(blocks_of(scores, 7), (30, 20), 0.5, False, 3)
    assert (np.count_nonzero(dense(alone), axis=1) == 3).all()


def test_what_a_sparse_plan_says_by_loops(rng):
    scores = torch.tensor(rng.standard_normal((10, 8)), dtype=torch.float32)
    plan = sparse_plan(blocks_of(scores, 4), (10, 8), 0.4, True, 4)
    values = torch.tensor(rng.standard_normal((8, 3)), dtype=torch.float32)
    weights = torch.tensor(rng.random(10), dtype=torch.float32)
    shares = dense(plan)
    np.testing.assert_allclose(plan.peaks(), shares.max(1), rtol=1e-6)
    np.testing.assert_array_equal(plan.partners(), shares.argmax(1))
    np.testing.assert_allclose(plan.apply(values), shares @ values.numpy(), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(plan.loads(weights), weights.numpy() @ shares, rtol=1e-4, atol=1e-6)


# Agreement


@pytest.mark.parametrize("balanced", [True, False])
@pytest.mark.parametrize("shape", [(60, 50), (40, 70)])
def test_dense_and_sparse_plans_agree_on_the_same_rows(balanced, shape, rng, monkeypatch):
    left, right = (torch.tensor(rng.standard_normal((n, 5))) for n in shape)
    one = plan_of(left, right, 1.0, balanced=balanced)
    monkeypatch.setattr(module, "DENSE_ENTRIES", 100)
    monkeypatch.setattr(module, "BLOCK_ROWS", 17)
    monkeypatch.setattr(module, "N_CANDIDATES", 80)
    score_blocks = product_blocks(left, right)
    other = sparse_plan(score_blocks, shape, 1.0, balanced, n_candidates=80)
    assert isinstance(one, DensePlan)
    assert isinstance(other, SparsePlan)
    assert one.shape == other.shape == shape
    values = torch.tensor(rng.standard_normal((shape[1], 3)))
    weights = torch.tensor(rng.random(shape[0]))
    close = {"rtol": 2e-3, "atol": 1e-5}  # deviations are over n - 1 in one, over n in the other
    torch.testing.assert_close(other.apply(values), one.apply(values), rtol=1e-2, atol=1e-3)
    torch.testing.assert_close(other.loads(weights), one.loads(weights), **close)
    torch.testing.assert_close(other.peaks(), one.peaks(), **close)
    theirs = one.shares.gather(1, other.partners()[:, None])[:, 0]  # two may share a row's peak
    torch.testing.assert_close(theirs, one.peaks(), **close)
    large = plan_of(left, right, 1.0, balanced=balanced)
    assert isinstance(large, SparsePlan)


def test_both_kinds_say_the_same_of_the_same_shares(rng):
    shares = torch.tensor(rng.random((9, 7)))
    shares[2] = 0.0
    shares = shares / shares.sum(1, keepdim=True).clamp_min(1e-30)
    one = DensePlan(shares)
    rows, columns = torch.nonzero(shares > 0, as_tuple=True)
    other = SparsePlan(rows, columns, shares[rows, columns], (9, 7))
    values, weights = torch.tensor(rng.random((7, 2))), torch.tensor(rng.random(9))
    torch.testing.assert_close(one.apply(values), other.apply(values))
    torch.testing.assert_close(one.loads(weights), other.loads(weights))
    assert torch.equal(one.peaks(), other.peaks())
    assert torch.equal(one.partners(), other.partners())
    assert int(one.partners()[2]) == -1


# Invariants


@pytest.mark.parametrize("temperature", [2.0, 0.5, 0.1])
def test_rows_sum_to_one_and_columns_get_like_loads(temperature, rng):
    scores = torch.tensor(rng.standard_normal((30, 20)))
    for plan in (
        dense_plan(scores, temperature),
        sparse_plan(blocks_of(scores, 30), (30, 20), temperature),
    ):
        every = torch.ones(20, 1, dtype=torch.float64)
        torch.testing.assert_close(plan.apply(every)[:, 0], torch.ones(30, dtype=torch.float64))
        load = plan.loads(torch.ones(30, dtype=torch.float64))
        assert float(load.sum()) == pytest.approx(30.0)
        if temperature >= 0.5:  # colder ones need more rounds
            torch.testing.assert_close(load, torch.full_like(load, 1.5), rtol=0.02, atol=0)


def test_temperature_counts_in_deviations_and_a_colder_plan_is_sharper(rng):
    scores = torch.tensor(rng.standard_normal((20, 20)))
    one = dense_plan(scores, 0.5)
    torch.testing.assert_close(dense_plan(70 * scores - 5, 0.5).shares, one.shares)
    assert (dense_plan(scores, 0.2).peaks().mean() > one.peaks().mean()).all()


def test_a_hard_plan_gives_each_row_its_partner():
    plan = hard_plan(np.array([2, -1, 0]), 3, torch.device("cpu"))
    values = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    np.testing.assert_array_equal(plan.apply(values), [[5, 6], [0, 0], [1, 2]])
    assert plan.partners().tolist() == [2, -1, 0]
    assert plan.peaks().tolist() == [1.0, 0.0, 1.0]
    assert plan.loads(torch.tensor([1.0, 1.0, 0.5])).tolist() == [0.5, 0.0, 1.0]


def test_tiny_temperatures_give_finite_shares(rng):
    scores = torch.tensor(rng.standard_normal((40, 40)), dtype=torch.float32)
    scores[:, 0] -= 50.0  # a column that no row would take
    sparse = sparse_plan([(torch.arange(40), scores)], (40, 40), 0.001, True, 40).shares
    for shares in (sparse, dense_plan(scores, 0.001).shares):
        assert torch.isfinite(shares).all()
        assert float(shares.max()) <= 1.0 + 1e-6


def test_scores_that_are_all_alike_give_equal_shares():
    plan = dense_plan(torch.zeros(4, 6), 0.25)
    torch.testing.assert_close(plan.shares, torch.full((4, 6), 1 / 6))


def test_blocks_of_products_cover_every_row_once(rng, monkeypatch):
    monkeypatch.setattr(module, "BLOCK_ROWS", 4)
    left, right = torch.tensor(rng.random((10, 3))), torch.tensor(rng.random((5, 3)))
    rows, scores = zip(*product_blocks(left, right), strict=True)
    assert torch.cat(rows).tolist() == list(range(10))
    torch.testing.assert_close(torch.cat(scores), left @ right.T)


def test_five_captions_of_an_image_count_as_one():
    captions = make_pairs(np.array([[0, 0], [0, 1], [1, 2]]), 4, 5, CPU)
    assert captions.weights.tolist() == [0.5, 0.5, 1.0]
    assert captions.free_x.tolist() == [2, 3]
    assert captions.free_y.tolist() == [3, 4]
    assert captions.balanced
    classes = make_pairs(np.array([[0, 0], [1, 0], [1, 1]]), 3, 2, CPU, many_to_one=True)
    assert classes.weights.tolist() == [1.0, 0.5, 0.5]
    assert classes.free_x.tolist() == [2]
    assert classes.free_y.tolist() == [0, 1]
    assert not classes.balanced


def test_without_known_pairs_all_rows_are_free():
    pairs = make_pairs(None, 3, 4, CPU)
    assert pairs.known.shape == (0, 2)
    assert pairs.free_x.tolist() == [0, 1, 2]
    assert pairs.free_y.tolist() == [0, 1, 2, 3]


def test_some_of_the_free_rows_in_order(rng):
    pairs = make_pairs(np.array([[0, 1]]), 30, 20, CPU)
    some = pairs.draw(7, rng)
    assert len(some.free_x) == len(some.free_y) == 7
    assert (some.free_x.diff() > 0).all()
    assert set(some.free_x.tolist()) <= set(pairs.free_x.tolist())
    assert set(some.free_y.tolist()) <= set(pairs.free_y.tolist())
    assert some.known is pairs.known
    assert len(pairs.draw(99, rng).free_y) == 19


def test_the_mean_of_plans_leaves_them_as_they_are(rng):
    plans = [DensePlan(torch.tensor(rng.dirichlet(np.ones(5), 4)).float()) for _ in range(3)]
    before = [plan.shares.clone() for plan in plans]
    found = mean_plan(plans)
    torch.testing.assert_close(found.shares, torch.stack(before).mean(0))
    assert all(torch.equal(plan.shares, was) for plan, was in zip(plans, before, strict=True))
