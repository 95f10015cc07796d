"""Coordinates from shortest paths on a graph of nearest rows: what bends is laid flat."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch
from scipy.linalg import eigh
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components, dijkstra
from torch import Tensor

from unpaired.math.kernels import squared_distances
from unpaired.views.features import Features, fit_features, in_blocks

N_NEIGHBOURS = 30
"""Neighbours of a row in the graph."""
N_COORDINATES = 40
N_LANDMARKS = 600
"""Rows to which paths are measured; with 200 photos by two networks fall from .07 to .13."""
BASE_RANK = 128
"""Principal components in which neighbours are found."""


@dataclass(frozen=True)
class Geodesic:
    """Coordinates whose products are the doubly centred kernel -D/2 of path lengths D."""

    base: Features
    rows: Tensor
    """(n, r) the fitted rows in the coordinates of ``base``."""
    paths: Tensor
    """(n, m) path length from each of them to each landmark."""
    n_neighbours: int
    axes: Tensor
    """(m, k)."""
    offset: Tensor
    """(1, k)."""

    kind: ClassVar[str] = "geodesic"

    def __call__(self, rows: Tensor) -> Tensor:
        """Coordinates (n, k): the shortest way through a near fitted row to each landmark."""
        return in_blocks(self._place, rows)

    def _place(self, rows: Tensor) -> Tensor:
        step, near = nearest(self.base(rows), self.rows, max(2, self.n_neighbours // 3))
        best = self.paths[near[:, 0]] + step[:, :1]
        for column in range(1, near.shape[1]):
            torch.minimum(best, self.paths[near[:, column]] + step[:, column, None], out=best)
        return -0.5 * best @ self.axes - self.offset


def fit_geodesic(
    rows: Tensor, metric: str, rng: np.random.Generator, *, n_landmarks: int = N_LANDMARKS
) -> tuple[Geodesic, Tensor]:
    """The map fitted on the rows (n, d), and their coordinates (n, k), mean squared length one.

    Paths run on the symmetric graph of nearest rows. Parts of it that no path joins are as far from
    each other as the longest path and the straight way together. Cost O(n m k log n).
    """
    n = len(rows)
    base = fit_features(rows, rng, max_rank=BASE_RANK, metric=metric)
    placed = base(rows)
    count = max(2, min(N_NEIGHBOURS, (n - 1) // 3))
    step, near = nearest(placed, placed, count, skip_self=True)
    start = np.repeat(np.arange(n), near.shape[1])
    lengths = step.cpu().numpy().astype(np.float64).ravel() + 1e-9
    graph = csr_matrix((lengths, (start, near.cpu().numpy().ravel())), (n, n))
    graph = graph.maximum(graph.T)
    marks = np.sort(rng.permutation(n)[:n_landmarks])
    paths = dijkstra(graph, indices=marks).T  # (n, m); the graph is symmetric
    if connected_components(graph, directed=False, return_labels=False) > 1:
        reach = paths[np.isfinite(paths)].max()
        straight = squared_distances(placed, placed[torch.as_tensor(marks)]).sqrt().cpu().numpy()
        paths = np.where(np.isfinite(paths), paths, reach + straight)
    among = -0.25 * (paths[marks] + paths[marks].T)
    centred = among - among.mean(0) - among.mean(1)[:, None] + among.mean()
    size = len(marks)
    values, vectors = eigh(centred, subset_by_index=(max(0, size - N_COORDINATES), size - 1))
    kept = np.flatnonzero(values > 1e-9 * max(values.max(), 1e-300))[::-1]
    if not len(kept):
        kept = np.array([len(values) - 1])
    axes = vectors[:, kept] / np.sqrt(np.maximum(values[kept], 1e-300))
    coordinates = -0.5 * paths @ axes
    offset = coordinates.mean(0)
    length = max(float(np.sqrt(np.square(coordinates - offset).sum(1).mean())), 1e-30)
    own = rows.new_tensor(axes / length), rows.new_tensor(offset / length)[None]
    found = Geodesic(base, placed, rows.new_tensor(paths), count, *own)
    return found, rows.new_tensor((coordinates - offset) / length)


def nearest(
    queries: Tensor, base: Tensor, count: int, *, skip_self: bool = False
) -> tuple[Tensor, Tensor]:
    """Distances to, and numbers of, the nearest rows of ``base``, (n, count) each."""
    distances = squared_distances(queries, base)
    if skip_self:
        distances.fill_diagonal_(torch.inf)
    square, index = distances.topk(min(count, len(base)), 1, largest=False)
    return square.sqrt(), index
