"""What speaks for a solution without a single label; each measure a small function.

Where partners seem evident, a map fitted from scratch on half of the rows of x names the partners
of the other half again only where there are partners to be found. Wrong but coarse alignments
repeat their bias in ranks, so ranks prove little; single partners are not repeated by bias.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from unpaired.math.copies import copies_of, first_copies
from unpaired.math.neighbours import top_k
from unpaired.problem.problem import Problem
from unpaired.spaces.solution import Solution
from unpaired.types import FloatArray, IntArray

MOST_HALF = 300
"""Rows of x in each half, at most: one is fitted, the partners of the other are compared."""
MOST_OTHER = 600
"""Rows of y that the half is fitted against, at most: half of them have a partner in it, as where
rows are few. With a quarter, isotropic rows whose partners were right were not found again."""
LEAST_HALF = 8
"""Rows without which a half cannot be fitted."""
MOST_COUNTED = 1000
"""Rows of a side of which directions are counted, at most."""

Fit = Callable[[Problem, np.random.Generator], Solution]


@dataclass(frozen=True)
class Shape:
    """What the rows alone tell of how much can be known."""

    n: int
    """Rows of the smaller side."""
    rank: float
    """Effective rank of the side that has less of it."""
    repeats: float
    """Share of rows that occur before, on the side with more of them."""


def replicate(problem: Problem, solution: Solution, fit: Fit, rng: np.random.Generator) -> float:
    """How often a fit on half of the rows of x names the solution's partners of other rows again.

    Beyond chance, as Cohen's kappa. Where y has many rows, those that the solution names for the
    halves are among the ones taken: that tells the fit which rows of y take part, not which belongs
    to which.
    """
    problem = replace(problem, start=None)  # the fit would repeat what it was given
    order = rng.permutation(len(problem.x))
    half = min(MOST_HALF, len(order) // 2)
    if half < LEAST_HALF or len(problem.y) < LEAST_HALF:
        return float("nan")
    fitted, judged = np.sort(order[:half]), np.sort(order[half : 2 * half])
    rows_y = _others(problem, solution, np.concatenate([fitted, judged]), rng)
    again = fit(problem.restrict(fitted, rows_y), rng).space
    group = copies_of(problem.y[rows_y])[0]
    rows = problem.x[judged], problem.y[rows_y]
    placed = [space.placed(*rows) for space in (solution.space, again)]
    first, second = (left @ right.T for left, right in placed)
    return repeated_partners(first, second, group)


def repeated_partners(
    scores: FloatArray, others: FloatArray, group: IntArray | None = None
) -> float:
    """How often the best columns of both scores are the same.

    As Cohen's kappa: 1 = always, 0 = as often as by chance, given how often each column is named at
    all (a few may be near every row). ``group`` numbers columns that are copies of each other
    alike: naming any of them is the same.
    """
    group = np.arange(scores.shape[1]) if group is None else group
    best, other = group[scores.argmax(1)], group[others.argmax(1)]
    same = float((best == other).mean())
    named = [np.bincount(b, minlength=group.max() + 1) / len(b) for b in (best, other)]
    chance = float(named[0] @ named[1])
    return (same - chance) / (1.0 - chance) if chance < 1.0 else 0.0


def effective_rank(rows: FloatArray) -> float:
    """The number of directions that equal variances v would fill.

    The geometric mean of (sum v)^2 / sum v^2, of the rows as they are, and (sum s)^2 / sum s^2 with
    s the root of v, of half-whitened rows, as they are matched. By the first alone brightness would
    leave patches of photos a single direction; by the second alone noise would count as much.
    """
    centred = np.asarray(rows, dtype=np.float64)[:MOST_COUNTED]
    centred = centred - centred.mean(axis=0)
    gram = centred @ centred.T if len(centred) < centred.shape[1] else centred.T @ centred
    variances = np.maximum(np.linalg.eigvalsh(gram), 0.0)
    total, squared = float(variances.sum()), float(np.square(variances).sum())
    return float(np.sqrt(variances).sum() * np.sqrt(total / max(squared, 1e-300)))


def shape_of(problem: Problem) -> Shape:
    """What the rows of both sides alone tell of how much can be known."""
    sides = problem.x, problem.y
    repeats = [1.0 - len(first_copies(side)) / len(side) for side in sides]
    return Shape(min(map(len, sides)), min(map(effective_rank, sides)), max(repeats))


def _others(
    problem: Problem, solution: Solution, rows_x: IntArray, rng: np.random.Generator
) -> IntArray:
    """The rows of y that the half is fitted against, sorted."""
    n_y = len(problem.y)
    if n_y <= MOST_OTHER:
        return np.arange(n_y)
    left, right = solution.space.placed(problem.x[rows_x], problem.y)
    best = top_k(left, right, 1, metric="inner")[0][:, 0]
    needed = np.union1d(best, problem.known[np.isin(problem.known[:, 0], rows_x), 1])
    rest = rng.permutation(np.setdiff1d(np.arange(n_y), needed))
    return np.sort(np.concatenate([needed, rest[: max(0, MOST_OTHER - len(needed))]]))
