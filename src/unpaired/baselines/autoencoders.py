"""What the autoencoder methods share: reconstruction, and codes that decode into both views."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from unpaired.baselines.towers import Batch, TowerMethod, Towers


def relative_error(target: Tensor, outputs: Tensor) -> Tensor:
    """Mean squared error as a share of the mean square of the target."""
    return ((target - outputs) ** 2).mean() / (target**2).mean().clamp_min(1e-12)


@dataclass(eq=False, repr=False, kw_only=True)
class AutoencoderMethod(TowerMethod):
    """A TowerMethod with decoders; rows in no pair are reconstructed too.

    Args:
        n_latent: See TowerMethod, as all that follow.
    """

    has_decoder: ClassVar[bool] = True
    uses_free_rows: ClassVar[bool] = True

    def _own_reconstruction(self, towers: Towers, batch: Batch, z_x: Tensor, z_y: Tensor) -> Tensor:
        """The errors of both views decoded from their own codes, free rows included."""
        total = z_x.new_zeros(())
        for tower, z, clean, free in (
            (towers[0], z_x, batch.clean_x, batch.free_x),
            (towers[1], z_y, batch.clean_y, batch.free_y),
        ):
            codes, target = z, clean
            if len(free):
                codes, target = torch.cat([z, tower(free)]), torch.cat([clean, free])
            total = total + relative_error(target, tower.decode(codes))
        return total

    def _joint_reconstruction(self, towers: Towers, batch: Batch, code: Tensor) -> Tensor:
        """The errors of both views decoded from one code."""
        return relative_error(batch.clean_x, towers[0].decode(code)) + relative_error(
            batch.clean_y, towers[1].decode(code)
        )
