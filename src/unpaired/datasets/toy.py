"""Toy problems with a known answer, at any size and with any share of rows that have no partner."""

from __future__ import annotations

import numpy as np

from unpaired.datasets.two_views import TwoViews
from unpaired.types import FloatArray


def rotated_clusters(
    n: int,
    rng: np.random.Generator,
    *,
    d_x: int = 64,
    d_y: int = 64,
    n_clusters: int = 50,
    center_scale: float = 3.0,
    noise: float = 0.1,
    anisotropy: float = 0.5,
    extra_x: int = 0,
    extra_y: int = 0,
    scale_y: float = 1.0,
    uneven: bool = False,
) -> TwoViews:
    """Clustered rows and a noisy rotation of them, shuffled; extras have no partner."""
    total = n + extra_x + extra_y
    mass = rng.dirichlet(np.ones(n_clusters)) if uneven else np.full(n_clusters, 1 / n_clusters)
    label = rng.choice(n_clusters, total, p=mass)
    centers = center_scale * rng.normal(size=(n_clusters, d_x))
    spread = np.exp(anisotropy * rng.normal(size=d_x))
    frame = np.linalg.qr(rng.normal(size=(d_x, d_x)))[0]
    rows = centers[label] + (rng.normal(size=(total, d_x)) * spread) @ frame
    wide = max(d_x, d_y)
    rotation = np.linalg.qr(rng.normal(size=(wide, wide)))[0][:d_x, :d_y]
    y_all = scale_y * (rows @ rotation + noise * rng.normal(size=(total, d_y)))
    return _split(rows, y_all, n, extra_x, extra_y, rng)


def jittered_digits(
    n: int,
    rng: np.random.Generator,
    *,
    d_y: int = 64,
    jitter: float = 1.0,
    extra_x: int = 0,
    extra_y: int = 0,
    gain: float = 2.0,
) -> TwoViews:
    """Digit images (repeated with jitter when n asks for it) and a random tanh projection."""
    from sklearn.datasets import load_digits

    data = load_digits().data
    total = n + extra_x + extra_y
    if total <= len(data):
        rows = data[rng.choice(len(data), total, replace=False)]
    else:
        rows = data[np.arange(total) % len(data)]
        rows = rows + jitter * rng.normal(size=rows.shape)
    rows = rows / 16
    weights = rng.normal(size=(rows.shape[1], d_y)) / np.sqrt(rows.shape[1])
    y_all = np.tanh(gain * (rows - rows.mean(0)) @ weights)
    return _split(rows, y_all, n, extra_x, extra_y, rng)


def _split(
    x_all: FloatArray,
    y_all: FloatArray,
    n: int,
    extra_x: int,
    extra_y: int,
    rng: np.random.Generator,
) -> TwoViews:
    """The shuffled sides: n shared rows, then rows only x has, then rows only y has."""
    order = rng.permutation(len(x_all))
    shared, rest = order[:n], order[n:]
    in_x = np.concatenate([shared, rest[:extra_x]])
    in_y = np.concatenate([shared, rest[extra_x : extra_x + extra_y]])
    in_x, in_y = rng.permutation(in_x), rng.permutation(in_y)
    place = np.full(len(x_all), -1, dtype=np.int64)
    place[in_y] = np.arange(len(in_y))
    return TwoViews(x_all[in_x], y_all[in_y], place[in_x])
