"""Known pairs and plans: who goes with whom, and who may, softly.

A plan is dense for few rows; for many it holds a few candidates a row.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from unpaired.math.sinkhorn import scale
from unpaired.types import IntArray

BLOCK_ROWS = 2048
CACHED_ROWS = 128
DENSE_ENTRIES = 9_000_000
"""Pairs up to which a plan is dense: 3,000 rows a side."""
N_CANDIDATES = 64
"""Candidates kept per row and per column of a sparse plan."""
N_SINKHORN, RELAXATION = 7, 1.4
"""Rounds of Sinkhorn's scaling of a dense plan, and how far each goes. They end as near to the
limit as 15 plain ones; plans of later steps make up for what is left."""
N_SPARSE = 30
"""Rounds of Sinkhorn's scaling of a sparse plan."""


@dataclass(frozen=True, eq=False)
class Pairs:
    """Which rows are paired, with what weight, and which are free to be matched."""

    known: Tensor
    """(k, 2) known pairs; a row may occur in several."""
    weights: Tensor
    free_x: Tensor
    free_y: Tensor
    balanced: bool = True
    """Every row of y has its share of the rows of x; not so in many-to-one."""

    def draw(self, n_rows: int, rng: np.random.Generator) -> Pairs:
        """The same known pairs with at most ``n_rows`` of the free rows of each side."""
        free_x, free_y = (
            free[torch.as_tensor(np.sort(rng.permutation(len(free))[:n_rows]), device=free.device)]
            for free in (self.free_x, self.free_y)
        )
        return replace(self, free_x=free_x, free_y=free_y)


def make_pairs(
    known: IntArray | None, n_x: int, n_y: int, device: torch.device, *, many_to_one: bool = False
) -> Pairs:
    """Known pairs with their weights, and the rows that are free.

    A pair counts one over how often its busier row occurs: five captions of an image count as one.
    Many-to-one, a row of y is meant to occur often, and only repeats of x count.
    """
    found = torch.as_tensor(
        np.zeros((0, 2), dtype=np.int64) if known is None else known, device=device
    )
    taken_x = torch.bincount(found[:, 0], minlength=n_x)
    taken_y = torch.bincount(found[:, 1], minlength=n_y)
    count = taken_x[found[:, 0]]
    free_y = torch.arange(n_y, device=device)
    if not many_to_one:
        count = torch.maximum(count, taken_y[found[:, 1]])
        free_y = torch.nonzero(taken_y == 0)[:, 0]
    free_x = torch.nonzero(taken_x == 0)[:, 0]
    return Pairs(found, 1.0 / count, free_x, free_y, not many_to_one)


@dataclass(frozen=True, eq=False)
class DensePlan:
    """Shares of all columns for each row; rows sum to one."""

    shares: Tensor

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.shares.shape[0], self.shares.shape[1]

    def peaks(self) -> Tensor:
        """The largest share of each row, (n_x,)."""
        return self.shares.amax(1)

    def partners(self) -> Tensor:
        """The column with the largest share of each row, (n_x,); -1 for an empty row."""
        best, column = self.shares.max(1)
        return torch.where(best > 0, column, -1)

    def loads(self, weights: Tensor) -> Tensor:
        """What each column receives when row i gives ``weights[i]`` by its shares, (n_y,)."""
        return weights @ self.shares

    def apply(self, values: Tensor) -> Tensor:
        """The expected partner of each row, (n_y, d) -> (n_x, d)."""
        return self.shares @ values


@dataclass(frozen=True, eq=False)
class SparsePlan:
    """Shares of some columns for each row, sorted by row; rows sum to one."""

    rows: Tensor
    columns: Tensor
    shares: Tensor
    shape: tuple[int, int]

    def peaks(self) -> Tensor:
        """The largest share of each row, (n_x,)."""
        peak = self.shares.new_zeros(self.shape[0])
        return peak.scatter_reduce(0, self.rows, self.shares, "amax")

    def partners(self) -> Tensor:
        """The column with the largest share of each row, (n_x,); -1 for an empty row."""
        best = self.peaks()[self.rows] == self.shares
        found = torch.full((self.shape[0],), -1, device=self.rows.device)
        found[self.rows[best].flip(0)] = self.columns[best].flip(0)  # the first of equals stays
        return found

    def loads(self, weights: Tensor) -> Tensor:
        """What each column receives when row i gives ``weights[i]`` by its shares, (n_y,)."""
        given = self.shares * weights[self.rows]
        return given.new_zeros(self.shape[1]).index_add_(0, self.columns, given)

    def apply(self, values: Tensor) -> Tensor:
        """The expected partner of each row, (n_y, d) -> (n_x, d)."""
        counts = torch.bincount(self.rows, minlength=self.shape[0])
        return embedding_bag(
            self.columns,
            values,
            counts.cumsum(0) - counts,
            mode="sum",
            per_sample_weights=self.shares,
        )


Plan = DensePlan | SparsePlan


def hard_plan(partner: IntArray, n_y: int, device: torch.device) -> SparsePlan:
    """The plan that gives each row all of its partner; rows with partner -1 stay empty."""
    rows = np.flatnonzero(partner >= 0)
    return SparsePlan(
        torch.as_tensor(rows, device=device),
        torch.as_tensor(partner[rows], device=device),
        torch.ones(len(rows), device=device),
        (len(partner), n_y),
    )


def plan_of(left: Tensor, right: Tensor, temperature: float, *, balanced: bool = True) -> Plan:
    """The soft plan of placed rows (n_x, k) and (n_y, k), whose inner products are scores.

    ``temperature`` counts in standard deviations of the scores. Balanced, all columns get the same
    load (Sinkhorn); else each row shares by itself, as in many-to-one.
    """
    if len(left) * len(right) <= DENSE_ENTRIES:
        return dense_plan(left @ right.T, temperature, balanced=balanced)
    return sparse_plan(product_blocks(left, right), (len(left), len(right)), temperature, balanced)


def dense_plan(scores: Tensor, temperature: float, *, balanced: bool = True) -> DensePlan:
    """The soft plan of all scores (n_x, n_y)."""
    if not scores.numel():
        return DensePlan(scores)
    heat = temperature * max(_deviation(scores), 1e-12)
    shares = torch.empty_like(scores)
    for part, out in zip(_near(scores), _near(shares), strict=True):
        torch.softmax(part / heat, 1, out=out)
    if balanced:
        n_x, n_y = shares.shape
        row_mass, column_mass = shares.new_full((n_x,), 1 / n_x), shares.new_full((n_y,), 1 / n_y)
        _, v = scale(shares.mv, shares.T.mv, row_mass, column_mass, N_SINKHORN, RELAXATION)
        total = shares.mv(v).clamp_min(1e-30)[:, None]
        for part, sums in zip(_near(shares), _near(total), strict=True):
            part.mul_(v).div_(sums)
    return DensePlan(shares)


def _near(rows: Tensor) -> tuple[Tensor, ...]:
    """Rows in blocks that stay near the processor while they are worked on."""
    return torch.split(rows, CACHED_ROWS)


def _deviation(scores: Tensor) -> float:
    """The standard deviation of all scores."""
    square = float(torch.linalg.vector_norm(scores)) ** 2 / scores.numel()
    variance = square - float(scores.mean()) ** 2
    if variance < 1e-2 * square:  # too few digits are left of the difference
        return float(scores.std(correction=0))
    return math.sqrt(variance)


def product_blocks(left: Tensor, right: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Row numbers and their inner products with all rows of ``right``, block by block."""
    for block in torch.split(torch.arange(len(left), device=left.device), BLOCK_ROWS):
        yield block, left[block] @ right.T


def sparse_plan(
    score_blocks: Iterable[tuple[Tensor, Tensor]],
    shape: tuple[int, int],
    temperature: float,
    balanced: bool = True,
    n_candidates: int = N_CANDIDATES,
) -> SparsePlan:
    """The soft plan over the best candidates of every row and of every column.

    ``score_blocks`` are (row numbers, their scores against all columns), each row once. Memory
    O((n_x + n_y) n_candidates) beside one block of scores.
    """
    n_x, n_y = shape
    keys, values = [], []
    best: tuple[Tensor, Tensor] | None = None
    count, total, squares = min(n_candidates, n_y), 0.0, 0.0
    for rows, scores in score_blocks:
        total += float(scores.sum())
        squares += float(torch.linalg.vector_norm(scores)) ** 2
        top, columns = torch.topk(scores, count, 1)
        keys.append((rows[:, None] * n_y + columns).reshape(-1))
        values.append(top.reshape(-1))
        above, position = torch.topk(scores, min(n_candidates, len(rows)), 0)
        owners = rows[position]
        if best is not None:
            above, owners = torch.cat([best[0], above]), torch.cat([best[1], owners])
        above, source = torch.topk(above, min(n_candidates, len(above)), 0)
        best = (above, owners.gather(0, source))
    if best is not None and balanced:
        device = best[0].device
        keys.append((best[1] * n_y + torch.arange(n_y, device=device)).reshape(-1))
        values.append(best[0].reshape(-1))
    key, inverse = torch.unique(torch.cat(keys), return_inverse=True)
    score = key.new_empty(len(key), dtype=values[0].dtype).scatter_(0, inverse, torch.cat(values))
    rows, columns = key // n_y, key % n_y
    ceiling = score.new_full((n_x,), -math.inf).scatter_reduce(0, rows, score, "amax")
    mean = total / (n_x * n_y)
    spread = math.sqrt(max(squares / (n_x * n_y) - mean**2, 1e-12))
    kernel = ((score - ceiling[rows]) / (temperature * spread)).exp()
    u, v = scale(
        lambda v: score.new_zeros(n_x).index_add_(0, rows, kernel * v[columns]),
        lambda u: score.new_zeros(n_y).index_add_(0, columns, kernel * u[rows]),
        score.new_full((n_x,), 1.0 / n_x),
        score.new_full((n_y,), 1.0 / n_y),
        N_SPARSE if balanced else 0,
    )
    shares = kernel * v[columns]
    row_sums = score.new_zeros(n_x).index_add_(0, rows, shares)
    return SparsePlan(rows, columns, shares / row_sums.clamp_min(1e-30)[rows], shape)


def mean_plan(plans: Sequence[DensePlan]) -> DensePlan:
    """The mean of dense plans: their errors differ, and are less in the mean."""
    total = plans[0].shares.clone()
    for plan in plans[1:]:
        total += plan.shares
    return DensePlan(total / len(plans))
