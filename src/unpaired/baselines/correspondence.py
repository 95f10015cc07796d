"""The correspondence autoencoder (Feng et al. 2014)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

from torch import Tensor

from unpaired._checks import check_number
from unpaired.baselines.autoencoders import AutoencoderMethod, relative_error
from unpaired.baselines.towers import Batch, Towers


@dataclass(eq=False, repr=False, kw_only=True)
class CorrespondenceAutoencoder(AutoencoderMethod):
    """Two autoencoders whose codes of a pair are drawn together, then CCA of the codes.

    Args:
        code_weight: Weight of the squared distance of the codes against reconstruction; the
            distance counts as a share of the codes' mean square, so shrinking them gains nothing.
        n_latent: See TowerMethod, as all that follow.

    References: feng2014.
    """

    code_weight: float = 1.0
    n_epochs: int = 5
    readout: Literal["cosine", "cca"] = "cca"

    ridge_power: ClassVar[float] = 1.5
    """Codes of reconstructed rows keep weak directions that matter."""

    def _check_params(self) -> None:
        super()._check_params()
        check_number(self.code_weight, "code_weight", 0.0)

    def _loss(self, towers: Towers, batch: Batch) -> Tensor:
        z_x, z_y = towers[0](batch.x), towers[1](batch.y)
        apart = (relative_error(z_x, z_y) + relative_error(z_y, z_x)) / 2.0
        return self._own_reconstruction(towers, batch, z_x, z_y) + self.code_weight * apart
