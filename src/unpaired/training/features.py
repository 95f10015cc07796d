"""Rows to principal coordinates, linear or through a Gaussian kernel: what the closed forms see."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import normalize

NEAR = 1e-4
"""Squared distance of unit rows below which they count as the same."""
SAMPLE_ROWS = 10_000
"""Rows from which principal axes are taken, at most."""
SPARSE = 0.1
"""Share of zeros from which on a view without a negative value counts as sparse."""
MANY_COLUMNS = 10
"""Rows of fewer columns keep their length even so."""
SPREADS = ("roots", "plain", "standard")
"""How values are taken: square roots where nothing is negative, as they are, or each column in
units of its deviation."""


@dataclass(frozen=True)
class FeatureMap:
    """Principal coordinates of one view, fitted on all its rows, matched or not."""

    mean: Tensor
    """(1, d) of the rows, after what the next three say."""
    take_root: bool
    take_shares: bool
    """Roots are scaled to length one: a row's distance to another is Hellinger's."""
    divisor: Tensor
    """(1, d) of the columns."""
    landmarks: Tensor | None
    """(l, d) unit rows; None for the linear map."""
    inverse_width: float
    basis: Tensor
    """(d or l, r)."""
    offset: Tensor
    """(1, r)."""
    variances: Tensor
    """(r,) of the coordinates, falling."""
    total_variance: float

    def __call__(self, rows: Tensor) -> Tensor:
        """Coordinates of the rows, (n, d) -> (n, r)."""
        values = _spread(rows, self.take_root, self.take_shares) / self.divisor
        units = normalize(values - self.mean)
        return _lift(units, self.landmarks, self.inverse_width) @ self.basis - self.offset

    def whitening(self, ridge: float) -> Tensor:
        """(r,) factors that bring the coordinates to unit variance, up to the ridge."""
        return (self.variances + ridge * self.total_variance).clamp_min(1e-12).rsqrt()


def fit_features(
    rows: Tensor,
    *,
    max_rank: int,
    bandwidth: float | None = None,
    n_landmarks: int = 1000,
    spread: str = "roots",
    generator: torch.Generator,
) -> FeatureMap:
    """Principal coordinates of centred unit rows, or of their Gaussian kernel (Nystroem).

    By default views without a negative value are taken to the square root first, which evens out
    the spread of counts and activations; if they are sparse, rows are scaled to length one as well:
    how many counts a row has is left out. ``spread`` names another of SPREADS. ``bandwidth`` is
    squared and counts in units of the median squared distance. Cost O(n l r + l^3) with
    l = n_landmarks or d.
    """
    take_root = spread == "roots" and bool((rows >= 0).all())
    sparse = float((rows == 0).float().mean()) >= SPARSE
    take_shares = take_root and sparse and rows.shape[1] >= MANY_COLUMNS
    values = _spread(rows, take_root, take_shares)
    divisor = torch.ones_like(values[:1])
    if spread == "standard":
        deviation = values.std(0, keepdim=True)
        varies = deviation > 1e-6 * values.abs().amax(0, keepdim=True)
        divisor = torch.where(varies, deviation, divisor)
    values = values / divisor
    mean = values.mean(0, keepdim=True)
    units = normalize(values - mean)
    order = torch.randperm(len(units), generator=generator).to(rows.device)
    landmarks, inverse_width, root = None, 0.0, None
    if bandwidth is not None:
        landmarks = units[order[:n_landmarks]]
        gaps = 2.0 - 2.0 * landmarks[:1000] @ landmarks[:1000].T
        far = gaps[gaps > NEAR]
        inverse_width = 1.0 / (2.0 * bandwidth * float(far.median() if len(far) else 1.0))
        scale, axes = torch.linalg.eigh(_lift(landmarks, landmarks, inverse_width))
        keep = (scale > 1e-4).nonzero()[:, 0][-2 * max_rank :]  # weaker ones are never used
        root = axes[:, keep] * (scale[keep] + 1e-4).rsqrt()
    sample = _lift(units[order[:SAMPLE_ROWS]], landmarks, inverse_width)
    sample = sample if root is None else sample @ root
    centre = sample.mean(0, keepdim=True)
    variances, axes = principal_axes(sample - centre)
    rank = max(1, min(max_rank, int((variances > 1e-6 * variances[0]).sum())))
    axes = axes[:, :rank]
    return FeatureMap(
        mean,
        take_root,
        take_shares,
        divisor,
        landmarks,
        inverse_width,
        (axes if root is None else root @ axes).contiguous(),
        centre @ axes,
        variances[:rank],
        float(variances.sum()),
    )


def principal_axes(centred: Tensor) -> tuple[Tensor, Tensor]:
    """Variances, falling, and axes (columns) of centred rows. Cost O(n d min(n, d))."""
    if centred.shape[1] > len(centred):
        _, lengths, axes = torch.linalg.svd(centred, full_matrices=False)
        return lengths**2 / len(centred), axes.T
    variances, axes = torch.linalg.eigh(centred.T @ centred / len(centred))
    return variances.flip(0).clamp_min(0.0), axes.flip(1)


def regress(rows: Tensor, target: Tensor, ridge: float) -> Tensor:
    """Ridge regression of the target on centred rows, (n, r), (n, k) -> (r, k)."""
    gram = rows.T @ rows + ridge * len(rows) * torch.eye(rows.shape[1], device=rows.device)
    return torch.linalg.solve(gram, rows.T @ target)


def _spread(rows: Tensor, take_root: bool, take_shares: bool) -> Tensor:
    """Rows, or their square roots, or the square roots of each value's share of its row."""
    if not take_root:
        return rows
    roots = rows.clamp_min(0.0).sqrt()
    return normalize(roots) if take_shares else roots


def _lift(units: Tensor, landmarks: Tensor | None, inverse_width: float) -> Tensor:
    """Unit rows themselves, or their Gaussian kernel against unit landmarks."""
    if landmarks is None:
        return units
    return (units @ landmarks.T).sub_(1.0).mul_(2.0 * inverse_width).exp_()
