"""A checked matching problem: both sides and everything known about their pairs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from unpaired._checks import (
    check_choice,
    check_one_class,
    check_one_to_one,
    check_pairs,
    check_view,
)
from unpaired.errors import InputError
from unpaired.problem.weights import Weights, check_weights
from unpaired.types import FloatArray, IntArray

if TYPE_CHECKING:
    from unpaired.problem.given_start import Guess, Start
    from unpaired.problem.side_information import SideInformation

ONE_TO_ONE, MANY_TO_ONE = "one-to-one", "many-to-one"
RELATIONS = (ONE_TO_ONE, MANY_TO_ONE)


@dataclass(frozen=True, eq=False)
class Problem:
    """What is to be matched."""

    x: FloatArray
    y: FloatArray
    known: IntArray
    """(k, 2) pairs that are kept."""
    forbidden: IntArray
    """(k, 2) pairs that must not be made."""
    side: SideInformation | None = None
    weights: Weights = (None, None)
    start: Start | None = None
    relation: str = ONE_TO_ONE
    leave_out: bool = False
    """Whether rows without a partner may stay without one."""
    class_sizes: IntArray | None = None
    """How many rows of x each row of y takes, many-to-one."""

    @property
    def counted(self) -> tuple[IntArray, IntArray]:
        """The rows of x and of y with a weight above 0."""
        every = np.arange(len(self.x)), np.arange(len(self.y))
        return tuple(  # type: ignore[return-value]
            rows if weight is None else np.flatnonzero(weight > 0)
            for rows, weight in zip(every, self.weights, strict=True)
        )

    @property
    def of_counted(self) -> Problem:
        """The problem of the rows that count; itself where all of them do."""
        rows_x, rows_y = self.counted
        whole = len(rows_x) == len(self.x) and len(rows_y) == len(self.y)
        return self if whole else self.restrict(rows_x, rows_y)

    def guesses(self) -> list[Guess]:
        """Starts that come with the problem, for registration."""
        found = [] if self.start is None else [self.start.guess(self.x, self.y)]
        found += [] if self.side is None else [self.side.guess(self.x, self.y)]
        return [guess for guess in found if guess is not None]

    def restrict(self, rows_x: IntArray, rows_y: IntArray) -> Problem:
        """The problem of some rows only, sorted; pairs with other rows are dropped."""
        weights = tuple(
            None if weight is None else weight[rows]
            for weight, rows in zip(self.weights, (rows_x, rows_y), strict=True)
        )
        return replace(
            self,
            x=self.x[rows_x],
            y=self.y[rows_y],
            known=within(self.known, rows_x, rows_y),
            forbidden=within(self.forbidden, rows_x, rows_y),
            side=None if self.side is None else self.side.restrict(rows_x, rows_y),
            weights=tuple(None if w is None or (w == w[0]).all() else w for w in weights),  # type: ignore[arg-type]
            start=None if self.start is None else self.start.restrict(rows_x, rows_y),
        )


def check_problem(
    x: Any,
    y: Any,
    pairs: Any = None,
    *,
    relation: str = ONE_TO_ONE,
    forbidden: Any = None,
    similarity: Any = None,
    shared: Any = None,
    weights: Any = None,
    start: Any = None,
    leave_out: Any = False,
    class_sizes: Any = None,
) -> Problem:
    """The problem that a caller's arguments describe: the one gate of every door.

    Raises:
        InputError: when one of them cannot be used, naming it.
    """
    check_choice(relation, "relation", RELATIONS)
    rows_x, rows_y = check_view(x, "x"), check_view(y, "y")
    n_x, n_y = len(rows_x), len(rows_y)
    known = check_pairs(pairs, n_x, n_y)
    wanted = check_leave_out(leave_out)
    if relation == ONE_TO_ONE:
        known = check_one_to_one(known)
        if class_sizes is not None:
            raise InputError(
                "class_sizes must be None for one-to-one, where each row of y takes one row of x: "
                'got a value. Leave it out, or pass relation="many-to-one".'
            )
    else:
        known = check_one_class(known)
        for name, value in (("start", start), ("leave_out", wanted or None)):
            if value is not None:
                raise InputError(
                    f"{name} must be left out for many-to-one: every row of x gets one of the few "
                    "rows of y, and all namings are tried. Pass what is known as pairs, or what is "
                    "likely as similarity."
                )
        if n_y > n_x:
            raise InputError(
                f"many-to-one needs at least as many rows in x as in y: x has {n_x}, y has "
                f"{n_y}. Swap them, or use one-to-one."
            )
    weighed = check_weights(weights, n_x, n_y)
    if relation == MANY_TO_ONE and weighed[1] is not None:
        raise InputError(
            "weights of y must be None for many-to-one: each row of y is one class, and how many "
            "rows it takes is class_sizes."
        )
    side, begin = None, None
    if similarity is not None or shared is not None:
        from unpaired.problem.side_information import check_side_information

        side = check_side_information(similarity, shared, n_x, n_y)
    if start is not None:
        from unpaired.problem.given_start import check_start

        begin = check_start(start, n_x, n_y)
    return Problem(
        rows_x,
        rows_y,
        known,
        check_forbidden(forbidden, known, n_x, n_y),
        side,
        weighed,
        begin,
        relation,
        wanted,
        check_class_sizes(class_sizes, known, n_y),
    )


def check_leave_out(leave_out: Any) -> bool:
    """Whether rows may be left out: "auto" and True say yes, False says no.

    Raises:
        InputError: for anything else.
    """
    if isinstance(leave_out, bool) or (isinstance(leave_out, str) and leave_out == "auto"):
        return bool(leave_out)
    raise InputError(
        f'leave_out must be "auto", True or False: got {leave_out!r}. "auto" leaves out the rows '
        "whose match is more probably wrong than right."
    )


def check_class_sizes(class_sizes: Any, known: IntArray, n_y: int) -> IntArray | None:
    """The largest number of rows for each class, None where there is no limit.

    Raises:
        InputError: when it is not a whole number for each row of y, with room for its known pairs.
    """
    if class_sizes is None:
        return None
    sizes = np.asarray(class_sizes)
    whole = sizes.dtype.kind in "iuf" and bool((sizes >= 0).all() and (sizes % 1 == 0).all())
    if sizes.shape != (n_y,) or not whole:
        raise InputError(
            f"class_sizes must hold {n_y} whole numbers, one for each row of y: got an array of "
            f"shape {sizes.shape} and type {sizes.dtype}. Say how many rows of x each may take."
        )
    short = np.flatnonzero(np.bincount(known[:, 1], minlength=n_y) > sizes)
    if len(short):
        raise InputError(
            f"class_sizes must leave room for the known pairs: row {short[0]} of y may take "
            f"{int(sizes[short[0]])} rows and has more known pairs. Raise it."
        )
    return sizes.astype(np.int64)


def check_forbidden(forbidden: Any, known: IntArray, n_x: int, n_y: int) -> IntArray:
    """Forbidden pairs as (k, 2), none of which is known.

    Raises:
        InputError: when they are no pairs, or a known pair is among them.
    """
    if isinstance(forbidden, str):
        raise InputError(
            f'forbidden must be a (k, 2) integer array: got "{forbidden}". List the pairs.'
        )
    barred = check_pairs(forbidden, n_x, n_y, "forbidden")
    both = set(map(tuple, known.tolist())) & set(map(tuple, barred.tolist()))
    if both:
        raise InputError(
            f"pairs and forbidden must not share a pair: both name {min(both)}. Drop it from one."
        )
    return barred


def within(pairs: IntArray, rows_x: IntArray, rows_y: IntArray) -> IntArray:
    """The pairs whose rows are both in the selections, which are sorted, counted within them."""
    inside = pairs[np.isin(pairs[:, 0], rows_x) & np.isin(pairs[:, 1], rows_y)]
    places = [np.searchsorted(rows_x, inside[:, 0]), np.searchsorted(rows_y, inside[:, 1])]
    return np.column_stack(places).astype(np.int64)
