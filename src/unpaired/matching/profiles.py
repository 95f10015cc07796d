"""Profiles: what a row looks like from inside its own side, comparable across sides."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.special import ndtri
from scipy.stats import rankdata

from unpaired.matching.soft_refine import Index, Single, standardise
from unpaired.matching.views import principal, squared_distances, unit_rows
from unpaired.types import FloatArray

Array = FloatArray


def rank_gauss(z: Array) -> Array:
    """Return the columns replaced by standard normal scores of their ranks."""
    return np.asarray(ndtri((rankdata(z, axis=0) - 0.5) / len(z)))


def raw_profile(similarity: Array, scales: int = 12, rounds: int = 3) -> Array:
    """Return per-row descriptors of a similarity matrix with shape (n, n).

    Drops in mean similarity from the top k rows to the top k' > k rows at log-spaced k (a local
    dimension at every scale, blind to the overall density), spread, skew and kurtosis of the row;
    each smoothed over neighbours in `rounds` rounds, with the spread among neighbours.
    """
    n = len(similarity)
    s = similarity.astype(np.float32)
    np.fill_diagonal(s, np.inf)
    s.sort(axis=1)
    rest = s[:, -2::-1]
    total = np.cumsum(rest, axis=1, dtype=np.float64)
    ks = np.unique(np.round(np.geomspace(max(2, n / 200), n * 0.9, scales)).astype(int))
    ks = ks[ks <= n - 1]
    drop = np.diff(total[:, ks - 1] / ks, axis=1)
    centred = rest - total[:, -1:].astype(np.float32) / (n - 1)
    sd = np.sqrt((centred**2).mean(axis=1, keepdims=True)) + 1e-12
    centred /= sd
    power = centred * centred
    kurtosis = (power * power).mean(axis=1, keepdims=True)
    power *= centred
    skew = power.mean(axis=1, keepdims=True)
    base = rank_gauss(np.concatenate([drop, sd, skew, kurtosis], axis=1))
    k = min(max(10, min(40, n // 50)), n - 1)
    np.copyto(s, similarity)
    np.fill_diagonal(s, -np.inf)
    idx = np.argpartition(s, n - k, axis=1)[:, n - k :]
    blocks = [base]
    current = base
    for _ in range(rounds):
        gathered = current[idx]
        spread = gathered.std(axis=1)
        current = gathered.mean(axis=1)
        blocks += [rank_gauss(current), rank_gauss(spread)]
    return np.concatenate(blocks, axis=1)


def joint_profile(px: Array, py: Array, dims: int = 12) -> tuple[Array, Array]:
    """Return both raw profiles in one common basis of at most `dims` axes, unit variance."""
    mean, axes, values = principal(np.concatenate([px, py]), dims)
    scale = np.sqrt(values.sum())
    return (px - mean) @ axes / scale, (py - mean) @ axes / scale


def profile_score(px: Array, py: Array) -> Single:
    """Return standardised closeness of profiles, shape (n_x, n_y)."""
    return standardise((-squared_distances(px, py)).astype(np.float32))


def pair_score(coords: Sequence[tuple[Array, Array]], pairs: Index) -> Single:
    """Return standardised likeness of rows by their closeness to known pairs, shape (n_x, n_y).

    Each row is described by the rank of its distance to every known row of its own side, in every
    view (relative representations, Moschella et al. 2023); known pairs make columns comparable.
    """
    sides = []
    for which in (0, 1):
        blocks = []
        for both in coords:
            rows = both[which]
            blocks.append(rank_gauss(-squared_distances(rows, rows[pairs[:, which]])))
        sides.append(np.concatenate(blocks, axis=1))
    mean, axes, values = principal(np.concatenate(sides), sides[0].shape[1])
    axes = axes / values**0.25
    left, right = (unit_rows((side - mean) @ axes).astype(np.float32) for side in sides)
    return standardise(left @ right.T)
