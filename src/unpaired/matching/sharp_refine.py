"""Refining a map between two score spaces: nearest rows and least squares in turn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unpaired.matching.neighbors import Cells, Float32, Index, build_cells, search_cells
from unpaired.matching.spaces import (
    Float,
    Space,
    Transform,
    gaussian_features,
    ridge_map,
    weighted_rotation,
)
from unpaired.types import FloatArray

ScoreMap = Callable[[Float32], Float32]
"""Maps scores of x, (n, r), into the score space of y, (n, r)."""


@dataclass(frozen=True)
class Pairing:
    """Scores of both sides in equally many dimensions, and cells over those of y."""

    x: Float32
    y: Float32
    cells: Cells
    transform_x: Transform
    transform_y: Transform
    """Raw rows of a side -> its scores."""
    weight_x: FloatArray | None = None
    weight_y: FloatArray | None = None
    """How much each row counts; None = all alike."""

    def weigh(self, value: Float, query: Index, near: Index) -> Float:
        """The values of queries times the weights of the pairs they make with `near`."""
        if self.weight_x is not None:
            value = value * self.weight_x[query]
        return value if self.weight_y is None else value * self.weight_y[near]

    def mean(self, value: Float, query: Index, near: Index) -> float:
        """The mean of the values of queries, each pair counted by its weight."""
        if self.weight_x is None and self.weight_y is None:
            return float(value.mean())
        total = float(self.weigh(np.ones(len(query)), query, near).sum())
        return float(self.weigh(value, query, near).sum()) / max(total, 1e-300)


@dataclass(frozen=True)
class Fitted:
    """A map between the score spaces, its kind, and its mean contrast on held-out rows."""

    apply: ScoreMap
    kind: str
    contrast: float


def pair_spaces(
    x: Space,
    y: Space,
    rng: np.random.Generator,
    weight_x: FloatArray | None = None,
    weight_y: FloatArray | None = None,
) -> Pairing:
    """Both score sets cut to the smaller rank, with cells over y."""
    size = min(x.scores.shape[1], y.scores.shape[1])
    right = np.ascontiguousarray(y.scores[:, :size])
    return Pairing(
        np.ascontiguousarray(x.scores[:, :size]),
        right,
        build_cells(right, rng),
        lambda rows: np.asarray(x.transform(rows)[:, :size], dtype=np.float32),
        lambda rows: np.asarray(y.transform(rows)[:, :size], dtype=np.float32),
        weight_x,
        weight_y,
    )


def refine_rotation(
    pairing: Pairing, rotation: Float, query: Index, *, n_rounds: int = 25
) -> tuple[Float, float]:
    """The rotation after alternating nearest rows and least squares, and its mean contrast.

    Contrast is 1 - (nearest distance / runner-up distance): near 0 for a wrong rotation. It also
    weighs the rows, so rows with no partner hardly count.
    """
    source = pairing.x[query]
    last: Index | None = None
    reached = 0.0
    for _ in range(n_rounds):
        near, contrast = nearest(pairing, source @ rotation)
        reached = pairing.mean(contrast, query, near)
        if last is not None and (near == last).mean() > 0.9995:
            break
        last = near
        weight = pairing.weigh(contrast + 1e-3, query, near)
        rotation = weighted_rotation(source, pairing.y[near], weight)
    return rotation, reached


def rotation_map(rotation: Float, contrast: float) -> Fitted:
    """A rotation as a map, with the contrast it reached."""
    start = rotation.astype(np.float32)
    return Fitted(lambda rows: np.asarray(rows @ start, dtype=np.float32), "rotation", contrast)


def draw_landmarks(pairing: Pairing, rng: np.random.Generator) -> Float32:
    """At most 400 rows of x in their order, for the features of kernel maps."""
    n_landmarks = min(400, len(pairing.x))
    return pairing.x[np.sort(rng.choice(len(pairing.x), n_landmarks, replace=False))]


def fit_map(
    pairing: Pairing, rotation: Float, query: Index, landmarks: Float32, *, min_gain: float
) -> Fitted:
    """The map with the best contrast on held-out rows: rotation, linear, or Gaussian features.

    Each later one is fitted to the matches of the best so far and kept only if held-out contrast
    rises by `min_gain`.
    """
    fit, held = query[: len(query) // 2], query[len(query) // 2 :]
    rotate = rotation_map(rotation, 0.0).apply

    def held_out(apply: ScoreMap) -> float:
        near, contrast = nearest(pairing, apply(pairing.x[held]))
        return pairing.mean(contrast, held, near)

    best = Fitted(rotate, "rotation", held_out(rotate))
    features = gaussian_features(landmarks.astype(np.float64), 1.0)

    def widen(rows: Float32) -> Float:
        wide = rows.astype(np.float64)
        return np.hstack([wide, features(wide)])

    def plain(rows: Float32) -> Float:
        return rows.astype(np.float64)

    for kind, expand, ridge in (
        ("linear", plain, 1e-3),
        ("linear", plain, 1e-4),
        ("kernel", widen, 1e-4),
        ("kernel", widen, 1e-5),
    ):
        for _ in range(3):
            near, contrast = nearest(pairing, best.apply(pairing.x[fit]))
            target = pairing.y[near].astype(np.float64)
            weight = pairing.weigh(np.square(contrast + 1e-3), fit, near)
            apply = _ridge_apply(expand, pairing.x[fit], target, weight, ridge)
            value = held_out(apply)
            if value < best.contrast + min_gain:
                break
            best = Fitted(apply, kind, value)
    return best


def nearest(pairing: Pairing, moved: Float32 | Float) -> tuple[Index, Float]:
    """The nearest row of y for each moved row, and its contrast to the runner-up.

    Of several rows that share a nearest row only the closest keeps its contrast, the others get 0:
    a map that sends everything to one outlying row must not look sharp.
    """
    near, square = search_cells(pairing.cells, moved, 2)
    order = np.argsort(square[:, 0], kind="stable")
    first = np.zeros(len(near), dtype=bool)
    first[order[np.unique(near[order, 0], return_index=True)[1]]] = True
    return near[:, 0], np.where(first, contrast_of(square), 0.0)


def contrast_of(square: NDArray[np.floating]) -> Float:
    """1 - nearest / runner-up distance, from squared distances (n, 2)."""
    second = np.where(np.isfinite(square[:, 1]), square[:, 1], 1.0)
    share = np.minimum(square[:, 0] / np.maximum(second, 1e-30), 1.0)
    return np.asarray(1 - np.sqrt(share), dtype=np.float64)


def _ridge_apply(
    expand: Callable[[Float32], Float], source: Float32, target: Float, weight: Float, ridge: float
) -> ScoreMap:
    """The ridge map fitted on source and target, as a function of score rows, block by block."""
    coef, intercept = ridge_map(expand(source), target, weight, ridge)

    def apply(rows: Float32) -> Float32:
        out = np.empty((len(rows), target.shape[1]), dtype=np.float32)
        for start in range(0, len(rows), 8192):
            out[start : start + 8192] = expand(rows[start : start + 8192]) @ coef + intercept
        return out

    return apply
