"""Low-dimensional spaces for large sets: principal scores, Nystrom kernel scores, fitted maps."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unpaired.matching.neighbors import Float32

Float = NDArray[np.float64]
Transform = Callable[[NDArray[np.floating]], NDArray[np.floating]]
"""Maps raw rows of one side, (n, d), to another space, (n, r), row by row."""


@dataclass(frozen=True)
class Space:
    """Scores of all rows of one side, (n, r), in order of falling variance, total variance 1."""

    scores: Float32
    transform: Transform


def principal_space(
    rows: NDArray[np.floating],
    rank: int,
    *,
    keep: float = 0.9999,
    weight: NDArray[np.floating] | None = None,
) -> Space:
    """Principal-component scores with at most `rank` axes that hold a share `keep` of variance.

    A row of weight w counts as w rows. Cost O(n d^2); nothing larger than the input is formed.
    """
    total = len(rows) if weight is None else float(weight.sum())
    mean = rows.mean(axis=0, dtype=np.float64) if weight is None else weight @ rows / total
    second = np.zeros((rows.shape[1], rows.shape[1]))
    for start in range(0, len(rows), 8192):
        part = rows[start : start + 8192] - mean
        counted = part if weight is None else part * weight[start : start + 8192, None]
        second += counted.T @ part
    values, vectors = np.linalg.eigh(second / total)
    values, vectors = np.maximum(values[::-1], 0), vectors[:, ::-1]
    share = np.cumsum(values) / max(values.sum(), np.finfo(float).tiny)
    size = max(1, min(rank, int(np.searchsorted(share, keep)) + 1, len(values)))
    scale = np.sqrt(max(values[:size].sum(), np.finfo(float).tiny))
    axes = vectors[:, :size] / scale

    def transform(raw: NDArray[np.floating]) -> NDArray[np.floating]:
        return np.asarray((raw - mean) @ axes, dtype=np.float32)

    return Space(_in_blocks(transform, rows, size), transform)


def nystrom_space(
    rows: NDArray[np.floating],
    rank: int,
    rng: np.random.Generator,
    *,
    n_landmarks: int = 600,
    bandwidth: float = 1.0,
    weight: NDArray[np.floating] | None = None,
) -> Space:
    """Centred Gaussian-kernel scores of rank `rank` from a landmark sample (Nystrom factors).

    The width is `bandwidth` times the median distance between landmarks. K ~ scores @ scores.T up
    to scale and centring, never formed; cost O(n n_landmarks (d + rank)). With weights a row of
    weight w counts as w rows in centre and axes.
    """
    chosen = np.sort(rng.choice(len(rows), min(n_landmarks, len(rows)), replace=False))
    features = gaussian_features(np.asarray(rows[chosen], dtype=np.float64), bandwidth)
    sample = features(rows[chosen])
    raw = _in_blocks(features, rows, sample.shape[1])
    inner = principal_space(raw, rank, weight=weight)

    def transform(new: NDArray[np.floating]) -> NDArray[np.floating]:
        return inner.transform(features(new))

    return Space(inner.scores, transform)


def gaussian_features(landmarks: Float, bandwidth: float) -> Transform:
    """The map to Nystrom features phi with phi(a).phi(b) ~ exp(-|a - b|^2 / (2 h^2))."""
    square = square_distances(landmarks, landmarks)
    off = square[np.triu_indices(len(square), 1)]
    width = bandwidth**2 * float(np.median(off)) if off.size else 1.0
    width = width or 1.0
    gram = np.exp(-0.5 * square / width)
    values, vectors = np.linalg.eigh(gram)
    good = values > 1e-6 * values[-1]
    root = vectors[:, good] / np.sqrt(values[good])

    def features(raw: NDArray[np.floating]) -> NDArray[np.floating]:
        return np.asarray(np.exp(-0.5 * square_distances(raw, landmarks) / width) @ root)

    return features


def weighted_rotation(source: Float32, target: Float32, weight: Float) -> Float:
    """The scaled orthogonal matrix R, (r_x, r_y), least in sum w |source R - target|^2."""
    cross = (source * weight[:, None]).T.astype(np.float64) @ target
    left, singular, right = np.linalg.svd(cross, full_matrices=False)
    power = float((weight[:, None] * np.square(source, dtype=np.float64)).sum())
    return np.asarray(singular.sum() / max(power, 1e-300) * (left @ right))


def ridge_map(source: Float, target: Float, weight: Float, ridge: float) -> tuple[Float, Float]:
    """Coefficients and intercept of weighted ridge regression; `ridge` is a share of the trace."""
    total = weight.sum()
    mean_s = weight @ source / total
    mean_t = weight @ target / total
    centred = source - mean_s
    gram = (centred * weight[:, None]).T @ centred
    gram[np.diag_indices_from(gram)] += ridge * np.trace(gram) / len(gram)
    coef = np.linalg.solve(gram, (centred * weight[:, None]).T @ (target - mean_t))
    return coef, mean_t - mean_s @ coef


def square_distances(a: NDArray[np.floating], b: NDArray[np.floating]) -> Float:
    """Squared Euclidean distances between two small sets of rows."""
    square = (a * a).sum(axis=1)[:, None] + (b * b).sum(axis=1) - 2 * (a @ b.T)
    return np.asarray(np.maximum(square, 0), dtype=np.float64)


def _in_blocks(transform: Transform, rows: NDArray[np.floating], width: int) -> Float32:
    """The transform of all rows, a block at a time."""
    out = np.empty((len(rows), width), dtype=np.float32)
    for start in range(0, len(rows), 8192):
        out[start : start + 8192] = transform(rows[start : start + 8192])
    return out
