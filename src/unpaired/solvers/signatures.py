"""Where to begin: scores (n_x, n_y) that point a solver to the right basin."""

from __future__ import annotations

import numpy as np
from scipy.spatial.distance import cdist

from unpaired.types import FloatArray


def signature_scores(gram_x: FloatArray, gram_y: FloatArray, n_quantiles: int = 64) -> FloatArray:
    """Likeness of rows by their sorted similarities to all other rows of their own view.

    Two rows that belong together have the same distribution of similarities when the views are
    near-isometric, whatever the order of the rows. Quantiles make views of unequal size
    comparable. Cost O(n^2 log n + n_x n_y n_quantiles).

    Notation: gram_x (n_x, n_x), gram_y (n_y, n_y) -> minus the distances, (n_x, n_y).
    """
    levels = np.linspace(0.0, 1.0, n_quantiles)
    signatures = [np.quantile(gram, levels, axis=1).T for gram in (gram_x, gram_y)]
    centred = [s / max(float(s.std()), 1e-300) for s in signatures]
    return -np.asarray(cdist(centred[0], centred[1]))
