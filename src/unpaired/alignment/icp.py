"""Iterative closest points: a map between two score spaces, refined by nearest rows in turn."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from unpaired.math.neighbours import Cells, Float32, Index, build_cells, search_cells
from unpaired.math.ridge import ridge_map
from unpaired.types import FloatArray
from unpaired.views.features import Features

Float = NDArray[np.float64]
RIDGES = (1e-3, 1e-4)
"""Of the linear maps that are tried beyond a rotation, the stiffest first."""
SETTLED = 0.9995
"""Share of rows that keep their nearest row when a refinement stops."""


@dataclass(frozen=True, eq=False)
class Pairing:
    """Scores of both sides in equally many dimensions, and cells over those of y."""

    x: Float32
    y: Float32
    cells: Cells
    features: tuple[Features, Features]
    """Raw rows of a side -> its scores."""
    weights: tuple[FloatArray | None, FloatArray | None] = (None, None)
    """How much each row counts; None = all alike."""

    def weigh(self, value: Float, query: Index, near: Index) -> Float:
        """The values of queries times the weights of the pairs they make with `near`."""
        weight_x, weight_y = self.weights
        if weight_x is not None:
            value = value * weight_x[query]
        return value if weight_y is None else value * weight_y[near]

    def mean(self, value: Float, query: Index, near: Index) -> float:
        """The mean of the values of queries, each pair counted by its weight."""
        if self.weights[0] is None and self.weights[1] is None:
            return float(value.mean())
        total = float(self.weigh(np.ones(len(query)), query, near).sum())
        return float(self.weigh(value, query, near).sum()) / max(total, 1e-300)


@dataclass(frozen=True, eq=False)
class ScoreMap:
    """Scores of x into the score space of y."""

    matrix: Float32
    """(r, r)."""
    intercept: Float32
    """(1, r)."""
    contrast: float = 0.0
    """Its mean contrast on held-out rows."""

    def __call__(self, scores: Float32) -> Float32:
        """Moved scores (n, r)."""
        return np.asarray(scores @ self.matrix + self.intercept, dtype=np.float32)


def pair_spaces(
    features: tuple[Features, Features],
    x: FloatArray,
    y: FloatArray,
    rng: np.random.Generator,
    weights: tuple[FloatArray | None, FloatArray | None],
) -> Pairing:
    """Both sides' scores cut to the smaller rank, with cells over y."""
    size = min(found.basis.shape[1] for found in features)
    cut = tuple(
        replace(f, basis=f.basis[:, :size], offset=f.offset[:, :size], variances=f.variances[:size])
        for f in features
    )
    left, right = (
        found(torch.as_tensor(rows, dtype=torch.float32)).numpy()
        for found, rows in zip(cut, (x, y), strict=True)
    )
    return Pairing(left, right, build_cells(right, rng), (cut[0], cut[1]), weights)


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
        near, contrast = nearest_rows(pairing, source @ rotation)
        reached = pairing.mean(contrast, query, near)
        if last is not None and (near == last).mean() > SETTLED:
            break
        last = near
        weight = pairing.weigh(contrast + 1e-3, query, near)
        rotation = weighted_rotation(source, pairing.y[near], weight)
    return rotation, reached


def rotation_map(rotation: Float, contrast: float) -> ScoreMap:
    """A rotation as a map, with the contrast it reached."""
    zero = np.zeros((1, rotation.shape[1]), dtype=np.float32)
    return ScoreMap(rotation.astype(np.float32), zero, contrast)


def fit_score_map(pairing: Pairing, rotation: Float, query: Index, *, min_gain: float) -> ScoreMap:
    """The map with the best contrast on held-out rows: the rotation, or a linear one.

    Each later one is fitted to the matches of the best so far and kept only if held-out contrast
    rises by `min_gain`.
    """
    fit, held = query[: len(query) // 2], query[len(query) // 2 :]

    def held_out(candidate: ScoreMap) -> float:
        near, contrast = nearest_rows(pairing, candidate(pairing.x[held]))
        return pairing.mean(contrast, held, near)

    best = rotation_map(rotation, 0.0)
    best = replace(best, contrast=held_out(best))
    source = torch.from_numpy(pairing.x[fit]).double()
    for ridge in RIDGES:
        for _ in range(3):
            near, contrast = nearest_rows(pairing, best(pairing.x[fit]))
            target = torch.from_numpy(pairing.y[near]).double()
            weight = pairing.weigh(np.square(contrast + 1e-3), fit, near)
            slope, level = ridge_map(
                source, target, ridge / source.shape[1], torch.from_numpy(weight).double()
            )
            found = ScoreMap(slope.float().numpy(), level.float().numpy())
            value = held_out(found)
            if value < best.contrast + min_gain:
                break
            best = replace(found, contrast=value)
    return best


def nearest_rows(pairing: Pairing, moved: Float32 | Float) -> tuple[Index, Float]:
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


def weighted_rotation(source: Float32, target: Float32, weight: Float) -> Float:
    """The scaled orthogonal matrix R, (r_x, r_y), least in sum w |source R - target|^2."""
    cross = (source * weight[:, None]).T.astype(np.float64) @ target
    left, singular, right = np.linalg.svd(cross, full_matrices=False)
    power = float((weight[:, None] * np.square(source, dtype=np.float64)).sum())
    return np.asarray(singular.sum() / max(power, 1e-300) * (left @ right))
