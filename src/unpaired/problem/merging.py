"""Known pairs in which a row occurs several times, as pairs in which none does."""

from __future__ import annotations

import numpy as np

from unpaired.types import FloatArray, IntArray


def merged_partners(y: FloatArray, known: IntArray) -> tuple[FloatArray, IntArray, IntArray]:
    """Rows of y with partners of one row of x merged, which of y's rows stay, and their pairs.

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
