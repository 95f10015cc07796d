"""Rotations between two sides, by rounds of soft partners and Procrustes, on small arrays.

One round is what ``alignment.alternation`` does with a critic of one view and power 0 (a test
compares them). It is written out for NumPy since searches make thousands of rounds on some hundred
rows, where a third of the time remains once nothing stands between the products.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from unpaired.math.neighbours import Float32

N_SCALINGS, RELAXATION = 7, 1.4
"""Rounds of Sinkhorn's scaling, and how far each goes, as in ``plans.plan``."""
TINY = np.float32(1e-37)


def products(x: Float32, y: Float32, rotation: Float32) -> Float32:
    """Products (n_x, n_y) of the rotated rows of x with those of y."""
    return _single((x @ rotation) @ y.T)


def nearest_rotation(matrix: Float32) -> Float32:
    """The orthogonal matrix (p, q) nearest to a matrix."""
    left, _, right = np.linalg.svd(matrix, full_matrices=False)
    return _single(left @ right)


def soft_cross(x: Float32, y: Float32, scores: Float32, temperature: float) -> Float32:
    """Products (p, q) of the rows of x with their expected partners, summed over rows.

    Partners are those of the balanced soft plan of the scores (n_x, n_y), whose ``temperature``
    counts in standard deviations of the scores. The scores are overwritten.
    """
    n_x, n_y = scores.shape
    square = float(np.vdot(scores, scores)) / scores.size
    deviation = max(square - float(scores.mean()) ** 2, 0.0) ** 0.5
    heat = np.float32(temperature * max(deviation, 1e-6 * square**0.5, 1e-12))
    scores -= scores.max(1, keepdims=True)
    scores *= 1 / heat
    kernel = np.exp(scores, out=scores)
    u, v = np.ones(n_x, np.float32), np.ones(n_y, np.float32)
    farther = np.float32(0.0)
    for _ in range(N_SCALINGS):
        found = np.float32(1 / n_x) / np.maximum(kernel @ v, TINY)
        u = _single(found * (found / u) ** farther if farther else found)
        found = np.float32(1 / n_y) / np.maximum(u @ kernel, TINY)
        v = _single(found * (found / v) ** farther if farther else found)
        farther = np.float32(RELAXATION - 1.0)
    expected = kernel @ (v[:, None] * y)
    expected /= np.maximum(kernel @ v, TINY)[:, None]
    return _single(x.T @ expected)


def climb(
    x: Float32,
    y: Float32,
    rotation: Float32,
    sizes: Sequence[int],
    temperature: float,
    rng: np.random.Generator,
    known: Float32 | None = None,
) -> Float32:
    """The rotation (p, q) after one round for each size, on so many rows of each side, drawn anew.

    ``known`` are products (p, q) of known pairs, added in each round in the size of the soft ones.
    """
    for size in sizes:
        left, right = (rows[rng.permutation(len(rows))[:size]] for rows in (x, y))
        cross = soft_cross(left, right, products(left, right, rotation), temperature)
        if known is not None:
            cross += np.linalg.norm(cross) * known
        rotation = nearest_rotation(cross)
    return rotation


def closeness(x: Float32, y: Float32, rotation: Float32) -> float:
    """The mean product of rows with the nearest one of the other side, once rotated."""
    scores = products(x, y, rotation)
    return float(scores.max(1).mean() + scores.max(0).mean()) / 2.0


def overlap(one: Float32, other: Float32) -> float:
    """The mean cosine of where two rotations send a component: 1 if the same, about 0 by chance."""
    return float((one * other).sum()) / min(one.shape)


def _single(values: NDArray[np.floating]) -> Float32:
    """The values in single precision, which they have already: NumPy's types do not tell."""
    return np.asarray(values, dtype=np.float32)
