"""Stochastic self-learning: sharpen a rough linear map where both sides hold the same items.

The map names a partner for every row; the partners give a better map; and so on (Artetxe et al.
2018). Hiding most candidates at random at first, and fewer later, keeps it from settling on the
first answer. It pays where partners exist and drifts where they do not; `confirmed_share` tells.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unpaired.matching.soft_refine import Array, Index, Single, map_from_cross, score_of
from unpaired.types import IntArray

KNOWN_WEIGHT = 10.0
"""How often a known pair counts in a round; few of them, counted as all the rest, bend the map."""


@dataclass(frozen=True)
class Learned:
    """The cross-covariance learned, its scores, and the share of rows with a confirmed partner."""

    cross: Array
    scores: Single
    confirmed: float


def csls(scores: Single, n_neighbours: int = 10, weight: float = 0.5) -> Single:
    """Return scores minus `weight` times each row's and each column's mean best: hubs fall back.

    Cross-domain similarity local scaling (Conneau et al. 2018), up to a factor of two.
    """
    k_x, k_y = (min(n_neighbours, size) for size in scores.shape[::-1])
    rows = np.partition(scores, scores.shape[1] - k_x, axis=1)[:, -k_x:].mean(axis=1)
    turned = np.ascontiguousarray(scores.T)
    columns = np.partition(turned, scores.shape[0] - k_y, axis=1)[:, -k_y:].mean(axis=1)
    return np.asarray(scores - np.float32(weight) * (rows[:, None] + columns[None, :]))


def mutual_share(scores: Single) -> float:
    """Return the share of rows of the smaller side that have a mutual best partner."""
    forward, backward = scores.argmax(axis=1), scores.argmax(axis=0)
    return float((backward[forward] == np.arange(len(forward))).sum() / min(scores.shape))


def confirmed_share(
    zx: Array, zy: Array, scores: Single, rng: np.random.Generator, power: float = 0.25
) -> float:
    """Return the share of rows whose mutual best partner is found again without them.

    Half of the mutual pairs make a map, which has to tell the partners of the other half apart.
    Maps of accidental pairs lose more of them than right ones, but not all: unrelated Gaussians
    have kept 0.58 of their rows, so this share alone is no proof of partners.
    """
    forward, backward = scores.argmax(axis=1), scores.argmax(axis=0)
    rows = rng.permutation(np.flatnonzero(backward[forward] == np.arange(len(forward))))
    halves, found = (rows[::2], rows[1::2]), 0
    for fitted, held_out in (halves, halves[::-1]):
        if not len(fitted) or not len(held_out):
            continue
        maps = map_from_cross(zx[fitted].T @ zy[forward[fitted]]).power(power)
        again = csls(score_of(zx[held_out], zy[forward[held_out]], *maps)).argmax(axis=1)
        found += int((again == np.arange(len(held_out))).sum())
    return float(found / min(scores.shape))


def self_learn(
    zx: Array,
    zy: Array,
    cross: Array,
    rng: np.random.Generator,
    *,
    known: IntArray | None = None,
    keep: float = 0.3,
    power: float = 0.25,
    patience: int = 10,
    max_iter: int = 150,
    least_mutual: float = 0.0,
) -> Learned:
    """Return the map after self-learning from `cross`, the cross-covariance of a rough start.

    Args:
        zx: Coordinates of x, (n_x, d_x).
        zy: Coordinates of y, (n_y, d_y).
        cross: (d_x, d_y).
        rng: Draws which candidates are hidden.
        known: (k, 2) pairs that are part of every round.
        keep: Share of candidates that are visible at first; doubled whenever nothing improves.
        power: Power of the singular values in the map.
        patience: Rounds without improvement before more candidates are shown, or the end.
        max_iter: Rounds at most.
        least_mutual: Give up after 10 or 30 rounds when the mutual share is still below this.
    """
    left_x, left_y = zx.astype(np.float32), zy.astype(np.float32)
    best, since = -np.inf, 0
    scores = csls(score_of(zx, zy, *map_from_cross(cross).power(power)))
    for step in range(max_iter):
        value = float(scores.max(axis=1).mean() + scores.max(axis=0).mean()) / 2
        since = 0 if value > best + 1e-3 * abs(best) else since + 1
        best = max(best, value)
        if since >= patience:
            if keep >= 1.0:
                break
            keep, since = min(1.0, 2.0 * keep), 0
        if step in (10, 30) and mutual_share(scores) < least_mutual:
            break
        seen = scores
        if keep < 1.0:
            seen = np.where(rng.random(scores.shape, dtype=np.float32) < keep, scores, -np.inf)
        cross = _cross_of(left_x, left_y, seen.argmax(axis=1), seen.argmax(axis=0), known)
        scores = csls(score_of(zx, zy, *map_from_cross(cross).power(power)))
    return Learned(cross, scores, confirmed_share(zx, zy, scores, rng, power))


def _cross_of(
    zx: Single, zy: Single, forward: Index, backward: Index, known: IntArray | None
) -> Array:
    """Return the cross-covariance of both directions' partners and of known pairs."""
    cross = zx.T @ zy[forward] + zx[backward].T @ zy
    if known is not None and len(known):
        cross = cross + np.float32(KNOWN_WEIGHT) * (zx[known[:, 0]].T @ zy[known[:, 1]])
    return np.asarray(cross / (len(zx) + len(zy)), dtype=np.float64)
