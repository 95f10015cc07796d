"""Scores across views from trained latents: three read-outs, each under its own name.

The dependence does not change when one latent space is rotated, so nothing in training makes the
two spaces comparable. The density ratio belongs to the objective; the linear map is fitted after
training; the cosine of the latents as they are is at chance, and is here to be seen.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from unpaired.math.density_ratio import fit_ratio
from unpaired.published.config import PublishedConfig
from unpaired.published.objective import gram
from unpaired.types import IntArray

MAP_RIDGE = 0.1
"""Ridge of the linear map, in units of the mean variance of a latent component."""


@dataclass(frozen=True)
class DensityRatio:
    """r(x, y) = sum_l alpha_l K(x_l, x) L(y_l, y)."""

    basis_x: Tensor
    """(b, k) latents of the basis pairs."""
    basis_y: Tensor
    coef: Tensor
    """alpha, (b,)."""
    sigma2: Tensor
    """(2,) sigma_x^2 and sigma_y^2."""

    def scores(self, z_x: Tensor, z_y: Tensor) -> Tensor:
        """R of each row of x with each row of y, (n, m)."""
        K = gram(z_x, float(self.sigma2[0]), self.basis_x)
        L = gram(z_y, float(self.sigma2[1]), self.basis_y)
        return (K * self.coef) @ L.T


@dataclass(frozen=True)
class MappedCosine:
    """The cosine of both latents, each by its own linear map."""

    map_x: Tensor
    """(k, c)."""
    map_y: Tensor

    def scores(self, z_x: Tensor, z_y: Tensor) -> Tensor:
        """The cosine of each row of x with each row of y, (n, m)."""
        return normalize(z_x @ self.map_x) @ normalize(z_y @ self.map_y).T


Readout = DensityRatio | MappedCosine


def readout_arrays(readout: Readout) -> dict[str, np.ndarray]:
    """All that ``readout_from_arrays`` needs."""
    return {f.name: getattr(readout, f.name).cpu().numpy() for f in fields(readout)}


def readout_from_arrays(arrays: dict[str, np.ndarray], device: torch.device) -> Readout:
    """The read-out that ``arrays`` were taken from."""
    kind = DensityRatio if "coef" in arrays else MappedCosine
    return kind(*(torch.as_tensor(arrays[f.name], device=device) for f in fields(kind)))


def fit_readout(
    z_x: Tensor, z_y: Tensor, pairs: IntArray, config: PublishedConfig, rng: np.random.Generator
) -> Readout:
    """The read-out ``config`` names, fitted to the matched rows of the scaled latents."""
    if config.readout == "density-ratio":
        return fit_density_ratio(z_x, z_y, pairs, config, rng)
    if config.readout == "linear-map":
        return fit_linear_map(z_x, z_y, pairs)
    identity = torch.eye(z_x.shape[1], dtype=z_x.dtype, device=z_x.device)
    return MappedCosine(identity, identity)


def fit_density_ratio(
    z_x: Tensor, z_y: Tensor, pairs: IntArray, config: PublishedConfig, rng: np.random.Generator
) -> DensityRatio:
    """r(x, y) = sum_l alpha_l K(x_l, x) L(y_l, y), fitted to the pairs; alpha = 1 for uKTA.

    At most ``n_basis`` pairs are basis points. Cost O(k n_basis^2 + n_basis^3).
    """
    rows = torch.as_tensor(pairs, device=z_x.device)
    matched_x, matched_y = z_x[rows[:, 0]], z_y[rows[:, 1]]
    kept = torch.as_tensor(np.sort(rng.permutation(len(pairs))[: config.n_basis]))
    basis_x, basis_y = matched_x[kept], matched_y[kept]
    coef = torch.ones(len(kept), dtype=z_x.dtype, device=z_x.device)
    if config.dependence == "smi":
        K = gram(matched_x, config.sigma2_x, basis_x).double().cpu()
        L = gram(matched_y, config.sigma2_y, basis_y).double().cpu()
        coef = fit_ratio(K, L, ratio_ridge=config.ratio_ridge).coef.to(coef)
    sigma2 = torch.tensor([config.sigma2_x, config.sigma2_y], dtype=torch.float64)
    return DensityRatio(basis_x, basis_y, coef, sigma2)


def fit_linear_map(z_x: Tensor, z_y: Tensor, pairs: IntArray) -> MappedCosine:
    """Canonical correlation analysis of the matched latents, weighted by the correlations."""
    rows = torch.as_tensor(pairs, device=z_x.device)
    matched = [z_x[rows[:, 0]].double().cpu(), z_y[rows[:, 1]].double().cpu()]
    whiten = []
    for z in matched:
        values, axes = torch.linalg.eigh(z.T @ z / len(z))
        values = values.clamp_min(0.0)
        whiten.append(axes * (values + MAP_RIDGE * values.mean() + 1e-300).rsqrt())
    cross = (matched[0] @ whiten[0]).T @ (matched[1] @ whiten[1]) / len(rows)
    left, correlations, right = torch.linalg.svd(cross)
    weights = correlations.sqrt()
    maps = [
        (white @ turn * weights).to(z_x)
        for white, turn in zip(whiten, (left, right.T), strict=True)
    ]
    return MappedCosine(maps[0], maps[1])
