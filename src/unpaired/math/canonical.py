"""Regularised canonical correlation from moments: the closed form of SMI with a linear critic."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor

LEAST_RIDGE = 1e-6
"""In units of the total variance: single precision tells no smaller variances apart."""


@dataclass(frozen=True)
class Moments:
    """Sums over weighted pairs of products of coordinates, and what the pairs weigh together."""

    cross: Tensor
    """(r_x, r_y)."""
    own_x: Tensor
    own_y: Tensor
    n_pairs: float

    def plus(self, other: Moments) -> Moments:
        """The sums over the pairs of both."""
        return Moments(
            self.cross + other.cross,
            self.own_x + other.own_x,
            self.own_y + other.own_y,
            self.n_pairs + other.n_pairs,
        )


@dataclass(frozen=True)
class Maps:
    """One linear map per side into common coordinates, and the correlations there, falling."""

    x: Tensor
    """(r_x, k)."""
    y: Tensor
    """(r_y, k)."""
    correlations: Tensor
    """(k,) singular values of the (whitened) mean cross product."""

    @property
    def dependence(self) -> float:
        """Half the sum of the squared correlations: SMI, when the maps were whitened."""
        return 0.5 * float((self.correlations**2).sum())


def inverse_factor(matrix: Tensor) -> Tensor:
    """W (d, d) with W' matrix W = I, for a symmetric positive definite matrix. Cost O(d^3).

    Cholesky's factor, inverted in double precision and so on the CPU, as some devices have none;
    ten times as fast as the inverse square root, and any W gives the same products.

    >>> matrix = torch.tensor([[4.0, 2.0], [2.0, 3.0]])
    >>> white = inverse_factor(matrix)
    >>> torch.allclose(white.T @ matrix @ white, torch.eye(2), atol=1e-6)
    True
    """
    factor = torch.linalg.cholesky(matrix.cpu().double())
    eye = torch.eye(len(matrix), dtype=torch.float64)
    return torch.linalg.solve_triangular(factor, eye, upper=False).T.to(matrix)


def canonical_maps(
    moments: Moments,
    ridges: tuple[float | Tensor, float | Tensor],
    *,
    width: int,
    power: float = 0.5,
    belief: float = 0.0,
) -> Maps:
    """Maps whose products score pairs, from moments of pairs. Cost O(r^3).

    Notation: C = W_x' M W_y with W' (own / n + ridge I) W = I; C = U S V' gives W_x U w and W_y V w
    with w = S^power / sqrt(1 - (belief S)^2). Power 1/2 with belief 1 is the log density ratio of
    normal variates of these correlations, r / (1 - r^2); power 0 is Procrustes' rotation. A ridge
    of infinity whitens nothing: the SVD of the cross-covariance, scaled to a first value of one.
    """
    count = max(moments.n_pairs, 1e-12)
    cross = moments.cross / count
    whitening: list[Tensor | None] = []
    for own, ridge in zip((moments.own_x, moments.own_y), ridges, strict=True):
        if isinstance(ridge, float) and math.isinf(ridge):
            whitening.append(None)
        else:
            eye = torch.eye(len(own), device=own.device)
            whitening.append(inverse_factor(own / count + eye * ridge))
    if whitening[0] is not None:
        cross = whitening[0].T @ cross
    if whitening[1] is not None:
        cross = cross @ whitening[1]
    left, values, right = torch.linalg.svd(cross, full_matrices=False)
    left, values, right = left[:, :width], values[:width], right[:width]
    if whitening[0] is None:
        values = values / values[:1].clamp_min(1e-30)
    believed = (belief * values.clamp(max=1.0)) ** 2
    weights = torch.where(values > 1e-9, values**power / (1.0 - believed).sqrt(), 0.0)
    maps_x = left * weights if whitening[0] is None else whitening[0] @ left * weights
    maps_y = right.T * weights if whitening[1] is None else whitening[1] @ right.T * weights
    return Maps(maps_x.contiguous(), maps_y.contiguous(), values)
