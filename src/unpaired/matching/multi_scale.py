"""A start from coarse to fine: few clusters matched first, each level's matching seeds the next."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unpaired.matching.clustering import cluster, mean_by
from unpaired.matching.frank_wolfe import frank_wolfe
from unpaired.matching.sharp import Guess
from unpaired.matching.small_qap import best_assignments
from unpaired.matching.solution import plan_of
from unpaired.matching.views import linear_side, unit_rows
from unpaired.types import FloatArray, IntArray

MULTI_SCALE = "multi-scale"
COARSE = 10
"""Clusters a side at the coarsest level, where all matchings are scored."""
SPLIT = 4
"""Parts into which a cluster is split from one level to the next."""
SMALLEST = 4
"""Levels end when clusters hold fewer rows than this on average."""


@dataclass(frozen=True, eq=False)
class ScaleStart:
    """Matched clusters of the finest level, as a start like a caller's own."""

    index_x: IntArray
    """(n_x,) cluster of each row of x."""
    index_y: IntArray
    """(n_y,) cluster of each row of y, numbered like the cluster of x it is matched with."""
    n_clusters: int
    name = MULTI_SCALE

    def guess(self, x: FloatArray, y: FloatArray) -> Guess:
        """Means of matched clusters, for the search for evident partners."""
        sizes = [np.bincount(i, minlength=self.n_clusters) for i in (self.index_x, self.index_y)]
        left, right = (
            mean_by(rows, i, self.n_clusters) for rows, i in ((x, self.index_x), (y, self.index_y))
        )
        return Guess(MULTI_SCALE, left, right, np.minimum(*sizes).astype(np.float64))

    def block(self, rows_x: IntArray, rows_y: IntArray) -> FloatArray:
        """The plan (k, l) that spreads every row evenly over the rows of its matched cluster."""
        sizes = np.maximum(np.bincount(self.index_y, minlength=self.n_clusters), 1)
        same = self.index_x[rows_x][:, None] == self.index_y[rows_y][None, :]
        return same / sizes[self.index_y[rows_y]][None, :].astype(np.float64)

    def partners_of(self, rows_x: IntArray) -> IntArray:
        """Rows of y that a sample with these rows of x should hold: any will do."""
        return np.empty(0, dtype=np.int64)


def match_scales(
    x: FloatArray, y: FloatArray, rng: np.random.Generator, n_levels: int = 3
) -> ScaleStart:
    """Clusters of x and y matched level by level: 10, 40, 160, ... centres a side.

    Clusters come from k-means split further at each level. The coarsest centres are matched by
    scoring all assignments of their centred Gram matrices; at each finer level Frank-Wolfe starts
    from the plan that keeps children with their parents' partners, and is free to correct it.
    """
    sides = [unit_rows(linear_side(rows).coords) for rows in (x, y)]
    size = max(1, min(COARSE, len(x) // SMALLEST, len(y) // SMALLEST))
    index = [np.asarray(cluster(side, size, rng, n_init=3).index, dtype=np.int64) for side in sides]
    grams = [_gram(side, i, size) for side, i in zip(sides, index, strict=True)]
    partner = np.asarray(best_assignments([(grams[0], grams[1])], rng=rng).best, dtype=np.int64)
    for _ in range(n_levels - 1):
        if min(len(x), len(y)) < SMALLEST * SPLIT * size:
            break
        index = [_split(side, i, size, rng) for side, i in zip(sides, index, strict=True)]
        plan = np.kron(plan_of(partner, size), np.full((SPLIT, SPLIT), 1.0 / SPLIT))
        size *= SPLIT
        grams = [_gram(side, i, size) for side, i in zip(sides, index, strict=True)]
        partner = frank_wolfe(grams[0], grams[1], plan).partner
    names = np.argsort(partner)  # cluster of x for each cluster of y
    return ScaleStart(index[0], names[index[1]], size)


def _split(rows: FloatArray, index: IntArray, size: int, rng: np.random.Generator) -> IntArray:
    """Clusters (n,) in which cluster c has become clusters 4 c to 4 c + 3; small ones stay one."""
    finer = SPLIT * index
    for group in range(size):
        members = np.flatnonzero(index == group)
        if len(members) > SPLIT:
            finer[members] += cluster(rows[members], SPLIT, rng, n_init=2).index
    return finer


def _gram(rows: FloatArray, index: IntArray, size: int) -> FloatArray:
    """The centred Gram matrix of cluster means, of Frobenius norm 1."""
    means = mean_by(rows, index, size)
    centred = means - means.mean(axis=0)
    gram = centred @ centred.T
    return gram / max(float(np.linalg.norm(gram)), 1e-300)
