"""How dense training pairs are around a pair of rows: a density ratio by product kernels.

r(x, y) = sum over pairs (i, j) of their weight times k(x, x_i) k(y, y_j), over what independent
rows would have: the model that SMI and LSOM fit, with all coefficients alike. Nothing is fitted, so
it can be as local as kernels are, and tells apart what the smooth maps of other parts cannot.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import normalize

from unpaired.training.closed_form import Coordinates, Rows
from unpaired.training.soft_plan import SoftPlan

METRIC_RIDGE = 0.003
"""Ridge of the whitening of linear coordinates in which rows are near, of the total variance."""
NEAR_SHARE = 0.05
"""Effective share of the training rows that count as near a row."""
FLOOR = 0.1
"""Added to the ratio before its logarithm; 1 stands for independence."""
LEAST_SHARE = 0.01
"""Soft pairs with a smaller share of their row are left out."""
MAX_ROWS = 30_000
"""Training rows kept of each view."""
SAMPLE_COLUMNS = 1000
"""Training rows from which the width of a row's kernel is found."""
INVERSE_WIDTHS = (0.5, 500.0)
N_BISECTIONS = 12


@dataclass(frozen=True)
class PairDensity:
    """Training rows of both views and the weights of their pairs."""

    scales: tuple[Tensor, Tensor]
    """Factors (r,) of the coordinates of x and of y, after which directions are compared."""
    rows: tuple[Tensor, Tensor]
    """Unit training rows, (n_x, r_x) and (n_y, r_y)."""
    pairs: SoftPlan
    """Weights of pairs in the place of shares."""

    def log_ratio(self, x: Tensor, y: Tensor) -> Tensor:
        """Logarithm of the ratio of rows given by their coordinates, (n, r_x), (m, r_y) -> (n, m).

        Cost O((n n_x + m n_y) r + n m n_x), memory O(n n_x + m n_y).
        """
        near_x, near_y = (
            near_shares(normalize(placed * scale), rows)
            for placed, scale, rows in zip((x, y), self.scales, self.rows, strict=True)
        )
        n_x, n_y = self.pairs.shape
        independent = self.pairs.shares.sum() / (n_x * n_y)
        ratio = near_x @ self.pairs.apply(near_y.T.contiguous()) / independent
        return ratio.add_(FLOOR).log_()


def near_shares(units: Tensor, rows: Tensor) -> Tensor:
    """Softmax of cosines to the rows, as wide for each unit row that NEAR_SHARE of them count.

    The effective share is the perplexity; a row's width is found by bisection on a sample.
    """
    cosines = units @ rows.T
    sample = cosines[:, :: -(-len(rows) // SAMPLE_COLUMNS)]
    goal = math.log(max(2.0, NEAR_SHARE * sample.shape[1]))
    low, high = (cosines.new_full((len(units), 1), bound) for bound in INVERSE_WIDTHS)
    for _ in range(N_BISECTIONS):
        middle = (low * high).sqrt()
        logs = torch.log_softmax(sample * middle, 1)
        wide = -(logs.exp() * logs).sum(1, keepdim=True) > goal
        low, high = torch.where(wide, middle, low), torch.where(wide, high, middle)
    return torch.softmax(cosines.mul_(high), 1)


def density_of(
    part: Coordinates,
    rows: Rows,
    plan: SoftPlan | None,
    trust: Tensor | None,
    generator: torch.Generator,
) -> PairDensity:
    """The density of known pairs, and of soft ones as far as they are trusted."""
    pairs, weights = [rows.pairs], [rows.weights.to(part.x.dtype)]
    if plan is not None and trust is not None:
        kept = plan.shares > LEAST_SHARE
        soft = torch.stack([rows.free_x[plan.rows[kept]], rows.free_y[plan.columns[kept]]], 1)
        pairs.append(soft)
        weights.append(plan.shares[kept] * trust[plan.rows[kept]])
    scales = part.features_x.whitening(METRIC_RIDGE), part.features_y.whitening(METRIC_RIDGE)
    joined, weight = torch.cat(pairs), torch.cat(weights)
    kept_rows = []
    for view, placed in enumerate((part.x, part.y)):
        order = torch.randperm(len(placed), generator=generator)[:MAX_ROWS].sort().values
        order = order.to(placed.device)
        position = torch.full((len(placed),), -1, device=placed.device)
        position[order] = torch.arange(len(order), device=placed.device)
        joined = torch.cat(
            [joined[:, :view], position[joined[:, view : view + 1]], joined[:, view + 1 :]], 1
        )
        kept_rows.append(normalize(placed[order] * scales[view]))
    inside = (joined >= 0).all(1)
    joined, weight = joined[inside], weight[inside]
    order = torch.argsort(joined[:, 0], stable=True)
    n_x, n_y = (len(each) for each in kept_rows)
    sparse = SoftPlan(joined[order, 0], joined[order, 1], weight[order], (n_x, n_y))
    return PairDensity(scales, (kept_rows[0], kept_rows[1]), sparse)
