"""Rows that are exact copies of each other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from unpaired.math.neighbours import Index


def copies_of(rows: NDArray[np.floating]) -> tuple[Index, Index]:
    """A number for each row that equal rows share, and how many rows are equal to it.

    >>> copies_of(np.array([[1.0, 2.0], [0.0, 0.0], [-0.0, 0.0]]))[1].tolist()
    [1, 2, 2]
    """
    exact = np.ascontiguousarray(np.asarray(rows) + 0.0)  # -0 becomes 0
    whole = exact.view(np.dtype((np.void, exact.dtype.itemsize * exact.shape[1])))[:, 0]
    _, group, counts = np.unique(whole, return_inverse=True, return_counts=True)
    return np.asarray(group, dtype=np.int64), np.asarray(counts[group], dtype=np.int64)


def first_copies(rows: NDArray[np.floating]) -> Index:
    """The rows without their later copies, sorted.

    >>> first_copies(np.array([[1.0], [0.0], [1.0]])).tolist()
    [0, 1]
    """
    return np.sort(np.unique(copies_of(rows)[0], return_index=True)[1]).astype(np.int64)
