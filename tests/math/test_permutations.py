import itertools

import numpy as np
import pytest
import torch

from unpaired.math.permutations import (
    compose,
    invert,
    is_permutation,
    nearest_permutation,
    sinkhorn,
    to_matrix,
)


@pytest.fixture
def perm(rng):
    return torch.tensor(rng.permutation(6))


# Oracles


def test_matrix_inverse_and_composition_by_loops(perm, rng):
    second = torch.tensor(rng.permutation(6))
    for i in range(6):
        assert to_matrix(perm)[perm[i], i] == 1
        assert invert(perm)[perm[i]] == i
        assert compose(perm, second)[i] == second[perm[i]]
    assert to_matrix(perm).sum() == 6
    assert to_matrix(perm, torch.float32).dtype == torch.float32


@pytest.mark.parametrize("shape", [(5, 5), (6, 3), (3, 6)])
def test_sinkhorn_by_loops(rng, shape):
    scores = rng.normal(size=shape)
    plan = np.exp(scores)
    for _ in range(2000):
        for j in range(shape[1]):
            plan[:, j] *= shape[0] / shape[1] / plan[:, j].sum()
        for i in range(shape[0]):
            plan[i] /= plan[i].sum()
    result = sinkhorn(torch.tensor(scores), n_iter=2000).numpy()
    np.testing.assert_allclose(result, plan, atol=1e-8)
    np.testing.assert_allclose(result.sum(1), np.ones(shape[0]))
    np.testing.assert_allclose(result.sum(0), np.full(shape[1], shape[0] / shape[1]), atol=1e-8)


# Brute force


@pytest.mark.parametrize("n", [1, 2, 4, 5])
def test_nearest_permutation_among_all(rng, n):
    soft = torch.tensor(rng.random((n, n)))
    best = min(
        itertools.permutations(range(n)),
        key=lambda p: float(((to_matrix(torch.tensor(p)) - soft) ** 2).sum()),
    )
    assert nearest_permutation(soft).tolist() == list(best)


@pytest.mark.parametrize("n", [1, 2, 3])
def test_is_permutation_over_all_index_vectors(n):
    for entries in itertools.product(range(n + 1), repeat=n):
        assert is_permutation(torch.tensor(entries)) == (sorted(entries) == list(range(n)))


# Invariants


def test_matrix_orders_a_gram_matrix(perm, rng):
    gram = torch.tensor(rng.normal(size=(6, 6)))
    pi = to_matrix(perm)
    torch.testing.assert_close(pi.T @ gram @ pi, gram[perm][:, perm])


def test_inverse_undoes_and_transposes(perm):
    assert compose(perm, invert(perm)).tolist() == list(range(6))
    assert torch.equal(invert(invert(perm)), perm)
    assert torch.equal(to_matrix(invert(perm)), to_matrix(perm).T)


def test_composition_is_the_product_of_matrices(perm, rng):
    second = torch.tensor(rng.permutation(6))
    assert torch.equal(to_matrix(compose(perm, second)), to_matrix(second) @ to_matrix(perm))


def test_nearest_permutation_undoes_to_matrix_and_takes_gradient_tensors(perm):
    soft = (0.7 * to_matrix(perm) + 0.05).requires_grad_()
    assert torch.equal(nearest_permutation(soft), perm)


def test_sinkhorn_does_not_feel_row_and_column_shifts(rng):
    scores = torch.tensor(rng.normal(size=(5, 5)))
    shifts = torch.tensor(rng.normal(size=(5, 1))), torch.tensor(rng.normal(size=(1, 5)))
    shifted = sinkhorn(scores + 100 + shifts[0] + shifts[1], n_iter=1000)
    torch.testing.assert_close(shifted, sinkhorn(scores, n_iter=1000), atol=1e-7, rtol=1e-7)


def test_sinkhorn_follows_shuffles_and_transposition(rng, perm):
    scores = torch.tensor(rng.normal(size=(6, 6)))
    plan = sinkhorn(scores, n_iter=1000)
    torch.testing.assert_close(sinkhorn(scores[perm], n_iter=1000), plan[perm])
    torch.testing.assert_close(sinkhorn(scores.T, n_iter=1000), plan.T, atol=1e-7, rtol=1e-7)


@pytest.mark.parametrize("scale", [1e3, 1e6, 1e30])
def test_sinkhorn_of_huge_scores_stays_finite_and_becomes_hard(perm, scale):
    plan = sinkhorn(scale * to_matrix(perm).T)  # [i, perm[i]] scores highest
    assert plan.isfinite().all()
    torch.testing.assert_close(plan, to_matrix(perm).T)


@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 5)])
def test_sinkhorn_stops_when_rows_and_columns_fit(monkeypatch, shape):
    calls = []
    original = torch.logsumexp
    monkeypatch.setattr(torch, "logsumexp", lambda *a, **k: calls.append(0) or original(*a, **k))
    plan = sinkhorn(torch.zeros(shape, dtype=torch.float64), n_iter=50)
    torch.testing.assert_close(plan, torch.full(shape, 1 / shape[1], dtype=torch.float64))
    assert len(calls) == 2  # one round: columns, then rows


# Gradients


@pytest.mark.parametrize("shape", [(4, 4), (4, 2)])
def test_sinkhorn_gradient(rng, shape):
    scores = torch.tensor(rng.normal(size=shape), requires_grad=True)
    assert torch.autograd.gradcheck(lambda s: sinkhorn(s, n_iter=20, tol=0.0), (scores,))
