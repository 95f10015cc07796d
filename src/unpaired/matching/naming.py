"""Naming rows with no labels, or few: clusters of features matched to vectors of the classes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unpaired.matching.small_qap import Assignments, best_assignments
from unpaired.matching.smoothing import SmoothSpace, smooth_features, unit_rows

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]

UNKNOWN = -1


@dataclass(frozen=True)
class Clusters:
    """A spherical clustering: centres (k, p) of unit length, the cluster of each row, the fit."""

    centres: Floats
    index: Ints
    fit: float


def cluster(
    smoothed: Floats, n_clusters: int, rng: np.random.Generator, *, n_init: int = 10
) -> Clusters:
    """Return the best of several spherical k-means runs, each from a k-means++ start."""
    rows = np.asarray(smoothed)
    best: Clusters | None = None
    for _ in range(n_init):
        run = spherical_k_means(rows, _spread_start(rows, n_clusters, rng))
        if best is None or run.fit > best.fit:
            best = run
    assert best is not None
    return best


def spherical_k_means(
    rows: Floats, centres: Floats, *, fixed: Ints | None = None, n_rounds: int = 100
) -> Clusters:
    """Return spherical k-means from given centres; rows with ``fixed >= 0`` keep that cluster."""
    index = np.full(len(rows), -1)
    centres = unit_rows(centres)
    similarity = rows @ centres.T
    for _ in range(n_rounds):
        similarity = rows @ centres.T
        new = similarity.argmax(axis=1)
        if fixed is not None:
            new = np.where(fixed >= 0, fixed, new)
        if np.array_equal(new, index):
            break
        index = new
        sums = sum_by(rows, index, len(centres))
        empty = np.flatnonzero(np.bincount(index, minlength=len(centres)) == 0)
        if len(empty):
            lonely = np.argsort(similarity.max(axis=1), kind="stable")[: len(empty)]
            sums[empty[: len(lonely)]] = rows[lonely]
        centres = unit_rows(sums)
    return Clusters(centres, index, float(similarity[np.arange(len(rows)), index].mean()))


def sum_by(rows: Floats, index: Ints, n_groups: int) -> Floats:
    """Return the sums (k, d) of the rows of each group; negative groups are left out."""
    total = np.zeros((n_groups, rows.shape[1]), dtype=rows.dtype)
    for group in range(n_groups):
        total[group] = rows[index == group].sum(axis=0)
    return total


def mean_by(rows: Floats, index: Ints, n_groups: int) -> Floats:
    """Return the means (k, d) of the rows of each group; an empty group has the overall mean."""
    counts = np.bincount(index[index >= 0], minlength=n_groups)
    means = sum_by(rows, index, n_groups) / np.maximum(counts, 1)[:, None]
    means[counts == 0] = rows.mean(axis=0)
    return means


def _spread_start(rows: Floats, n_clusters: int, rng: np.random.Generator) -> Floats:
    chosen = [int(rng.integers(len(rows)))]
    distance = np.full(len(rows), np.inf)
    for _ in range(n_clusters - 1):
        distance = np.minimum(distance, np.maximum(1.0 - rows @ rows[chosen[-1]], 0.0))
        total = float(distance.sum(dtype=np.float64))
        if total <= 1e-9:
            chosen.append(int(rng.integers(len(rows))))
            continue
        draws = rng.uniform(0.0, total, size=2 + int(np.log(n_clusters)))
        candidates = np.searchsorted(np.cumsum(distance, dtype=np.float64), draws)
        candidates = np.minimum(candidates, len(rows) - 1)
        left = [
            float(np.minimum(distance, 1.0 - rows @ rows[c]).sum(dtype=np.float64))
            for c in candidates
        ]
        chosen.append(int(candidates[int(np.argmin(left))]))
    return rows[chosen]


def centred_kernel(vectors: Floats) -> Floats:
    """Return the doubly centred linear kernel of the rows, scaled to Frobenius norm one."""
    rows = np.asarray(vectors, dtype=np.float64)
    rows = rows - rows.mean(axis=0)
    kernel = rows @ rows.T
    return kernel / max(float(np.linalg.norm(kernel)), 1e-300)


def u_centred_kernel(vectors: Floats) -> Floats:
    """Return the U-centred linear kernel (zero diagonal, unbiased), of Frobenius norm one."""
    rows = np.asarray(vectors, dtype=np.float64)
    rows = rows - rows.mean(axis=0)
    size = len(rows)
    kernel = rows @ rows.T
    if size < 4:
        return centred_kernel(vectors)
    np.fill_diagonal(kernel, 0.0)
    sums = kernel.sum(axis=0)
    kernel = kernel - (sums[:, None] + sums[None, :]) / (size - 2)
    kernel = kernel + sums.sum() / ((size - 1) * (size - 2))
    np.fill_diagonal(kernel, 0.0)
    return kernel / max(float(np.linalg.norm(kernel)), 1e-300)


def kernel_mix(
    thing_views: Sequence[Floats], name_views: Sequence[Floats]
) -> list[tuple[Floats, Floats]]:
    """Return all pairs of kernels: {centred, U-centred} x views of things x views of names."""
    return [
        (centre(things), centre(names))
        for centre in (centred_kernel, u_centred_kernel)
        for things in thing_views
        for names in name_views
    ]


@dataclass(frozen=True)
class Naming:
    """Names of rows, how sure they are, and what they were made from.

    Attributes:
        labels: Class (n,) of each row, an index into the class vectors.
        probabilities: Probability (n, m) of each class for each row.
        clusters: The clustering that was named.
        cluster_classes: Class of each cluster.
        assignments: Scores and marginals of the assignment of classes to clusters.
        space: The smoothed space, which maps new rows.
        classifier: Weights (p + 1, m) of the final linear classifier on new rows, or None.
    """

    labels: Ints
    probabilities: Floats
    clusters: Clusters
    cluster_classes: Ints
    assignments: Assignments
    space: SmoothSpace
    classifier: Floats | None = None

    def predict_probabilities(self, features: Floats) -> Floats:
        """Return the probability (n, m) of each class for new rows."""
        smoothed = self.space.transform(features)
        return membership(smoothed, self.clusters.centres)[:, np.argsort(self.cluster_classes)]

    def predict(self, features: Floats) -> Ints:
        """Return the class of new rows."""
        return self.predict_probabilities(features).argmax(axis=1)


def membership(smoothed: Floats, centres: Floats, *, sharpness: float = 10.0) -> Floats:
    """Return the probability (n, k) of each cluster for each row, from its cosines to the centres."""
    logits = sharpness * (smoothed @ centres.T).astype(np.float64)
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    return weights / weights.sum(axis=1, keepdims=True)


def name_classes(
    features: Floats,
    class_vectors: Floats | Sequence[Floats],
    *,
    labels: Ints | None = None,
    rng: np.random.Generator,
    linear: Floats | None = None,
) -> Naming:
    """Return a class for each row from the geometry of the class vectors, with no or few labels.

    Rows are clustered in the smoothed space; the clusters are given the classes whose vectors
    have the same mutual similarities, by the sum of all kernels; known labels vote.
    """
    views = [class_vectors] if isinstance(class_vectors, np.ndarray) else list(class_vectors)
    size = len(views[0])
    rows = np.asarray(features, dtype=np.float32)
    space = smooth_features(rows, n_neighbours=max(1, min(20, len(rows) // (2 * size))))
    groups = cluster(space.smoothed, size, rng)
    means = [mean_by(rows, groups.index, size), mean_by(space.whitened, groups.index, size)]
    value = np.zeros((size, size)) if linear is None else linear
    if labels is not None:
        known = np.flatnonzero(labels >= 0)
        vote = np.log(membership(space.smoothed[known], groups.centres))
        for row, label in zip(vote, labels[known], strict=True):
            value[:, label] += row
    found = best_assignments(kernel_mix(means, views), value, rng=rng)
    names = found.best
    inverse = np.argsort(names)
    probabilities = membership(space.smoothed, groups.centres)[:, inverse]
    return Naming(names[groups.index], probabilities, groups, names, found, space)
