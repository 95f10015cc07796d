"""CCA by the Hilbert-Schmidt independence criterion, linear and deep (Chang et al. 2013)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from torch import Tensor

from unpaired.baselines.towers import Batch, TowerMethod, Towers
from unpaired.math.dependence import hsic
from unpaired.math.kernels import gaussian_gram, rounding_floor, squared_distances


def adaptive_gram(latents: Tensor) -> Tensor:
    """Gaussian Gram matrix whose sigma^2 is half the median squared distance of rows that differ.

    The median follows the latents without gradient, so that growing or shrinking them gains
    nothing.
    """
    distances = squared_distances(latents.detach())
    differing = distances[distances > rounding_floor(distances)]
    squared = float(differing.median()) / 2.0 if len(differing) else 1.0
    return gaussian_gram(latents, bandwidth=squared**0.5)


@dataclass(eq=False, repr=False, kw_only=True)
class HsicCCA(TowerMethod):
    """Linear maps whose images depend on each other most, by HSIC, then CCA of the images.

    The criterion does not change when one image is rotated or mirrored, so a closed-form read-out
    makes the two comparable. All directions are found together. Kernels are as wide as the median
    distance of a batch, so that scaling an image gains nothing.

    Args:
        n_latent: See TowerMethod, as all that follow.

    References: chang2013, gretton2005.
    """

    hidden: tuple[int, ...] = ()
    readout: Literal["cosine", "cca"] = "cca"

    def _loss(self, towers: Towers, batch: Batch) -> Tensor:
        gram_x, gram_y = (
            adaptive_gram(tower(rows))
            for tower, rows in zip(towers, (batch.x, batch.y), strict=True)
        )
        return -hsic(gram_x, gram_y)


@dataclass(eq=False, repr=False, kw_only=True)
class HsicDeepCCA(HsicCCA):
    """The same with a network per view instead of a linear map.

    Args:
        n_latent: See TowerMethod, as all that follow.

    References: chang2013, andrew2013.
    """

    hidden: tuple[int, ...] = (512,)
