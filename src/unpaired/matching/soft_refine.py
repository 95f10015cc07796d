"""Refinement: alternate a soft plan between rows and low-rank maps between coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unpaired.matching.views import unit_rows
from unpaired.types import FloatArray

Array = FloatArray
Single = NDArray[np.float32]
Coords = Sequence[tuple[Array, Array]]
Index = NDArray[np.int64]


@dataclass(frozen=True)
class Map:
    """Linear maps of both sides into common coordinates, and the singular values behind them."""

    left: Array
    right: Array
    values: Array

    def power(self, p: float) -> tuple[Array, Array]:
        """Return the two maps with singular values to the power `p` on either side."""
        w = (self.values / max(float(self.values[0]), 1e-300)) ** p
        return self.left * w, self.right * w


def map_from_cross(cross: Array) -> Map:
    """Return the map of a cross-covariance matrix with shape (d_x, d_y)."""
    u, s, vt = np.linalg.svd(cross, full_matrices=False)
    keep = s > 1e-9 * max(float(s[0]), 1e-300)
    keep[0] = True
    return Map(u[:, keep], vt[keep].T, s[keep])


def standardise(score: Single) -> Single:
    """Return scores with mean 0 and standard deviation 1, in place."""
    score -= score.mean(dtype=np.float64).astype(np.float32)
    flat = score.ravel()
    sd = float(np.sqrt(np.dot(flat, flat) / flat.size))
    score *= np.float32(1 / max(sd, 1e-12))
    return score


def sinkhorn(score: Single, temperature: float, rounds: int = 12) -> Single:
    """Return a plan with column sums 1/n_y and nearly row sums 1/n_x; overwrites `score`."""
    n_x, n_y = score.shape
    score *= np.float32(1 / temperature)
    score -= score.max(axis=1, keepdims=True)
    np.exp(score, out=score)
    v = np.ones(n_y, dtype=np.float32)
    u = np.ones(n_x, dtype=np.float32)
    for _ in range(rounds):
        u = np.float32(1 / n_x) / np.maximum(score @ v, np.float32(1e-30))
        v = np.float32(1 / n_y) / np.maximum(u @ score, np.float32(1e-30))
    score *= u[:, None]
    score *= v[None, :]
    return score


def cross_of(zx: Array, zy: Array, plan: Single) -> Array:
    """Return the cross-covariance of coordinates under a plan."""
    return np.asarray(zx.T @ (plan @ zy.astype(np.float32)), dtype=np.float64)


def crosses_of(coords: Coords, plan: Single, pairs: Index | None = None) -> list[Array]:
    """Return the cross-covariance in every view; known pairs count as much as all other rows."""
    out = [cross_of(zx, zy, plan) for zx, zy in coords]
    if pairs is not None and len(pairs):
        for i, (zx, zy) in enumerate(coords):
            known = zx[pairs[:, 0]].T @ zy[pairs[:, 1]] / len(pairs)
            share = len(pairs) / (len(pairs) + 30.0)
            out[i] = _unit(out[i]) + 2 * share * _unit(known)
    return out


def _unit(matrix: Array) -> Array:
    return matrix / max(float(np.linalg.norm(matrix)), 1e-300)


def score_of(zx: Array, zy: Array, left: Array, right: Array) -> Single:
    """Return cosine scores between mapped rows."""
    a = unit_rows(zx @ left).astype(np.float32)
    b = unit_rows(zy @ right).astype(np.float32)
    return np.asarray(a @ b.T)


def joint_score(coords: Coords, crosses: Sequence[Array], power: float) -> Single:
    """Return the mean over views of standardised cosine scores, standardised again."""
    total: Single | None = None
    for (zx, zy), cross in zip(coords, crosses, strict=True):
        s = standardise(score_of(zx, zy, *map_from_cross(cross).power(power)))
        if total is None:
            total = s
        else:
            total += s
    assert total is not None  # there is always a view
    return total if len(coords) == 1 else standardise(total)


def pin(plan: Single, pairs: Index | None) -> Single:
    """Return the plan with known pairs made certain, in place."""
    if pairs is not None and len(pairs):
        plan[pairs[:, 0], :] = 0
        plan[:, pairs[:, 1]] = 0
        plan[pairs[:, 0], pairs[:, 1]] = np.float32(1 / plan.shape[0])
    return plan


def refine(
    coords: Coords,
    crosses: Sequence[Array],
    temperatures: Sequence[float],
    power: float = 0.0,
    anchor: Single | None = None,
    weight: float = 0.5,
    pairs: Index | None = None,
) -> tuple[list[Array], Single]:
    """Return crosses and plan after one round per temperature.

    `anchor` holds standardised profile scores that stay in the score with `weight`.
    """
    current = list(crosses)
    plan: Single | None = None
    for temperature in temperatures:
        s = joint_score(coords, current, power)
        if anchor is not None:
            s += np.float32(weight) * anchor
            standardise(s)
        plan = pin(sinkhorn(s, temperature), pairs)
        current = crosses_of(coords, plan, pairs)
    assert plan is not None  # there is always a temperature
    return current, plan


def dependence(coords: Coords, crosses: Sequence[Array]) -> float:
    """Return matched CKA averaged over views."""
    out = []
    for (zx, zy), cross in zip(coords, crosses, strict=True):
        a = np.linalg.norm(zx.T @ zx) / len(zx)
        b = np.linalg.norm(zy.T @ zy) / len(zy)
        out.append(float((cross**2).sum()) / max(float(a * b), 1e-300))
    return float(np.mean(out))


def disagreement(scores: Single, others: Single) -> float:
    """Return the mean relative rank, under ``others``, of the best partners under ``scores``.

    0 means that both name the same partners, 0.5 that they are unrelated.
    """
    best = scores.argmax(axis=1)
    own = others[np.arange(len(best)), best]
    return float((others > own[:, None]).mean())
