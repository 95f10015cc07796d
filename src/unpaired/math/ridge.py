"""Ridge regression, once for everything that needs it."""

from __future__ import annotations

import torch
from torch import Tensor


def ridge_map(
    rows: Tensor, target: Tensor, ridge: float, weights: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Coefficients (r, k) and intercept (1, k) of the regression of target (n, k) on rows (n, r).

    The ridge counts in units of the total variance of the rows. Cost O(n r^2 + r^3).

    >>> slope, level = ridge_map(torch.tensor([[0.0], [1.0]]), torch.tensor([[1.0], [3.0]]), 0.0)
    >>> slope.item(), level.item()
    (2.0, 1.0)
    """
    share = torch.ones(len(rows), 1).to(rows) if weights is None else weights[:, None].to(rows)
    share = share / share.sum()
    mean, level = (share * rows).sum(0, keepdim=True), (share * target).sum(0, keepdim=True)
    centred = rows - mean
    gram = (share * centred).T @ centred
    gram.diagonal().add_(ridge * gram.trace() + 1e-30)
    slope = torch.linalg.solve(gram, (share * centred).T @ (target - level))
    return slope, level - mean @ slope
