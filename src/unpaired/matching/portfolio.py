"""The front door: several ways of matching, judged without labels, and one result.

Partners that are evident (``sharp``) are looked for first, at any size. Where none stand out, rows
are aligned softly by views and profiles (``soft``); above some thousand rows that is done on a
sample, and the maps carry over to all rows. A handful of rows is searched directly (``small``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from unpaired._checks import check_choice, check_one_to_one, check_pairs, check_view
from unpaired._random import RandomState, derive_rng, resolve_seed
from unpaired.matching.assignment import assign, assign_sparse, complete
from unpaired.matching.describing import certain, check_forbidden, check_similarity, describe
from unpaired.matching.many_to_one import match_many_to_one
from unpaired.matching.neighbors import top_k
from unpaired.matching.sharp import MIN_ROWS, SharpMatch, match_sharp
from unpaired.matching.small import match_small
from unpaired.matching.soft import SoftAlignment, align_soft
from unpaired.types import FloatArray, IntArray, Match, Objective

RELATIONS = ("one-to-one", "many-to-one")
SOFT_ROWS = 3000
"""Rows a side up to which soft alignment sees all of them; above, a sample of this size."""
TRUSTED_GAP = 0.28
TRUSTED_AGREEMENT = 0.8
"""Soft alignments are trusted from this gap and this agreement on."""
CONFIRMED_GAP = 0.15
"""The gap that is enough when self-learning confirmed the partners."""
SURE = 0.85
"""Soft alignments never claim more confidence than this: their partners are not evident."""


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
    leave_out: Literal["auto"] | bool = False,
    class_sizes: Any = None,
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
        leave_out: Leave out rows whose partner is more probably not there ("auto" or True); how
            many is estimated from the data. All rows are left out where nothing can be trusted.
        class_sizes: Largest number of rows of x for each row of y, for many-to-one.

    Returns:
        A Match in the order of the rows of x.
    """
    if check_choice(relation, "relation", RELATIONS) == "many-to-one":
        return match_many_to_one(x, y, pairs, random_state, forbidden, similarity, class_sizes)
    return align(
        x,
        y,
        pairs,
        random_state=random_state,
        forbidden=forbidden,
        similarity=similarity,
        leave_out=leave_out,
    ).match


def align(
    x: Any,
    y: Any,
    pairs: Any = None,
    *,
    random_state: RandomState = 0,
    forbidden: Any = None,
    similarity: Any = None,
    leave_out: Literal["auto"] | bool = False,
) -> Alignment:
    """One-to-one matching with the maps behind it; arguments as for ``match``."""
    rows_x, rows_y = check_view(x, "x"), check_view(y, "y")
    known = check_one_to_one(check_pairs(pairs, len(rows_x), len(rows_y)))
    barred = check_forbidden(forbidden, known, len(rows_x), len(rows_y))
    side = check_similarity(similarity, len(rows_x), len(rows_y))
    rng = derive_rng(resolve_seed(random_state), "match")
    if min(len(rows_x), len(rows_y)) < MIN_ROWS:
        return _align_small(rows_x, rows_y, known, barred, side)
    sharp = match_sharp(
        rows_x, rows_y, rng, known=known, forbidden=barred, leave_out=bool(leave_out)
    )
    if sharp.trusted and side is None:
        return _from_sharp(sharp, known, len(rows_y))
    return _align_softly(rows_x, rows_y, known, barred, side, bool(leave_out), sharp, rng)


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


def _align_small(
    x: FloatArray,
    y: FloatArray,
    known: IntArray,
    forbidden: IntArray,
    similarity: FloatArray | None,
) -> Alignment:
    """The result for a handful of rows: confidence is not claimed, they cannot tell."""
    partner, scores, reached = match_small(x, y, known, similarity)
    if len(forbidden):
        partner = assign(-scores, known=known, forbidden=forbidden)
    objective = Objective(max(reached.values()), reached)
    values = list(reached.values())
    close = float(np.mean(np.isclose(values, max(values), rtol=1e-3)))
    found = describe(scores, partner, objective, known=known, agreement=close)
    mean_x, mean_y = x.mean(0), y.mean(0)
    rows = np.flatnonzero(partner >= 0)
    linear = np.linalg.pinv(x[rows] - mean_x) @ (y[partner[rows]] - mean_y)
    return Alignment(
        found, lambda rows: (rows - mean_x) @ linear, lambda rows: rows - mean_y, "small"
    )


def _align_softly(
    x: FloatArray,
    y: FloatArray,
    known: IntArray,
    forbidden: IntArray,
    similarity: FloatArray | None,
    leave_out: bool,
    sharp: SharpMatch,
    rng: np.random.Generator,
) -> Alignment:
    """The result when no partner is evident: maps from a soft plan, partners by their scores."""
    rows_x, rows_y = _sample(len(x), known[:, 0], rng), _sample(len(y), known[:, 1], rng)
    places = np.column_stack(
        [np.searchsorted(rows_x, known[:, 0]), np.searchsorted(rows_y, known[:, 1])]
    )
    part = None if similarity is None else similarity[np.ix_(rows_x, rows_y)]
    soft = align_soft(x[rows_x], y[rows_y], rng, known=places, similarity=part)
    objective = Objective(max(soft.reached.values()), {**soft.reached, **_named(sharp)})
    everything = len(rows_x) == len(x) and len(rows_y) == len(y)
    if leave_out:  # nothing stood out, so nothing is claimed
        partner = np.full(len(x), -1, dtype=np.int64)
        partner[known[:, 0]] = known[:, 1]
    elif everything:
        scores: FloatArray = soft.scores
        if similarity is not None:
            scores = scores + similarity.std() ** -1 * (similarity - similarity.mean())
        partner = assign(-scores.astype(np.float64), known=known, forbidden=forbidden)
    else:
        partner = _assign_mapped(soft, x, y, known, forbidden)
    found = _describe_soft(soft, partner, objective, known, x, y, everything)
    return Alignment(found, soft.embed_x, soft.embed_y, soft.kind)


def _named(sharp: SharpMatch) -> dict[str, float]:
    return {f"sharp, {name}": value for name, value in sharp.tried.items()}


def _sample(n: int, needed: IntArray, rng: np.random.Generator) -> IntArray:
    """At most SOFT_ROWS rows out of n, in order, those needed among them."""
    if n <= SOFT_ROWS:
        return np.arange(n)
    rest = rng.permutation(np.setdiff1d(np.arange(n), needed))
    return np.sort(np.concatenate([needed, rest[: max(0, SOFT_ROWS - len(needed))]]))


def _assign_mapped(
    soft: SoftAlignment, x: FloatArray, y: FloatArray, known: IntArray, forbidden: IntArray
) -> IntArray:
    """Partners of all rows by nearest candidates under the maps; no n x n array."""
    left, right = soft.embed_x(x), soft.embed_y(y)
    near, score = top_k(left, right, min(20, len(y)), metric="inner", use_faiss=True)
    partner = assign_sparse(
        near, -score.astype(np.float64), len(y), known=known, forbidden=forbidden
    )
    return complete(partner, len(y), lambda r, c: -(left[r] @ right[c].T))


def _describe_soft(
    soft: SoftAlignment,
    partner: IntArray,
    objective: Objective,
    known: IntArray,
    x: FloatArray,
    y: FloatArray,
    everything: bool,
) -> Match:
    """Confidence by the plan's peak, runner-up and margin by score."""
    n_x, n_y = len(x), len(y)
    every = np.arange(n_x)
    if everything:
        scores = soft.scores
        two = np.argsort(-scores, axis=1, kind="stable")[:, :2] if n_y < 3 else _top_two(scores)
        near, best = two, np.take_along_axis(scores, two, axis=1)
        own = scores[every, np.maximum(partner, 0)]
        mass = np.maximum(soft.plan.sum(axis=1), 1e-30)
        peak = soft.plan[every, np.maximum(partner, 0)] / mass
    else:
        left, right = soft.embed_x(x), soft.embed_y(y)
        near, best = top_k(left, right, min(2, n_y), metric="inner", use_faiss=True)
        own = np.einsum("ij,ij->i", left, right[np.maximum(partner, 0)])
        peak = np.zeros(n_x)
    first_is_partner = near[:, 0] == partner
    last = near.shape[1] - 1
    runner_up = np.where(first_is_partner, near[:, last], near[:, 0])
    other = np.where(first_is_partner, best[:, last], best[:, 0])
    left_out = partner < 0
    trust = soft.agreement if soft.gap > 0 else 0.0
    confidence = np.where(left_out, 0.0, np.minimum(SURE, trust * peak))
    return Match(
        partner=partner,
        confidence=certain(confidence, known),
        objective=objective,
        runner_up=runner_up.astype(np.int64),
        margin=np.where(left_out, np.nan, own - other).astype(np.float64),
        n_y=n_y,
        agreement=soft.agreement,
        gap=soft.gap,
        trusted=_vouched(soft),
    )


def _vouched(soft: SoftAlignment) -> bool:
    """Whether gap and agreement are such as wrong or unrelated geometries did not reach."""
    if soft.kind == "self-learned":
        return soft.gap >= CONFIRMED_GAP
    return soft.gap >= TRUSTED_GAP and soft.agreement >= TRUSTED_AGREEMENT


def _top_two(scores: FloatArray) -> IntArray:
    """The two best columns of each row, best first."""
    two = np.argpartition(-scores, 1, axis=1)[:, :2]
    values = np.take_along_axis(scores, two, axis=1)
    return np.take_along_axis(two, np.argsort(-values, axis=1, kind="stable"), axis=1)
