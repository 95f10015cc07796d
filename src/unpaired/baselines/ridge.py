"""Ridge regression from one view into the other (Hoerl & Kennard 1970)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unpaired.baselines.base import Found
from unpaired.baselines.closed_form import PairedMaps, Ridge, check_ridge, choose_ridges
from unpaired.baselines.inputs import Moments, pair_moments
from unpaired.baselines.linear import LinearMethod
from unpaired.types import FloatArray, IntArray


def ridge_map(moments: Moments, ridge: float, _: float = 0.0) -> PairedMaps:
    """The least-squares map of x into y, (Cxx + ridge * mean variance * I)^-1 Cxy."""
    scale = float(np.trace(moments.xx)) / len(moments.xx)
    penalty = max(ridge, 1e-12) * scale * np.eye(len(moments.xx))
    weights = np.linalg.solve(moments.xx + penalty, moments.xy)
    return PairedMaps(weights, np.eye(moments.yy.shape[0]), np.empty(0))


@dataclass(eq=False, repr=False, kw_only=True)
class RidgeMap(LinearMethod):
    """x predicted into the space of y by ridge regression, scored by cosine with centred y.

    Args:
        ridge: Penalty in units of the mean variance of x, or "auto": chosen by held-out pairs.
        n_inputs: Principal components of each view that are used, at most.
        random_state: Seed of the held-out pairs.

    References: hoerl1970.
    """

    ridge: Ridge = "auto"

    def _check_params(self) -> None:
        super()._check_params()
        check_ridge(self.ridge, "ridge")

    def _fit_maps(
        self, x: FloatArray, y: FloatArray, known: IntArray, rng: np.random.Generator
    ) -> tuple[PairedMaps, Found | None]:
        ridge, _ = choose_ridges(ridge_map, x, y, known, self.ridge, 0.0, rng)
        return ridge_map(pair_moments(x, y, known), ridge), None
