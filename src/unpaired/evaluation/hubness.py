"""Scores corrected for hubs, rows that are near everything: a read-out open to every method."""

from __future__ import annotations

import numpy as np

from unpaired.types import FloatArray


def nearest_mean(scores: FloatArray, n_neighbours: int = 10) -> FloatArray:
    """The mean of each row's ``n_neighbours`` largest scores, (n,): how much of a hub it is.

    >>> nearest_mean(np.array([[1.0, 3.0, 2.0]]), 2).tolist()
    [2.5]
    """
    k = min(n_neighbours, scores.shape[1])
    return np.asarray(np.partition(scores, scores.shape[1] - k, axis=1)[:, -k:].mean(axis=1))


def csls_scores(
    scores: FloatArray,
    *,
    n_neighbours: int = 10,
    hubness_x: FloatArray | None = None,
    hubness_y: FloatArray | None = None,
) -> FloatArray:
    """Scores (n, m) minus half the hubness of their row and of their column.

    Cross-domain similarity local scaling (conneau2018), halved. By default hubness is measured
    among the scores themselves, which looks at all queries at once; to use no test data, pass the
    ``nearest_mean`` of each row (n,) and each column (m,) against training rows.

    >>> csls_scores(np.array([[1.0, 0.9], [0.0, 0.85]]), n_neighbours=1).argmax(0).tolist()
    [0, 1]
    """
    of_x = nearest_mean(scores, n_neighbours) if hubness_x is None else np.asarray(hubness_x)
    of_y = nearest_mean(scores.T, n_neighbours) if hubness_y is None else np.asarray(hubness_y)
    return np.asarray(scores - 0.5 * (of_x[:, None] + of_y[None, :]))
