"""Known pairs as anchors of a soft alignment: what a few of them say about all rows.

Maps fitted on the pairs alone start rounds of regularised CCA and soft matching: every round adds
soft pairs, weighted by how sure they are, so that the ridge falls and the maps get finer while the
temperature falls.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from unpaired.matching.soft_refine import (
    Array,
    Coords,
    Index,
    Single,
    joint_score,
    map_from_cross,
    score_of,
    sinkhorn,
    standardise,
)
from unpaired.matching.views import principal, unit_rows

KNOWN_POWER = 0.5
"""Power of the singular values of maps fitted on known pairs."""
FOLDS = 20
RIDGE = 10.0
"""Ridge of n pairs, in units of the total variance: RIDGE / n."""
N_COMPONENTS = 160
"""Directions of each view that enter the scores, at most."""
TEMPERATURES = tuple(float(t) for t in np.geomspace(0.8, 0.13, 14))
HELD_WEIGHT = 0.2
"""Weight of what profiles and maps of the pairs alone say, in the scores of every round."""
SOFT_WEIGHT = 0.4
"""Weight of a soft pair of full confidence against a known pair."""
DOUBT = 0.1
"""Peak share at which a row of the plan counts half."""
SINKHORN_ROUNDS = 20


def known_score(coords: Coords, pairs: Index) -> Single:
    """Return standardised scores (n_x, n_y) of maps fitted on the known pairs, mean over views.

    One map per view from the cross-covariance of the pairs: views err in different directions, so
    that their mean is better than any of them.
    """
    return joint_score(coords, [_known_cross(zx, zy, pairs) for zx, zy in coords], KNOWN_POWER)


def left_out_rank(zx: Array, zy: Array, pairs: Index) -> float:
    """Return the mean relative rank of left-out known partners, 0 (best) to 1; 0.5 is chance.

    Maps are fitted on the other pairs, in at most FOLDS folds: an estimate of FOSCTTM.
    """
    ranks = []
    for fold in range(min(FOLDS, len(pairs))):
        out = np.arange(len(pairs)) % FOLDS == fold
        if out.all():
            return 0.5
        left, right = map_from_cross(_known_cross(zx, zy, pairs[~out])).power(KNOWN_POWER)
        rows, columns = pairs[out].T
        every = np.arange(len(rows))
        forward = score_of(zx[rows], zy, left, right)
        backward = score_of(zx, zy[columns], left, right).T
        own = forward[every, columns][:, None]
        ranks += [(forward > own).mean(axis=1), (backward > own).mean(axis=1)]
    return float(np.concatenate(ranks).mean())


def drop_worse(
    chosen: Sequence[str],
    rivals: Sequence[str],
    coords: Mapping[str, tuple[Array, Array]],
    pairs: Index,
) -> list[str]:
    """Return the chosen views with only that one of the rivals that places left-out pairs best."""
    found = [name for name in chosen if name in rivals]
    if len(found) < 2:
        return list(chosen)
    best = min(found, key=lambda name: left_out_rank(*coords[name], pairs))
    return [name for name in chosen if name not in rivals or name == best]


def grow_plan(coords: Coords, pairs: Index, held: Single, weight: float) -> Single:
    """Return the plan (n_x, n_y) that rounds of regularised CCA reach from the known pairs.

    ``held`` are standardised scores that stay in the scores of every round with ``weight``. Cost
    of a round O(n^2 r + r^3).
    """
    views = [(_Rows.of(zx), _Rows.of(zy)) for zx, zy in coords]
    known = [x.z[pairs[:, 0]].T @ y.z[pairs[:, 1]] for x, y in views]
    score = _cca_score(views, known, float(len(pairs)))
    plan = held  # replaced in the first round
    for temperature in TEMPERATURES:
        score += np.float32(weight) * held
        plan = sinkhorn(standardise(score), temperature, SINKHORN_ROUNDS)
        plan[pairs[:, 0], :] = 0
        plan[:, pairs[:, 1]] = 0
        if temperature == TEMPERATURES[-1]:
            break
        mass = np.maximum(plan.sum(axis=1), np.float32(1e-30))
        peak = plan.max(axis=1) / mass
        trust = SOFT_WEIGHT * peak / (peak + DOUBT)
        trust[pairs[:, 0]] = 0
        share = (trust / mass)[:, None]
        crosses = [
            cross + (x.z * share).T @ (plan @ y.z)
            for cross, (x, y) in zip(known, views, strict=True)
        ]
        score = _cca_score(views, crosses, len(pairs) + float(trust.sum()))
    return plan


@dataclass(frozen=True, eq=False)
class _Rows:
    """One side of a view along its principal axes, with each axis's share of the variance."""

    z: Single
    share: Array

    @classmethod
    def of(cls, rows: Array) -> _Rows:
        mean, axes, variances = principal(rows, rows.shape[1])
        total = max(float(((rows - mean) ** 2).sum(axis=1).mean()), 1e-300)
        return cls(((rows - mean) @ axes).astype(np.float32), variances / total)

    def whitening(self, ridge: float) -> Array:
        return np.asarray(1.0 / np.sqrt(self.share + ridge))


def _cca_score(
    views: Sequence[tuple[_Rows, _Rows]], crosses: Sequence[Single], n_pairs: float
) -> Single:
    """Return standardised cosines under regularised CCA of the crosses, mean over views."""
    total: Single | None = None
    for (x, y), cross in zip(views, crosses, strict=True):
        white_x, white_y = x.whitening(RIDGE / n_pairs), y.whitening(RIDGE / n_pairs)
        found = map_from_cross(white_x[:, None] * cross * white_y)
        left, right = (part[:, :N_COMPONENTS] for part in found.power(KNOWN_POWER))
        mapped_x = unit_rows(x.z @ (white_x[:, None] * left).astype(np.float32))
        mapped_y = unit_rows(y.z @ (white_y[:, None] * right).astype(np.float32))
        score = standardise(np.asarray(mapped_x @ mapped_y.T))
        total = score if total is None else np.add(total, score, out=total)
    assert total is not None  # there is always a view
    return standardise(total)


def _known_cross(zx: Array, zy: Array, pairs: Index) -> Array:
    return np.asarray(zx[pairs[:, 0]].T @ zy[pairs[:, 1]] / len(pairs))
