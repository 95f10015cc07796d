"""How dense training pairs are around a pair of rows: a density ratio by product kernels.

r(x, y) = sum over pairs (i, j) of their weight times k(x, x_i) k(y, y_j), over what independent
rows would have: the model that SMI and LSOM fit, with all coefficients alike. Nothing is fitted, so
it can be as local as kernels are, and tells apart what the smooth maps of other parts cannot.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import normalize

from unpaired.training.soft_plan import SoftPlan

NEAR_SHARE = 0.05
"""Effective share of the training rows that count as near a row."""
FLOOR = 0.1
"""Added to the ratio before its logarithm; 1 stands for independence."""
DENSITY_WEIGHT = 0.015
"""What one unit of the log ratio adds to a score, a mean of cosines."""
N_NEAREST = 32
"""Neighbours of a row that is being matched, without itself."""
MAX_ROWS = 30_000
"""Training rows kept of each view."""
SAMPLE_COLUMNS = 1000
"""Training rows from which the width of a row's kernel is found."""
BLOCK_ROWS = 2048
INVERSE_WIDTHS = (0.5, 500.0)
N_BISECTIONS = 12
TINY = 1e-12
"""Pairs that weigh nothing together say nothing."""


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
        independent = self.pairs.shares.sum().clamp_min(TINY) / (n_x * n_y)
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
    placed: tuple[Tensor, Tensor],
    scales: tuple[Tensor, Tensor],
    pairs: Tensor,
    weights: Tensor,
    generator: torch.Generator,
) -> PairDensity:
    """The density of ``pairs`` (k, 2) of rows given by their coordinates.

    Of more than MAX_ROWS rows those of random pairs are kept, heavy pairs first.
    """
    race = torch.rand(len(pairs), generator=generator).to(weights.device).log() / weights
    drawn = pairs[torch.argsort(race, descending=True)]
    kept_rows, columns = [], []
    for view, rows in enumerate(placed):
        place = torch.arange(len(drawn), device=rows.device)
        first = torch.full((len(rows),), len(drawn), device=rows.device)
        first.scatter_reduce_(0, drawn[:, view], place, "amin")
        order = torch.argsort(first)[:MAX_ROWS].sort().values
        position = torch.full((len(rows),), -1, device=rows.device)
        position[order] = torch.arange(len(order), device=rows.device)
        columns.append(position[pairs[:, view]])
        kept_rows.append(normalize(rows[order] * scales[view]))
    found = torch.stack(columns, 1)
    inside = (found >= 0).all(1)
    n_x, n_y = (len(rows) for rows in kept_rows)
    sparse = weighted_plan(found[inside], weights[inside], (n_x, n_y))
    return PairDensity(scales, (kept_rows[0], kept_rows[1]), sparse)


def weighted_plan(pairs: Tensor, weights: Tensor, shape: tuple[int, int]) -> SoftPlan:
    """Pairs (k, 2), sorted by their first row, with weights in the place of shares."""
    order = torch.argsort(pairs[:, 0], stable=True)
    return SoftPlan(pairs[order, 0], pairs[order, 1], weights[order], shape)


def nearest_rows(units: Tensor, own: Tensor) -> SoftPlan:
    """The N_NEAREST rows that are nearest to those numbered ``own``, without themselves.

    Shares are a softmax of their cosines in units of these cosines' deviation.
    """
    columns, shares = [], []
    for block in torch.split(own, BLOCK_ROWS):
        cosines = units[block] @ units.T
        cosines.scatter_(1, block[:, None], -math.inf)
        near, index = torch.topk(cosines, N_NEAREST, 1)
        columns.append(index)
        shares.append(torch.softmax(near / near.std(1, keepdim=True).clamp_min(1e-6), 1))
    rows = torch.arange(len(own), device=own.device).repeat_interleave(N_NEAREST)
    shape = (len(own), len(units))
    return SoftPlan(rows, torch.cat(columns).reshape(-1), torch.cat(shares).reshape(-1), shape)


def with_density(
    score_blocks: Iterable[tuple[Tensor, Tensor]],
    near: tuple[SoftPlan, SoftPlan],
    pairs: Tensor,
    weights: Tensor,
) -> Iterator[tuple[Tensor, Tensor]]:
    """Score blocks of free rows with the say of the density of ``pairs`` around them.

    ``near`` holds the neighbours of the free rows of x and of y among all rows, so that no pair
    speaks for itself. Cost O((k + n_y N_NEAREST) n_x), memory of a block.
    """
    near_x, near_y = near
    n_x, n_y = near_x.shape[1], near_y.shape[1]
    partners = weighted_plan(pairs.flip(1), weights, (n_y, n_x))
    independent = max(float(weights.sum()), TINY) / (n_x * n_y)
    index, shares = (part.view(-1, N_NEAREST) for part in (near_x.columns, near_x.shares))
    for rows, scores in score_blocks:
        around = scores.new_zeros(n_x, len(rows)).scatter_(0, index[rows].T, shares[rows].T)
        ratio = near_y.apply(partners.apply(around)).T / independent
        yield rows, scores + DENSITY_WEIGHT * (ratio + FLOOR).log()
