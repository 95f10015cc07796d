"""The front door: several ways of matching, judged without labels, and one result.

Partners that are evident (``sharp``) are looked for first, at any size. Where none stand out, rows
are aligned softly by views and profiles (``soft``); above some thousand rows that is done on a
sample, and the maps carry over to all rows. A handful of rows is searched directly (``small``).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from joblib import parallel_config
from numpy.typing import NDArray

from unpaired._checks import check_choice, check_jobs, check_view
from unpaired._random import RandomState, derive_rng, resolve_seed
from unpaired.errors import InputError
from unpaired.matching.assignment import assign, complete
from unpaired.matching.describing import certain, describe
from unpaired.matching.many_to_one import match_many_to_one
from unpaired.matching.multi_scale import match_scales
from unpaired.matching.problem import Problem, check_problem
from unpaired.matching.sharp import MIN_ROWS, SharpMatch, read_sharp, search_sharp
from unpaired.matching.small import match_small
from unpaired.matching.soft_match import match_softly
from unpaired.types import FloatArray, IntArray, Match, Objective

RELATIONS = ("one-to-one", "many-to-one")


@dataclass(frozen=True, eq=False)
class Alignment:
    """A Match over the rows given, and maps that place unseen rows of both sides in one space."""

    match: Match
    embed_x: Callable[[FloatArray], FloatArray]
    embed_y: Callable[[FloatArray], FloatArray]
    kind: str
    """How it was found: "sharp", "small", or the kind of soft alignment."""

    def score_matrix(self, x: Any, y: Any) -> FloatArray:
        """How well each row of x goes with each row of y, (n_x, n_y); larger = better."""
        left = self.embed_x(check_view(x, "x", min_rows=1))
        right = self.embed_y(check_view(y, "y", min_rows=1))
        product = left @ right.T
        if self.kind != "sharp":
            return product
        return 2.0 * product - (left**2).sum(1)[:, None] - (right**2).sum(1)[None, :]


def match(
    x: Any,
    y: Any,
    pairs: Any = None,
    relation: str = "one-to-one",
    random_state: RandomState = 0,
    *,
    forbidden: Any = None,
    similarity: Any = None,
    shared: Any = None,
    weights: Any = None,
    start: Any = None,
    leave_out: Literal["auto"] | bool = False,
    class_sizes: Any = None,
    n_jobs: int | None = None,
) -> Match:
    """Match the rows of two views by their geometry alone, without networks.

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
            unknown, or a plan (n_x, n_y) of weights >= 0; or "multi-scale", clusters matched from
            coarse to fine. It is judged like the others: ``Match.objective.per_start`` tells what
            it reached. One-to-one only.
        leave_out: Leave out rows whose partner is more probably not there ("auto" or True); how
            many is estimated from the data. All rows are left out where nothing can be trusted.
        class_sizes: Largest number of rows of x for each row of y, for many-to-one.
        n_jobs: Starts refined at once (one-to-one, where no partners are evident), -1 = as many as
            there are cores; the result is the same. None takes ``joblib.parallel_config``'s, or 1.

    Returns:
        A Match in the order of the rows of x.
    """
    if check_choice(relation, "relation", RELATIONS) == "many-to-one":
        if start is not None:
            raise InputError(
                "start is for one-to-one matchings: many-to-one names clusters, all of whose "
                "namings are tried. Pass what is known as pairs, or what is likely as similarity."
            )
        return match_many_to_one(
            x,
            y,
            pairs,
            random_state,
            forbidden=forbidden,
            similarity=similarity,
            shared=shared,
            weights=weights,
            class_sizes=class_sizes,
        )
    return align(
        x,
        y,
        pairs,
        random_state=random_state,
        forbidden=forbidden,
        similarity=similarity,
        shared=shared,
        weights=weights,
        start=start,
        leave_out=leave_out,
        n_jobs=n_jobs,
    ).match


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
    n_jobs: int | None = None,
) -> Alignment:
    """One-to-one matching with the maps behind it; arguments as for ``match``."""
    check_jobs(n_jobs)
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
    rng = derive_rng(resolve_seed(random_state), "match")
    rows_x, rows_y = problem.counted
    whole = len(rows_x) == len(problem.x) and len(rows_y) == len(problem.y)
    inner = problem if whole else problem.restrict(rows_x, rows_y)
    with nullcontext() if n_jobs is None else parallel_config("threading", n_jobs=n_jobs):
        found = _align(inner, rng)
    return found if whole else _place_rest(found, problem, rows_x, rows_y)


def _align(problem: Problem, rng: np.random.Generator) -> Alignment:
    """The alignment of rows that all count."""
    known, hint = problem.known, problem.hint
    if problem.make_start:
        own = np.random.default_rng(int(rng.integers(2**32)))
        problem = replace(problem, start=match_scales(problem.x, problem.y, own))
    if min(len(problem.x), len(problem.y)) < MIN_ROWS:
        return _align_small(problem)
    search = search_sharp(
        problem.x,
        problem.y,
        rng,
        known=known,
        guesses=problem.guesses(),
        weights=problem.weights,
    )
    if search.trusted:
        sharp = read_sharp(
            search, known=known, forbidden=problem.forbidden, leave_out=problem.leave_out
        )
        if hint is None or hint.favours(sharp.partner):
            return _from_sharp(sharp, known, len(problem.y))
    found, soft = match_softly(problem, search.tried, rng)
    return Alignment(found, soft.embed_x, soft.embed_y, soft.kind)


def _from_sharp(sharp: SharpMatch, known: IntArray, n_y: int) -> Alignment:
    """The result when partners were evident."""
    contrast = max(sharp.tried.values())
    null = sharp.null_contrast or 0.0
    found = Match(
        partner=sharp.partner,
        confidence=certain(sharp.confidence, known),
        objective=Objective(contrast, sharp.tried),
        runner_up=sharp.runner_up,
        margin=sharp.margin,
        n_y=n_y,
        agreement=1.0,
        gap=(contrast - null) / (1.0 - null),
        trusted=True,
    )
    return Alignment(found, sharp.embed_x, sharp.embed_y, "sharp")


def _align_small(problem: Problem) -> Alignment:
    """The result for a handful of rows: confidence is not claimed, they cannot tell."""
    x, y, known, start = problem.x, problem.y, problem.known, problem.start
    every_x, every_y = np.arange(len(x)), np.arange(len(y))
    partner, scores, reached = match_small(
        x,
        y,
        known,
        None if problem.hint is None else problem.hint.block(every_x, every_y),
        {} if start is None else {start.name: start.block(every_x, every_y)},
        problem.weights,
    )
    if len(problem.forbidden):
        partner = assign(-scores, known=known, forbidden=problem.forbidden)
    objective = Objective(max(reached.values()), reached)
    values = list(reached.values())
    close = float(np.mean(np.isclose(values, max(values), rtol=1e-3)))
    found = describe(scores, partner, objective, known=known, agreement=close)
    mean_x, mean_y = (
        np.average(rows, axis=0, weights=weight)
        for rows, weight in zip((x, y), problem.weights, strict=True)
    )
    rows = np.flatnonzero(partner >= 0)
    linear = np.linalg.pinv(x[rows] - mean_x) @ (y[partner[rows]] - mean_y)
    return Alignment(
        found, lambda rows: (rows - mean_x) @ linear, lambda rows: rows - mean_y, "small"
    )


def _place_rest(
    inner: Alignment, problem: Problem, rows_x: IntArray, rows_y: IntArray
) -> Alignment:
    """The alignment of the rows that count, with the others given what those leave over."""
    found, n_x, n_y = inner.match, len(problem.x), len(problem.y)
    partner = np.full(n_x, -1, dtype=np.int64)
    partner[rows_x] = np.where(found.partner >= 0, rows_y[found.partner], -1)
    partner[np.isin(partner, problem.known[:, 1])] = -1
    partner[problem.known[:, 0]] = problem.known[:, 1]
    placed = partner < 0
    if not problem.leave_out:
        barred = set(map(tuple, problem.forbidden.tolist()))

        def cost(rows: IntArray, columns: IntArray) -> NDArray[np.float64]:
            scores = inner.score_matrix(problem.x[rows], problem.y[columns])
            block = -np.asarray(scores, dtype=np.float64)
            for row, column in barred:
                block[np.ix_(rows == row, columns == column)] = 1e12
            return block

        partner = complete(partner, n_y, cost)
        for row, column in barred:  # nothing else was free for it
            partner[row] = -1 if partner[row] == column else partner[row]
    runner_up = np.full(n_x, -1, dtype=np.int64)
    runner_up[rows_x] = np.where(found.runner_up >= 0, rows_y[found.runner_up], -1)
    confidence, margin = np.zeros(n_x), np.full(n_x, np.nan)
    confidence[rows_x], margin[rows_x] = found.confidence, found.margin
    confidence[placed] = 0.0
    margin[placed] = np.nan
    whole = replace(
        found,
        partner=partner,
        confidence=certain(confidence, problem.known),
        runner_up=runner_up,
        margin=margin,
        n_y=n_y,
    )
    return replace(inner, match=whole)
