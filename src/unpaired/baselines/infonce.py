"""Two towers trained by InfoNCE in both directions (van den Oord 2018; Radford et al. 2021)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import normalize

from unpaired._checks import check_number
from unpaired.baselines.towers import Batch, TowerMethod, Towers

LEAST_TEMPERATURE = 0.01


def info_nce(z_x: Tensor, z_y: Tensor, same: Tensor, temperature: Tensor | float) -> Tensor:
    """The mean of both directions' cross-entropy of the true partner among the batch.

    Notation: z_x, z_y (b, k), row i of both is one pair; cosines over ``temperature`` are logits.
    Where ``same[i, j]`` (b, b) says that pairs i and j share a row, j is no negative of i.
    """
    logits = normalize(z_x) @ normalize(z_y).T / temperature
    own = torch.eye(len(same), dtype=torch.bool, device=same.device)
    logits = logits.masked_fill(same & ~own, -torch.inf)
    own_scores = logits.diagonal()
    forth = torch.logsumexp(logits, 1) - own_scores
    back = torch.logsumexp(logits, 0) - own_scores
    return (forth + back).mean() / 2.0


@dataclass(eq=False, repr=False, kw_only=True)
class InfoNCE(TowerMethod):
    """Two towers that tell the true partner from the rest of the batch, scored by cosine.

    Args:
        temperature: Softness of the cross-entropy at first; it is learned, never below 0.01.
        n_latent: See TowerMethod, as all that follow.

    References: oord2018, radford2021.
    """

    temperature: float = 0.05

    def _check_params(self) -> None:
        super()._check_params()
        check_number(self.temperature, "temperature", LEAST_TEMPERATURE)

    def _extra_weights(self) -> list[Tensor]:
        return [torch.tensor(self.temperature).log()]

    def _loss(self, towers: Towers, batch: Batch) -> Tensor:
        temperature = self._extra[0].exp().clamp_min(LEAST_TEMPERATURE)
        return info_nce(towers[0](batch.x), towers[1](batch.y), batch.same, temperature)
