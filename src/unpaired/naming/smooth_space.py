"""The neighbour-smoothed, half-whitened space in which clusters of features are classes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray

from unpaired._log import track
from unpaired.math.principal import principal

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]

_BLOCK_ENTRIES = 2**24


def unit_rows(rows: Floats) -> Floats:
    """Return the rows scaled to length one; rows of length zero stay zero."""
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths > 0, lengths, 1.0).astype(rows.dtype)


def nearest_neighbours(queries: Floats, base: Floats, n_neighbours: int) -> Ints:
    """Return the indices (n, k) of the base rows with the largest inner products, in blocks."""
    k = min(n_neighbours, len(base))
    block = max(1, _BLOCK_ENTRIES // len(base))
    found = np.empty((len(queries), k), dtype=np.int64)
    for start in track(range(0, len(queries), block), "Finding neighbours"):
        similarity = queries[start : start + block] @ base.T
        if k < len(base):
            part = np.argpartition(similarity, len(base) - k, axis=1)[:, len(base) - k :]
        else:
            part = np.broadcast_to(np.arange(k), similarity.shape)
        found[start : start + block] = np.sort(part, axis=1)
    return found


def mean_of_rows(rows: Floats, index: Ints) -> Floats:
    """Return for each row of an index (n, k) the mean of the rows it points to."""
    total = np.zeros((len(index), rows.shape[1]), dtype=rows.dtype)
    for column in index.T:
        total += rows[column]
    return total / np.asarray(index.shape[1], dtype=rows.dtype)


@dataclass(frozen=True)
class SmoothSpace:
    """A fitted smoothed space: what maps new rows into it, and the training rows mapped.

    Attributes:
        mean: Column means (d,) of the training features.
        axes: Principal axes (d, p), each divided by the fourth root of its eigenvalue.
        wide: Training rows after half-whitening, unit length (n, p), for a classifier.
        whitened: The same with the leading components only (n, q), in which neighbours are found.
        before_last: Training rows before the last round of averaging (n, q).
        smoothed: Training rows after the last round, unit length (n, q).
        neighbours: Indices (n, k) of the rows averaged in each round, the row itself among them.
    """

    mean: Floats
    axes: Floats
    wide: Floats
    whitened: Floats
    before_last: Floats
    smoothed: Floats
    neighbours: Ints

    def whiten(self, features: Floats) -> tuple[Floats, Floats]:
        """Return new rows half-whitened, unit length: all components, and the leading ones."""
        rows = (np.asarray(features, dtype=self.mean.dtype) - self.mean) @ self.axes
        return unit_rows(rows), unit_rows(rows[:, : self.whitened.shape[1]])

    def transform(self, features: Floats) -> Floats:
        """Return new rows in the smoothed space: each is the mean of its training neighbours."""
        return unit_rows(mean_of_rows(self.before_last, self._near(self.whiten(features)[1])))

    def with_surroundings(self, features: Floats | None = None) -> Floats:
        """Return half-whitened rows beside the mean of their training neighbours (n, 2p).

        Without ``features`` they are those of the training rows.
        """
        if features is None:
            wide, index = self.wide, self.neighbours
        else:
            wide, leading = self.whiten(features)
            index = self._near(leading)
        return np.hstack([wide, unit_rows(mean_of_rows(self.wide, index))])

    def _near(self, leading: Floats) -> Ints:
        return nearest_neighbours(leading, self.whitened, self.neighbours.shape[1])


def smooth_features(
    features: Floats,
    *,
    n_components: int = 128,
    n_wide: int = 256,
    n_neighbours: int | None = None,
    n_rounds: int = 5,
) -> SmoothSpace:
    """Return the neighbour-smoothed half-whitened space of the rows.

    Principal components scaled by eigenvalue^(-1/4), rows to unit length, then ``n_rounds`` times
    each row becomes the mean of its ``n_neighbours`` nearest rows (itself included). The
    neighbours are found once, in blocks; no n x n array is made.

    Args:
        features: Rows (n, d).
        n_components: Principal components in which rows are neighbours, at most.
        n_wide: Principal components kept for a classifier, at most.
        n_neighbours: Rows averaged; by default 10, or the square root of n when that is less.
        n_rounds: Rounds of averaging; 0 leaves the half-whitened rows.
    """
    rows = np.asarray(features, dtype=np.float32)
    scale = np.float32(np.abs(rows).max(initial=0.0) or 1.0)
    mean = rows.mean(axis=0, dtype=np.float64).astype(np.float32)
    found = principal(torch.from_numpy((rows - mean) / scale), n_wide)
    values = found.variances.numpy()
    axes = found.axes.numpy() * np.where(values > 0, values, 1.0) ** -0.25 / scale
    mapped = (rows - mean) @ axes
    whitened = unit_rows(mapped[:, :n_components])
    k = n_neighbours if n_neighbours is not None else max(1, min(10, int(np.sqrt(len(rows)))))
    k = min(k, len(rows))
    before, current = whitened, whitened
    index = nearest_neighbours(whitened, whitened, k)
    for _ in range(n_rounds):
        before, current = current, unit_rows(mean_of_rows(current, index))
    return SmoothSpace(mean, axes, unit_rows(mapped), whitened, before, current, index)
