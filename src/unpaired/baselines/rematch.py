"""Matching the rows that no known pair names, by the scores of two embeddings."""

from __future__ import annotations

import numpy as np

from unpaired.matching import match
from unpaired.math.neighbours import top_k
from unpaired.plans.assignment import assign, assign_sparse
from unpaired.types import FloatArray, IntArray

DENSE_ENTRIES = 4_000_000
N_CANDIDATES = 30
SEEDS = ("auto", "engine", "random")
"""What a method that matches by turns may begin from."""


def one_to_one(pairs: IntArray) -> IntArray:
    """The pairs that share no row with one that was kept before them.

    >>> one_to_one(np.array([[0, 1], [0, 2], [1, 1], [3, 4]])).tolist()
    [[0, 1], [3, 4]]
    """
    kept, used_x, used_y = [], set(), set()
    for row_x, row_y in pairs.tolist():
        if row_x not in used_x and row_y not in used_y:
            kept.append((row_x, row_y))
            used_x.add(row_x)
            used_y.add(row_y)
    return np.array(kept, dtype=np.int64).reshape(-1, 2)


def free_rows(known: IntArray, n_x: int, n_y: int, relation: str) -> tuple[IntArray, IntArray]:
    """The rows that may still be matched; many-to-one leaves every row of y free."""
    free_x = np.setdiff1d(np.arange(n_x), known[:, 0])
    if relation == "many-to-one":
        return free_x, np.arange(n_y)
    return free_x, np.setdiff1d(np.arange(n_y), known[:, 1])


def best_pairs(
    embed_x: FloatArray, embed_y: FloatArray, known: IntArray, relation: str
) -> tuple[IntArray, FloatArray]:
    """New pairs (k, 2) of free rows and their scores, surest first.

    One-to-one pairs maximise the sum of scores (over the 30 best candidates of each row when the
    problem is large); many-to-one takes each row's best.
    """
    free_x, free_y = free_rows(known, len(embed_x), len(embed_y), relation)
    if not len(free_x) or not len(free_y):
        return np.empty((0, 2), dtype=np.int64), np.empty(0)
    left, right = embed_x[free_x], embed_y[free_y]
    if relation == "many-to-one":
        partner = top_k(left, right, 1, metric="inner")[0][:, 0]
    elif len(left) * len(right) <= DENSE_ENTRIES:
        partner = assign(-(left @ right.T))
    else:
        near, score = top_k(left, right, min(N_CANDIDATES, len(right)), metric="inner")
        partner = assign_sparse(near, -score, len(right))
    rows = np.flatnonzero(partner >= 0)
    scores = (left[rows] * right[partner[rows]]).sum(1)
    order = np.argsort(-scores, kind="stable")
    rows = rows[order]
    return np.column_stack([free_x[rows], free_y[partner[rows]]]), scores[order]


def seed_pairs(
    x: FloatArray, y: FloatArray, known: IntArray, seeds: str, relation: str, seed: int
) -> tuple[IntArray, str]:
    """The pairs (k, 2) to begin from, known ones among them, and what they came from.

    "engine" adds the partners that ``unpaired.match`` finds for the free rows, "random" random
    ones; "auto" takes the known pairs alone, or the engine's where fewer than two are known.
    """
    if seeds == "auto" and len(known) >= 2:
        return known, "pairs"
    free_x, free_y = free_rows(known, len(x), len(y), relation)
    if seeds == "random":
        rng = np.random.default_rng([seed, 3])
        if relation == "many-to-one":
            found = np.column_stack([free_x, rng.choice(free_y, len(free_x))])
        else:
            size = min(len(free_x), len(free_y))
            found = np.column_stack([rng.permutation(part)[:size] for part in (free_x, free_y)])
        return np.concatenate([known, found]).astype(np.int64), "random"
    partner = match(x, y, known if len(known) else None, relation, seed).partner
    rows = free_x[partner[free_x] >= 0]
    return np.concatenate([known, np.column_stack([rows, partner[rows]])]), "engine"


def partner_of(pairs: IntArray, n_x: int) -> IntArray:
    """(n_x,) the first partner of each row of x, -1 where there is none."""
    partner = np.full(n_x, -1, dtype=np.int64)
    partner[pairs[::-1, 0]] = pairs[::-1, 1]
    return partner


def share_changed(before: IntArray, after: IntArray) -> float:
    """Share of the rows whose partner is another than before."""
    return float((before != after).mean())
