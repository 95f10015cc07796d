import numpy as np
import pytest
import torch
from unpaired.training.soft_plan import hard_plan, soft_plan


def blocks_of(scores, size):
    rows = torch.arange(len(scores))
    return ((rows[i : i + size], scores[i : i + size]) for i in range(0, len(scores), size))


def dense(plan):
    out = np.zeros(plan.shape)
    out[plan.rows.numpy(), plan.columns.numpy()] = plan.shares.numpy()
    return out


def slow_plan(scores, temperature, n_iterations=30, balanced=True):
    n_x, n_y = scores.shape
    plan = np.exp((scores - scores.max(1, keepdims=True)) / (temperature * scores.std()))
    for _ in range(n_iterations if balanced else 0):
        plan /= plan.sum(1, keepdims=True)
        plan *= n_x / n_y / plan.sum(0)
    return plan / plan.sum(1, keepdims=True)


@pytest.mark.parametrize("balanced", [True, False])
@pytest.mark.parametrize("block", [3, 100])
def test_with_all_candidates_it_is_sinkhorn(block, balanced, rng):
    scores = torch.tensor(rng.standard_normal((12, 9)))
    plan = soft_plan(blocks_of(scores, block), (12, 9), 0.5, 50, balanced=balanced)
    np.testing.assert_allclose(
        dense(plan), slow_plan(scores.numpy(), 0.5, balanced=balanced), rtol=1e-6
    )


def test_candidates_are_the_best_of_rows_and_of_columns(rng):
    scores = torch.tensor(rng.standard_normal((30, 20)))
    plan = soft_plan(blocks_of(scores, 7), (30, 20), 0.5, 3)
    kept = dense(plan) > 0
    for row in range(30):
        assert kept[row, np.argsort(-scores[row].numpy())[:3]].all()
    for column in range(20):
        assert kept[np.argsort(-scores[:, column].numpy())[:3], column].all()
    np.testing.assert_allclose(dense(plan).sum(1), 1.0)


def test_peaks_partners_and_expected_partner_by_loops(rng):
    scores = torch.tensor(rng.standard_normal((10, 8)), dtype=torch.float32)
    plan = soft_plan(blocks_of(scores, 4), (10, 8), 0.4, 4)
    values = torch.tensor(rng.standard_normal((8, 3)), dtype=torch.float32)
    shares = dense(plan)
    np.testing.assert_allclose(plan.peaks(), shares.max(1), rtol=1e-6)
    np.testing.assert_array_equal(plan.partners(), shares.argmax(1))
    np.testing.assert_allclose(plan.apply(values), shares @ values.numpy(), rtol=1e-4, atol=1e-6)


def test_a_hard_plan_gives_each_row_its_partner():
    plan = hard_plan(np.array([2, -1, 0]), 3, torch.device("cpu"))
    values = torch.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])
    np.testing.assert_array_equal(plan.apply(values), [[5, 6], [0, 0], [1, 2]])
    assert plan.partners().tolist() == [2, -1, 0]
    assert plan.peaks().tolist() == [1.0, 0.0, 1.0]


def test_tiny_temperatures_give_finite_shares(rng):
    scores = torch.tensor(rng.standard_normal((40, 40)), dtype=torch.float32)
    scores[:, 0] -= 50.0  # a column that no row would take
    plan = soft_plan([(torch.arange(40), scores)], (40, 40), 0.001, 40)
    assert torch.isfinite(plan.shares).all()
    assert float(plan.shares.max()) <= 1.0 + 1e-6
