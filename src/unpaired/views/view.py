"""Views: both sides in coordinates of one kind, each fitted on its own rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from torch import Tensor

from unpaired.views.features import FeatureMap, Features, fit_features
from unpaired.views.geodesic import N_LANDMARKS, fit_geodesic
from unpaired.views.smoothed import fit_smoothed

LINEAR, KERNEL = "linear", "kernel"
GEODESICS = ("geodesic correlation", "geodesic euclidean")
LINEAR_RANK = 128
LENGTH_SETTINGS: tuple[dict[str, float], ...] = (
    {"max_rank": LINEAR_RANK},
    {"max_rank": LINEAR_RANK, "whitening": 0.25},
    {"max_rank": 256, "bandwidth": 0.5},
)
"""Principal components, half-whitened ones, and those of a kernel, of rows with their lengths."""
KERNEL_SETTINGS = {"bandwidth": 0.5, "n_landmarks": 800, "max_rank": 256, "ridge": 5.0}


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
    """Both sides in the view ``name``: half-whitened linear, Gaussian kernel, or geodesic.

    ``alignment.search`` says which of them a search looks at, and which are only read.
    """
    if name.startswith("geodesic"):
        metric = name.removeprefix("geodesic ")
        (map_x, placed_x), (map_y, placed_y) = (
            fit_geodesic(rows, metric, rng, n_landmarks=n_landmarks) for rows in (x, y)
        )
        return View(map_x, map_y, placed_x, placed_y)
    if name == LINEAR:
        linear = [fit_features(rows, rng, max_rank=LINEAR_RANK, whitening=0.25) for rows in (x, y)]
    else:
        linear = [fit_features(rows, rng, **KERNEL_SETTINGS) for rows in (x, y)]  # type: ignore[arg-type]
    return View(linear[0], linear[1], linear[0](x), linear[1](y))


def length_views(x: Tensor, y: Tensor, rng: np.random.Generator) -> list[View]:
    """Views of rows as they are; all others see directions or ranks, and no length of a row."""
    found = []
    for settings in LENGTH_SETTINGS:
        maps = [fit_features(rows, rng, metric="euclidean", **settings) for rows in (x, y)]  # type: ignore[arg-type]
        found.append(View(maps[0], maps[1], maps[0](x), maps[1](y)))
    return found


def smooth_view(view: View) -> View:
    """The smoothed view of a linear one."""
    assert isinstance(view.map_x, Features)
    assert isinstance(view.map_y, Features)
    (map_x, x), (map_y, y) = fit_smoothed(view.map_x, view.x), fit_smoothed(view.map_y, view.y)
    return View(map_x, map_y, x, y)
