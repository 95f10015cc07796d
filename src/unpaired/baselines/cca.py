"""Canonical correlation analysis, regularised (Hotelling 1936; Vinod 1976)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unpaired._checks import check_number
from unpaired.baselines.base import Found
from unpaired.baselines.closed_form import PairedMaps, Ridge, check_ridge, fit_cca
from unpaired.baselines.linear import LinearMethod
from unpaired.types import FloatArray, IntArray


@dataclass(eq=False, repr=False, kw_only=True)
class CCA(LinearMethod):
    """Linear CCA with a ridge of its own for each view, scored by cosine.

    Directions are scaled by their correlation to the power 1/2, so that the inner product of two
    embeddings is the whitened cross-covariance: weak directions count less. Rows are centred and
    not scaled.

    Args:
        n_components: Dimensions of the embedding, at most.
        ridge_x: Ridge of x in units of its mean variance, or "auto": chosen by held-out pairs.
        ridge_y: The same for y; with both "auto" it is a third of that of x.
        power: Power of the correlations by which directions are scaled; 0 for classical CCA.
        n_inputs: Principal components of each view that are used, at most.
        random_state: Seed of the held-out pairs.

    References: hotelling1936, vinod1976.
    """

    n_components: int = 256
    ridge_x: Ridge = "auto"
    ridge_y: Ridge = "auto"
    power: float = 0.5

    @property
    def correlations_(self) -> FloatArray:
        """The canonical correlations found, falling; below the true ones where ridges are large."""
        self._check_fitted()
        return self._arrays["values"]

    def _check_params(self) -> None:
        super()._check_params()
        check_number(self.n_components, "n_components", 1, integer=True)
        check_ridge(self.ridge_x, "ridge_x")
        check_ridge(self.ridge_y, "ridge_y")
        check_number(self.power, "power", 0.0)

    def _fit_cca(
        self, x: FloatArray, y: FloatArray, pairs: IntArray, rng: np.random.Generator
    ) -> PairedMaps:
        return fit_cca(
            x,
            y,
            pairs,
            rng,
            ridge_x=self.ridge_x,
            ridge_y=self.ridge_y,
            n_components=self.n_components,
            power=self.power,
        )

    def _fit_maps(
        self, x: FloatArray, y: FloatArray, known: IntArray, rng: np.random.Generator
    ) -> tuple[PairedMaps, Found | None]:
        return self._fit_cca(x, y, known, rng), None
