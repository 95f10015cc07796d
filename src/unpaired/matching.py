"""The front door: one problem in, one match out, with the space behind it.

Partners that are evident (``alignment.registration``) are looked for first, at any size. Where none
stand out, rows are aligned softly by views and profiles (``alignment.search``) and, where few pairs
are known or none, that is refined (``alignment.refinement``), with more it is averaged with other
answers (``alignment.answers``); above some thousand rows on a sample,
and the maps carry over to all rows. A handful of rows is searched directly (``alignment.tiny``),
and classes are named (``naming``).
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import torch
from joblib import parallel_config

from unpaired._checks import check_jobs, column_names
from unpaired._random import RandomState, derive_rng, resolve_seed
from unpaired._threads import few_threads
from unpaired.aligned import Alignment as Alignment
from unpaired.alignment.refinement import REFINEMENT
from unpaired.alignment.registration import register
from unpaired.alignment.search import REFINED, align_softly, settled
from unpaired.errors import InputError
from unpaired.math.copies import first_copies
from unpaired.problem.problem import MANY_TO_ONE, ONE_TO_ONE, Problem, check_problem
from unpaired.problem.weights import repeated as repeated_rows
from unpaired.spaces.readout import cut_below, read_match
from unpaired.spaces.solution import Solution
from unpaired.trust.evidence import replicate, shape_of
from unpaired.trust.flips import gap_above_flips
from unpaired.trust.verdict import claims, judge, repeats_itself
from unpaired.types import FloatArray, IntArray, Match

FEW_ROWS = 50
"""Fewer rows cannot tell an answer from an accident."""
SOFT_ROWS = 3000
"""Rows a side up to which soft alignment sees all of them; above, a sample of this size,"""
N_SAMPLES = 4
"""and so many of them, one search each, while none is kept and the last one was promising."""


def match(
    x: Any,
    y: Any,
    pairs: Any = None,
    relation: str = ONE_TO_ONE,
    random_state: RandomState = 0,
    *,
    forbidden: Any = None,
    similarity: Any = None,
    shared: Any = None,
    weights: Any = None,
    start: Any = None,
    leave_out: Literal["auto"] | bool = False,
    min_confidence: float | None = None,
    class_sizes: Any = None,
    n_jobs: int | None = None,
) -> Match:
    """Match the rows of two collections by geometry, and what else is given; no networks.

    Args:
        x: Rows to find partners for, (n_x, d_x): array, tensor, frame or sparse matrix.
        y: Rows to choose from, (n_y, d_y); the columns need not have anything in common with x's.
        pairs: Known pairs, (k, 2) of (row of x, row of y), kept as they are.
        relation: "one-to-one" (rows of the larger side are left out), or "many-to-one" (every row
            of x gets one of the rows of y, as images get classes).
        random_state: Seed; the same seed gives the same result.
        forbidden: Pairs that must not be made, (k, 2).
        similarity: Side information, (n_x, n_y), larger = likelier pair; any scale.
        shared: Columns that mean the same on both sides, a pair of (n_x, s) and (n_y, s): rows
            that are alike in them are likelier pairs. Nothing of size n_x by n_y is made of them
            above 3,000 rows.
        weights: How often rows count, a pair of (n_x,) and (n_y,), either None: a row of weight 2
            counts like two rows in means, axes, maps and dependence, and is matched once. Rows of
            weight 0 have no influence: they are given what the others leave over, by the maps that
            the others made, with no confidence (and are left out with ``leave_out``).
        start: A guess to start from beside the engine's own: a row of y for each row of x, -1 where
            unknown, or a plan (n_x, n_y) of weights >= 0. It is judged like the others:
            ``Match.objective.per_start`` tells what it reached. One-to-one only.
        leave_out: Leave out rows whose confidence is below one half ("auto" or True): all but the
            known pairs where nothing can be claimed. One-to-one only.
        min_confidence: Leave out rows whose confidence is below this, 0 to 1, from the finished
            match; instead of ``leave_out``.
        class_sizes: Largest number of rows of x for each row of y, many-to-one only.
        n_jobs: Starts compared at once (one-to-one, where no partners are evident), -1 = as many as
            there are cores; the result is the same. None takes ``joblib.parallel_config``'s, or 1.

    Returns:
        A Match in the order of the rows of x.
    """
    check_jobs(n_jobs)
    least = check_min_confidence(min_confidence, leave_out)
    problem = check_problem(
        x,
        y,
        pairs,
        relation=relation,
        forbidden=forbidden,
        similarity=similarity,
        shared=shared,
        weights=weights,
        start=start,
        leave_out=leave_out,
        class_sizes=class_sizes,
    )
    seed = resolve_seed(random_state)
    with _jobs(n_jobs), few_threads(len(problem.x)):
        if problem.relation == MANY_TO_ONE:
            from unpaired.naming.many_to_one import match_many_to_one  # a room of its own

            return cut_below(match_many_to_one(problem, derive_rng(seed, "match")), least)
        return cut_below(solve(problem, seed).match, least)


def align(
    x: Any,
    y: Any,
    pairs: Any = None,
    *,
    random_state: RandomState = 0,
    forbidden: Any = None,
    similarity: Any = None,
    shared: Any = None,
    weights: Any = None,
    start: Any = None,
    leave_out: Literal["auto"] | bool = False,
    min_confidence: float | None = None,
    n_jobs: int | None = None,
) -> Alignment:
    """One-to-one matching with the space behind it; arguments as for ``match``."""
    check_jobs(n_jobs)
    least = check_min_confidence(min_confidence, leave_out)
    problem = check_problem(
        x,
        y,
        pairs,
        forbidden=forbidden,
        similarity=similarity,
        shared=shared,
        weights=weights,
        start=start,
        leave_out=leave_out,
    )
    with _jobs(n_jobs), few_threads(len(problem.x)):
        found = solve(problem, resolve_seed(random_state))
    columns = {
        name: (rows.shape[1], column_names(given))
        for name, rows, given in (("x", problem.x, x), ("y", problem.y, y))
    }
    return replace(found, match=cut_below(found.match, least), columns=columns)


def check_min_confidence(value: float | None, leave_out: object) -> float:
    """The confidence below which rows are left out; 0 leaves none out.

    Raises:
        InputError: when it is no share, or ``leave_out`` asks for another.
    """
    if value is None:
        return 0.0
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0.0 <= value <= 1.0:
        raise InputError(
            f"min_confidence must be a number from 0 to 1: got {value!r}. Pass 0.5 to leave out "
            "rows that are more probably wrong than right."
        )
    if leave_out:
        raise InputError(
            "min_confidence must be left out where leave_out is given, which leaves out rows below "
            f"0.5: got {value!r} and {leave_out!r}. Pass one of them."
        )
    return float(value)


def solve(problem: Problem, seed: int) -> Alignment:
    """The alignment of a checked one-to-one problem."""
    rng = derive_rng(seed, "match")
    counted = problem.of_counted
    solution = _solve(counted, rng)
    verdict = judge(solution, shape_of(counted))
    found = read_match(problem, solution, verdict, claims(solution, verdict))
    return Alignment(found, solution, problem=problem, seed=seed)


def _solve(problem: Problem, rng: np.random.Generator) -> Solution:
    """The solution of a problem all of whose rows count."""
    if min(len(problem.x), len(problem.y)) < FEW_ROWS:
        from unpaired.alignment.tiny import align_tiny  # its solvers are needed for nothing else

        return align_tiny(problem, rng)
    tried: dict[str, float] = {}
    found = solve_evident(problem, rng, tried)
    if found is not None:
        return found
    solution = solve_softly(problem, rng)
    if not solution.evidence.held_out:
        flips = gap_above_flips(problem, solution, rng)
        solution = replace(solution, evidence=replace(solution.evidence, flips=flips))
    reached = solution.evidence.reached
    reached |= {f"evident partners, {name}": value for name, value in tried.items()}
    return solution


def solve_evident(
    problem: Problem, rng: np.random.Generator, tried: dict[str, float] | None = None
) -> Solution | None:
    """The solution where each row has one near partner; None where none can be relied on.

    ``tried`` is told what each start reached.
    """
    if min(len(problem.x), len(problem.y)) < FEW_ROWS:
        return None
    distinct = _distinct(problem)
    registered = register(distinct, rng)
    if tried is not None:
        tried |= registered.tried
    if not registered.stands_out:
        return None
    found = registered.solution()
    repeated = replicate(distinct, found, registered.again, rng)
    solution = replace(found, evidence=replace(found.evidence, repeated=repeated))
    favoured = problem.side is None or problem.side.favours(read_match(problem, solution).partner)
    return solution if favoured and repeats_itself(solution) else None


def _distinct(problem: Problem) -> Problem:
    """The problem without later copies of rows, which hold no map; known pairs stay.

    As it is where too few rows would be left.
    """
    rows_x, rows_y = (
        np.union1d(first_copies(side), problem.known[:, number])
        for number, side in enumerate((problem.x, problem.y))
    )
    few = min(len(rows_x), len(rows_y)) < FEW_ROWS
    all_differ = len(rows_x) == len(problem.x) and len(rows_y) == len(problem.y)
    return problem if few or all_differ else problem.restrict(rows_x, rows_y)


def solve_softly(problem: Problem, rng: np.random.Generator) -> Solution:
    """The soft alignment of a problem; where it has many rows, of one sample or of several.

    A refined map that is kept is settled on all rows. Another sample is searched, or the same rows
    again where they are few (``refine``), while nothing was kept though something spoke for it.
    """
    sampled = max(len(problem.x), len(problem.y)) > SOFT_ROWS
    n_samples, n_searches = (N_SAMPLES, 1) if sampled else (1, REFINEMENT.n_searches)
    for _ in range(n_samples):
        solution = _align_sample(problem, n_searches, rng)
        if solution.kind == REFINED:
            x, y = (torch.as_tensor(rows, dtype=torch.float32) for rows in (problem.x, problem.y))
            return replace(solution, space=settled(solution.space, x, y, problem.known, rng))
        if not solution.evidence.surprise >= REFINEMENT.promising:  # NaN where nothing was refined
            break
    return solution


def _align_sample(problem: Problem, n_searches: int, rng: np.random.Generator) -> Solution:
    """The soft alignment of a sample of the rows, or of all where they are few."""
    needed_x, needed_y = problem.known.T
    rows_x = _sample(len(problem.x), needed_x, problem.weights[0], rng)
    if problem.start is not None:
        partners = problem.start.partners_of(rows_x)[: SOFT_ROWS - len(needed_y)]
        needed_y = np.union1d(needed_y, partners)
    rows_y = _sample(len(problem.y), needed_y, problem.weights[1], rng)
    known = np.column_stack(
        [np.searchsorted(rows_x, problem.known[:, 0]), np.searchsorted(rows_y, problem.known[:, 1])]
    )
    side, start = problem.side, problem.start
    return align_softly(
        torch.as_tensor(problem.x[rows_x], dtype=torch.float32),
        torch.as_tensor(problem.y[rows_y], dtype=torch.float32),
        rng,
        known=known,
        similarity=None if side is None else torch.as_tensor(side.block(rows_x, rows_y)).float(),
        starts=None if start is None else {start.name: start.block(rows_x, rows_y)},
        n_searches=n_searches,
    )


def _sample(
    n: int, needed: IntArray, weight: FloatArray | None, rng: np.random.Generator
) -> IntArray:
    """At most SOFT_ROWS rows out of n, in order, those needed among them.

    With weights rows occur as often as they count.
    """
    if weight is not None:
        rows = np.arange(n)[repeated_rows(weight, min(n, SOFT_ROWS), rng)]
        return np.sort(np.concatenate([rows, np.setdiff1d(needed, rows)]))
    if n <= SOFT_ROWS:
        return np.arange(n)
    rest = rng.permutation(np.setdiff1d(np.arange(n), needed))
    return np.sort(np.concatenate([needed, rest[: max(0, SOFT_ROWS - len(needed))]]))


def _jobs(n_jobs: int | None) -> Any:
    """Where several starts are compared at once, if that is asked for."""
    return nullcontext() if n_jobs is None else parallel_config("threading", n_jobs=n_jobs)
