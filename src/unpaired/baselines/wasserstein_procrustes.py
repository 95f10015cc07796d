"""Wasserstein-Procrustes from clusters matched by quadratic assignment (arXiv 2610.09411)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from unpaired._checks import check_number
from unpaired.baselines.base import Found
from unpaired.baselines.closed_form import PairedMaps
from unpaired.baselines.inputs import pair_moments
from unpaired.baselines.procrustes import Procrustes, orthogonal_maps
from unpaired.baselines.rematch import best_pairs, free_rows, partner_of
from unpaired.naming.clustering import cluster
from unpaired.naming.smooth_space import unit_rows
from unpaired.plans.assignment import assign
from unpaired.solvers.exhaustive_qap import best_assignments
from unpaired.types import FloatArray, IntArray

CLUSTER_ROWS = 4000
"""Rows of each view that a restart clusters, at most; each restart draws its own."""


@dataclass(eq=False, repr=False, kw_only=True)
class WassersteinProcrustes(Procrustes):
    """A rotation found with few or no pairs: clusters matched first, then single rows.

    Each restart clusters both views and matches the centres by quadratic assignment on their
    cosines; the cross-covariances of all restarts are averaged into the first rotation. Rounds of
    linear assignment on a batch of rows and Procrustes on its pairs refine it. Known pairs enter
    both parts. Rows are centred and scaled to unit length (Procrustes).

    Args:
        n_clusters: Clusters of each view; fewer where a view has fewer than four rows for each.
        n_restarts: Clusterings that are averaged.
        n_rounds: Rounds of assignment and Procrustes.
        batch_size: Rows of each view in a round that no pair names, at most.
        known_weight: Weight of the known pairs against the batch in a rotation.
        n_inputs: Principal components of each view that are used, at most.
        random_state: Seed of clusterings and batches.

    References: rosetta2026, grave2019, schonemann1966.
    """

    n_clusters: int = 30
    n_restarts: int = 12
    n_rounds: int = 60
    batch_size: int = 600
    known_weight: float = 1.0

    least_pairs: ClassVar[int] = 0

    def _check_params(self) -> None:
        super()._check_params()
        for name in ("n_clusters", "batch_size"):
            check_number(getattr(self, name), name, 2, integer=True)
        check_number(self.n_restarts, "n_restarts", 1, integer=True)
        check_number(self.n_rounds, "n_rounds", 0, integer=True)
        check_number(self.known_weight, "known_weight", 0.0)

    def _fit_maps(
        self, x: FloatArray, y: FloatArray, known: IntArray, rng: np.random.Generator
    ) -> tuple[PairedMaps, Found | None]:
        anchor = pair_moments(x, y, known).xy if len(known) else np.zeros((x.shape[1], y.shape[1]))
        free_x, free_y = free_rows(known, len(x), len(y), "one-to-one")
        if not len(free_x) or not len(free_y):  # nothing to find: Procrustes on the known pairs
            maps = orthogonal_maps(anchor)
            return maps, Found(partner_of(known, len(x)), float(maps.correlations.sum()))
        cross = sum(self._cluster_cross(x, y, known, rng) for _ in range(self.n_restarts))
        maps = orthogonal_maps(cross / self.n_restarts + self.known_weight * anchor)
        for number in range(self.n_rounds):
            rows_x = rng.permutation(free_x)[: self.batch_size]
            rows_y = rng.permutation(free_y)[: self.batch_size]
            scores = (x[rows_x] @ maps.map_x) @ (y[rows_y] @ maps.map_y).T
            partner = assign(-scores)
            matched = np.flatnonzero(partner >= 0)
            cross = x[rows_x[matched]].T @ y[rows_y[partner[matched]]] / len(matched)
            maps = orthogonal_maps(cross + self.known_weight * anchor)
            loss = -float(scores[matched, partner[matched]].mean())
            self.history_.append({"step": float(number), "loss": loss})
        embed_x, embed_y = unit_rows(x @ maps.map_x), unit_rows(y @ maps.map_y)
        new, _ = best_pairs(embed_x, embed_y, known, "one-to-one")
        partner = partner_of(np.concatenate([known, new]), len(x))
        return maps, Found(partner, float(maps.correlations.sum()))

    def _cluster_cross(
        self, x: FloatArray, y: FloatArray, known: IntArray, rng: np.random.Generator
    ) -> FloatArray:
        """The cross-covariance of matched cluster centres of one restart, on some of the rows."""
        if len(known) > CLUSTER_ROWS // 2:
            known = known[np.sort(rng.permutation(len(known))[: CLUSTER_ROWS // 2])]
        x, places_x = _some_rows(x, known[:, 0], rng)
        y, places_y = _some_rows(y, known[:, 1], rng)
        size = max(2, min(self.n_clusters, len(x) // 4, len(y) // 4))
        parts = [cluster(unit_rows(rows), size, rng, n_init=1) for rows in (x, y)]
        grams = [_off_mean(part.centres @ part.centres.T) for part in parts]
        linear = np.zeros((size, size))
        if len(known):
            np.add.at(
                linear,
                (parts[0].index[places_x], parts[1].index[places_y]),
                size / len(known),
            )
        found = best_assignments([(grams[0], grams[1])], linear, rng=rng, n_starts=40)
        return parts[0].centres.T @ parts[1].centres[found.best] / size


def _some_rows(
    rows: FloatArray, needed: IntArray, rng: np.random.Generator
) -> tuple[FloatArray, IntArray]:
    """At most CLUSTER_ROWS of the rows, all ``needed`` ones among them, and where these now are."""
    if len(rows) <= CLUSTER_ROWS:
        return rows, needed
    kept, places = np.unique(needed, return_inverse=True)
    others = rng.permutation(np.setdiff1d(np.arange(len(rows)), kept))
    return rows[np.concatenate([kept, others[: CLUSTER_ROWS - len(kept)]])], places


def _off_mean(gram: FloatArray) -> FloatArray:
    """A Gram matrix centred, so that no constant similarity counts."""
    centred = gram - gram.mean(0) - gram.mean(1)[:, None] + gram.mean()
    return np.asarray(centred / max(float(np.abs(centred).max()), 1e-12))
