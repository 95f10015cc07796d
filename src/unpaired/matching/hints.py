"""Side information about pairs: a matrix of similarities, or columns that both sides share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from unpaired._checks import check_view
from unpaired.errors import InputError
from unpaired.matching.describing import check_similarity
from unpaired.matching.sharp import Guess
from unpaired.matching.sinkhorn import sinkhorn
from unpaired.matching.spaces import square_distances
from unpaired.types import FloatArray, IntArray

SAMPLE = 1200
"""Rows a side from which levels and a first guess are taken."""
IN_FAVOUR = 4.0
"""Evident partners need this many standard errors of side information in their favour."""


@dataclass(frozen=True, eq=False)
class Part:
    """One kind of side information, for any rows asked for."""

    block: Callable[[IntArray, IntArray], FloatArray]
    """Rows of x (k,) and of y (l,) -> (k, l)."""
    at: Callable[[IntArray, IntArray], FloatArray]
    """Rows of x and of y in the same places -> one number per pair; shapes broadcast."""
    mean: float
    deviation: float
    vectors: tuple[FloatArray, FloatArray] | None = None
    """Rows whose inner products are the similarities, where there are such."""


@dataclass(frozen=True, eq=False)
class Hint:
    """How likely pairs are before geometry is asked; never computed for all pairs at once."""

    parts: tuple[Part, ...]
    n_x: int
    n_y: int

    def block(self, rows_x: IntArray, rows_y: IntArray) -> FloatArray:
        """Similarities of rows of x to rows of y, (k, l), each kind with mean 0, deviation 1."""
        blocks = [(p.block(rows_x, rows_y) - p.mean) / p.deviation for p in self.parts]
        return np.asarray(sum(blocks[1:], blocks[0]))

    def at(self, rows_x: IntArray, rows_y: IntArray) -> FloatArray:
        """Similarities of single pairs in the same units."""
        values = [(p.at(rows_x, rows_y) - p.mean) / p.deviation for p in self.parts]
        return np.asarray(sum(values[1:], values[0]))

    def restrict(self, rows_x: IntArray, rows_y: IntArray) -> Hint:
        """The side information of some rows of either side, in the same units."""

        def cut(part: Part) -> Part:
            vectors = part.vectors
            return Part(
                lambda a, b: part.block(rows_x[a], rows_y[b]),
                lambda a, b: part.at(rows_x[a], rows_y[b]),
                part.mean,
                part.deviation,
                None if vectors is None else (vectors[0][rows_x], vectors[1][rows_y]),
            )

        return Hint(tuple(map(cut, self.parts)), len(rows_x), len(rows_y))

    def guess(self, x: FloatArray, y: FloatArray) -> Guess:
        """Where to start from: rows of x and the mean of the rows of y that the hint gives them."""
        rows_x, rows_y = _even(self.n_x), _even(self.n_y)
        plan = sinkhorn(-self.block(rows_x, rows_y), 0.25, max_iter=60)
        mass = plan.sum(axis=1)
        return Guess("side information", x[rows_x], plan @ y[rows_y] / mass[:, None], mass)

    def favours(self, partner: IntArray) -> bool:
        """Whether a matching has clearly more side information on its side than chance would."""
        rows = np.flatnonzero(partner >= 0)
        if not len(rows):
            return False
        return float(self.at(rows, partner[rows]).mean()) * np.sqrt(len(rows)) > IN_FAVOUR


def check_hint(similarity: Any, shared: Any, n_x: int, n_y: int) -> Hint | None:
    """The side information of a call, or None when there is none or it tells no pairs apart."""
    parts = []
    matrix = check_similarity(similarity, n_x, n_y)
    if matrix is not None:
        parts.append(
            Part(
                lambda a, b: matrix[np.ix_(a, b)],
                lambda a, b: matrix[a, b],
                float(matrix.mean()),
                float(matrix.std()),
            )
        )
    if shared is not None:
        parts += _shared_part(*_check_shared(shared, n_x, n_y))
    return Hint(tuple(parts), n_x, n_y) if parts else None


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


def _shared_part(left: FloatArray, right: FloatArray) -> list[Part]:
    """Minus the squared distance in columns scaled alike on both sides; nothing if constant."""
    both = np.concatenate([left, right])
    deviation = both.std(axis=0)
    kept = deviation > 1e-12 * np.abs(both).max(axis=0)
    if not kept.any():
        return []
    mean, scale = both.mean(axis=0)[kept], deviation[kept]
    a, b = (left[:, kept] - mean) / scale, (right[:, kept] - mean) / scale
    sample = -square_distances(a[_even(len(a))], b[_even(len(b))])
    ones = np.ones((len(a), 1)), np.ones((len(b), 1))
    squares = [np.square(s).sum(axis=1, keepdims=True) for s in (a, b)]
    return [
        Part(
            lambda i, j: -square_distances(a[i], b[j]),
            lambda i, j: -np.asarray(np.square(a[i] - b[j]).sum(axis=-1)),
            float(sample.mean()),
            float(sample.std()) or 1.0,
            (np.hstack([2.0 * a, -squares[0], ones[0]]), np.hstack([b, ones[1], -squares[1]])),
        )
    ]


def _even(size: int) -> IntArray:
    """At most SAMPLE row numbers, evenly spread."""
    return np.unique(np.linspace(0, size - 1, min(size, SAMPLE)).astype(np.int64))
