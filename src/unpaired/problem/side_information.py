"""Side information about pairs: a matrix of similarities, or columns that both sides share."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from unpaired._checks import check_view
from unpaired.errors import InputError
from unpaired.math.sinkhorn import sinkhorn
from unpaired.problem.given_start import Guess
from unpaired.types import FloatArray, IntArray

SAMPLE = 1200
"""Rows a side from which levels and a first guess are taken."""
IN_FAVOUR = 4.0
"""Evident partners need this many standard errors of side information in their favour."""
HEAT = 0.25
"""Temperature of the plan that side information alone gives."""


@dataclass(frozen=True, eq=False)
class SideInformation:
    """How likely pairs are before geometry is asked; each kind has mean 0 and deviation 1."""

    matrix: FloatArray | None
    """(n_x, n_y) similarities that were given."""
    vectors: tuple[FloatArray, FloatArray] | None
    """Rows of x and of y whose inner products are the similarities by shared columns."""

    def block(self, rows_x: IntArray, rows_y: IntArray) -> FloatArray:
        """Similarities of rows of x to rows of y, (k, l)."""
        total = np.zeros((len(rows_x), len(rows_y)))
        if self.matrix is not None:
            total += self.matrix[np.ix_(rows_x, rows_y)]
        if self.vectors is not None:
            total += self.vectors[0][rows_x] @ self.vectors[1][rows_y].T
        return total

    def at(self, rows_x: IntArray, rows_y: IntArray) -> FloatArray:
        """Similarities of single pairs; shapes broadcast."""
        shape = np.broadcast_shapes(rows_x.shape, rows_y.shape)
        total = np.zeros(shape)
        if self.matrix is not None:
            total += self.matrix[rows_x, rows_y]
        if self.vectors is not None:
            total += (self.vectors[0][rows_x] * self.vectors[1][rows_y]).sum(axis=-1)
        return total

    def restrict(self, rows_x: IntArray, rows_y: IntArray) -> SideInformation:
        """The side information of some rows of either side, in the same units."""
        matrix = None if self.matrix is None else self.matrix[np.ix_(rows_x, rows_y)]
        if self.vectors is None:
            return replace(self, matrix=matrix)
        return SideInformation(matrix, (self.vectors[0][rows_x], self.vectors[1][rows_y]))

    def guess(self, x: FloatArray, y: FloatArray) -> Guess:
        """Where to start from: rows of x and the mean of the rows of y that it gives them."""
        rows_x, rows_y = _even(len(x)), _even(len(y))
        block = torch.as_tensor(self.block(rows_x, rows_y))
        plan = sinkhorn(block, HEAT, max_iter=60).numpy()
        mass = plan.sum(axis=1)
        return Guess("side information", x[rows_x], plan @ y[rows_y] / mass[:, None], mass)

    def favours(self, partner: IntArray) -> bool:
        """Whether a matching has clearly more side information on its side than chance would."""
        rows = np.flatnonzero(partner >= 0)
        if not len(rows):
            return False
        return float(self.at(rows, partner[rows]).mean()) * np.sqrt(len(rows)) > IN_FAVOUR


def check_side_information(
    similarity: Any, shared: Any, n_x: int, n_y: int
) -> SideInformation | None:
    """The side information of a call, or None when there is none or it tells no pairs apart."""
    matrix = check_similarity(similarity, n_x, n_y)
    if matrix is not None:
        matrix = (matrix - matrix.mean()) / matrix.std()
    vectors = None if shared is None else _shared_vectors(*_check_shared(shared, n_x, n_y))
    return None if matrix is None and vectors is None else SideInformation(matrix, vectors)


def _check_shared(shared: Any, n_x: int, n_y: int) -> tuple[FloatArray, FloatArray]:
    """The shared columns of both sides."""
    if not isinstance(shared, tuple | list) or len(shared) != 2:
        raise InputError(
            "shared must be a pair (columns of x, columns of y) that mean the same on both sides: "
            f"got {type(shared).__name__}. Write shared=(x_columns, y_columns)."
        )
    sides = [
        check_view(side, f"shared columns of {name}", min_rows=1)
        for side, name in zip(shared, "xy", strict=True)
    ]
    for side, name, size in zip(sides, "xy", (n_x, n_y), strict=True):
        if len(side) != size:
            raise InputError(
                f"shared columns of {name} must have one row per row of {name}: {name} has {size} "
                f"rows, the columns {len(side)}. Keep both in the same order."
            )
    if sides[0].shape[1] != sides[1].shape[1]:
        raise InputError(
            "shared must have the same columns on both sides: "
            f"{sides[0].shape[1]} for x, {sides[1].shape[1]} for y. Column k must mean the same."
        )
    return sides[0], sides[1]


def _shared_vectors(left: FloatArray, right: FloatArray) -> tuple[FloatArray, FloatArray] | None:
    """Vectors whose products are minus squared distances in columns scaled alike on both sides.

    None where no shared column varies.
    """
    both = np.concatenate([left, right])
    deviation = both.std(axis=0)
    kept = deviation > 1e-12 * np.abs(both).max(axis=0)
    if not kept.any():
        return None
    mean, scale = both.mean(axis=0)[kept], deviation[kept]
    a, b = (left[:, kept] - mean) / scale, (right[:, kept] - mean) / scale
    ones = np.ones((len(a), 1)), np.ones((len(b), 1))
    squares = [np.square(side).sum(axis=1, keepdims=True) for side in (a, b)]
    vectors = np.hstack([2.0 * a, -squares[0], ones[0]]), np.hstack([b, ones[1], -squares[1]])
    sample = vectors[0][_even(len(a))] @ vectors[1][_even(len(b))].T
    level, spread = float(sample.mean()), float(sample.std()) or 1.0
    return np.hstack([vectors[0], -level * ones[0]]) / spread, np.hstack([vectors[1], ones[1]])


def _even(size: int) -> IntArray:
    """At most SAMPLE row numbers, evenly spread."""
    return np.unique(np.linspace(0, size - 1, min(size, SAMPLE)).astype(np.int64))


def check_similarity(similarity: Any, n_x: int, n_y: int) -> FloatArray | None:
    """Side information as a (n_x, n_y) matrix, or None when it says nothing."""
    if similarity is None:
        return None
    array = check_view(similarity, "similarity", min_rows=1)
    if array.shape != (n_x, n_y):
        raise InputError(
            f"similarity must have shape ({n_x}, {n_y}), rows of x by rows of y: it has "
            f"{array.shape}. Transpose it, or compute it for all pairs."
        )
    return array if float(array.std()) > 0 else None
