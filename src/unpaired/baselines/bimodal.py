"""The bimodal deep autoencoder (Ngiam et al. 2011)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from unpaired.baselines.autoencoders import AutoencoderMethod
from unpaired.baselines.towers import Batch, Towers


@dataclass(eq=False, repr=False, kw_only=True)
class BimodalAutoencoder(AutoencoderMethod):
    """One shared code that must give back both views even when one of them is missing.

    The shared layer sees the mean of both encodings, or one alone when the other view is left out;
    each case is a third of the loss. Codes of single views are then read by CCA.

    Args:
        n_latent: See TowerMethod, as all that follow.

    References: ngiam2011.
    """

    n_epochs: int = 4  # each decodes three codes into both views, three times the usual work
    readout: Literal["cosine", "cca"] = "cca"

    def _loss(self, towers: Towers, batch: Batch) -> Tensor:
        z_x, z_y = towers[0](batch.x), towers[1](batch.y)
        errors = sum(
            (self._joint_reconstruction(towers, batch, z) for z in (z_x, z_y, (z_x + z_y) / 2.0)),
            start=z_x.new_zeros(()),
        )
        return errors / 3.0
