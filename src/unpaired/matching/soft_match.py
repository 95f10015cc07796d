"""From a soft alignment to a Match: partners by score, at any size, and what each row may claim."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unpaired.matching.assignment import assign, assign_sparse, complete
from unpaired.matching.describing import certain
from unpaired.matching.neighbors import top_k
from unpaired.matching.problem import Problem
from unpaired.matching.soft import SoftAlignment, align_soft, vouched
from unpaired.matching.weighing import repeated
from unpaired.types import FloatArray, IntArray, Match, Objective

SOFT_ROWS = 3000
"""Rows a side up to which soft alignment sees all of them; above, a sample of this size."""
CONFIRMED_GAP = 0.15
"""The gap that is enough when self-learning confirmed the partners."""
SURE = 0.85
"""Soft alignments never claim more confidence than this: their partners are not evident."""
N_CANDIDATES = 20


@dataclass(frozen=True, eq=False)
class _Read:
    """Partners; for each row its two best columns, their scores, its own score, its plan's peak."""

    partner: IntArray
    near: IntArray
    best: FloatArray
    own: FloatArray
    peak: FloatArray


def match_softly(
    problem: Problem, tried: dict[str, float], rng: np.random.Generator
) -> tuple[Match, SoftAlignment]:
    """The result when no partner is evident: maps from a soft plan, partners by their scores.

    ``tried`` is what the search for evident partners reached; it is told beside the rest.
    """
    x, y, known = problem.x, problem.y, problem.known
    rows_x = _sample(len(x), known[:, 0], problem.weights[0], rng)
    needed = known[:, 1]
    if problem.start is not None:
        needed = np.union1d(needed, problem.start.partners_of(rows_x))[:SOFT_ROWS]
        needed = np.union1d(needed, known[:, 1])
    rows_y = _sample(len(y), needed, problem.weights[1], rng)
    places = np.column_stack(
        [np.searchsorted(rows_x, known[:, 0]), np.searchsorted(rows_y, known[:, 1])]
    )
    part = None if problem.hint is None else problem.hint.block(rows_x, rows_y)
    starts = (
        {} if problem.start is None else {problem.start.name: problem.start.block(rows_x, rows_y)}
    )
    soft = align_soft(x[rows_x], y[rows_y], rng, known=places, similarity=part, starts=starts)
    named = {f"sharp, {name}": value for name, value in tried.items()}
    objective = Objective(max(soft.reached.values()), {**soft.reached, **named})
    everything = np.array_equal(rows_x, np.arange(len(x))) and np.array_equal(
        rows_y, np.arange(len(y))
    )
    read = _read_plan(soft, problem, part) if everything else _read_maps(soft, problem)
    return _describe(soft, read, objective, problem), soft


def _sample(
    n: int, needed: IntArray, weight: FloatArray | None, rng: np.random.Generator
) -> IntArray:
    """At most SOFT_ROWS rows out of n, in order, those needed among them.

    With weights rows occur as often as they count.
    """
    if weight is not None:
        rows = np.arange(n)[repeated(weight, min(n, SOFT_ROWS), rng)]
        return np.sort(np.concatenate([rows, np.setdiff1d(needed, rows)]))
    if n <= SOFT_ROWS:
        return np.arange(n)
    rest = rng.permutation(np.setdiff1d(np.arange(n), needed))
    return np.sort(np.concatenate([needed, rest[: max(0, SOFT_ROWS - len(needed))]]))


def _read_plan(soft: SoftAlignment, problem: Problem, part: FloatArray | None) -> _Read:
    """Partners by the scores of all pairs, which the alignment has seen."""
    scores: FloatArray = soft.scores
    total = scores if part is None else scores + part
    partner = _assign_dense(total, problem)
    every, at = np.arange(len(scores)), np.maximum(partner, 0)
    mass = np.maximum(soft.plan.sum(axis=1), 1e-30)
    return _dense_read(scores, partner, soft.plan[every, at] / mass)


def _read_maps(soft: SoftAlignment, problem: Problem) -> _Read:
    """Partners of all rows under the maps; above SOFT_ROWS by candidates, with no n x n array."""
    left, right = soft.embed_x(problem.x), soft.embed_y(problem.y)
    n_x, n_y = len(left), len(right)
    total_left, total_right, hint = left, right, problem.hint
    if hint is not None:  # in units of the scores' deviation, as for all pairs
        step_x, step_y = -(-n_x // 1000), -(-n_y // 1000)
        spread = float((left[::step_x] @ right[::step_y].T).std()) or 1.0
        vectors = [(p.vectors, p.deviation) for p in hint.parts if p.vectors is not None]
        total_left = np.hstack([left / spread, *(v[0] / scale for v, scale in vectors)])
        total_right = np.hstack([right, *(v[1] for v, _ in vectors)])
    if max(n_x, n_y) <= SOFT_ROWS:
        scores = left @ right.T
        total = scores
        if hint is not None:
            total = scores / spread + hint.block(np.arange(n_x), np.arange(n_y))
        return _dense_read(scores, _assign_dense(total, problem), np.zeros(n_x))
    near, score = top_k(
        total_left, total_right, min(N_CANDIDATES, n_y), metric="inner", use_faiss=True
    )
    if hint is not None and any(p.vectors is None for p in hint.parts):
        score = np.einsum("id,ikd->ik", left / spread, right[near]) + hint.at(
            np.arange(n_x)[:, None], near
        )
    if problem.leave_out:
        partner = _only_known(problem)
    else:
        partner = assign_sparse(
            near,
            -score.astype(np.float64),
            n_y,
            known=problem.known,
            forbidden=problem.forbidden,
        )
        partner = complete(partner, n_y, lambda r, c: -(total_left[r] @ total_right[c].T))
    near, best = (
        (near[:, :2], score[:, :2])
        if hint is None
        else top_k(left, right, min(2, n_y), metric="inner", use_faiss=True)
    )
    own = np.einsum("ij,ij->i", left, right[np.maximum(partner, 0)])
    return _Read(partner, near, best, own, np.zeros(n_x))


def _dense_read(scores: FloatArray, partner: IntArray, peak: FloatArray) -> _Read:
    """Two best columns and own scores from the scores of all pairs."""
    if scores.shape[1] < 3:
        two = np.argsort(-scores, axis=1, kind="stable")[:, :2]
    else:
        two = np.argpartition(-scores, 1, axis=1)[:, :2]
        values = np.take_along_axis(scores, two, axis=1)
        two = np.take_along_axis(two, np.argsort(-values, axis=1, kind="stable"), axis=1)
    own = scores[np.arange(len(scores)), np.maximum(partner, 0)]
    return _Read(partner, two, np.take_along_axis(scores, two, axis=1), own, peak)


def _only_known(problem: Problem) -> IntArray:
    """Partners of known pairs: where nothing stood out, nothing else is claimed."""
    partner = np.full(len(problem.x), -1, dtype=np.int64)
    partner[problem.known[:, 0]] = problem.known[:, 1]
    return partner


def _assign_dense(scores: FloatArray, problem: Problem) -> IntArray:
    """The best one-to-one matching by the scores of all pairs."""
    if problem.leave_out:
        return _only_known(problem)
    return assign(-scores.astype(np.float64), known=problem.known, forbidden=problem.forbidden)


def _describe(soft: SoftAlignment, read: _Read, objective: Objective, problem: Problem) -> Match:
    """Confidence by the plan's peak, runner-up and margin by score."""
    first_is_partner = read.near[:, 0] == read.partner
    last = read.near.shape[1] - 1
    runner_up = np.where(first_is_partner, read.near[:, last], read.near[:, 0])
    other = np.where(first_is_partner, read.best[:, last], read.best[:, 0])
    left_out = read.partner < 0
    trust = soft.agreement if soft.gap > 0 else 0.0
    confidence = np.where(left_out, 0.0, np.minimum(SURE, trust * read.peak))
    return Match(
        partner=read.partner,
        confidence=certain(confidence, problem.known),
        objective=objective,
        runner_up=runner_up.astype(np.int64),
        margin=np.where(left_out, np.nan, read.own - other).astype(np.float64),
        n_y=len(problem.y),
        agreement=soft.agreement,
        gap=soft.gap,
        trusted=_vouched(soft),
    )


def _vouched(soft: SoftAlignment) -> bool:
    """Whether the partners were confirmed, or gap and agreement speak for them."""
    if soft.kind == "self-learned":
        return soft.gap >= CONFIRMED_GAP
    return vouched(soft.gap, soft.agreement)
