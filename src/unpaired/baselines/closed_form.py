"""Regularised CCA of paired rows, its ridges chosen by held-out pairs: the read-out most share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch

from unpaired._checks import check_number
from unpaired.baselines.inputs import Moments, hold_out, mean_reciprocal_rank, pair_moments
from unpaired.errors import InputError
from unpaired.math import canonical
from unpaired.naming.smooth_space import unit_rows
from unpaired.types import FloatArray, IntArray

Ridge = float | Literal["auto"]
RIDGES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
"""What "auto" chooses from, in units of the mean variance of a view."""
FEW_ROWS = 10
"""Rows of x in pairs below which nothing is held out and "auto" means 1."""
LEAST_RIDGE = 1e-10
"""A ridge of 0 is this: double precision tells no smaller variances apart."""
Y_SHARE = 1 / 3
"""Ridge of y when both are chosen, as a share of that of x: a line of the grid, not its square."""


@dataclass(frozen=True)
class PairedMaps:
    """Two linear maps into one space."""

    map_x: FloatArray
    map_y: FloatArray
    correlations: FloatArray
    """(k,) canonical correlations after regularisation, falling; empty where there are none."""


MapFit = Callable[[Moments, float, float], PairedMaps]


def check_ridge(value: Ridge, name: str) -> None:
    """Accept "auto" or a number of at least 0.

    Raises:
        InputError: otherwise.
    """
    if isinstance(value, str) and value != "auto":
        raise InputError(f'{name} must be "auto" or a number of at least 0: got "{value}".')
    if value != "auto":
        check_number(value, name, 0.0)


def cca_fit(n_components: int, power: float) -> MapFit:
    """A function (moments, ridge_x, ridge_y) -> canonical maps scaled by correlations ** power."""

    def fit(moments: Moments, ridge_x: float, ridge_y: float) -> PairedMaps:
        own_x, cross, own_y = map(torch.as_tensor, (moments.xx, moments.xy, moments.yy))
        maps = canonical.canonical_maps(
            canonical.Moments(cross, own_x, own_y, 1.0),
            (_absolute(ridge_x, own_x), _absolute(ridge_y, own_y)),
            width=n_components,
            power=power,
        )
        return PairedMaps(maps.x.numpy(), maps.y.numpy(), maps.correlations.numpy())

    return fit


def _absolute(ridge: float, moment: torch.Tensor) -> float:
    """A ridge in units of the mean variance, as what is added to each variance."""
    return max(ridge, LEAST_RIDGE) * max(float(moment.diagonal().mean()), 1e-300)


def choose_ridges(
    fit: MapFit,
    x: FloatArray,
    y: FloatArray,
    pairs: IntArray,
    ridge_x: Ridge,
    ridge_y: Ridge,
    rng: np.random.Generator,
) -> tuple[float, float]:
    """The ridges, each "auto" replaced by the value that ranks held-out partners highest.

    A fifth of the paired rows of x (1,000 at most) judges, with all their partners; the caller
    then fits on all pairs. Fewer than ten rows of x leave nothing to hold out: "auto" means 1.
    """
    if ridge_x != "auto" and ridge_y != "auto":
        return float(ridge_x), float(ridge_y)

    def both(value: float) -> tuple[float, float]:
        return (
            value if ridge_x == "auto" else float(ridge_x),
            (value * Y_SHARE if ridge_x == "auto" else value)
            if ridge_y == "auto"
            else float(ridge_y),
        )

    if len(np.unique(pairs[:, 0])) < FEW_ROWS:
        return both(1.0)
    kept, judged = hold_out(pairs, rng)
    moments = pair_moments(x, y, kept)
    rows_x, owner = np.unique(judged[:, 0], return_inverse=True)
    best, best_rank = 1.0, -np.inf
    for value in RIDGES:
        maps = fit(moments, *both(value))
        embed_x = unit_rows(x[rows_x] @ maps.map_x)
        embed_y = unit_rows(y[judged[:, 1]] @ maps.map_y)
        rank = mean_reciprocal_rank(embed_x, embed_y, owner)
        if rank > best_rank:
            best, best_rank = value, rank
    return both(best)


def fit_cca(
    x: FloatArray,
    y: FloatArray,
    pairs: IntArray,
    rng: np.random.Generator,
    *,
    ridge_x: Ridge = "auto",
    ridge_y: Ridge = "auto",
    n_components: int = 256,
    power: float = 0.5,
) -> PairedMaps:
    """Regularised CCA of centred features x (n_x, p_x) and y (n_y, p_y) on ``pairs`` (k, 2)."""
    fit = cca_fit(n_components, power)
    ridges = choose_ridges(fit, x, y, pairs, ridge_x, ridge_y, rng)
    return fit(pair_moments(x, y, pairs), *ridges)
