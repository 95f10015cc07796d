"""Ridge regression, once for everything that needs it."""

from __future__ import annotations

from collections.abc import Sequence

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


def choose_ridge(
    rows: Tensor, target: Tensor, ridges: Sequence[float], weights: Tensor | None = None
) -> float:
    """The one of ``ridges`` whose regression predicts rows left out best, without leaving any out.

    By generalised cross-validation (Golub, Heath and Wahba 1979): the mean squared residual over
    the square of 1 - degrees of freedom / n. Units as in ``ridge_map``; a row of weight w counts as
    w rows. Cost O(n r^2 + r^3), once for all of them.

    >>> line = torch.arange(9.0)[:, None]
    >>> choose_ridge(line, 2 * line, [1e-9, 1.0])
    1e-09
    """
    source, aim = rows.cpu().double(), target.cpu().double()
    share = torch.ones(len(rows)) if weights is None else weights.cpu()
    share = share.double()[:, None]
    count = float(share.sum())
    share = share / count
    source, aim = source - (share * source).sum(0), aim - (share * aim).sum(0)
    variances, axes = torch.linalg.eigh((share * source).T @ source)
    variances = variances.clamp_min(0.0)
    explained = (axes.T @ ((share * source).T @ aim)).square().sum(1)
    total = float((share * aim.square()).sum())
    errors = []
    for ridge in ridges:
        damped = variances + ridge * variances.sum() + 1e-30
        residual = total - float((explained * (2.0 * damped - variances) / damped.square()).sum())
        freedom = 1.0 + float((variances / damped).sum())
        left = 1.0 - freedom / count
        errors.append(max(residual, 0.0) / left**2 if left > 0 else float("inf"))
    return float(ridges[min(range(len(errors)), key=lambda place: (errors[place], place))])
