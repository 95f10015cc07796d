"""DeViSE: images mapped into the space of text by a hinge rank loss (Frome et al. 2013)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import normalize

from unpaired._checks import check_number
from unpaired.baselines.closed_form import PairedMaps
from unpaired.baselines.inputs import Moments
from unpaired.baselines.ridge import ridge_map
from unpaired.baselines.towers import Batch, TowerMethod, Towers


def hinge_rank_loss(scores: Tensor, same: Tensor, margin: float) -> Tensor:
    """The mean over rows of sum_j max(0, margin - score of the partner + score of stranger j).

    Notation: scores (b, b), the partner of row i is column i; where ``same[i, j]`` j is no
    stranger. The sum is divided by the number of strangers.
    """
    hinge = (margin + scores - scores.diagonal()[:, None]).clamp_min(0.0).masked_fill(same, 0.0)
    return hinge.sum(1).mean() / max(1, len(scores) - 1)


@dataclass(eq=False, repr=False, kw_only=True)
class DeViSE(TowerMethod):
    """x mapped linearly into the space of y, which stays as it is, scored by cosine.

    The map starts at ridge regression. The space of y is its principal components, divided by
    sqrt(variance + ridge) as in every method of this family.

    Args:
        margin: By how much a partner's cosine must exceed a stranger's.
        n_latent: Columns of y that are kept, at most; the rest as in TowerMethod.

    References: frome2013.
    """

    margin: float = 0.1
    hidden: tuple[int, ...] = ()
    n_latent: int = 384
    weight_decay: float = 0.0

    def _check_params(self) -> None:
        super()._check_params()
        check_number(self.margin, "margin", 1e-6)

    def _start_maps(self, moments: Moments) -> PairedMaps:
        return ridge_map(moments, 1e-6)

    def _latent_width(self, n_inputs: tuple[int, int]) -> int:
        return min(self.n_latent, n_inputs[1])

    def _fix_towers(self) -> None:
        """The tower of y is the identity and does not learn."""
        tower = self._towers[1]
        with torch.no_grad():
            tower.linear.weight.copy_(torch.eye(*tower.linear.weight.shape))
            tower.linear.bias.zero_()
        tower.requires_grad_(False)

    def _loss(self, towers: Towers, batch: Batch) -> Tensor:
        scores = normalize(towers[0](batch.x)) @ normalize(batch.clean_y[:, : self._width]).T
        return hinge_rank_loss(scores, batch.same, self.margin)

    @property
    def _width(self) -> int:
        return self._towers[1].config.n_latent
