"""From latents to comparable embeddings: the closed form that turns dependence into a score.

Kernel dependence does not change when one latent space is rotated, so a cosine across raw latents
means nothing. Regularised CCA of the matched rows (SMI with a linear critic) makes the two spaces
comparable; it reads the inputs beside the latents, so that depth can only add to it.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from unpaired.math.eigen import canonical_maps
from unpaired.types import IntArray


@dataclass(frozen=True)
class Readout:
    """Two affine maps into one space; rows come out at unit length."""

    mean_x: Tensor
    map_x: Tensor
    mean_y: Tensor
    map_y: Tensor

    def embed_x(self, features: Tensor) -> Tensor:
        """Rows of x, (n, p_x) -> (n, n_components), unit length."""
        return torch.nn.functional.normalize((features - self.mean_x) @ self.map_x)

    def embed_y(self, features: Tensor) -> Tensor:
        """Rows of y, (n, p_y) -> (n, n_components), unit length."""
        return torch.nn.functional.normalize((features - self.mean_y) @ self.map_y)


def fit_readout(
    x: Tensor, y: Tensor, pairs: IntArray, *, ridge: float, n_components: int
) -> Readout:
    """The readout fitted to the matched rows ``pairs`` (k, 2) of the features x and y.

    Both views are centred on all their rows, matched or not.
    """
    mean_x, mean_y = x.mean(0, keepdim=True), y.mean(0, keepdim=True)
    rows = torch.as_tensor(pairs)
    maps = canonical_maps(
        x[rows[:, 0]] - mean_x,
        y[rows[:, 1]] - mean_y,
        ridge_x=ridge,
        ridge_y=ridge,
        n_components=n_components,
    )
    return Readout(mean_x, maps.map_x, mean_y, maps.map_y)
