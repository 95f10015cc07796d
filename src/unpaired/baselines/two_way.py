"""Two-branch networks with a bidirectional ranking loss (Wang et al. 2016)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import normalize

from unpaired._checks import check_number
from unpaired.baselines.towers import Batch, TowerMethod, Towers


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


@dataclass(eq=False, repr=False, kw_only=True)
class TwoWayNets(TowerMethod):
    """Two branches trained to rank true partners first in both directions, scored by cosine.

    Args:
        margin: By how much a partner's cosine must exceed a stranger's.
        n_hardest: Strangers that count for each row: the worst in the batch.
        n_latent: See TowerMethod, as all that follow.

    References: wang2016.
    """

    margin: float = 0.2
    n_hardest: int = 10

    def _check_params(self) -> None:
        super()._check_params()
        check_number(self.margin, "margin", 1e-6)
        check_number(self.n_hardest, "n_hardest", 1, integer=True)

    def _loss(self, towers: Towers, batch: Batch) -> Tensor:
        scores = normalize(towers[0](batch.x)) @ normalize(towers[1](batch.y)).T
        return ranking_loss(scores, batch.same, self.margin, self.n_hardest)
