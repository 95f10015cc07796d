"""Starts from independent components: directions that both sides have of themselves, paired.

Rows of text and photos are not Gaussian: in some directions few rows lie far out, those of one
topic. Independent component analysis finds these directions on each side alone, and two encoders
have many of them in common (Yamagiwa et al. 2023). Which goes with which is a small quadratic
assignment: topics that lie near each other on one side do so on the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment

from unpaired.math.neighbours import Float32
from unpaired.solvers.frank_wolfe import ascend
from unpaired.solvers.quadratic import alignment, partner_matrix
from unpaired.types import FloatArray, IntArray


@dataclass(frozen=True)
class ComponentConfig:
    """Constants of starts from independent components; docs/notebook/components.md."""

    n_starts: int = 6
    """Decompositions of each side, from other random axes: few rows do not settle all of them."""
    n_rounds: int = 40
    """Rounds of FastICA, at most."""
    n_pairings: int = 8
    """Assignments that compete to pair the components, from other plans."""
    skew: float = 3.0
    """Weight of how skewed a component is, beside how it lies to one other."""


COMPONENTS = ComponentConfig()


def component_starts(
    x: Float32, y: Float32, rng: np.random.Generator, *, at_random: bool = False
) -> Iterator[Float32]:
    """Products (r_x, r_y) of rows of both sides, expected if their components are paired.

    Each of length 1, from another decomposition of the rows x (n_x, r_x) and y (n_y, r_y).
    ``at_random`` pairs components at random: what such axes alone reach.
    """
    sides = [_whitened(rows) for rows in (x, y)]
    for _ in range(COMPONENTS.n_starts):
        axes = [independent_axes(white, rng) for white, _ in sides]
        if at_random:
            partner = _random_partner(axes[0].shape[1], axes[1].shape[1], rng)
        else:
            grams = [
                topic_gram(white @ axis, rows)
                for (white, _), axis, rows in zip(sides, axes, (x, y), strict=True)
            ]
            partner = pair_components(grams[0], grams[1], rng)
        paired = np.flatnonzero(partner >= 0)
        left, right = (back @ axis for (_, back), axis in zip(sides, axes, strict=True))
        cross = left[:, paired] @ right[:, partner[paired]].T
        yield np.asarray(cross / max(float(np.linalg.norm(cross)), 1e-30), dtype=np.float32)


def independent_axes(white: FloatArray, rng: np.random.Generator) -> FloatArray:
    """The axes (r, r) of independent components of whitened rows (n, r), each skewed upwards.

    FastICA with all components at once (Hyvarinen 1999). It often goes on moving at few rows; then
    it is left where it is, without a warning, since other decompositions follow.
    """
    n, rank = white.shape
    axes = np.linalg.qr(rng.normal(size=(rank, rank)))[0]
    for _ in range(COMPONENTS.n_rounds):
        bent = np.tanh(white @ axes)
        step = white.T @ bent / n - axes * (1.0 - np.square(bent)).mean(0)
        left, _, right = np.linalg.svd(step)
        last, axes = axes, left @ right
        if np.abs(np.abs((axes * last).sum(0)) - 1.0).max() < 1e-3:
            break
    upwards = np.where(((white @ axes) ** 3).mean(0) < 0.0, -1.0, 1.0)
    return np.asarray(axes * upwards)


def topic_gram(components: FloatArray, rows: Float32) -> FloatArray:
    """How topics lie to each other, (r, r), standardised; the diagonal tells how skewed each is.

    A topic is the mean of the rows (n, d) that lie far out in a component (n, r).
    """
    weights = np.square(np.maximum(components, 0.0))
    centres = (weights / np.maximum(weights.sum(0), 1e-30)).T @ rows
    centres = centres - centres.mean(0)
    gram = np.asarray(centres @ centres.T, dtype=np.float64)
    others = ~np.eye(len(gram), dtype=bool)
    if others.any():
        gram = (gram - gram[others].mean()) / max(float(gram[others].std()), 1e-30)
    skew = (components**3).mean(0)
    skew = (skew - skew.mean()) / max(float(skew.std()), 1e-30)
    np.fill_diagonal(gram, COMPONENTS.skew * skew)
    return gram


def pair_components(gram_x: FloatArray, gram_y: FloatArray, rng: np.random.Generator) -> IntArray:
    """The component of y for each of x, -1 where there are more of them; the best of several."""
    r_x, r_y = len(gram_x), len(gram_y)

    def vertex(gradient: FloatArray) -> FloatArray:
        return partner_matrix(_assigned(gradient), r_y)

    found: list[tuple[float, IntArray]] = []
    for number in range(COMPONENTS.n_pairings):
        start = np.full((r_x, r_y), 1.0 / max(r_x, r_y))
        if number:
            some = _random_partner(r_x, r_y, rng)
            start *= 0.5
            start[some >= 0, some[some >= 0]] += 0.5
        partner = _assigned(ascend(gram_x, gram_y, start, vertex, 30, 1e-6)[0])
        found.append((alignment(gram_x, gram_y, partner), partner))
    return max(found, key=lambda one: one[0])[1]


def _assigned(scores: FloatArray) -> IntArray:
    """The one-to-one pairing of the largest sum, -1 where x has more; ``assign`` checks more."""
    rows, columns = linear_sum_assignment(-scores)
    partner = np.full(len(scores), -1)
    partner[rows] = columns
    return partner


def _random_partner(r_x: int, r_y: int, rng: np.random.Generator) -> IntArray:
    """A random one-to-one pairing, -1 where x has more."""
    partner = rng.permutation(max(r_x, r_y))[:r_x]
    return np.where(partner < r_y, partner, -1)


def _whitened(rows: Float32) -> tuple[FloatArray, FloatArray]:
    """The rows (n, r) with unit covariance, and the matrix that takes directions back, (d, r)."""
    centred = np.asarray(rows, dtype=np.float64) - rows.mean(0, dtype=np.float64)
    left, lengths, right = np.linalg.svd(centred, full_matrices=False)
    kept = lengths > 1e-6 * max(float(lengths[0]), 1e-300)
    root = len(rows) ** 0.5
    return left[:, kept] * root, right[kept].T * (lengths[kept] / root)
