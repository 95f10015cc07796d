import numpy as np
import pytest
import torch

from unpaired.errors import InputError
from unpaired.math.kernels import (
    center_gram,
    gaussian_gram,
    median_bandwidth,
    rounding_floor,
    squared_distances,
)


@pytest.fixture
def rows(rng):
    return torch.tensor(rng.normal(size=(6, 3))), torch.tensor(rng.normal(size=(4, 3)))


# Oracles


@pytest.mark.parametrize("itself", [True, False])
def test_gram_matrices_by_loops(rows, itself):
    x, y = rows
    other = x if itself else y
    second = None if itself else y
    for i in range(len(x)):
        for j in range(len(other)):
            distance = sum(float(a - b) ** 2 for a, b in zip(x[i], other[j], strict=True))
            assert squared_distances(x, second)[i, j].item() == pytest.approx(distance, abs=1e-12)
            gram = gaussian_gram(x, second, bandwidth=1.7)
            assert gram[i, j].item() == pytest.approx(np.exp(-distance / (2 * 1.7**2)))


def test_centring_is_h_k_h(rows):
    gram = rows[0] @ rows[0].T
    n = len(gram)
    h = torch.eye(n, dtype=torch.float64) - torch.ones(n, n, dtype=torch.float64) / n
    torch.testing.assert_close(center_gram(gram), h @ gram @ h)
    lopsided = gram + torch.arange(float(n))[:, None]  # not symmetric: rows and columns differ
    torch.testing.assert_close(center_gram(lopsided), h @ lopsided @ h)


@pytest.mark.parametrize("n_rows", [2, 3, 6, 7])
def test_median_bandwidth_by_loops(rng, n_rows):
    x = rng.normal(size=(n_rows, 2))
    distances = sorted(
        np.linalg.norm(x[i] - x[j]) for i in range(n_rows) for j in range(i + 1, n_rows)
    )
    lower_middle = distances[(len(distances) - 1) // 2]
    assert median_bandwidth(torch.tensor(x)) == pytest.approx(lower_middle)


def test_median_bandwidth_of_many_rows_uses_evenly_spaced_ones(rng):
    x = torch.tensor(rng.normal(size=(50, 2)))
    assert median_bandwidth(x, max_rows=8) == median_bandwidth(x[torch.arange(0, 50, 7)])


# Invariants


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_distances_do_not_feel_a_shift_or_a_rotation(rng, dtype):
    x = torch.tensor(rng.normal(size=(8, 4)), dtype=dtype)
    turn = torch.tensor(np.linalg.qr(rng.normal(size=(4, 4)))[0], dtype=dtype)
    before = squared_distances(x)
    torch.testing.assert_close(squared_distances(x @ turn), before, atol=1e-4, rtol=1e-4)
    far = x + 1000.0  # 1000 squared leaves float32 no digits for distances near 1
    torch.testing.assert_close(squared_distances(far), before, atol=0.01, rtol=0.01)
    torch.testing.assert_close(squared_distances(far, far[:3]), before[:, :3], atol=0.01, rtol=0.01)


def test_distances_are_never_negative_and_zero_to_oneself(rng):
    x = torch.tensor(rng.normal(size=(1, 40)), dtype=torch.float32).repeat(9, 1)
    x = x + 1e-4 * torch.tensor(rng.normal(size=x.shape), dtype=torch.float32)
    assert (squared_distances(x) >= 0).all()
    assert (squared_distances(x, x.clone()) >= 0).all()
    assert (squared_distances(x).diagonal() == 0).all()


def test_gram_follows_shuffled_rows(rows, rng):
    order = torch.tensor(rng.permutation(6))
    gram = gaussian_gram(rows[0], bandwidth=1.0)
    torch.testing.assert_close(gaussian_gram(rows[0][order], bandwidth=1.0), gram[order][:, order])


def test_gaussian_gram_does_not_feel_a_common_scale(rows):
    torch.testing.assert_close(
        gaussian_gram(5 * rows[0], bandwidth=5.0), gaussian_gram(rows[0], bandwidth=1.0)
    )


def test_centring_twice_changes_nothing_and_sums_are_zero(rows):
    centred = center_gram(gaussian_gram(rows[0], bandwidth=1.0))
    torch.testing.assert_close(center_gram(centred), centred)
    torch.testing.assert_close(centred.sum(0), torch.zeros(6, dtype=torch.float64))
    torch.testing.assert_close(centred.sum(1), torch.zeros(6, dtype=torch.float64))


def test_median_bandwidth_scales_with_the_rows(rows):
    assert median_bandwidth(7 * rows[0]) == pytest.approx(7 * median_bandwidth(rows[0]))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("width", [1, 16, 300])
def test_rounding_floor_tells_equal_rows_from_different_ones(rng, dtype, width):
    distinct = torch.tensor(rng.normal(size=(3, width)), dtype=dtype)
    x = distinct.repeat(10, 1)
    distances = squared_distances(x)
    same = (torch.arange(30) % 3)[:, None] == (torch.arange(30) % 3)[None, :]
    assert torch.equal(distances <= rounding_floor(distances), same)


# Gradients


@pytest.mark.parametrize("itself", [True, False])
def test_gaussian_gram_gradient(rows, itself):
    x, y = (r.clone().requires_grad_() for r in rows)
    width = torch.tensor(1.3, dtype=torch.float64, requires_grad=True)
    inputs = (x, width) if itself else (x, y, width)

    def gram(*given):
        return gaussian_gram(*given[:-1], bandwidth=given[-1])

    assert torch.autograd.gradcheck(gram, inputs)


# Errors


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("width", [1, 50, 300])
def test_median_bandwidth_of_mostly_equal_rows(rng, dtype, width):
    x = torch.tensor(rng.normal(size=(1, width)), dtype=dtype).repeat(10, 1)
    x[0] += 1.0  # 9 of 45 pairs of rows differ
    with pytest.raises(InputError) as error:
        median_bandwidth(x, "y")
    assert str(error.value) == (
        'bandwidth_y="median" gave 0: at least half of the row pairs of y are identical. '
        "Drop duplicates or pass a positive number."
    )
