"""Rows to principal coordinates, linear or through a Gaussian kernel (Nystroem)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from unpaired.math.kernels import squared_distances
from unpaired.math.principal import principal

VALUES = ("roots", "plain", "standard")
"""How values are taken: square roots where nothing is negative, as they are, or each column in
units of its deviation."""
METRICS = ("cosine", "correlation", "euclidean")
"""The geometry that is kept: angles around the mean row, angles of rows centred over their columns,
or distances."""
SPARSE = 0.1
"""Share of zeros from which on a side without a negative value counts as sparse."""
MANY_COLUMNS = 10
"""Rows of fewer columns keep their length even so."""
SAMPLE_ROWS = 10_000
"""Rows from which principal axes of kernels are taken, at most."""
SAME = 1e-12
"""Squared distance, in units of the largest, below which rows count as the same."""
BLOCK_ROWS = 4096


class FeatureMap(Protocol):
    """Rows of one side to coordinates, fitted on rows of that side.

    A frozen dataclass whose fields are tensors, numbers and such maps (``views.stored``).
    """

    kind: ClassVar[str]

    def __call__(self, rows: Tensor) -> Tensor:
        """Coordinates of the rows, (n, d) -> (n, r)."""
        ...


@dataclass(frozen=True)
class Preparation:
    """What is done to rows before anything is measured on them."""

    roots: bool
    """Take square roots, which even out the spread of counts and activations."""
    shares: bool
    """Scale the roots of a row to length one: distances are then Hellinger's."""
    by_row: bool
    """Centre each row over its columns."""
    units: bool
    """Scale rows to length one."""
    divisor: Tensor
    """(1, d) of the columns."""
    centre: Tensor
    """(1, d), taken off after that."""

    def __call__(self, rows: Tensor) -> Tensor:
        """The prepared rows (n, d)."""
        values = rows
        if self.roots:
            values = values.clamp_min(0.0).sqrt()
            values = normalize(values) if self.shares else values
        values = values / self.divisor - self.centre
        if self.by_row:
            values = values - values.mean(1, keepdim=True)
        return normalize(values) if self.units else values


def prepare(
    rows: Tensor, *, metric: str = "cosine", values: str = "plain", weights: Tensor | None = None
) -> Preparation:
    """The preparation of rows (n, d) under one of METRICS and one of VALUES.

    With "roots", sides with a negative value stay as they are; if a side is sparse its rows are
    scaled to length one as well: how many counts a row has is left out.
    """
    roots = values == "roots" and bool((rows >= 0).all())
    sparse = float((rows == 0).float().mean()) >= SPARSE
    shares = roots and sparse and rows.shape[1] >= MANY_COLUMNS
    ones, zeros = torch.ones_like(rows[:1]), torch.zeros_like(rows[:1])
    taken = Preparation(roots, shares, False, False, ones, zeros)(rows)
    divisor = ones
    if values == "standard":
        deviation = taken.std(0, keepdim=True)
        varies = deviation > 1e-6 * taken.abs().amax(0, keepdim=True)
        divisor = torch.where(varies, deviation, ones)
    scaled = taken / divisor
    by_row = metric == "correlation" and rows.shape[1] >= 3
    counted = torch.ones_like(rows[:, :1]) if weights is None else weights[:, None]
    centre = zeros if by_row else (counted * scaled).sum(0, keepdim=True) / counted.sum()
    return Preparation(roots, shares, by_row, metric != "euclidean", divisor, centre)


@dataclass(frozen=True)
class Features:
    """Principal coordinates of one side, fitted on all its rows, matched or not."""

    preparation: Preparation
    landmarks: Tensor | None
    """(l, d) prepared rows; None for linear coordinates."""
    inverse_width: float
    """The kernel is exp(-inverse_width |a - b|^2)."""
    basis: Tensor
    """(d or l, r)."""
    offset: Tensor
    """(1, r)."""
    variances: Tensor
    """(r,) of the coordinates."""

    kind: ClassVar[str] = "principal"

    def __call__(self, rows: Tensor) -> Tensor:
        """Coordinates of the rows, (n, d) -> (n, r); their mean squared length is one."""
        return in_blocks(
            lambda part: (
                _lift(self.preparation(part), self.landmarks, self.inverse_width) @ self.basis
                - self.offset
            ),
            rows,
        )


def fit_features(
    rows: Tensor,
    rng: np.random.Generator,
    *,
    max_rank: int,
    metric: str = "cosine",
    values: str = "plain",
    bandwidth: float | None = None,
    n_landmarks: int = 1000,
    whitening: float = 0.0,
    weights: Tensor | None = None,
    keep: float = 1.0,
) -> Features:
    """Principal coordinates of prepared rows, or of their Gaussian kernel, total variance one.

    Args:
        rows: (n, d).
        rng: Draws landmarks.
        max_rank: Coordinates, at most.
        metric: One of METRICS.
        values: One of VALUES.
        bandwidth: Squared width of a Gaussian kernel in units of the median squared distance; None
            for linear coordinates.
        n_landmarks: Rows at which the kernel is known.
        whitening: Axes are divided by their variance to this power: 0 leaves principal components,
            1/4 is half-whitened, 1/2 white.
        weights: How often each row counts (n,).
        keep: Share of the variance that the coordinates must hold; later ones are left out.
    """
    preparation = prepare(rows, metric=metric, values=values, weights=weights)
    marks, inverse_width, root = None, 0.0, None
    seen = np.arange(len(rows))
    if bandwidth is not None:
        chosen = np.sort(rng.permutation(len(rows))[:n_landmarks])
        marks = preparation(rows[torch.as_tensor(chosen)])
        gaps = squared_distances(marks)
        apart = gaps[gaps > SAME * gaps.max().clamp_min(1e-300)]
        inverse_width = 1.0 / (2.0 * bandwidth * float(apart.median() if len(apart) else 1.0))
        scale, axes = torch.linalg.eigh(torch.exp(-inverse_width * gaps).cpu().double())
        good = (scale > 1e-6 * scale[-1]).nonzero()[:, 0][-2 * max_rank :]
        root = (axes[:, good] * scale[good].rsqrt()).to(rows)
        seen = np.sort(rng.permutation(len(rows))[:SAMPLE_ROWS])
    picked = torch.as_tensor(seen, device=rows.device)

    def lift(part: Tensor) -> Tensor:
        lifted = _lift(preparation(part), marks, inverse_width)
        return lifted if root is None else lifted @ root

    lifted = in_blocks(lift, rows if bandwidth is None else rows[picked])
    found = principal(lifted, max_rank, weights=None if weights is None else weights[picked])
    variances, axes = found.variances, found.axes
    if keep < 1.0:
        share = variances.cumsum(0) / max(found.total, 1e-300)
        rank = int((share < keep).sum()) + 1
        variances, axes = variances[:rank], axes[:, :rank]
    factor = variances.clamp_min(1e-30) ** -whitening
    total = math.sqrt(max(float((variances * factor**2).sum()), 1e-30))
    basis = axes * (factor / total)
    offset = found.mean[None] @ basis
    return Features(
        preparation,
        marks,
        inverse_width,
        (basis if root is None else root @ basis).contiguous(),
        offset,
        variances * (factor / total) ** 2,
    )


def in_blocks(function: Callable[[Tensor], Tensor], rows: Tensor) -> Tensor:
    """The function of all rows, a block at a time."""
    if len(rows) <= BLOCK_ROWS:
        return function(rows)
    return torch.cat([function(part) for part in torch.split(rows, BLOCK_ROWS)])


def _lift(prepared: Tensor, landmarks: Tensor | None, inverse_width: float) -> Tensor:
    """Prepared rows themselves, or their Gaussian kernel with the landmarks."""
    if landmarks is None:
        return prepared
    return squared_distances(prepared, landmarks).mul_(-inverse_width).exp_()
