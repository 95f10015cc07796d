"""Reconstruction minus weighted dependence: what the networks minimise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from unpaired.math.dependence import MEASURES
from unpaired.math.kernels import gaussian_gram, rounding_floor, squared_distances

Bandwidth = float | Literal["median"]
MEDIAN_ROWS = 300
"""Rows a median distance is taken from, at most: it is asked for in every step."""


@dataclass(frozen=True)
class ObjectiveConfig:
    """Which dependence is maximised, how strongly, and with which kernels."""

    dependence: str
    dependence_weight: float
    bandwidth_x: Bandwidth
    bandwidth_y: Bandwidth
    ratio_ridge: float
    reconstruction_weight: float = 1.0


@dataclass(frozen=True)
class LossParts:
    """The terms of the objective on one batch; ``total`` carries the gradient."""

    total: Tensor
    reconstruction_x: float
    reconstruction_y: float
    dependence: float


def standardise(latents: Tensor) -> Tensor:
    """Latents with mean 0 and standard deviation 1 in every component that varies.

    A fixed bandwidth says nothing about latents of unknown scale; after this it does.
    """
    spread = latents.std(0, keepdim=True, correction=0)
    return (latents - latents.mean(0, keepdim=True)) / (spread + 1e-6)


def latent_gram(latents: Tensor, bandwidth: Bandwidth) -> Tensor:
    """Gaussian Gram matrix of standardised latents.

    ``"median"`` is the median over pairs of rows that differ, since a many-to-one matching repeats
    rows; of evenly spaced rows when there are more than MEDIAN_ROWS.
    """
    scaled = standardise(latents)
    if bandwidth == "median":
        rows = scaled.detach()
        distances = squared_distances(rows[:: -(-len(rows) // MEDIAN_ROWS)])
        differing = distances[distances > rounding_floor(distances)]
        bandwidth = float(differing.median().sqrt()) if len(differing) else 1.0
    return gaussian_gram(scaled, bandwidth=bandwidth)


def measure_dependence(z_x: Tensor, z_y: Tensor, config: ObjectiveConfig) -> Tensor:
    """The dependence of matched latents: row i of ``z_x`` and row i of ``z_y`` are one pair.

    uKTA is divided by the number of row pairs, so that batches of any size compare.
    """
    gram_x = latent_gram(z_x, config.bandwidth_x)
    gram_y = latent_gram(z_y, config.bandwidth_y)
    measure = MEASURES[config.dependence]
    if config.dependence == "smi":
        return measure(gram_x, gram_y, ratio_ridge=config.ratio_ridge)
    return measure(gram_x, gram_y) / (len(z_x) ** 2 if config.dependence == "ukta" else 1)


def reconstruction_error(x: Tensor, x_hat: Tensor) -> Tensor:
    """Mean squared error as a share of the mean square of x; 1 means that nothing was learned."""
    return ((x - x_hat) ** 2).mean() / (x**2).mean().clamp_min(torch.finfo(x.dtype).tiny)


def dmae_loss(
    x: Tensor,
    y: Tensor,
    x_coded: tuple[Tensor, Tensor],
    y_coded: tuple[Tensor, Tensor],
    config: ObjectiveConfig,
) -> LossParts:
    """The DMAE objective on matched rows: weighted reconstructions minus weighted dependence.

    Notation: ``x_coded`` = (z_x, x_hat) as an Autoencoder returns them; row i of x and of y match.
    """
    error_x = reconstruction_error(x, x_coded[1])
    error_y = reconstruction_error(y, y_coded[1])
    dependence = measure_dependence(x_coded[0], y_coded[0], config)
    errors = config.reconstruction_weight * (error_x + error_y)
    total = errors - config.dependence_weight * dependence
    return LossParts(total, error_x.item(), error_y.item(), dependence.item())
