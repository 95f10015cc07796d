"""Hub correction: a row that is near to everything falls back (CSLS, Conneau et al. 2018)."""

from __future__ import annotations

import torch
from torch import Tensor

BLOCK_ROWS = 2048


def best_mean(scores: Tensor, n_nearest: int, dim: int = 1) -> Tensor:
    """The mean of the largest ``n_nearest`` scores along ``dim``: how crowded a row is."""
    return scores.topk(min(n_nearest, scores.shape[dim]), dim).values.mean(dim)


def crowding(rows: Tensor, others: Tensor, n_nearest: int) -> Tensor:
    """The mean inner product of each row (n, k) with its best ``n_nearest`` of ``others``, (n,)."""
    if not len(others):
        return rows.new_zeros(len(rows))
    return torch.cat(
        [best_mean(part @ others.T, n_nearest) for part in torch.split(rows, BLOCK_ROWS)]
    )


def csls(scores: Tensor, n_nearest: int = 10) -> Tensor:
    """Scores (n, m) less half of how crowded their row and their column are.

    >>> csls(torch.tensor([[1.0, 0.0], [1.0, 0.5]]), 1).tolist()
    [[0.0, -0.75], [0.0, -0.25]]
    """
    rows, columns = best_mean(scores, n_nearest), best_mean(scores, n_nearest, dim=0)
    return scores - 0.5 * (rows[:, None] + columns[None, :])
