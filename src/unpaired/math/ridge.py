"""Ridge regression, once for everything that needs it."""

from __future__ import annotations

import torch
from torch import Tensor


def ridge_map(
    rows: Tensor, target: Tensor, ridge: float, weights: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Coefficients (r, k) and intercept (1, k) of the regression of target (n, k) on rows (n, r).

    The ridge counts in units of the total variance of the rows. In double precision, and so on the
    CPU. Cost O(n r^2 + r^3).

    >>> slope, level = ridge_map(torch.tensor([[0.0], [1.0]]), torch.tensor([[1.0], [3.0]]), 0.0)
    >>> slope.item(), level.item()
    (2.0, 1.0)
    """
    source, aim = rows.cpu().double(), target.cpu().double()
    share = torch.ones(len(rows)) if weights is None else weights.cpu()
    share = share.double()[:, None] / share.double().sum()
    mean, level = (share * source).sum(0, keepdim=True), (share * aim).sum(0, keepdim=True)
    centred = source - mean
    gram = (share * centred).T @ centred
    gram.diagonal().add_(ridge * gram.trace() + 1e-30)
    slope = torch.linalg.solve(gram, (share * centred).T @ (aim - level))
    return slope.to(rows), (level - mean @ slope).to(rows)
