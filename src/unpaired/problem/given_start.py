"""A caller's own start: partners or a soft plan, tried beside those of ``alignment.starts``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from unpaired._checks import check_view
from unpaired.errors import InputError
from unpaired.types import FloatArray, IntArray

GIVEN = "given start"


@dataclass(frozen=True, eq=False)
class Guess:
    """Rows of x and of y that may belong together, to start from: never more than tried."""

    name: str
    left: FloatArray
    """(k, d_x) raw rows of x, or means of such rows."""
    right: FloatArray
    """(k, d_y) their partners, likewise."""
    weight: FloatArray


@dataclass(frozen=True, eq=False)
class Start:
    """Partners (n_x,), -1 where unknown, or a plan (n_x, n_y) of weights >= 0."""

    partner: IntArray | None
    plan: FloatArray | None
    n_y: int
    name = GIVEN

    def block(self, rows_x: IntArray, rows_y: IntArray) -> FloatArray:
        """The plan of some rows of either side, (k, l); rows may occur several times."""
        if self.plan is not None:
            return self.plan[np.ix_(rows_x, rows_y)]
        assert self.partner is not None  # one of the two is given
        return np.equal(self.partner[rows_x][:, None], rows_y[None, :]).astype(np.float64)

    def restrict(self, rows_x: IntArray, rows_y: IntArray) -> Start:
        """The start of some rows of either side; partners that are not among them are unknown."""
        if self.plan is not None:
            return Start(None, self.block(rows_x, rows_y), len(rows_y))
        assert self.partner is not None  # one of the two is given
        place = np.full(self.n_y + 1, -1, dtype=np.int64)
        place[rows_y] = np.arange(len(rows_y))
        return Start(place[self.partner[rows_x]], None, len(rows_y))

    def partners_of(self, rows_x: IntArray) -> IntArray:
        """Rows of y that a sample with these rows of x should hold."""
        if self.partner is None:
            return np.empty(0, dtype=np.int64)
        found = np.unique(self.partner[rows_x])
        return found[found >= 0]

    def guess(self, x: FloatArray, y: FloatArray) -> Guess | None:
        """Rows of x and what the start gives them, for the search for evident partners."""
        if self.plan is not None:
            mass = self.plan.sum(axis=1)
            rows = np.flatnonzero(mass > 0)
            target = self.plan[rows] @ y / mass[rows, None]
            return Guess(GIVEN, x[rows], target, mass[rows]) if len(rows) else None
        assert self.partner is not None  # one of the two is given
        rows = np.flatnonzero(self.partner >= 0)
        if not len(rows):
            return None
        return Guess(GIVEN, x[rows], y[self.partner[rows]], np.ones(len(rows)))


def check_start(start: Any, n_x: int, n_y: int) -> Start:
    """The caller's start, checked.

    Raises:
        InputError: when it is neither a partner per row of x nor a plan of shape (n_x, n_y).
    """
    array = np.asarray(start)
    if array.ndim == 2:
        plan = check_view(start, "start", min_rows=1)
        if plan.shape != (n_x, n_y):
            raise InputError(
                f"start as a plan must have shape ({n_x}, {n_y}), rows of x by rows of y: it has "
                f"{plan.shape}. Transpose it, or pass a partner per row of x."
            )
        if (plan < 0).any() or not plan.any():
            raise InputError(
                "start as a plan must hold weights >= 0, some above 0: the least is "
                f"{plan.min():g}, the largest {plan.max():g}. Exponentiate scores first."
            )
        return Start(None, plan, n_y)
    if array.shape != (n_x,):
        raise InputError(
            f"start must hold a row of y, or -1, for each of the {n_x} rows of x, or be a plan of "
            f"shape ({n_x}, {n_y}): it has shape {array.shape}."
        )
    if array.dtype.kind not in "iuf" or not np.array_equal(array, np.round(array)):
        raise InputError(
            f"start must hold whole row numbers: its type is {array.dtype}. "
            "Use -1 where the partner is unknown."
        )
    wrong = np.flatnonzero((array < -1) | (array >= n_y))
    if len(wrong):
        raise InputError(
            f"start must name rows of y between 0 and {n_y - 1}, or -1: row {wrong[0]} names "
            f"{array[wrong[0]]}. Rows count from 0."
        )
    if (array < 0).all():
        raise InputError("start must name at least one row of y: all are -1. Leave it out.")
    return Start(array.astype(np.int64), None, n_y)
