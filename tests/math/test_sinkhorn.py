"""Sinkhorn's plan against loops, against assignment when cold, and by what it maximises."""

import itertools

import numpy as np
import pytest
import torch

from unpaired.math.sinkhorn import scale, sinkhorn
from unpaired.plans.assignment import assign

SHAPES = [(5, 5), (6, 3), (3, 6)]


def slow(scores, temperature, n_rounds=3000):
    n, m = scores.shape
    plan = np.exp((scores - scores.max()) / temperature)
    for _ in range(n_rounds):
        for i in range(n):
            plan[i] *= 1 / n / plan[i].sum()
        for j in range(m):
            plan[:, j] *= 1 / m / plan[:, j].sum()
    return plan


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("temperature", [0.5, 2.0])
def test_it_is_what_scaling_by_loops_gives(shape, temperature, rng):
    scores = rng.normal(size=shape)
    plan = sinkhorn(torch.tensor(scores), temperature, max_iter=3000, tol=1e-12).numpy()
    np.testing.assert_allclose(plan, slow(scores, temperature), atol=1e-9)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("temperature", [1.0, 0.05, 0.01])
def test_sums_are_met_at_any_temperature(shape, temperature, rng):
    scores = torch.tensor(rng.random(shape))
    plan = sinkhorn(scores, temperature, max_iter=50_000, tol=1e-4)
    assert plan.isfinite().all()
    np.testing.assert_allclose(plan.sum(0), 1 / shape[1], rtol=1e-9)
    np.testing.assert_allclose(plan.sum(1), 1 / shape[0], rtol=2e-4)


def test_it_stops_once_rows_fit_and_not_before(rng):
    scores = torch.tensor(rng.normal(size=(20, 20)))
    for tol in (1e-1, 1e-4):
        off = (20 * sinkhorn(scores, 0.2, max_iter=10_000, tol=tol).sum(1) - 1).abs().max()
        assert off <= tol
    short = (20 * sinkhorn(scores, 0.2, max_iter=10, tol=1e-4).sum(1) - 1).abs().max()
    assert short > 1e-4


@pytest.mark.parametrize("seed_", range(3))
def test_a_cold_plan_is_the_assignment(seed_):
    scores = np.random.default_rng(seed_).random((6, 6))
    plan = sinkhorn(torch.tensor(scores), 5e-3, max_iter=3000)
    assert plan.argmax(1).tolist() == assign(-scores).tolist()


def test_no_plan_with_the_same_sums_has_more_score_and_entropy(rng):
    scores, temperature = torch.tensor(rng.normal(size=(4, 5))), 0.7

    def value(plan):
        return float((plan * scores).sum() - temperature * (plan * plan.log()).sum())

    plan = sinkhorn(scores, temperature, max_iter=5000, tol=1e-12)
    best = value(plan)
    for (i, k), (j, l) in itertools.product(
        itertools.combinations(range(4), 2), itertools.combinations(range(5), 2)
    ):
        room = 0.3 * float(plan[[i, i, k, k], [j, l, j, l]].min())
        for size in (-room, room):
            moved = plan.clone()
            moved[i, j] += size
            moved[k, l] += size
            moved[i, l] -= size
            moved[k, j] -= size
            assert value(moved) < best


def test_it_feels_no_shift_of_rows_and_columns(rng):
    scores = torch.tensor(rng.normal(size=(5, 5)))
    shifts = torch.tensor(rng.normal(size=(5, 1))), torch.tensor(rng.normal(size=(1, 5)))
    shifted = sinkhorn(scores + 100 + shifts[0] + shifts[1], 1.0, tol=1e-12)
    torch.testing.assert_close(shifted, sinkhorn(scores, 1.0, tol=1e-12))


def test_it_follows_shuffles_transposition_and_the_unit_of_the_temperature(rng):
    scores = torch.tensor(rng.normal(size=(6, 4)))
    order = torch.tensor(rng.permutation(6))
    plan = sinkhorn(scores, 1.0, tol=1e-12)
    torch.testing.assert_close(sinkhorn(scores[order], 1.0, tol=1e-12), plan[order])
    torch.testing.assert_close(sinkhorn(scores.T, 1.0, tol=1e-12), plan.T)
    torch.testing.assert_close(sinkhorn(9 * scores, 9.0, tol=1e-12), plan)


@pytest.mark.parametrize("size", [1e3, 1e6, 1e30])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_huge_scores_stay_finite_and_become_hard(size, dtype, rng):
    hard = torch.eye(6, dtype=dtype)[torch.tensor(rng.permutation(6))]
    torch.testing.assert_close(6 * sinkhorn(size * hard, 1.0), hard)


def test_scores_are_left_as_they_were(rng):
    scores = torch.tensor(rng.normal(size=(5, 4)))
    before = scores.clone()
    sinkhorn(scores, 0.1)
    assert torch.equal(scores, before)


def test_going_farther_in_each_round_comes_nearer(rng):
    kernel = torch.tensor(rng.normal(size=(40, 30)) / 0.3).softmax(1)
    rows, columns = torch.full((40,), 1 / 40).double(), torch.full((30,), 1 / 30).double()

    def plan(rounds, relaxation):
        _, v = scale(kernel.mv, kernel.T.mv, rows, columns, rounds, relaxation)
        return kernel * v / kernel.mv(v)[:, None]

    limit = plan(2000, 1.0)
    torch.testing.assert_close(plan(2000, 1.4), limit)
    off = {r: float((plan(7, r) - limit).abs().sum()) for r in (1.0, 1.4)}
    assert off[1.4] < 0.6 * off[1.0]
    assert torch.equal(plan(1, 1.4), plan(1, 1.0))


def test_factors_scale_a_kernel_given_by_its_products(rng):
    kernel = torch.tensor(rng.random((4, 6)) + 0.1)
    rows = torch.tensor(rng.dirichlet(np.ones(4)))
    columns = torch.tensor(rng.dirichlet(np.ones(6)))
    u, v = scale(kernel.mv, kernel.T.mv, rows, columns, 500)
    plan = u[:, None] * kernel * v
    torch.testing.assert_close(plan.sum(0), columns)
    torch.testing.assert_close(plan.sum(1), rows)
    one, other = scale(kernel.mv, kernel.T.mv, rows, columns, 0)
    assert torch.equal(one, torch.ones_like(rows))
    assert torch.equal(other, torch.ones_like(columns))
