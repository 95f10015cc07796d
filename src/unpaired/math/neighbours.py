"""Nearest rows without an n x n array: exact in blocks, or through cells; FAISS when installed."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unpaired.errors import InputError

Float32 = NDArray[np.float32]
Index = NDArray[np.int64]
Metric = Literal["distance", "inner"]

BLOCK_ENTRIES = 2**23
"""Scores held at a time (32 MiB)."""


def top_k(
    queries: ArrayLike,
    base: ArrayLike,
    k: int,
    *,
    metric: Metric = "distance",
    use_faiss: bool = False,
) -> tuple[Index, Float32]:
    """The k best rows of `base` for each query, best first, and their scores; exact.

    Args:
        queries: (n_queries, d).
        base: (n_base, d).
        k: 1 <= k <= n_base.
        metric: "distance" for squared Euclidean distance (least first), "inner" for the inner
            product (greatest first).
        use_faiss: Use FAISS when it is installed; the answer is the same up to rounding.

    Returns:
        Indices (n_queries, k) and scores (n_queries, k). Memory: one block of scores.
    """
    left = np.ascontiguousarray(queries, dtype=np.float32)
    right = np.ascontiguousarray(base, dtype=np.float32)
    if left.ndim != 2 or right.ndim != 2 or left.shape[1] != right.shape[1]:
        raise InputError(
            "queries and base must be matrices with equally many columns. "
            f"Got {left.shape} and {right.shape}. Map both into one space first."
        )
    if not 1 <= k <= len(right):
        raise InputError(f"k must lie in 1..{len(right)}, the rows of base. Got {k}. Lower it.")
    if use_faiss and find_spec("faiss") is not None:
        return _top_k_faiss(left, right, k, metric)
    half = 0.5 * np.einsum("ij,ij->i", right, right) if metric == "distance" else None
    index = np.empty((len(left), k), dtype=np.int64)
    score = np.empty((len(left), k), dtype=np.float32)
    width = min(len(right), 8192)
    height = max(1, BLOCK_ENTRIES // width)
    for start in range(0, len(left), height):
        rows = slice(start, start + height)
        index[rows], score[rows] = _top_k_block(left[rows], right, half, k, width)
    if metric == "distance":
        square = np.einsum("ij,ij->i", left, left)[:, None]
        score = np.maximum(square - 2 * score, 0)
    return index, score


@dataclass(frozen=True)
class Cells:
    """Rows of one set sorted into cells around centres: an inverted file.

    `members[starts[c]:starts[c + 1]]` are the row numbers of cell c; `rows` keeps that order.
    """

    centers: Float32
    members: Index
    starts: Index
    rows: Float32
    half_square: Float32


def build_cells(
    base: ArrayLike, rng: np.random.Generator, *, cell_size: int = 256, n_rounds: int = 6
) -> Cells:
    """The rows sorted into about n / cell_size cells, found by k-means on a sample."""
    rows = np.ascontiguousarray(base, dtype=np.float32)
    n_cells = max(1, len(rows) // cell_size)
    sample = rows[np.sort(rng.choice(len(rows), min(len(rows), 40 * n_cells), replace=False))]
    centers = sample[np.sort(rng.choice(len(sample), n_cells, replace=False))]
    for _ in range(n_rounds):
        nearest = top_k(sample, centers, 1)[0][:, 0]
        centers = cell_means(sample, nearest, centers)
    nearest = top_k(rows, centers, 1)[0][:, 0]
    members = np.argsort(nearest, kind="stable")
    starts = np.searchsorted(nearest[members], np.arange(n_cells + 1))
    ordered = np.ascontiguousarray(rows[members])
    half = 0.5 * np.einsum("ij,ij->i", ordered, ordered)
    return Cells(centers, members, starts, ordered, half)


def cell_means(rows: Float32, cell: Index, centers: Float32) -> Float32:
    """The mean row of every cell; an empty cell keeps its centre."""
    order = np.argsort(cell, kind="stable")
    starts = np.searchsorted(cell[order], np.arange(len(centers)))
    counts = np.bincount(cell, minlength=len(centers))
    filled = counts > 0
    means = centers.copy()
    sums = np.add.reduceat(rows[order], starts[filled], axis=0)
    means[filled] = sums / counts[filled][:, None]
    return means


def search_cells(
    cells: Cells, queries: ArrayLike, k: int, *, n_probes: int = 8
) -> tuple[Index, Float32]:
    """The k nearest rows among the `n_probes` nearest cells, and their squared distances.

    Slots without a row (cells smaller than k) hold -1 and +inf. Work grows with the rows of the
    probed cells only, so with cells of a fixed size it is linear in the number of queries.
    """
    left = np.ascontiguousarray(queries, dtype=np.float32)
    n_probes = min(n_probes, len(cells.centers))
    probes = top_k(left, cells.centers, n_probes)[0]
    found = np.full((len(left), n_probes * k), -1, dtype=np.int64)
    score = np.full((len(left), n_probes * k), -np.inf, dtype=np.float32)
    order = np.argsort(probes, axis=None, kind="stable")
    bounds = np.searchsorted(probes.ravel()[order], np.arange(len(cells.centers) + 1))
    for cell in range(len(cells.centers)):
        begin, end = cells.starts[cell], cells.starts[cell + 1]
        visits = order[bounds[cell] : bounds[cell + 1]]
        if end == begin or not len(visits):
            continue
        query, slot = np.divmod(visits, n_probes)
        depth = min(k, end - begin)
        near, value = _top_k_block(
            left[query], cells.rows[begin:end], cells.half_square[begin:end], depth, end - begin
        )
        columns = slot[:, None] * k + np.arange(depth)
        found[query[:, None], columns] = cells.members[begin + near]
        score[query[:, None], columns] = value
    best = np.argsort(-score, axis=1, kind="stable")[:, :k]
    index = np.take_along_axis(found, best, axis=1)
    square = np.einsum("ij,ij->i", left, left)[:, None]
    distance = np.maximum(square - 2 * np.take_along_axis(score, best, axis=1), 0)
    return index, distance.astype(np.float32)


def _top_k_block(
    queries: Float32, base: Float32, half_square: Float32 | None, k: int, width: int
) -> tuple[Index, Float32]:
    """The k greatest <q, b> - half_square[b] per query, taken over column blocks."""
    n = len(queries)
    best = np.full((n, k), -np.inf, dtype=np.float32)
    where = np.zeros((n, k), dtype=np.int64)
    here = np.arange(n)
    for start in range(0, len(base), width):
        part = queries @ base[start : start + width].T
        if half_square is not None:
            part -= half_square[start : start + width]
        depth = min(k, part.shape[1])
        if depth > 16:
            near = np.argpartition(-part, depth - 1, axis=1)[:, :depth]
            value = np.take_along_axis(part, near, axis=1)
        else:  # a few passes of argmax beat a partial sort
            near = np.empty((n, depth), dtype=np.int64)
            value = np.empty((n, depth), dtype=np.float32)
            for rank in range(depth):
                near[:, rank] = part.argmax(axis=1)
                value[:, rank] = part[here, near[:, rank]]
                part[here, near[:, rank]] = -np.inf
        value = np.concatenate([best, value], axis=1)
        near = np.concatenate([where, near + start], axis=1)
        order = np.argsort(-value, axis=1, kind="stable")[:, :k]
        best = np.take_along_axis(value, order, axis=1)
        where = np.take_along_axis(near, order, axis=1)
    return where, best


def _top_k_faiss(queries: Float32, base: Float32, k: int, metric: Metric) -> tuple[Index, Float32]:
    """`top_k` by FAISS's flat index."""
    import faiss

    flat = faiss.IndexFlatL2 if metric == "distance" else faiss.IndexFlatIP
    index = flat(base.shape[1])
    index.add(base)
    score, near = index.search(queries, k)
    return near.astype(np.int64), score
