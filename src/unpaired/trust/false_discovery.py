"""Which matches are real: a posterior per row, from the distances of all rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import isotonic_regression

from unpaired.errors import InputError

Float = NDArray[np.float64]

MIN_ROWS = 20
"""With fewer rows no distribution can be judged: every row counts as matched."""


@dataclass(frozen=True)
class Chooser:
    """How probable a match is, given t = log(its distance / distance of the nearest other row).

    `false_rate[g]` is the probability that a match at `grid[g]` is a stranger, non-decreasing;
    `cut` is the largest t that is more probably true; `stranger_share` the estimated share of rows
    that have no partner.
    """

    grid: Float
    false_rate: Float
    cut: float
    stranger_share: float

    def probability(self, matched: Float, other: Float) -> Float:
        """The posterior of matches at distance `matched` whose nearest other row is at `other`."""
        return np.asarray(1 - np.interp(_log_ratio(matched, other), self.grid, self.false_rate))

    def limit(self, other: Float) -> Float:
        """The largest distance at which a match is still more probably true than not."""
        return np.asarray(other * np.exp(self.cut))


def fit_chooser(distance: ArrayLike, *, n_rounds: int = 12) -> Chooser:
    """The chooser for rows whose three nearest distances are known.

    A row without a partner finds at best its nearest stranger. How near strangers come, relative to
    the next one, is seen in the data: for a row with a partner in log(second / third), since its
    nearest is the partner; for a row without one in log(nearest / second) itself. Which row is
    which follows from the posterior, so the two are found in turn (local false discovery rate,
    Efron 2004, with a null estimated from the rows). Nearer is never less probable.

    Args:
        distance: (n, >= 3), each row's nearest distances, least first; non-finite rows are ignored.
        n_rounds: Rounds of that alternation.
    """
    near = np.asarray(distance, dtype=np.float64)
    if near.ndim != 2 or near.shape[1] < 3:
        raise InputError(
            f"distance must be (n, 3) or wider. Got shape {near.shape}. Search for 3 neighbours."
        )
    near = near[np.isfinite(near[:, :3]).all(axis=1)]
    if len(near) < MIN_ROWS:
        return Chooser(np.array([0.0, 1.0]), np.array([0.0, 0.0]), 0.0, 0.0)
    observed = _log_ratio(near[:, 0], near[:, 1])
    behind = _log_ratio(near[:, 1], near[:, 2])
    low, high = np.quantile(behind, [0.1, 0.9])
    width = max(0.35 * float(high - low), 1e-3)
    grid = np.linspace(max(float(observed.min()), -8.0), 0.0, 400)
    density = _density(observed, np.ones(len(near)), grid, width)
    density_behind = np.quantile(behind, 0.0005) - 3 * width
    true = np.ones(len(near))
    rate = np.zeros(len(grid))
    share = 0.0
    for _ in range(n_rounds):
        sample = np.concatenate([behind, observed])
        weight = np.concatenate([true, 1 - true])
        null = _density(sample, weight, grid, width)
        share = _stranger_share(observed, sample, weight)
        rate = np.clip(share * null / np.maximum(density, 1e-300), 0, 1)
        if share < 0.5:  # far below anything strangers do: certain, whatever the densities' tails
            rate[grid < density_behind] = 0.0
        rate = isotonic_regression(rate, weights=density + 1e-12).x
        update = 1 - np.interp(observed, grid, rate)
        if np.abs(update - true).max() < 1e-4:
            break
        true = update
    sure = np.flatnonzero(rate <= 0.5)
    cut = float(grid[sure[-1]]) if len(sure) else -np.inf
    return Chooser(grid, rate, cut, share)


def _stranger_share(observed: Float, sample: Float, weight: Float) -> float:
    """The share of rows without a partner: how much of the null's upper part is observed."""
    order = np.argsort(sample, kind="stable")
    mass = np.cumsum(weight[order]) / max(weight.sum(), 1e-300)
    ratios = []
    for level in (0.3, 0.5, 0.7):
        cut = sample[order][min(int(np.searchsorted(mass, level)), len(order) - 1)]
        null_above = float(weight[sample > cut].sum()) / max(float(weight.sum()), 1e-300)
        ratios.append(float((observed > cut).mean()) / max(null_above, 1e-12))
    return float(np.clip(np.median(ratios), 0.0, 1.0))


def _density(sample: Float, weight: Float, grid: Float, width: float) -> Float:
    """A weighted Gaussian kernel density on a grid, through a fine histogram, reflected at 0."""
    edges = np.linspace(grid[0] - 5 * width, 0.0, 4001)
    counts, _ = np.histogram(np.clip(sample, edges[0], 0.0), edges, weights=weight)
    middle = 0.5 * (edges[1:] + edges[:-1])
    kernel = np.exp(-0.5 * np.square((grid[:, None] - middle) / width))
    kernel += np.exp(-0.5 * np.square((grid[:, None] + middle) / width))
    return np.asarray(kernel @ counts / max(counts.sum() * width * np.sqrt(2 * np.pi), 1e-300))


def _log_ratio(near: Float, far: Float) -> Float:
    """log(near / far), finite for equal rows."""
    return np.asarray(np.log((near + 1e-12) / (far + 1e-12)))
