"""Row weights: how often a row counts in everything that is estimated; it is matched once."""

from __future__ import annotations

from typing import Any

import numpy as np

from unpaired._checks import check_view
from unpaired.errors import InputError
from unpaired.types import FloatArray, IntArray

Weights = tuple[FloatArray | None, FloatArray | None]
"""Weights of the rows of x and of y; None = all alike."""


def check_weights(weights: Any, n_x: int, n_y: int) -> Weights:
    """The weights of both sides as float64 vectors of mean 1 over rows that count, or None.

    Raises:
        InputError: when they are not a pair, or one is negative, not finite or of wrong length.
    """
    if weights is None:
        return None, None
    if not isinstance(weights, tuple | list) or len(weights) != 2:
        raise InputError(
            "weights must be a pair (weights of x, weights of y), either of them None: got "
            f"{type(weights).__name__}. Write weights=(w_x, None) for rows of x only."
        )
    return _check_side(weights[0], n_x, "x"), _check_side(weights[1], n_y, "y")


def _check_side(weight: Any, size: int, side: str) -> FloatArray | None:
    """One side's weights, None when all are alike."""
    if weight is None:
        return None
    name = f"weights of {side}"
    array = check_view(np.reshape(np.asarray(weight), (-1, 1)), name, min_rows=1)[:, 0]
    if len(array) != size:
        raise InputError(
            f"{name} must hold one number per row: {side} has {size} rows, the weights {len(array)}"
            ". Pass weights in the order of the rows."
        )
    if (array < 0).any():
        row = int(np.flatnonzero(array < 0)[0])
        raise InputError(
            f"{name} must not be negative: row {row} has {array[row]:g}. "
            "Use 0 for rows that must not count."
        )
    counted = array > 0
    if counted.sum() < 2:
        raise InputError(
            f"{name} must be above 0 for at least two rows: {int(counted.sum())} are. "
            "Without them there is no geometry to match by."
        )
    return None if (array == array[0]).all() else array / array[counted].mean()


def repeated(weight: FloatArray | None, size: int, rng: np.random.Generator) -> IntArray | slice:
    """About ``size`` row numbers in order, twice that at most, each as often as its weight says.

    Weights that are whole numbers once divided by the smallest are met exactly where their sum is
    at most twice ``size``. Others are met on average, by systematic sampling in which a row of
    typical weight (half of all weight is in rows no heavier) stands once. None: every row once.
    """
    if weight is None:
        return slice(None)
    counts = weight / weight[weight > 0].min()
    whole = np.round(counts)
    if np.abs(counts - whole).max() < 1e-6 and whole.sum() <= 2 * size:
        return np.repeat(np.arange(len(weight)), whole.astype(np.int64))
    order = np.sort(weight)
    typical = order[np.searchsorted(np.cumsum(order), 0.5 * order.sum())]
    drawn = max(2, min(size, round(float(weight.sum() / typical))))
    ends = np.cumsum(weight) * (drawn / weight.sum())
    places = np.arange(drawn) + rng.random()
    return np.minimum(np.searchsorted(ends, places, side="right"), len(weight) - 1)
