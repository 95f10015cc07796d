"""Whitening and regularised canonical correlation, once for everything that needs them."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


def inverse_sqrt(matrix: Tensor, ridge: float) -> Tensor:
    """(matrix + ridge * mean(eigenvalues) * I)^(-1/2) of a symmetric positive matrix. Cost O(d^3).

    >>> torch.allclose(inverse_sqrt(torch.diag(torch.tensor([4.0, 1.0])), 0.0),
    ...                torch.diag(torch.tensor([0.5, 1.0])))
    True
    """
    values, vectors = torch.linalg.eigh(matrix)
    values = values.clamp_min(0.0)
    floor = ridge * values.mean() + torch.finfo(matrix.dtype).tiny
    scale = torch.where(values + floor > 1e-12 * values.max(), (values + floor).rsqrt(), 0.0)
    return (vectors * scale) @ vectors.T


def inverse_factor(matrix: Tensor) -> Tensor:
    """W (d, d) with W' matrix W = I, for a symmetric positive definite matrix. Cost O(d^3).

    Cholesky's factor, inverted in double precision and so on the CPU, as some devices have none:
    ten times as fast as ``inverse_sqrt``, for those whom any W serves.

    >>> matrix = torch.tensor([[4.0, 2.0], [2.0, 3.0]])
    >>> white = inverse_factor(matrix)
    >>> torch.allclose(white.T @ matrix @ white, torch.eye(2), atol=1e-6)
    True
    """
    factor = torch.linalg.cholesky(matrix.cpu().double())
    eye = torch.eye(len(matrix), dtype=torch.float64)
    return torch.linalg.solve_triangular(factor, eye, upper=False).T.to(matrix)


@dataclass(frozen=True)
class CanonicalMaps:
    """Two linear maps into one space in which matched rows correlate."""

    map_x: Tensor
    """(d_x, n_components)."""
    map_y: Tensor
    """(d_y, n_components)."""
    correlations: Tensor
    """(n_components,), falling."""


def canonical_maps(
    x: Tensor, y: Tensor, *, ridge_x: float, ridge_y: float, n_components: int, power: float = 0.5
) -> CanonicalMaps:
    """Regularised CCA of matched, centred rows; directions scaled by correlations ** power.

    Notation: x (n, d_x), y (n, d_y), row i of both is one pair. The SVD of
    Cxx^(-1/2) Cxy Cyy^(-1/2) = U S V' gives map_x = Cxx^(-1/2) U S^power, and map_y alike; ridges
    count in units of the mean variance. This is SMI with a linear critic in closed form.
    Cost O(n d^2 + d^3).
    """
    n_rows = len(x)
    return canonical_maps_of_moments(
        x.T @ x / n_rows,
        x.T @ y / n_rows,
        y.T @ y / n_rows,
        ridge_x=ridge_x,
        ridge_y=ridge_y,
        n_components=n_components,
        power=power,
    )


def canonical_maps_of_moments(
    moment_xx: Tensor,
    moment_xy: Tensor,
    moment_yy: Tensor,
    *,
    ridge_x: float,
    ridge_y: float,
    n_components: int,
    power: float = 0.5,
) -> CanonicalMaps:
    """The same from the moments Cxx, Cxy and Cyy of the matched rows. Cost O(d^3)."""
    white_x, white_y = inverse_sqrt(moment_xx, ridge_x), inverse_sqrt(moment_yy, ridge_y)
    left, values, right = torch.linalg.svd(white_x @ moment_xy @ white_y, full_matrices=False)
    k = min(n_components, len(values))
    scale = values[:k].clamp_min(0.0) ** power
    return CanonicalMaps(
        white_x @ left[:, :k] * scale, white_y @ right.T[:, :k] * scale, values[:k]
    )
