"""Spherical k-means, free or with some rows held, and means of groups."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unpaired.naming.smooth_space import unit_rows

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]


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


def follow_seeds(rows: Floats, labels: Ints, n_groups: int, *, n_rounds: int = 10) -> Clusters:
    """Return clusters whose centres stay half-way between the labelled rows and their members.

    Unlike free k-means it does not split large groups, so it suits groups of uneven size. A group
    without a label starts at the row that is farthest from all centres so far.
    """
    seeds = unit_rows(sum_by(rows, labels, n_groups))
    missing = np.flatnonzero(np.bincount(labels[labels >= 0], minlength=n_groups) == 0)
    for group in missing:
        seeds[group] = rows[int((rows @ seeds.T).max(axis=1).argmin())]
    centres = seeds
    index = np.zeros(len(rows), dtype=np.int64)
    for _ in range(n_rounds):
        index = (rows @ centres.T).argmax(axis=1)
        centres = unit_rows(unit_rows(mean_by(rows, index, n_groups)) + seeds)
    similarity = rows @ centres.T
    index = np.where(labels >= 0, labels, similarity.argmax(axis=1))
    return Clusters(centres, index, float(similarity[np.arange(len(rows)), index].mean()))
