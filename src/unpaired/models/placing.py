"""From a common space to partners: assignment of the free rows, and what a Match tells of them."""

from __future__ import annotations

from collections.abc import Sized
from dataclasses import replace
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from unpaired.matching.assignment import assign, assign_sparse, complete
from unpaired.matching.describing import certain, describe, softmax_rows
from unpaired.matching.neighbors import top_k
from unpaired.matching.portfolio import Alignment
from unpaired.matching.soft_match import SURE
from unpaired.training.closed_form import ClosedFormConfig
from unpaired.training.common_space import CommonSpace
from unpaired.training.grown import grow_space
from unpaired.training.learner import take_over
from unpaired.training.soft_plan import SoftPlan
from unpaired.types import FloatArray, IntArray, Match, Objective

DENSE_ROWS = 3000
"""Free rows a side up to which the assignment is exact; above, among the nearest candidates."""
N_CANDIDATES = 20
BLOCK_ROWS = 1024
SHARPNESS = 10.0
"""How much a score counts in a probability, in units of the scores' spread."""

Views = tuple[Tensor, Tensor]
Rows = tuple[IntArray, IntArray]
"""Numbers of rows of x and of y."""
Placed = tuple[FloatArray, FloatArray]


class Space(Protocol):
    """Something that places rows so that inner products are scores."""

    def placed(self, rows: Tensor, view: int) -> Tensor:
        """Rows of a view (0 = x, 1 = y)."""
        ...


def one_to_one(y: FloatArray, known: IntArray) -> tuple[FloatArray, IntArray, IntArray]:
    """Rows of y, their numbers, and pairs in which no row occurs twice.

    Partners of one row of x, as five captions of an image, become one row: their mean, in the place
    of the first. Of pairs that share a row of y the first is kept.
    """
    pairs = known[np.unique(known[:, 1], return_index=True)[1]]
    owners, first, owner = np.unique(pairs[:, 0], return_index=True, return_inverse=True)
    means = np.zeros((len(owners), y.shape[1]))
    np.add.at(means, owner, y[pairs[:, 1]])
    means /= np.bincount(owner, minlength=len(owners))[:, None]
    places = pairs[first, 1]
    kept = np.setdiff1d(np.arange(len(y)), np.setdiff1d(known[:, 1], places))
    rows = y.copy()
    rows[places] = means
    return rows[kept], kept, np.column_stack([owners, np.searchsorted(kept, places)])


def place_rows(space: Space, views: Views, rows: Rows) -> Placed:
    """The numbered rows of both views in the space; inner products are scores."""
    left, right = (
        np.asarray(space.placed(view[torch.as_tensor(kept, device=view.device)], number).cpu())
        for number, (view, kept) in enumerate(zip(views, rows, strict=True))
    )
    return left, right


def match_free(placed: Placed, relation: str) -> IntArray:
    """Partner of each placed row of x among the placed rows of y, -1 = none, by their scores."""
    left, right = placed
    if not (len(left) and len(right)):
        return np.full(len(left), -1, dtype=np.int64)
    if relation == "many-to-one":
        blocks = np.array_split(left, -(-len(left) // BLOCK_ROWS))
        return np.concatenate([(block @ right.T).argmax(1) for block in blocks])
    if max(len(left), len(right)) <= DENSE_ROWS:
        return assign(-(left @ right.T).astype(np.float64))
    near, score = top_k(left, right, min(N_CANDIDATES, len(right)), metric="inner", use_faiss=True)
    found = assign_sparse(near, -score.astype(np.float64), len(right))
    return complete(found, len(right), lambda r, c: -(left[r] @ right[c].T))


def free_pairs(partner: IntArray, free: tuple[IntArray, IntArray]) -> IntArray:
    """Pairs of row numbers from partners among the free rows."""
    rows = np.flatnonzero(partner >= 0)
    return np.column_stack([free[0][rows], free[1][partner[rows]]]).astype(np.int64)


def share_of_partners(plan: SoftPlan, partner: IntArray) -> FloatArray:
    """The plan's share of each row's partner, 0 where it was no candidate."""
    rows, columns = plan.rows.cpu().numpy(), plan.columns.cpu().numpy()
    shares = np.zeros(len(partner))
    hit = partner[rows] == columns
    shares[rows[hit]] = plan.shares.cpu().numpy()[hit]
    return shares


def describe_partners(
    placed: Placed,
    partner: IntArray,
    rows: Rows,
    pairs: IntArray,
    views: tuple[Sized, Sized],
    objective: Objective,
    relation: str,
) -> Match:
    """A Match of all rows: the placed ones, ``rows``, by their scores, the others by ``pairs``.

    Args:
        placed: The numbered rows in the space.
        partner: Partner of each placed row of x among the placed rows of y, -1 = none.
        rows: Numbers of the placed rows of x and of y.
        pairs: Known pairs, of confidence 1; the first of a row wins. A row that is not placed has
            no runner-up.
        views: All rows of both views.
        objective: What was reached.
        relation: "one-to-one" or "many-to-one".

    Runner-up, margin and a softmax share of each partner are made in blocks.
    """
    n_x, n_y = len(views[0]), len(views[1])
    left, right = placed
    partners = np.full(n_x, -1, dtype=np.int64)
    partners[pairs[::-1, 0]] = pairs[::-1, 1]
    runner_up, margin = np.full(n_x, -1, dtype=np.int64), np.full(n_x, np.nan)
    confidence = np.zeros(n_x)
    if len(left) and len(right):
        spread = float((left[:BLOCK_ROWS] @ right.T).std())
        for block in np.array_split(np.arange(len(left)), -(-len(left) // BLOCK_ROWS)):
            scores = left[block] @ right.T
            shares = softmax_rows(scores, SHARPNESS / max(spread, 1e-12))
            part = describe(scores, partner[block], objective, probabilities=shares)
            own = rows[0][block]
            partners[own] = numbered(part.partner, rows[1])
            runner_up[own] = numbered(part.runner_up, rows[1])
            confidence[own], margin[own] = part.confidence, part.margin
    return Match(
        partner=partners,
        confidence=certain(confidence, pairs),
        objective=objective,
        runner_up=runner_up,
        margin=margin,
        n_y=n_y,
        relation=relation,
    )


def without_pairs(
    views: Views, placed: Views, found: Alignment, config: ClosedFormConfig, seed: int
) -> tuple[CommonSpace, Match]:
    """A space that takes over what the engine found, grown and matched again where it is trusted.

    ``placed`` are the engine's embeddings of all rows. An alignment that self-learning or a few
    known pairs have refined is taken over as it is; so is one that nothing vouches for.
    """
    taken = take_over(*views, placed, config, seed)
    grows = found.match.trusted and found.kind == "one round"
    grown = grow_space(*views, placed, taken, seed) if grows else None
    if grown is None:
        return taken, found.match
    rows = np.arange(len(views[0])), np.arange(len(views[1]))
    nothing = np.zeros((0, 2), dtype=np.int64)
    by_score = place_rows(grown, views, rows)
    partner = match_free(by_score, "one-to-one")
    described = describe_partners(
        by_score, partner, rows, nothing, views, found.match.objective, "one-to-one"
    )
    kept = ("agreement", "gap", "trusted", "converged")
    verdict = {name: getattr(found.match, name) for name in kept}
    return grown, replace(described, confidence=np.minimum(SURE, described.confidence), **verdict)


def numbered(positions: IntArray, numbers: IntArray) -> IntArray:
    """The row numbers at these positions; -1 stays."""
    return np.where(positions >= 0, numbers[np.maximum(positions, 0)], -1)
