"""Two-branch networks ranking partners across views and likes within them (Wang et al. 2016)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from unpaired._checks import check_number
from unpaired.baselines.towers import Batch, TowerMethod, Towers
from unpaired.types import IntArray


def ranking_loss(scores: Tensor, same: Tensor, margin: float, n_hardest: int) -> Tensor:
    """The mean hinge by which strangers come within ``margin`` of the true partner, both ways.

    Notation: scores (b, b), the partner of row i is column i; where ``same[i, j]`` j is no
    stranger. Each row and each column counts its ``n_hardest`` worst strangers.
    """
    own = scores.diagonal()
    k = min(n_hardest, max(1, len(scores) - 1))
    total = scores.new_zeros(())
    for matrix in (scores, scores.T):
        hinge = (margin + matrix - own[:, None]).clamp_min(0.0).masked_fill(same, 0.0)
        total = total + torch.topk(hinge, min(k, hinge.shape[1]), dim=1).values.mean()
    return total


def structure_loss(scores: Tensor, same: Tensor, margin: float, n_hardest: int) -> Tensor:
    """The mean hinge by which strangers come within ``margin`` of rows that mean the same.

    Notation: scores (b, b) of one view with itself; where ``same[i, j]`` rows i and j share a
    partner. Each row is compared with the farthest of its likes and counts its ``n_hardest`` worst
    strangers; a row without likes or without strangers counts nothing.
    """
    alike = same & ~torch.eye(len(same), dtype=torch.bool, device=same.device)
    rows = alike.any(1) & ~same.all(1)
    if not bool(rows.any()):
        return scores.new_zeros(())
    farthest = scores.masked_fill(~alike, torch.inf)[rows].amin(1)
    hinge = (margin + scores[rows] - farthest[:, None]).clamp_min(0.0).masked_fill(same[rows], 0.0)
    return torch.topk(hinge, min(n_hardest, hinge.shape[1]), dim=1).values.mean()


def order_in_twos(rows: IntArray, rng: np.random.Generator) -> IntArray:
    """A random order in which two entries of one row stand together, wherever a row has two.

    >>> rows = np.array([0, 1, 0, 1])
    >>> first, second, *_ = rows.take(order_in_twos(rows, np.random.default_rng(0)))
    >>> bool(first == second)
    True
    """
    mixed = rng.permutation(len(rows))
    mixed = mixed[np.argsort(rows[mixed], kind="stable")]  # by row, in random order within
    _, first, count = np.unique(rows[mixed], return_index=True, return_counts=True)
    within = np.arange(len(rows)) - np.repeat(first, count)
    twos = np.cumsum(within % 2 == 0)
    return mixed[np.argsort(rng.permutation(len(rows) + 1)[twos], kind="stable")]


@dataclass(eq=False, repr=False, kw_only=True)
class TwoWayNets(TowerMethod):
    """Two branches trained to rank true partners first in both directions, scored by cosine.

    Within each view, rows that share a partner (captions of one image, images of one class) must
    rank before strangers too. So that batches hold such rows, two pairs of one row of x go
    together.

    Args:
        margin: By how much a partner's cosine must exceed a stranger's.
        n_hardest: Strangers that count for each row: the worst in the batch.
        structure_weight: Weight of the ranking within each view against that across views.
        n_latent: See TowerMethod, as all that follow.

    References: wang2016.
    """

    margin: float = 0.2
    n_hardest: int = 10
    structure_weight: float = 0.2

    def _check_params(self) -> None:
        super()._check_params()
        check_number(self.margin, "margin", 1e-6)
        check_number(self.n_hardest, "n_hardest", 1, integer=True)
        check_number(self.structure_weight, "structure_weight", 0.0)

    def _order(self, pairs: IntArray, rng: np.random.Generator) -> IntArray:
        return order_in_twos(pairs[:, 0], rng)

    def _loss(self, towers: Towers, batch: Batch) -> Tensor:
        unit_x, unit_y = normalize(towers[0](batch.x)), normalize(towers[1](batch.y))
        across = ranking_loss(unit_x @ unit_y.T, batch.same, self.margin, self.n_hardest)
        within = across.new_zeros(())
        for unit in (unit_x, unit_y):
            within = within + structure_loss(unit @ unit.T, batch.same, self.margin, self.n_hardest)
        return across + self.structure_weight * within
