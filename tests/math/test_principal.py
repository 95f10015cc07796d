"""Principal components against NumPy's SVD, in every branch."""

import numpy as np
import pytest
import torch

from unpaired.math import principal as module
from unpaired.math.principal import principal

TALL, WIDE = (60, 7), (9, 40)


def oracle(rows, weights=None):
    weights = np.ones(len(rows)) if weights is None else weights
    mean = weights @ rows / weights.sum()
    centred = (rows - mean) * np.sqrt(weights)[:, None]
    _, lengths, axes = np.linalg.svd(centred, full_matrices=False)
    return mean, axes.T, lengths**2 / weights.sum()


def agrees(found, rows, rank, weights=None, atol=1e-8):
    mean, axes, variances = oracle(rows, weights)
    np.testing.assert_allclose(found.mean, mean, atol=atol)
    np.testing.assert_allclose(found.variances, variances[:rank], atol=atol)
    assert found.total == pytest.approx(variances.sum(), rel=1e-6)
    same = np.abs((axes[:, :rank] * found.axes.numpy()).sum(0))
    np.testing.assert_allclose(same, 1.0, atol=atol)


@pytest.mark.parametrize("shape", [TALL, WIDE])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("exact_side", [3000, 20])
def test_axes_and_variances_are_those_of_the_svd(shape, weighted, exact_side, rng, monkeypatch):
    monkeypatch.setattr(module, "EXACT_SIDE", exact_side)
    rows = rng.normal(size=shape) * np.geomspace(5, 1, shape[1]) + 3.0
    weights = rng.random(len(rows)) + 0.2 if weighted else None
    given = None if weights is None else torch.tensor(weights)
    agrees(principal(torch.tensor(rows), 5, weights=given), rows, 5, weights)


@pytest.mark.parametrize("weighted", [False, True])
def test_subspace_iteration_finds_leading_axes(rng, monkeypatch, weighted):
    monkeypatch.setattr(module, "EXACT_SIDE", 20)
    leading = rng.normal(size=(90, 4)) * [9.0, 7.0, 5.0, 3.0]
    basis = np.linalg.qr(rng.normal(size=(50, 4)))[0]
    rows = leading @ basis.T + 1e-3 * rng.normal(size=(90, 50))
    weights = rng.integers(1, 4, 90).astype(float) if weighted else None
    given = None if weights is None else torch.tensor(weights)
    found = principal(torch.tensor(rows), 4, weights=given)
    agrees(found, rows, 4, weights, atol=1e-4)
    again = principal(torch.tensor(rows), 4, weights=given)
    assert torch.equal(found.axes, again.axes)


@pytest.mark.parametrize("shape", [TALL, WIDE])
def test_a_row_of_weight_w_counts_as_w_rows(shape, rng):
    rows = torch.tensor(rng.normal(size=shape))
    weights = torch.tensor(rng.integers(1, 4, len(rows)))
    copies = rows.repeat_interleave(weights, 0)
    weighted, repeated = principal(rows, 5, weights=weights.double()), principal(copies, 5)
    torch.testing.assert_close(weighted.mean, repeated.mean)
    torch.testing.assert_close(weighted.variances, repeated.variances)
    torch.testing.assert_close(weighted.axes, repeated.axes)


@pytest.mark.parametrize("shape", [TALL, WIDE])
def test_signs_are_fixed_and_the_order_of_rows_does_not_matter(shape, rng):
    rows = torch.tensor(rng.normal(size=shape))
    found = principal(rows, 5)
    heaviest = found.axes.gather(0, found.axes.abs().argmax(0, keepdim=True))
    assert (heaviest > 0).all()
    moved = principal(rows[torch.tensor(rng.permutation(len(rows)))], 5)
    torch.testing.assert_close(moved.axes, found.axes)


def test_directions_without_variance_are_left_out_but_one_axis_stays(rng):
    flat = torch.tensor(np.c_[rng.normal(size=30), np.zeros((30, 4))])
    assert principal(flat, 5).axes.shape == (5, 1)
    still = principal(torch.ones(6, 3), 3)
    assert still.axes.shape == (3, 1)
    assert still.variances.tolist() == [0.0]
    assert principal(torch.tensor(rng.normal(size=(4, 9))), 9).axes.shape == (9, 3)  # n - 1


@pytest.mark.parametrize("n_rows", [50, 20])
def test_blocks_and_precision_of_the_input(rng, monkeypatch, n_rows):
    rows = torch.tensor(rng.normal(size=(n_rows, 30)), dtype=torch.float32)
    whole = principal(rows, 4)
    assert whole.axes.dtype == whole.variances.dtype == torch.float32
    monkeypatch.setattr(module, "BLOCK_ROWS", 7)
    blocks = principal(rows, 4)
    torch.testing.assert_close(blocks.variances, whole.variances)
    torch.testing.assert_close(blocks.axes, whole.axes, atol=1e-4, rtol=0)
