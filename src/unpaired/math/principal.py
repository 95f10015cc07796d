"""Principal components, once for everything that needs them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

EXACT_SIDE = 3000
"""With more rows and more columns than this the leading axes come from subspace iteration."""
BLOCK_ROWS = 8192
NEGLIGIBLE = 1e-10
"""Variances below this share of the largest are rounding."""


@dataclass(frozen=True)
class Principal:
    """The mean row (d,), principal axes (d, r) and their variances (r,), falling, and in all."""

    mean: Tensor
    axes: Tensor
    variances: Tensor
    total: float


def principal(rows: Tensor, max_rank: int, *, weights: Tensor | None = None) -> Principal:
    """Principal axes of the rows (n, d), at most ``max_rank``; a row of weight w counts as w rows.

    Sums and eigenvectors are taken in double precision, on the CPU, as some devices have none.
    Exact where rows or columns are at most EXACT_SIDE; otherwise four rounds of subspace iteration
    from a fixed start. Signs are fixed, so that the same rows always give the same axes. Cost
    O(n d min(n, d)), nothing larger than the input is formed.
    """
    n, d = rows.shape
    count = float(n) if weights is None else float(weights.sum())
    mean = rows.mean(0) if weights is None else (weights[:, None] * rows).sum(0) / count
    rank = max(1, min(max_rank, n - 1, d))
    if d <= min(n, EXACT_SIDE) or (d <= EXACT_SIDE and weights is not None):
        second = torch.zeros(d, d, dtype=torch.float64)
        for start in range(0, n, BLOCK_ROWS):
            part = rows[start : start + BLOCK_ROWS] - mean
            left = part if weights is None else part * weights[start : start + BLOCK_ROWS, None]
            second += (left.T @ part).cpu().double()
        values, vectors = torch.linalg.eigh(second / count)
        variances, axes = values.flip(0)[:rank], vectors.flip(1)[:, :rank]
        total = float(values.clamp_min(0.0).sum())
    else:
        centred = rows - mean
        if weights is not None:
            centred = centred * weights.sqrt()[:, None]
        total = float(centred.double().pow(2).sum()) / count
        if min(n, d) <= EXACT_SIDE:
            values, vectors = torch.linalg.eigh((centred @ centred.T).cpu().double() / count)
            variances, left = values.flip(0)[:rank], vectors.flip(1)[:, :rank]
            lengths = (variances.clamp_min(0.0) * count).sqrt().clamp_min(1e-150)
            axes = centred.T.cpu().double() @ (left / lengths)
        else:
            generator = torch.Generator().manual_seed(0)
            drawn = torch.randn(d, min(d, rank + 16), generator=generator).to(rows)
            basis = torch.linalg.qr(drawn)[0]
            for _ in range(4):
                basis = torch.linalg.qr(centred.T @ (centred @ basis))[0]
            _, lengths, right = torch.linalg.svd(centred @ basis, full_matrices=False)
            axes = (basis @ right.T).cpu().double()[:, :rank]
            variances = lengths.cpu().double()[:rank] ** 2 / count
    kept = variances > NEGLIGIBLE * variances[:1]
    kept[:1] = True
    axes, variances = axes[:, kept], variances[kept].clamp_min(0.0)
    heaviest = axes.gather(0, axes.abs().argmax(0, keepdim=True))
    axes = axes * torch.where(heaviest < 0, -1.0, 1.0)
    return Principal(mean, axes.to(rows), variances.to(rows), total)
