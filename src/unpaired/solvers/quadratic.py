"""What every matching solver returns, and the two objects they all work on."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from unpaired._checks import check_one_to_one, check_pairs
from unpaired.errors import InputError
from unpaired.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class Optimum:
    """A matching as a solver leaves it."""

    partner: IntArray
    """(n_x,) row of y for each row of x, -1 = left out."""
    plan: FloatArray
    """(n_x, n_y) the relaxed matching that was rounded; zeros and ones where none was relaxed."""
    converged: bool
    trace: list[float] = field(default_factory=list)
    """The solver's own objective, step by step."""


def partner_matrix(partner: IntArray, n_y: int) -> FloatArray:
    """The matching as a (n_x, n_y) matrix of zeros and ones; a row left out is all zero.

    >>> partner_matrix(np.array([1, -1]), 2).tolist()
    [[0.0, 1.0], [0.0, 0.0]]
    """
    plan = np.zeros((len(partner), n_y))
    rows = np.flatnonzero(partner >= 0)
    plan[rows, partner[rows]] = 1.0
    return plan


def uniform_plan(n_x: int, n_y: int, known: IntArray | None = None) -> FloatArray:
    """The plan that knows nothing: equal weights, known pairs apart; sums are at most 1."""
    plan = np.full((n_x, n_y), 1.0 / max(n_x, n_y))
    return plan if known is None or not len(known) else fix_known(plan, known)


def fix_known(plan: FloatArray, known: IntArray | None) -> FloatArray:
    """The plan with weight 1 on each known pair and 0 on everything it rules out."""
    if known is None or not len(known):
        return plan
    fixed = plan.copy()
    fixed[known[:, 0]] = 0.0
    fixed[:, known[:, 1]] = 0.0
    fixed[known[:, 0], known[:, 1]] = 1.0
    return fixed


def alignment(gram_x: FloatArray, gram_y: FloatArray, partner: IntArray) -> float:
    """tr(K P L P'): the uKTA of a matching; HSIC (times n^2) when both Gram matrices are centred.

    Cost O(n^2). Rows left out add nothing.
    """
    rows = np.flatnonzero(partner >= 0)
    chosen = partner[rows]
    return float((gram_x[np.ix_(rows, rows)] * gram_y[np.ix_(chosen, chosen)]).sum())


def check_gram(gram: FloatArray, name: str) -> FloatArray:
    """Return a finite, symmetric matrix as float64, with both halves made exactly equal.

    Raises:
        InputError: when it is not square, not finite or not symmetric.
    """
    array = np.asarray(gram, dtype=np.float64)
    if array.ndim != 2 or array.shape[0] != array.shape[1] or not len(array):
        raise InputError(
            f"{name} must be a square matrix: it has shape {array.shape}. "
            "Pass the similarities of the rows of one view among themselves."
        )
    if not np.isfinite(array).all():
        raise InputError(
            f"{name} must be finite: {int((~np.isfinite(array)).sum())} entries are not. "
            "Check the features it was made from."
        )
    size = float(np.abs(array).max())
    if float(np.abs(array - array.T).max()) > 1e-6 * max(size, 1e-300):
        raise InputError(
            f"{name} must be symmetric: entries differ from their mirror image by up to "
            f"{float(np.abs(array - array.T).max()):.3g}. Use (G + G.T) / 2 if that is intended."
        )
    return (array + array.T) / 2.0


def check_grams(
    gram_x: FloatArray,
    gram_y: FloatArray,
    start: FloatArray | None = None,
    known: IntArray | None = None,
) -> tuple[FloatArray, FloatArray, FloatArray | None]:
    """Both Gram matrices and the start plan of a solver, checked, as are its known pairs.

    Gram matrices may be indefinite: each solver says what that means for it.

    Raises:
        InputError: when one is not square, finite and symmetric, the start has another shape, or
            a row is known twice.
    """
    checked_x, checked_y = check_gram(gram_x, "gram_x"), check_gram(gram_y, "gram_y")
    check_one_to_one(check_pairs(known, len(checked_x), len(checked_y)))
    if start is None:
        return checked_x, checked_y, None
    plan = np.asarray(start, dtype=np.float64)
    if plan.shape != (len(checked_x), len(checked_y)) or not np.isfinite(plan).all():
        raise InputError(
            f"start must be a finite plan of shape ({len(checked_x)}, {len(checked_y)}): it has "
            f"shape {plan.shape}. Make one from partners with partner_matrix."
        )
    return checked_x, checked_y, plan
