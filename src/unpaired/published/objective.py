"""What the networks minimise: reconstruction errors minus lambda times the dependence.

The paper's letters: K and L are Gaussian Gram matrices of the latents of x and of y, alpha the
coefficients of the density ratio, h and H its moments.
"""

from __future__ import annotations

import torch
from torch import Tensor

from unpaired.math.density_ratio import fit_ratio
from unpaired.math.kernels import gaussian_gram
from unpaired.published.config import PublishedConfig


def latent_scale(latents: Tensor) -> tuple[Tensor, Tensor]:
    """Centre (1, k) and one number: subtract and divide, and the mean squared distance is 2.

    The latent space is scaled as a whole, so that its shape stays: with every component scaled to
    unit variance, 64 of them would lie at a mean squared distance of 128, where the paper's widths
    make every kernel value 0. Over all ordered pairs of rows the mean squared distance is twice the
    mean squared norm of the centred rows.
    """
    centre = latents.mean(0, keepdim=True)
    spread = ((latents - centre) ** 2).sum(1).mean()
    return centre, (spread + torch.finfo(latents.dtype).tiny).sqrt()


def scale_latents(latents: Tensor) -> Tensor:
    """Latents at mean squared distance 2."""
    centre, scale = latent_scale(latents)
    return (latents - centre) / scale


def gram(rows: Tensor, sigma2: float, basis: Tensor | None = None) -> Tensor:
    """exp(-|z_i - z_j|^2 / (2 sigma^2)), by the square of the width as the paper gives it."""
    return gaussian_gram(rows, basis, bandwidth=sigma2**0.5)


def dependence(z_x: Tensor, z_y: Tensor, config: PublishedConfig) -> Tensor:
    """D of matched, scaled latents: row i of both is one pair.

    SMI is (1/2) alpha'h - 1/2 with every row a basis point; uKTA is tr(KL) / n^2, so that batches
    of any size compare. Cost O(n^3) and O(n^2).
    """
    K, L = gram(z_x, config.sigma2_x), gram(z_y, config.sigma2_y)
    if config.dependence == "ukta":
        return (K * L).mean()
    return fit_ratio(K.double(), L.double(), ratio_ridge=config.ratio_ridge).smi.to(z_x.dtype)


def reconstruction_error(rows: Tensor, decoded: Tensor, power: float) -> Tensor:
    """Squared error as a share of the view's mean square ``power``: 1 is what predicting 0 gives.

    The paper's sum of squares grows with rows, columns and units; lambda could not mean the same
    for any two data sets.
    """
    return ((rows - decoded) ** 2).mean() / power
