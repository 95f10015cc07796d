"""Permutations as index vectors, and their doubly stochastic relaxation."""

from __future__ import annotations

import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor


def is_permutation(perm: Tensor) -> bool:
    """Whether ``perm`` holds each of 0..n-1 once.

    >>> is_permutation(torch.tensor([1, 0, 1]))
    False
    """
    return bool(torch.equal(perm.sort().values, torch.arange(len(perm), device=perm.device)))


def invert(perm: Tensor) -> Tensor:
    """The inverse: ``invert(perm)[perm[i]] == i``.

    >>> invert(torch.tensor([2, 0, 1])).tolist()
    [1, 2, 0]
    """
    inverse = torch.empty_like(perm)
    inverse[perm] = torch.arange(len(perm), dtype=perm.dtype, device=perm.device)
    return inverse


def compose(first: Tensor, second: Tensor) -> Tensor:
    """``second`` after ``first``: i -> second[first[i]].

    >>> compose(torch.tensor([1, 2, 0]), torch.tensor([0, 2, 1])).tolist()
    [2, 1, 0]
    """
    return second[first]


def to_matrix(perm: Tensor, dtype: torch.dtype = torch.float64) -> Tensor:
    """Pi with Pi[perm[i], i] = 1, so that Pi' L Pi is ``L[perm][:, perm]``.

    >>> to_matrix(torch.tensor([1, 0])).tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    matrix = torch.zeros(len(perm), len(perm), dtype=dtype, device=perm.device)
    matrix[perm, torch.arange(len(perm), device=perm.device)] = 1.0
    return matrix


def nearest_permutation(soft_perm: Tensor) -> Tensor:
    """The perm whose matrix is nearest to ``soft_perm`` (same orientation as ``to_matrix``).

    >>> nearest_permutation(torch.tensor([[0.1, 0.8], [0.9, 0.2]])).tolist()
    [1, 0]
    """
    rows, columns = linear_sum_assignment(soft_perm.detach().cpu().T.numpy(), maximize=True)
    perm = torch.empty(len(rows), dtype=torch.int64, device=soft_perm.device)
    perm[torch.as_tensor(rows)] = torch.as_tensor(columns, device=soft_perm.device)
    return perm


def sinkhorn(scores: Tensor, n_iter: int = 100, tol: float = 1e-9) -> Tensor:
    """Doubly stochastic matrix proportional to exp(scores) by row and column scaling.

    Works in the log domain, so any finite scores will do. A rectangular (n, m) matrix gets row
    sums 1 and column sums n / m. Differentiable. Cost O(n m) a round.

    >>> torch.allclose(sinkhorn(torch.randn(4, 4)).sum(0), torch.ones(4), atol=1e-4)
    True
    """
    log_plan = scores
    column_mass = torch.log(
        torch.tensor(scores.shape[0] / scores.shape[1], dtype=scores.dtype, device=scores.device)
    )
    for _ in range(n_iter):
        log_plan = log_plan - torch.logsumexp(log_plan, 0, keepdim=True) + column_mass
        row_error = torch.logsumexp(log_plan, 1, keepdim=True)
        log_plan = log_plan - row_error
        if row_error.detach().abs().max() < tol:
            break
    return log_plan.exp()
