"""From a common space to partners: assignment of the free rows, and what a Match tells of them."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from torch import Tensor

from unpaired.matching.assignment import assign, assign_sparse, complete
from unpaired.matching.describing import describe, softmax_rows
from unpaired.matching.neighbors import top_k
from unpaired.training.soft_plan import SoftPlan
from unpaired.types import FloatArray, IntArray, Match, Objective

DENSE_ROWS = 3000
"""Free rows a side up to which the assignment is exact; above, among the nearest candidates."""
N_CANDIDATES = 20
BLOCK_ROWS = 1024
SHARPNESS = 10.0
"""How much a score counts in a probability, in units of the scores' spread."""

Views = tuple[Tensor, Tensor]


class Space(Protocol):
    """Something that places rows so that inner products are scores."""

    def placed(self, rows: Tensor, view: int) -> Tensor:
        """Rows of a view (0 = x, 1 = y)."""
        ...


def _numbers(space: Space, rows: Tensor, view: int) -> FloatArray:
    return np.asarray(space.placed(rows, view).cpu().numpy())


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


def match_free(
    space: Space,
    views: Views,
    pairs: IntArray,
    free: tuple[IntArray, IntArray],
    relation: str,
) -> IntArray:
    """Partners of all rows of x: the known ones, and those of the free rows by their scores."""
    partner = np.full(len(views[0]), -1, dtype=np.int64)
    partner[pairs[::-1, 0]] = pairs[::-1, 1]  # the first pair of a row wins
    if not (len(free[0]) and len(free[1])):
        return partner
    left, right = _numbers(space, views[0], 0)[free[0]], _numbers(space, views[1], 1)[free[1]]
    if relation == "many-to-one":
        blocks = np.array_split(left, -(-len(left) // BLOCK_ROWS))
        found = np.concatenate([(block @ right.T).argmax(1) for block in blocks])
    elif max(len(left), len(right)) <= DENSE_ROWS:
        found = assign(-(left @ right.T).astype(np.float64))
    else:
        near, score = top_k(
            left, right, min(N_CANDIDATES, len(right)), metric="inner", use_faiss=True
        )
        found = assign_sparse(near, -score.astype(np.float64), len(right))
        found = complete(found, len(right), lambda r, c: -(left[r] @ right[c].T))
    partner[free[0]] = np.where(found >= 0, free[1][np.maximum(found, 0)], -1)
    return partner


def free_pairs(partner: IntArray, free: tuple[IntArray, IntArray]) -> IntArray:
    """Pairs of row numbers from partners among the free rows."""
    rows = np.flatnonzero(partner >= 0)
    return np.column_stack([free[0][rows], free[1][partner[rows]]]).astype(np.int64)


def share_of_partners(
    plan: SoftPlan, partner: IntArray, free: tuple[IntArray, IntArray]
) -> FloatArray:
    """The plan's share of each free row's partner, 0 where it was no candidate."""
    position = np.full(int(free[1].max()) + 1, -1)
    position[free[1]] = np.arange(len(free[1]))
    chosen = np.where(partner[free[0]] >= 0, position[partner[free[0]]], -1)
    rows, columns = plan.rows.cpu().numpy(), plan.columns.cpu().numpy()
    shares = np.zeros(len(free[0]))
    hit = chosen[rows] == columns
    shares[rows[hit]] = plan.shares.cpu().numpy()[hit]
    return shares


def describe_partners(
    space: Space, views: Views, partner: IntArray, objective: Objective, relation: str
) -> Match:
    """A Match with runner-up, margin and a softmax share of each partner, made in blocks."""
    left, right = _numbers(space, views[0], 0), _numbers(space, views[1], 1)
    spread = float((left[:BLOCK_ROWS] @ right.T).std())
    parts = []
    for rows in np.array_split(np.arange(len(left)), -(-len(left) // BLOCK_ROWS)):
        scores = left[rows] @ right.T
        shares = softmax_rows(scores, SHARPNESS / max(spread, 1e-12))
        parts.append(describe(scores, partner[rows], objective, probabilities=shares))
    return Match(
        partner=partner,
        confidence=np.concatenate([part.confidence for part in parts]),
        objective=objective,
        runner_up=np.concatenate([part.runner_up for part in parts]),
        margin=np.concatenate([part.margin for part in parts]),
        n_y=len(right),
        relation=relation,
    )
