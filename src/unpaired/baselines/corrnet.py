"""Correlational neural networks (Chandar et al. 2016)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from unpaired._checks import check_number
from unpaired.baselines.autoencoders import AutoencoderMethod
from unpaired.baselines.towers import Batch, Towers


def component_correlation(z_x: Tensor, z_y: Tensor) -> Tensor:
    """The mean over components of the correlation of matched codes, -1 to 1.

    A component that does not vary counts 0.
    """
    x, y = z_x - z_x.mean(0, keepdim=True), z_y - z_y.mean(0, keepdim=True)
    norm = ((x * x).sum(0) * (y * y).sum(0)).clamp_min(1e-12).sqrt()
    return ((x * y).sum(0) / norm).mean()


@dataclass(eq=False, repr=False, kw_only=True)
class CorrNet(AutoencoderMethod):
    """A joint code that decodes both views from either, its halves kept correlated, then CCA.

    The code of a pair is the sum of both encodings; that of one view alone is its own. All three
    are decoded into both views, and the two halves' correlation is raised.

    Args:
        correlation_weight: Weight of the mean correlation against reconstruction.
        n_latent: See TowerMethod, as all that follow.

    References: chandar2016.
    """

    correlation_weight: float = 2.0
    n_epochs: int = 4  # each decodes three codes into both views, three times the usual work
    readout: Literal["cosine", "cca"] = "cca"

    def _check_params(self) -> None:
        super()._check_params()
        check_number(self.correlation_weight, "correlation_weight", 0.0)

    def _loss(self, towers: Towers, batch: Batch) -> Tensor:
        z_x, z_y = towers[0](batch.x), towers[1](batch.y)
        codes = (z_x, z_y, z_x + z_y)
        errors = sum(
            (self._joint_reconstruction(towers, batch, code) for code in codes),
            start=z_x.new_zeros(()),
        )
        return errors / 3.0 - self.correlation_weight * component_correlation(z_x, z_y)
