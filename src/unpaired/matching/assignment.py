"""Linear assignment."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment

from unpaired.types import FloatArray, IntArray


def assign(scores: FloatArray, known: IntArray | None = None) -> IntArray:
    """Partner of each row of a (n_x, n_y) score matrix, one to one, with the largest total score.

    ``known`` (k, 2) pairs are kept and not scored. With n_x > n_y, the rows that find no partner
    get -1. Cost O(n^3) at worst.

    >>> assign(np.array([[1.0, 3.0], [0.0, 5.0], [4.0, 0.0]])).tolist()
    [-1, 1, 0]
    """
    partner = np.full(scores.shape[0], -1, dtype=np.int64)
    if known is None or not len(known):
        rows, columns = linear_sum_assignment(scores, maximize=True)
        partner[rows] = columns
        return partner
    partner[known[:, 0]] = known[:, 1]
    free_x = np.setdiff1d(np.arange(scores.shape[0]), known[:, 0])
    free_y = np.setdiff1d(np.arange(scores.shape[1]), known[:, 1])
    rows, columns = linear_sum_assignment(scores[np.ix_(free_x, free_y)], maximize=True)
    partner[free_x[rows]] = free_y[columns]
    return partner
