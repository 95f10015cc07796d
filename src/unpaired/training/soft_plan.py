"""Soft matching of many rows: Sinkhorn's plan over the best candidates, never n x n."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import embedding_bag

from unpaired.types import IntArray

MOST = 1e30
"""Largest scale of a column; one that no row can reach would grow without end."""
BLOCK_ROWS = 2048


@dataclass(frozen=True)
class SoftPlan:
    """A sparse plan: shares of columns per row, sorted by row; rows sum to one."""

    rows: Tensor
    columns: Tensor
    shares: Tensor
    shape: tuple[int, int]

    def peaks(self) -> Tensor:
        """The largest share of each row, (n_x,)."""
        peak = torch.zeros(self.shape[0], device=self.rows.device)
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


def hard_plan(partner: IntArray, n_y: int, device: torch.device) -> SoftPlan:
    """The plan that gives each row all of its partner; rows with partner -1 stay empty."""
    rows = np.flatnonzero(partner >= 0)
    return SoftPlan(
        torch.as_tensor(rows, device=device),
        torch.as_tensor(partner[rows], device=device),
        torch.ones(len(rows), device=device),
        (len(partner), n_y),
    )


def product_blocks(left: Tensor, right: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """Row numbers and their inner products with all rows of ``right``, block by block."""
    for block in torch.split(torch.arange(len(left), device=left.device), BLOCK_ROWS):
        yield block, left[block] @ right.T


def soft_plan(
    score_blocks: Iterable[tuple[Tensor, Tensor]],
    shape: tuple[int, int],
    temperature: float,
    n_candidates: int,
    *,
    balanced: bool = True,
    n_iterations: int = 30,
) -> SoftPlan:
    """Sinkhorn's plan over the best candidates of every row and of every column.

    Args:
        score_blocks: (row numbers, their scores against all columns), each row once.
        shape: (n_x, n_y).
        temperature: Scores count in units of this many of their standard deviations.
        n_candidates: Candidates kept per row and per column.
        balanced: Give all columns the same load; else each row shares by itself (many-to-one).
        n_iterations: Of Sinkhorn.

    Memory O((n_x + n_y) n_candidates) beside one block of scores.
    """
    n_x, n_y = shape
    keys, values, best = [], [], None
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
    tiny = torch.finfo(kernel.dtype).tiny

    def share(scale: Tensor) -> Tensor:
        """Shares of the columns, weighted by their scale; rows sum to one."""
        part = kernel * scale[columns]
        return part / score.new_zeros(n_x).index_add_(0, rows, part).clamp_min(tiny)[rows]

    scale_y = score.new_ones(n_y)
    for _ in range(n_iterations if balanced else 0):
        load = score.new_zeros(n_y).index_add_(0, columns, share(scale_y))
        scale_y = (scale_y * (n_x / n_y) / load.clamp_min(tiny)).clamp_max(MOST)
    return SoftPlan(rows, columns, share(scale_y), shape)
