"""From the scores of a solution to a Match, at any size: partner, confidence, runner-up, margin."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import softmax

from unpaired.math.copies import copies_of
from unpaired.math.neighbours import build_cells, search_cells, top_k
from unpaired.plans.assignment import assign, assign_sparse, complete, spare_copies
from unpaired.plans.plan import DENSE_ENTRIES
from unpaired.problem.problem import MANY_TO_ONE, ONE_TO_ONE, Problem
from unpaired.spaces.solution import Evidence, HeldPair, Solution
from unpaired.trust.false_discovery import fit_chooser
from unpaired.types import FloatArray, IntArray, Match, Objective, Verdict

Claim = Callable[[FloatArray], FloatArray]
"""From the shares that rows give their partners to the probability that these are right."""

N_CANDIDATES = 20
"""Partners considered for each row where there are too many for all."""
N_EVIDENT = 6
"""The same where partners are evident, with cells probed for them."""
N_PROBES = 6
SURE = 0.85
"""Soft alignments never claim more confidence than this: their partners are not evident."""
MORE_PROBABLE = 0.5
"""Confidence below which a row is left out, when rows may be."""
BLOCK_ROWS = 4096
BARRED = 1e12
"""Cost of a forbidden pair."""
TINY = "tiny"
"""Solutions whose scores, each counted by its rows' weights, are the gradient of the alignment."""


@dataclass(frozen=True, eq=False)
class Reading:
    """What scores say of each row of x."""

    partner: IntArray
    """(n_x,), -1 = none."""
    runner_up: IntArray
    margin: FloatArray
    """Score of the partner minus the best other score."""
    confidence: FloatArray


def to_match(
    reading: Reading,
    evidence: Evidence,
    n_y: int,
    *,
    known: IntArray | None = None,
    relation: str = ONE_TO_ONE,
    leave_out: bool = False,
    verdict: Verdict | None = None,
    converged: bool = True,
) -> Match:
    """The Match of a reading: where every Match but the published method's is made.

    ``known`` pairs are certain. Rows may be left out where a wrong match is more probable.
    """
    confidence = np.clip(np.asarray(reading.confidence, dtype=np.float64), 0.0, 1.0)
    partner = np.asarray(reading.partner, dtype=np.int64).copy()
    if known is not None:
        partner[known[:, 0]], confidence[known[:, 0]] = known[:, 1], 1.0
    if leave_out:
        partner[confidence < MORE_PROBABLE] = -1
    out = partner < 0
    return Match(
        partner=partner,
        confidence=np.where(out, 0.0, confidence),
        objective=Objective(max(evidence.reached.values(), default=np.nan), evidence.reached),
        runner_up=np.asarray(reading.runner_up, dtype=np.int64),
        margin=np.where(out, np.nan, reading.margin).astype(np.float64),
        n_y=n_y,
        relation=relation,
        agreement=evidence.agreement,
        gap=evidence.gap,
        converged=converged,
        verdict=verdict,
    )


def cut_below(match: Match, least: float) -> Match:
    """The match without the rows whose confidence is below ``least``."""
    out = match.confidence < least
    return replace(
        match,
        partner=np.where(out, -1, match.partner),
        confidence=np.where(out, 0.0, match.confidence),
        margin=np.where(out, np.nan, match.margin),
    )


def read_match(
    problem: Problem,
    solution: Solution,
    verdict: Verdict | None = None,
    claim: Claim | None = None,
) -> Match:
    """The Match of a one-to-one problem that a solution's space gives.

    Rows of weight 0 take no part: they are given what the others leave over. ``claim`` makes
    probabilities of the rows' confidence. A row that has copies, or whose partner has, is right
    only as often as one of so many.
    """
    inner = problem.of_counted
    reading = read_evident(inner, solution) if solution.evident else read_scores(inner, solution)
    if claim is not None:
        reading = replace(reading, confidence=claim(reading.confidence))
    if inner is not problem:
        reading = _with_rest(reading, problem, solution)
    copies = copies_of(problem.x)[1], copies_of(problem.y)[1][np.maximum(reading.partner, 0)]
    return to_match(
        replace(reading, confidence=reading.confidence / np.maximum(*copies)),
        solution.evidence,
        len(problem.y),
        known=problem.known,
        leave_out=problem.leave_out,
        verdict=verdict,
    )


def read_dense(
    scores: FloatArray, partner: IntArray, confidence: FloatArray | None = None
) -> Reading:
    """The reading of partners under the scores of all pairs (n_x, n_y)."""
    n_x, n_y = scores.shape
    if n_y == 1:
        nobody = np.full(n_x, -1, dtype=np.int64)
        return Reading(partner, nobody, np.full(n_x, np.nan), _or_zeros(confidence, n_x))
    two = np.argsort(-scores, axis=1, kind="stable")[:, :2] if n_y < 3 else _two_best(scores)
    best = np.take_along_axis(scores, two, axis=1)
    own = scores[np.arange(n_x), np.maximum(partner, 0)]
    return _reading(partner, two, best, own, _or_zeros(confidence, n_x))


def read_scores(problem: Problem, solution: Solution) -> Reading:
    """The reading by the space's scores and the side information, if there is some.

    Confidence is the partner's share of its row, at the solution's temperature, as far as the
    evidence goes.
    """
    left, right = solution.space.placed(problem.x, problem.y)
    n_x, n_y = len(left), len(right)
    spread = max(float((left[:1000] @ right[:1000].T).std()), 1e-12)
    left, heat = left / spread, solution.temperature
    certainty = solution.certainty
    if problem.relation == MANY_TO_ONE:
        return read_partners((left, right), None, heat, certainty)
    if n_x * n_y <= DENSE_ENTRIES:
        scores = (left @ right.T).astype(np.float64)
        if problem.side is not None:
            scores += problem.side.block(np.arange(n_x), np.arange(n_y))
        counted = scores * _counts(problem) if solution.kind == TINY else scores.copy()
        lowest = counted.min()
        counted[:, spare_copies(scores, copies_of(problem.y)[0])] = lowest
        counted[spare_copies(scores.T, copies_of(problem.x)[0])] = lowest
        partner = assign(-counted, known=problem.known, forbidden=problem.forbidden)
        own = scores[np.arange(n_x), np.maximum(partner, 0)]
        shares = 1.0 / np.exp((scores - own[:, None]) / heat).sum(axis=1)
        return read_dense(scores, partner, np.minimum(SURE, certainty * shares))
    side = problem.side
    if side is not None and side.vectors is not None:
        left, right = (np.hstack([a, v]) for a, v in zip((left, right), side.vectors, strict=True))
    near, found = top_k(left, right, min(N_CANDIDATES, n_y), metric="inner", use_faiss=True)
    score = found.astype(np.float64)
    matrix = None if side is None else side.matrix
    if matrix is not None:
        score = score + matrix[np.arange(n_x)[:, None], near]
        order = np.argsort(-score, axis=1, kind="stable")
        near = np.take_along_axis(near, order, axis=1)
        score = np.take_along_axis(score, order, axis=1)
    partner = assign_sparse(near, -score, n_y, known=problem.known, forbidden=problem.forbidden)
    partner = _complete(partner, left, right, problem.forbidden)
    own = np.einsum("ij,ij->i", left, right[np.maximum(partner, 0)])
    if matrix is not None:
        own = own + matrix[np.arange(n_x), np.maximum(partner, 0)]
    shares = 1.0 / np.maximum(np.exp((score - own[:, None]) / heat).sum(axis=1), 1.0)
    confidence = np.minimum(SURE, certainty * shares)
    return _reading(partner, near[:, :2], score[:, :2], own, confidence)


def read_evident(problem: Problem, solution: Solution) -> Reading:
    """The reading where partners are evident: nearest rows, and how probable each of them is.

    Sure rows come first: a row bids only as far as its match stays more probable than a stranger.
    """
    root = 0.5**0.5  # products of embedded rows are twice those of the scores behind them
    moved, target = (
        root * solution.space.embed(torch.as_tensor(rows, dtype=torch.float32), side).numpy()
        for side, rows in enumerate((problem.x, problem.y))
    )
    n_x, n_y = len(moved), len(target)
    cells = build_cells(target, np.random.default_rng(0))
    near, square = search_cells(cells, moved, max(3, min(N_EVIDENT, n_y)), n_probes=N_PROBES)
    distance = np.sqrt(np.where(near < 0, np.inf, square).astype(np.float64))
    chooser = fit_chooser(distance)
    second = np.where(np.isfinite(distance[:, 1]), distance[:, 1], 0.0)
    partner = assign_sparse(
        near,
        np.where(near < 0, 0.0, np.square(distance)),
        n_y,
        known=problem.known,
        forbidden=problem.forbidden,
        skip_cost=np.square(chooser.limit(second)),
    )
    if not problem.leave_out:
        level = np.square(moved).sum(1, keepdims=True), np.square(target).sum(1, keepdims=True)
        left = np.hstack([2 * moved, -level[0], np.ones_like(level[0])])
        right = np.hstack([target, np.ones_like(level[1]), -level[1]])
        partner = _complete(partner, left, right, problem.forbidden)
    is_match = (near == partner[:, None]) & (partner[:, None] >= 0)
    others = np.where(is_match, np.inf, distance)
    place = others.argmin(axis=1)
    other = others[np.arange(n_x), place]
    runner_up = np.where(np.isfinite(other), near[np.arange(n_x), place], -1)
    matched = np.full(n_x, np.inf)
    rows = np.flatnonzero(partner >= 0)
    matched[rows] = np.linalg.norm(moved[rows] - target[partner[rows]], axis=1)
    rows = np.flatnonzero(np.isfinite(matched) & np.isfinite(other))
    confidence = np.zeros(n_x)
    confidence[rows] = solution.certainty * chooser.probability(matched[rows], other[rows])
    margin = np.where(partner >= 0, np.square(other) - np.square(matched), np.nan)
    return Reading(partner, runner_up, margin, confidence)


def read_partners(
    placed: tuple[FloatArray, FloatArray],
    partner: IntArray | None = None,
    heat: float = 0.1,
    certainty: float = 1.0,
) -> Reading:
    """The reading of partners under the inner products of placed rows, in blocks.

    Without partners each row takes its best, as in many-to-one. Confidence is the partner's share
    at the temperature ``heat``, in units of the scores' spread.
    """
    left, right = placed
    spread = max(float((left[:BLOCK_ROWS] @ right.T).std()), 1e-12)
    found = []
    for block in np.array_split(np.arange(len(left)), -(-len(left) // BLOCK_ROWS)):
        scores = (left[block] @ right.T).astype(np.float64) / spread
        own = scores.argmax(axis=1) if partner is None else partner[block]
        shares = softmax(scores / heat, axis=1)[np.arange(len(block)), np.maximum(own, 0)]
        found.append(read_dense(scores, own, np.minimum(SURE, certainty * shares)))
    names = [field.name for field in fields(Reading)]
    return Reading(*(np.concatenate([getattr(part, name) for part in found]) for name in names))


def held_out(scores: FloatArray, partner: IntArray, heat: float) -> list[HeldPair]:
    """How held-out pairs fare under the scores (k, m) of their rows; ``partner`` (k,) is right."""
    scaled = scores / max(float(scores.std()), 1e-12) / heat
    best, shares = scores.argmax(axis=1), softmax(scaled, axis=1).max(axis=1)
    ranks = relative_ranks(scores, partner)
    return [
        HeldPair(float(rank), min(SURE, float(share)), bool(right))
        for rank, share, right in zip(ranks, shares, best == partner, strict=True)
    ]


def relative_ranks(scores: FloatArray, column: IntArray) -> FloatArray:
    """The share of other columns that score above each row's column; ties count half."""
    own = scores[np.arange(len(scores)), column][:, None]
    above = (scores > own).sum(1) + ((scores == own).sum(1) - 1) / 2.0
    return np.asarray(above / max(scores.shape[1] - 1, 1))


def _counts(problem: Problem) -> FloatArray:
    """How often each pair counts, (n_x, n_y): a row of weight 2 stands for two."""
    sides = zip(problem.weights, (problem.x, problem.y), strict=True)
    weight_x, weight_y = (np.ones(len(rows)) if w is None else w for w, rows in sides)
    return np.outer(weight_x, weight_y)


def _reading(
    partner: IntArray, near: IntArray, best: FloatArray, own: FloatArray, confidence: FloatArray
) -> Reading:
    """The reading by each row's two best columns, their scores and its own score."""
    first_is_partner = near[:, 0] == partner
    last = near.shape[1] - 1
    runner_up = np.where(first_is_partner, near[:, last], near[:, 0])
    other = np.where(first_is_partner, best[:, last], best[:, 0])
    return Reading(partner, runner_up, own - other, np.where(partner < 0, 0.0, confidence))


def _two_best(scores: FloatArray) -> IntArray:
    """The two best columns of each row, best first."""
    two = np.argpartition(-scores, 1, axis=1)[:, :2]
    values = np.take_along_axis(scores, two, axis=1)
    return np.take_along_axis(two, np.argsort(-values, axis=1, kind="stable"), axis=1)


def _or_zeros(confidence: FloatArray | None, size: int) -> FloatArray:
    return np.zeros(size) if confidence is None else confidence


def _complete(
    partner: IntArray, left: FloatArray, right: FloatArray, forbidden: IntArray
) -> IntArray:
    """Partners for rows that have none, among the columns that are free, forbidden pairs apart."""
    barred = [tuple(pair) for pair in forbidden.tolist()]

    def cost(rows: IntArray, columns: IntArray) -> NDArray[np.float64]:
        block = -(left[rows] @ right[columns].T).astype(np.float64)
        for row, column in barred:
            block[np.ix_(rows == row, columns == column)] = BARRED
        return block

    full = complete(partner, len(right), cost)
    for row, column in barred:  # nothing else was free for it
        if full[row] == column:
            full[row] = -1
    return full


def _with_rest(inner: Reading, problem: Problem, solution: Solution) -> Reading:
    """The reading of all rows: those that do not count get what the others leave over."""
    rows_x, rows_y = problem.counted
    n_x = len(problem.x)
    partner, runner_up = (np.full(n_x, -1, dtype=np.int64) for _ in range(2))
    partner[rows_x] = numbered(inner.partner, rows_y)
    runner_up[rows_x] = numbered(inner.runner_up, rows_y)
    partner[np.isin(partner, problem.known[:, 1])] = -1
    partner[problem.known[:, 0]] = problem.known[:, 1]
    placed = partner < 0
    if not problem.leave_out:
        partner = _complete(
            partner, *solution.space.placed(problem.x, problem.y), problem.forbidden
        )
    confidence, margin = np.zeros(n_x), np.full(n_x, np.nan)
    confidence[rows_x], margin[rows_x] = inner.confidence, inner.margin
    confidence[placed], margin[placed] = 0.0, np.nan
    return Reading(partner, runner_up, margin, confidence)


def numbered(positions: IntArray, numbers: IntArray) -> IntArray:
    """The row numbers at these positions; -1 stays."""
    return np.where(positions >= 0, numbers[np.maximum(positions, 0)], -1)
