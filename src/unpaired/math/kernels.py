"""Gram matrices, their bandwidth and their centring."""

from __future__ import annotations

import torch
from torch import Tensor

from unpaired.errors import InputError


def squared_distances(x: Tensor, y: Tensor | None = None) -> Tensor:
    """Squared Euclidean distances between the rows of x and those of y (default: of x itself).

    Notation: x (n, d), y (m, d) -> (n, m). Never negative. Cost O(n m d).

    >>> squared_distances(torch.tensor([[0.0], [3.0]])).tolist()
    [[0.0, 9.0], [9.0, 0.0]]
    """
    other = x if y is None else y
    centre = other.detach().mean(0, keepdim=True)  # far from 0 the difference below loses digits
    x, other = x - centre, other - centre
    distances = (x * x).sum(1)[:, None] + (other * other).sum(1)[None, :]
    distances = distances.addmm_(x, other.T, alpha=-2.0).clamp_min_(0.0)
    return distances.fill_diagonal_(0.0) if y is None else distances  # rounding leaves crumbs


def rounding_floor(distances: Tensor) -> Tensor:
    """The squared distance up to which two rows may be equal: the rest is rounding."""
    return 100.0 * torch.finfo(distances.dtype).eps * distances.max()


def gaussian_gram(x: Tensor, y: Tensor | None = None, *, bandwidth: float | Tensor) -> Tensor:
    """Gaussian Gram matrix exp(-|x_i - y_j|^2 / (2 bandwidth^2)).

    Notation: x (n, d), y (m, d) or None for x itself, sigma = bandwidth -> K (n, m).

    >>> gaussian_gram(torch.tensor([[0.0], [2.0]]), bandwidth=1.0)[0, 1].item()  # exp(-2)
    0.1353352814912796
    """
    return torch.exp(squared_distances(x, y) * (-0.5 / bandwidth**2))


def median_bandwidth(x: Tensor, name: str = "x", max_rows: int = 2000) -> float:
    """Median distance between two different rows of x: the bandwidth of the median heuristic.

    Above ``max_rows`` rows, evenly spaced ones are used. No gradient. Cost O(max_rows^2 d).

    Raises:
        InputError: when at least half of the row pairs coincide, so that the median is 0.

    >>> median_bandwidth(torch.tensor([[0.0], [1.0], [3.0]]))
    2.0
    """
    rows = x.detach()
    if len(rows) > max_rows:
        rows = rows[torch.linspace(0, len(rows) - 1, max_rows, device=x.device).long()]
    above = torch.triu_indices(len(rows), len(rows), offset=1, device=x.device)
    squared = squared_distances(rows)
    floor = rounding_floor(squared)
    median_squared = squared[above[0], above[1]].median()
    if not median_squared > floor:
        raise InputError(
            f'bandwidth_{name}="median" gave 0: at least half of the row pairs of {name} '
            "are identical. Drop duplicates or pass a positive number."
        )
    return float(median_squared.sqrt())


def center_gram(gram: Tensor) -> Tensor:
    """Doubly centred Gram matrix H K H with H = I - 11'/n; H is never formed. Cost O(n^2).

    >>> center_gram(torch.eye(2)).tolist()
    [[0.5, -0.5], [-0.5, 0.5]]
    """
    return gram - gram.mean(0, keepdim=True) - gram.mean(1, keepdim=True) + gram.mean()
