"""What all methods with a closed-form linear map share."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from unpaired._checks import check_number
from unpaired._random import derive_rng, derive_seed
from unpaired.baselines.base import Found, TwoViewMethod
from unpaired.baselines.closed_form import PairedMaps
from unpaired.baselines.inputs import Principal, principal
from unpaired.types import FloatArray, IntArray


@dataclass(eq=False, repr=False, kw_only=True)
class LinearMethod(TwoViewMethod):
    """A method that embeds each view by one linear map of its principal components.

    Rows are centred on all rows of their view, paired or not, and turned to principal components
    without scaling. A child writes ``_fit_maps``, or ``_features`` for other features.

    Args:
        n_inputs: Principal components of each view that are used, at most.
        random_state: Seed of held-out pairs and of anything drawn.
    """

    n_inputs: int = 512

    def _check_params(self) -> None:
        check_number(self.n_inputs, "n_inputs", 1, integer=True)

    def _prepare(self, rows: FloatArray, view: int) -> FloatArray:
        """Fit what ``_features`` needs and return the features (n, p) of the rows, centred."""
        name = "xy"[view]
        axes = principal(rows, self.n_inputs, derive_seed(self.seed_, name))
        self._arrays |= {f"centre.{name}": axes.centre, f"axes.{name}": axes.axes}
        return axes.apply(rows)

    def _features(self, rows: FloatArray, view: int) -> FloatArray:
        """The features (n, p) of any rows."""
        name = "xy"[view]
        centre, axes = self._arrays[f"centre.{name}"], self._arrays[f"axes.{name}"]
        return Principal(centre, axes, np.empty(0)).apply(rows)

    @abstractmethod
    def _fit_maps(
        self, x: FloatArray, y: FloatArray, known: IntArray, rng: np.random.Generator
    ) -> tuple[PairedMaps, Found | None]:
        """The maps of the features, and the matching when one was inferred."""

    def _fit(self, x: FloatArray, y: FloatArray, known: IntArray) -> Found | None:
        features = self._prepare(x, 0), self._prepare(y, 1)
        maps, found = self._fit_maps(*features, known, derive_rng(self.seed_, "maps"))
        self._arrays |= {"map.x": maps.map_x, "map.y": maps.map_y, "values": maps.correlations}
        return found

    def _map(self, rows: FloatArray, view: int) -> FloatArray:
        return self._features(rows, view) @ self._arrays["map.x" if view == 0 else "map.y"]
