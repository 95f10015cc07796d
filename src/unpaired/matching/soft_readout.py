"""Readout: maps of raw rows of both sides into one space, in which no row is near to everything."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from unpaired.matching.soft_refine import Array, Single, map_from_cross
from unpaired.matching.views import Side, unit_rows

HUB_WEIGHT = 0.6
HUB_SHARE = 15
"""A row's level is its mean score to the best 1/15 of the other side; 0.6 of it is taken off."""


@dataclass(frozen=True, eq=False)
class Placed:
    """Both sides in one view, and their coordinates scaled to a mean squared length of one."""

    x: Side
    y: Side
    coords: tuple[Array, Array]


def embedders(
    views: Sequence[Placed], crosses: Sequence[Array], power: float
) -> tuple[Callable[[Array], Array], Callable[[Array], Array]]:
    """Return functions that place raw rows of x and of y in common coordinates.

    Two more coordinates take off each row's level against the rows given of the other side.
    """
    maps = [map_from_cross(cross).power(power) for cross in crosses]

    def joined(coords: Sequence[Array], which: int) -> Array:
        mapped = [unit_rows(z @ pair[which]) for z, pair in zip(coords, maps, strict=True)]
        return np.asarray(np.concatenate(mapped, axis=1) / np.sqrt(len(mapped)))

    given = [joined([view.coords[which] for view in views], which) for which in (0, 1)]
    given = [rows.astype(np.float32) for rows in given]

    def embed(rows: Array, which: int) -> Array:
        sides = [view.y if which else view.x for view in views]
        placed = joined([side.embed(rows) for side in sides], which)
        level = _level(placed.astype(np.float32), given[1 - which])[:, None]
        ones = np.ones_like(level)
        return np.concatenate([placed, *((ones, level) if which else (level, ones))], axis=1)

    return (lambda rows: embed(rows, 0)), (lambda rows: embed(rows, 1))


def _level(rows: Single, others: Single) -> Array:
    """Return minus HUB_WEIGHT times the mean score of each row to its best of `others`."""
    k = -(-len(others) // HUB_SHARE)
    levels = []
    for part in np.array_split(rows, max(1, len(rows) // 1000)):
        scores = part @ others.T
        levels.append(np.partition(scores, len(others) - k, axis=1)[:, -k:].mean(axis=1))
    return np.asarray(-HUB_WEIGHT * np.concatenate(levels), dtype=np.float64)
