"""A checked one-to-one matching problem: both views and everything known about their pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from unpaired._checks import check_choice, check_one_to_one, check_pairs, check_view
from unpaired.matching.describing import check_forbidden
from unpaired.matching.given import Start, check_start
from unpaired.matching.hints import Hint, check_hint
from unpaired.matching.multi_scale import MULTI_SCALE, ScaleStart
from unpaired.matching.sharp import Guess
from unpaired.matching.weighing import Weights, check_weights
from unpaired.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Problem:
    """What is to be matched."""

    x: FloatArray
    y: FloatArray
    known: IntArray
    forbidden: IntArray
    hint: Hint | None = None
    weights: Weights = (None, None)
    start: Start | ScaleStart | None = None
    leave_out: bool = False
    make_start: bool = False
    """Whether a multi-scale start is asked for, which is made when the rows are known."""

    @property
    def counted(self) -> tuple[IntArray, IntArray]:
        """The rows of x and of y with a weight above 0."""
        every = np.arange(len(self.x)), np.arange(len(self.y))
        return tuple(  # type: ignore[return-value]
            rows if weight is None else np.flatnonzero(weight > 0)
            for rows, weight in zip(every, self.weights, strict=True)
        )

    def guesses(self) -> list[Guess]:
        """Starts that come with the problem, for the search for evident partners."""
        found = [] if self.start is None else [self.start.guess(self.x, self.y)]
        found += [] if self.hint is None else [self.hint.guess(self.x, self.y)]
        return [guess for guess in found if guess is not None]

    def restrict(self, rows_x: IntArray, rows_y: IntArray) -> Problem:
        """The problem of some rows only, sorted; pairs with other rows are dropped."""
        weights = tuple(
            None if weight is None else weight[rows]
            for weight, rows in zip(self.weights, (rows_x, rows_y), strict=True)
        )
        return Problem(
            self.x[rows_x],
            self.y[rows_y],
            _within(self.known, rows_x, rows_y),
            _within(self.forbidden, rows_x, rows_y),
            None if self.hint is None else self.hint.restrict(rows_x, rows_y),
            tuple(None if w is None or (w == w[0]).all() else w for w in weights),  # type: ignore[arg-type]
            self.start.restrict(rows_x, rows_y) if isinstance(self.start, Start) else None,
            self.leave_out,
            self.make_start,
        )


def check_problem(
    x: Any,
    y: Any,
    pairs: Any = None,
    *,
    forbidden: Any = None,
    similarity: Any = None,
    shared: Any = None,
    weights: Any = None,
    start: Any = None,
    leave_out: Any = False,
) -> Problem:
    """The problem that a caller's arguments describe.

    Raises:
        InputError: when one of them cannot be used, naming it.
    """
    rows_x, rows_y = check_view(x, "x"), check_view(y, "y")
    n_x, n_y = len(rows_x), len(rows_y)
    known = check_one_to_one(check_pairs(pairs, n_x, n_y))
    named = isinstance(start, str) and bool(check_choice(start, "start", [MULTI_SCALE]))
    return Problem(
        rows_x,
        rows_y,
        known,
        check_forbidden(forbidden, known, n_x, n_y),
        check_hint(similarity, shared, n_x, n_y),
        check_weights(weights, n_x, n_y),
        None if named else check_start(start, n_x, n_y),
        bool(leave_out),
        named,
    )


def _within(pairs: IntArray, rows_x: IntArray, rows_y: IntArray) -> IntArray:
    """The pairs whose rows are both in the selections, counted within them."""
    inside = pairs[np.isin(pairs[:, 0], rows_x) & np.isin(pairs[:, 1], rows_y)]
    places = [np.searchsorted(rows_x, inside[:, 0]), np.searchsorted(rows_y, inside[:, 1])]
    return np.column_stack(places).astype(np.int64)
