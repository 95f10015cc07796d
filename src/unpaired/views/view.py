"""Views: both sides in coordinates of one kind, each fitted on its own rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from torch import Tensor

from unpaired.views.features import FeatureMap, fit_features
from unpaired.views.geodesic import N_LANDMARKS, fit_geodesic

LINEAR = "linear"
GEODESICS = ("geodesic correlation", "geodesic euclidean")
LINEAR_RANK = 128
LENGTH_SETTINGS: tuple[dict[str, float], ...] = (
    {"max_rank": LINEAR_RANK},
    {"max_rank": LINEAR_RANK, "whitening": 0.25},
    {"max_rank": 256, "bandwidth": 0.5},
)
"""Principal components, half-whitened ones, and those of a kernel, of rows with their lengths."""


@dataclass(frozen=True, eq=False)
class View:
    """The fitted maps of both sides, and the rows they placed, mean squared length one."""

    map_x: FeatureMap
    map_y: FeatureMap
    x: Tensor
    y: Tensor

    def take(self, rows_x: Tensor, rows_y: Tensor) -> View:
        """The same maps with some of the rows."""
        return View(self.map_x, self.map_y, self.x[rows_x], self.y[rows_y])

    def leading(self, rank: int) -> View:
        """The leading coordinates of both sides."""
        return View(self.map_x, self.map_y, self.x[:, :rank], self.y[:, :rank])


def fit_view(
    name: str, x: Tensor, y: Tensor, rng: np.random.Generator, *, n_landmarks: int = N_LANDMARKS
) -> View:
    """Both sides in the view ``name``: half-whitened linear, or geodesic.

    ``alignment.search.VIEWS`` lists those that are looked at, ``stored.KINDS`` what can be saved.
    """
    if name.startswith("geodesic"):
        metric = name.removeprefix("geodesic ")
        (map_x, placed_x), (map_y, placed_y) = (
            fit_geodesic(rows, metric, rng, n_landmarks=n_landmarks) for rows in (x, y)
        )
        return View(map_x, map_y, placed_x, placed_y)
    linear = [fit_features(rows, rng, max_rank=LINEAR_RANK, whitening=0.25) for rows in (x, y)]
    return View(linear[0], linear[1], linear[0](x), linear[1](y))


def length_views(x: Tensor, y: Tensor, rng: np.random.Generator) -> list[View]:
    """Views of rows as they are, lengths and all: plain, half-whitened, and of a kernel."""
    found = []
    for settings in LENGTH_SETTINGS:
        maps = [fit_features(rows, rng, metric="euclidean", **settings) for rows in (x, y)]  # type: ignore[arg-type]
        found.append(View(maps[0], maps[1], maps[0](x), maps[1](y)))
    return found
