"""Orthogonal Procrustes: the rotation that brings paired rows together (Schoenemann 1966)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unpaired.baselines.base import Found
from unpaired.baselines.closed_form import PairedMaps
from unpaired.baselines.inputs import pair_moments
from unpaired.baselines.linear import LinearMethod
from unpaired.naming.smooth_space import unit_rows
from unpaired.types import FloatArray, IntArray


def orthogonal_maps(cross: FloatArray) -> PairedMaps:
    """Maps with orthonormal columns that maximise the trace of map_x' cross map_y.

    For equal widths map_x map_y' is the Procrustes rotation; otherwise that of the views padded
    with zeros to one width.
    """
    left, values, right = np.linalg.svd(cross, full_matrices=False)
    return PairedMaps(left, right.T, values)


@dataclass(eq=False, repr=False, kw_only=True)
class Procrustes(LinearMethod):
    """The orthogonal map between the views fitted to known pairs, scored by cosine.

    Rows are centred and then scaled to unit length, as is usual for word vectors; views of few
    columns (fewer than eight), whose lengths carry much, are scaled as a whole instead.

    Args:
        n_inputs: Principal components of each view that are used, at most.
        random_state: Not used; every method takes it.

    References: schonemann1966, smith2017.
    """

    def _prepare(self, rows: FloatArray, view: int) -> FloatArray:
        super()._prepare(rows, view)
        return self._features(rows, view)

    def _features(self, rows: FloatArray, view: int) -> FloatArray:
        features = super()._features(rows, view)
        return unit_rows(features) if features.shape[1] >= 8 else features

    def _fit_maps(
        self, x: FloatArray, y: FloatArray, known: IntArray, rng: np.random.Generator
    ) -> tuple[PairedMaps, Found | None]:
        return orthogonal_maps(pair_moments(x, y, known).xy), None
