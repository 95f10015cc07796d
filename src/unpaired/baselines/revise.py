"""ReViSE-b: autoencoders aligned by maximum mean discrepancy (Tsai et al. 2017)."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import normalize, softplus

from unpaired._checks import check_number
from unpaired.baselines.autoencoders import AutoencoderMethod
from unpaired.baselines.towers import Batch, Towers
from unpaired.math.kernels import squared_distances

MMD_WIDTHS = (0.25, 0.5, 1.0, 2.0)
START_SLOPE, START_OFFSET = 10.0, -5.0
"""Of the logistic function at first: a cosine of one half is a toss-up."""


def mmd(z_x: Tensor, z_y: Tensor) -> Tensor:
    """Squared maximum mean discrepancy of two sets of codes (biased estimate, never negative).

    Notation: z_x (n, k), z_y (m, k); the kernel is the mean of Gaussians of several widths.
    """
    within = _mean_kernel(squared_distances(z_x)) + _mean_kernel(squared_distances(z_y))
    return within - 2.0 * _mean_kernel(squared_distances(z_x, z_y))


def _mean_kernel(distances: Tensor) -> Tensor:
    """The mean over all entries and all widths of a Gaussian of squared distances."""
    total = distances.new_zeros(())
    for width in MMD_WIDTHS:
        total = total + torch.exp(distances / (-2.0 * width**2)).mean()
    return total / len(MMD_WIDTHS)


def prediction_loss(logits: Tensor, same: Tensor) -> Tensor:
    """The logistic loss of telling which rows belong together; pairs and strangers weigh the same.

    Notation: logits (b, b), row i of x and column i of y are a pair; ``same[i, j]`` where pairs i
    and j share a row, which are left out unless i = j.
    """
    strangers = ~same
    missed = softplus(-logits.diagonal()).mean()
    n_strangers = strangers.sum().clamp_min(1)
    return missed + (softplus(logits) * strangers).sum() / n_strangers


@dataclass(eq=False, repr=False, kw_only=True)
class ReViSE(AutoencoderMethod):
    """Two autoencoders whose codes have one distribution and tell which rows belong together.

    The paired loss is a binary prediction: belonging together is predicted from the cosine of two
    codes by a logistic function whose slope and offset are learned; nothing is ranked. Codes are
    compared at unit length. Rows in no pair take part in reconstruction and in the discrepancy,
    which makes it a semi-supervised method. Their adaptation to test rows (variant c) is left out.

    Args:
        mmd_weight: Weight of the maximum mean discrepancy.
        reconstruction_weight: Weight of both reconstructions.
        n_latent: See TowerMethod, as all that follow.

    References: tsai2017, gretton2012.
    """

    mmd_weight: float = 0.1
    reconstruction_weight: float = 0.1
    n_epochs: int = 6

    def _check_params(self) -> None:
        super()._check_params()
        for name in ("mmd_weight", "reconstruction_weight"):
            check_number(getattr(self, name), name, 0.0)

    def _extra_weights(self) -> list[Tensor]:
        return [torch.tensor(START_SLOPE).log(), torch.tensor(START_OFFSET)]

    def _loss(self, towers: Towers, batch: Batch) -> Tensor:
        z_x, z_y = towers[0](batch.x), towers[1](batch.y)
        unit_x, unit_y = normalize(z_x), normalize(z_y)
        slope, offset = self._extra
        paired = prediction_loss(slope.exp() * (unit_x @ unit_y.T) + offset, batch.same)
        all_x = torch.cat([unit_x, normalize(towers[0](batch.free_x))])
        all_y = torch.cat([unit_y, normalize(towers[1](batch.free_y))])
        errors = self._own_reconstruction(towers, batch, z_x, z_y)
        return paired + self.mmd_weight * mmd(all_x, all_y) + self.reconstruction_weight * errors
