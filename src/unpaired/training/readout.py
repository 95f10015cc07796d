"""The density ratio of trained latents: what turns kernel dependence into a score.

Kernel dependence does not change when one latent space is rotated, so a cosine across raw latents
means nothing; the fitted ratio is the score that belongs to it.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from unpaired.math.density_ratio import fit_ratio
from unpaired.math.kernels import gaussian_gram, median_bandwidth
from unpaired.training.objective import ObjectiveConfig
from unpaired.types import IntArray

MAX_BASIS = 500
"""Basis points of a density ratio, at most."""


@dataclass(frozen=True)
class RatioReadout:
    """The density ratio r(x, y) = sum_l alpha_l K(x_l, x) L(y_l, y) on standardised latents."""

    mean_x: Tensor
    scale_x: Tensor
    basis_x: Tensor
    width_x: Tensor
    mean_y: Tensor
    scale_y: Tensor
    basis_y: Tensor
    width_y: Tensor
    coef: Tensor
    """alpha, (n_basis,); ones for uKTA."""

    def embed_x(self, latents: Tensor) -> Tensor:
        """Rows of x, (n, n_latent) -> (n, n_basis): alpha_l K(x_l, x)."""
        scaled = (latents - self.mean_x) / self.scale_x
        return self.coef * gaussian_gram(scaled, self.basis_x, bandwidth=self.width_x)

    def embed_y(self, latents: Tensor) -> Tensor:
        """Rows of y, (n, n_latent) -> (n, n_basis): L(y_l, y)."""
        scaled = (latents - self.mean_y) / self.scale_y
        return gaussian_gram(scaled, self.basis_y, bandwidth=self.width_y)


def fit_ratio_readout(
    z_x: Tensor, z_y: Tensor, pairs: IntArray, config: ObjectiveConfig
) -> RatioReadout:
    """The ratio fitted to the matched latents, with at most MAX_BASIS pairs as its basis.

    Under SMI alpha is fitted; under the other measures it is 1, as uKTA has it.
    """
    rows = torch.as_tensor(pairs)
    parts: list[Tensor] = []
    grams = []
    for z, column, bandwidth in ((z_x, 0, config.bandwidth_x), (z_y, 1, config.bandwidth_y)):
        mean, scale = z.mean(0, keepdim=True), z.std(0, keepdim=True, correction=0) + 1e-6
        matched = ((z - mean) / scale)[rows[:, column]]
        spaced = torch.linspace(0, len(matched) - 1, min(len(matched), MAX_BASIS)).long()
        basis = matched[spaced]
        width = median_bandwidth(torch.unique(basis, dim=0)) if bandwidth == "median" else bandwidth
        parts += [mean, scale, basis, torch.tensor(float(width), device=z.device)]
        grams.append(gaussian_gram(matched, basis, bandwidth=width).double())
    if config.dependence == "smi":
        coef = fit_ratio(grams[0], grams[1], ratio_ridge=config.ratio_ridge).coef.to(z_x.dtype)
    else:
        coef = torch.ones(grams[0].shape[1], dtype=z_x.dtype, device=z_x.device)
    mean_x, scale_x, basis_x, width_x, *rest = parts
    return RatioReadout(mean_x, scale_x, basis_x, width_x, rest[0], rest[1], rest[2], rest[3], coef)
