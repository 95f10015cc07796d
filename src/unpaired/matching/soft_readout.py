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
STEADY_RIDGE = 1e-3
"""Ridge of the maps that predict a row's place, in units of the total variance."""


@dataclass(frozen=True, eq=False)
class Placed:
    """Both sides in one view, and their coordinates scaled to a mean squared length of one."""

    x: Side
    y: Side
    coords: tuple[Array, Array]


def embedders(
    views: Sequence[Placed],
    crosses: Sequence[Array],
    power: float,
    steady: Sequence[int] = (),
) -> tuple[Callable[[Array], Array], Callable[[Array], Array]]:
    """Return functions that place raw rows of x and of y in common coordinates.

    A row's place is the mean of what the maps of all views say, and of what ridge regressions of
    that on the views numbered in ``steady`` predict: they vary less from row to row. Two more
    coordinates take off each row's level against the rows given of the other side.
    """
    maps = [map_from_cross(cross).power(power) for cross in crosses]

    def joined(coords: Sequence[Array], which: int) -> Array:
        mapped = [unit_rows(z @ pair[which]) for z, pair in zip(coords, maps, strict=True)]
        return np.asarray(np.concatenate(mapped, axis=1) / np.sqrt(len(mapped)))

    sides = [[view.x for view in views], [view.y for view in views]]
    plain = [joined([side.coords for side in sides[which]], which) for which in (0, 1)]
    ridges = [[_ridge(sides[w][i].coords, plain[w]) for i in steady] for w in (0, 1)]

    def place(coords: Sequence[Array], which: int) -> Array:
        out = joined(coords, which)
        for number, (linear, offset) in zip(steady, ridges[which], strict=True):
            out += coords[number] @ linear + offset
        return np.asarray(out / (1 + len(steady)))

    given = [place([side.coords for side in sides[w]], w).astype(np.float32) for w in (0, 1)]

    def embed(rows: Array, which: int) -> Array:
        placed = place([side.embed(rows) for side in sides[which]], which)
        level = _level(placed.astype(np.float32), given[1 - which])[:, None]
        ones = np.ones_like(level)
        return np.concatenate([placed, *((ones, level) if which else (level, ones))], axis=1)

    return (lambda rows: embed(rows, 0)), (lambda rows: embed(rows, 1))


def _ridge(rows: Array, target: Array) -> tuple[Array, Array]:
    """Return the linear map and the offset of the ridge regression of `target` on centred rows."""
    offset = target.mean(axis=0)
    gram = rows.T @ rows
    penalty = STEADY_RIDGE * max(float(np.trace(gram)), 1e-300)
    penalised = gram + penalty * np.eye(len(gram))
    return np.linalg.solve(penalised, rows.T @ (target - offset)), offset


def _level(rows: Single, others: Single) -> Array:
    """Return minus HUB_WEIGHT times the mean score of each row to its best of `others`."""
    k = -(-len(others) // HUB_SHARE)
    levels = []
    for part in np.array_split(rows, max(1, len(rows) // 1000)):
        scores = part @ others.T
        levels.append(np.partition(scores, len(others) - k, axis=1)[:, -k:].mean(axis=1))
    return np.asarray(-HUB_WEIGHT * np.concatenate(levels), dtype=np.float64)
