"""Views: comparable coordinates of each side on its own, with a way to place rows never seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import eigh
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import connected_components, dijkstra

from unpaired.types import FloatArray

Array = FloatArray
Embed = Callable[[Array], Array]


@dataclass(frozen=True)
class Side:
    """One side in one view: centred coordinates whose inner products are the kernel."""

    coords: Array
    embed: Embed


def unit_rows(z: Array) -> Array:
    """Return the rows scaled to unit length; zero rows stay zero."""
    norm = np.sqrt(np.einsum("ij,ij->i", z, z))
    return z / np.where(norm > 1e-12, norm, 1.0)[:, None]


def prepare(x: Array, metric: str) -> Callable[[Array], Array]:
    """Return a function that turns rows into the space where `metric` is Euclidean.

    `cosine` centres columns and scales rows to unit length, `correlation` also centres each row
    over its columns, `euclidean` centres columns and divides by one common scale.
    """
    mean = x.mean(axis=0)
    if metric == "cosine":
        return lambda z: unit_rows(z - mean)
    if metric == "correlation":
        if x.shape[1] < 3:
            return lambda z: unit_rows(z - mean)
        return lambda z: unit_rows(z - z.mean(axis=1, keepdims=True))
    scale = float(np.sqrt(np.mean(np.sum((x - mean) ** 2, axis=1)))) or 1.0
    return lambda z: (z - mean) / scale


def principal(x: Array, dims: int) -> tuple[Array, Array, Array]:
    """Return the mean, the top principal axes (columns) and the variances along them."""
    mean = x.mean(axis=0)
    centred = x - mean
    if x.shape[1] <= x.shape[0]:
        values, axes = np.linalg.eigh(centred.T @ centred / len(x))
    else:
        values, left = np.linalg.eigh(centred @ centred.T / len(x))
        axes = centred.T @ left / np.sqrt(np.maximum(values, 1e-300) * len(x))
    order = np.argsort(-values)[: min(dims, len(x) - 1)]
    order = order[values[order] > 1e-10 * max(values.max(), 1e-300)]
    return mean, axes[:, order], values[order]


def linear_side(x: Array, dims: int = 128, whiten: float = 0.25, metric: str = "cosine") -> Side:
    """Return principal coordinates of the prepared rows, variances to the power 1 - 2 `whiten`."""
    shape = prepare(x, metric)
    mean, axes, values = principal(shape(x), dims)
    axes = axes / values**whiten

    def embed(z: Array) -> Array:
        return (shape(z) - mean) @ axes

    return Side(embed(x), embed)


def squared_distances(a: Array, b: Array) -> Array:
    """Return squared Euclidean distances between the rows of `a` and `b`."""
    out = a @ b.T
    out *= -2
    out += np.einsum("ij,ij->i", a, a)[:, None]
    out += np.einsum("ij,ij->i", b, b)[None, :]
    return np.maximum(out, 0, out=out)


def nearest(
    points: Array, others: Array, k: int, skip_self: bool
) -> tuple[NDArray[np.int64], Array]:
    """Return indices of, and distances to, the `k` nearest rows of `others`."""
    d = squared_distances(points, others)
    if skip_self:
        np.fill_diagonal(d, np.inf)
    k = min(k, others.shape[0] - int(skip_self))
    idx = np.argpartition(d, k - 1, axis=1)[:, :k]
    return idx, np.sqrt(np.take_along_axis(d, idx, axis=1))


def geodesic_side(
    x: Array,
    metric: str,
    rng: np.random.Generator,
    k: int = 30,
    dims: int = 40,
    landmarks: int = 600,
) -> Side:
    """Return coordinates from shortest paths on the k-NN graph, kernel -D/2 double centred.

    Distances are taken to at most `landmarks` rows; everything else is placed by Nystrom extension.
    """
    n = len(x)
    prepared = prepare(x, metric)
    mean, basis, _ = principal(prepared(x), 128)

    def shape(rows: Array) -> Array:
        return (prepared(rows) - mean) @ basis

    z = shape(x)
    k = max(2, min(k, (n - 1) // 3))
    idx, dist = nearest(z, z, k, skip_self=True)
    start = np.repeat(np.arange(n), idx.shape[1])
    graph = csr_matrix((dist.ravel() + 1e-9, (start, idx.ravel())), (n, n))
    graph = graph.maximum(graph.T)
    marks = np.sort(rng.choice(n, size=min(n, landmarks), replace=False))
    d = dijkstra(graph, directed=False, indices=marks)
    if connected_components(graph, directed=False, return_labels=False) > 1:
        reach = d[np.isfinite(d)].max()
        straight = np.sqrt(squared_distances(z[marks], z))
        d = np.where(np.isfinite(d), d, reach + straight)
    d_mark = d[:, marks]
    d_mark = (d_mark + d_mark.T) / 2
    kernel = -0.5 * d_mark
    col = kernel.mean(axis=0)
    total = col.mean()
    m = len(marks)
    values, vectors = eigh(
        kernel - col[None] - col[:, None] + total, subset_by_index=(max(0, m - dims), m - 1)
    )
    order = np.argsort(-values)[:dims]
    order = order[values[order] > 1e-9 * values.max()]
    axes = vectors[:, order] / np.sqrt(values[order])

    def place(to_marks: Array) -> Array:
        return (-0.5 * to_marks - col[None]) @ axes

    offset = place(d.T).mean(axis=0)

    def embed(new: Array) -> Array:
        out = []
        for part in np.array_split(shape(new), max(1, len(new) // 500)):
            nb, step = nearest(part, z, max(2, k // 3), skip_self=False)
            best = np.full((len(part), len(marks)), np.inf)
            for j in range(nb.shape[1]):
                np.minimum(best, d[:, nb[:, j]].T + step[:, j, None], out=best)
            out.append(place(best) - offset)
        return np.concatenate(out)

    return Side(place(d.T) - offset, embed)


def gaussian_side(
    x: Array,
    rng: np.random.Generator,
    dims: int = 256,
    landmarks: int = 800,
    width: float = 0.5,
    ridge: float = 5.0,
) -> Side:
    """Return principal coordinates of a Gaussian kernel, whitened as far as a ridge allows.

    The kernel's variance is `width` times the median squared distance; features come from at most
    `landmarks` rows (Nystrom); variances v become v / (v + `ridge` times their mean).
    """
    shape = prepare(x, "cosine")
    marks = shape(x[np.sort(rng.permutation(len(x))[:landmarks])])
    between = squared_distances(marks, marks)
    spread = 2 * width * max(float(np.median(between)), 1e-12)
    values, vectors = np.linalg.eigh(np.exp(-between / spread))
    keep = values > 1e-6 * values[-1]
    basis = vectors[:, keep] / np.sqrt(values[keep])

    def features(z: Array) -> Array:
        return np.exp(-squared_distances(shape(z), marks) / spread) @ basis

    raw = features(x)
    mean, axes, variance = principal(raw, dims)
    axes = axes / np.sqrt(variance + ridge * variance.mean())
    return Side((raw - mean) @ axes, lambda z: (features(z) - mean) @ axes)


def smoothed_side(base: Side, k: int = 20) -> Side:
    """Return the directions of `base` averaged over each row's `k` nearest rows: noise cancels."""
    rows = unit_rows(base.coords)
    single = rows.astype(np.float32)
    k = min(k, len(rows) - 1)

    def average(units: Array, skip_self: bool) -> Array:
        close = units.astype(np.float32) @ single.T
        if skip_self:
            np.fill_diagonal(close, -np.inf)
        near = np.argpartition(-close, k - 1, axis=1)[:, :k]
        return unit_rows(units + rows[near].sum(axis=1))

    known = average(rows, skip_self=True)
    mean = known.mean(axis=0)
    return Side(known - mean, lambda z: average(unit_rows(base.embed(z)), False) - mean)
