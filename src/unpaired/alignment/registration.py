"""Registration: two sets of rows in which each has one evident partner, up to a smooth map.

Rotations, linear maps and smooth warps of the same rows, with noise, at any size: no n x n array is
made anywhere and time is close to linear in n. Where no start stands out against wrong rotations
nothing is claimed, and the search for a soft alignment takes over.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch

from unpaired._log import track
from unpaired.alignment.icp import (
    Pairing,
    ScoreMap,
    fit_map,
    kernel_features,
    refine_rotation,
    rotation_map,
)
from unpaired.alignment.starts import rotation_starts
from unpaired.math.neighbours import Index
from unpaired.problem.problem import Problem
from unpaired.spaces.solution import Evidence, Solution
from unpaired.spaces.space import Part, Space
from unpaired.views.widened import Widened

CLEAR = 0.3
"""A start is taken at once when its mean contrast (nearest against runner-up) exceeds this."""
STAND_OUT = 4.0
"""Otherwise it must exceed by this factor what a random rotation and other starts reach."""
HOPELESS = 2.0
"""A later start is given up when it stays below this many times a random rotation's contrast."""
FEWEST = 200
"""Queries from which on later starts are tried on a quarter of them first."""
N_QUERIES = 2000


@dataclass(frozen=True, eq=False)
class Registration:
    """The best start after refinement, what every start reached, and whether it stands out."""

    pairing: Pairing
    found: ScoreMap
    tried: dict[str, float]
    null_contrast: float | None
    """Contrast that a refined random rotation reached; None when the first start was clear."""
    stands_out: bool

    def solution(self) -> Solution:
        """The space in which partners are near: scores are minus squared distances."""
        map_x, map_y = self.pairing.features
        kernel = self.found.kernel
        features = map_x if kernel is None else Widened(map_x, kernel)
        size = self.pairing.y.shape[1]
        root = 2.0**0.5
        part = Part(
            0,
            (torch.from_numpy(root * self.found.matrix), root * torch.eye(size)),
            penalty=torch.full((size,), 0.5),
            offsets=(torch.from_numpy(root * self.found.intercept), torch.zeros(1, size)),
        )
        empty = torch.zeros(0, size)
        contrast, null = max(self.tried.values()), self.null_contrast or 0.0
        evidence = Evidence(self.tried, gap=(contrast - null) / (1.0 - null))
        space = Space(((features, map_y),), (part,), (empty, empty))
        return Solution(space, evidence, "evident", certainty=1.0)

    def again(self, problem: Problem, rng: np.random.Generator) -> Solution:
        """A fit of the same kind, from scratch: the first clear start is taken, or the best.

        It knows whether the map has kernel features, and nothing else of it. Whether it stands out
        is not asked: what it finds is compared, not claimed.
        """
        query, reached = np.arange(len(problem.x)), -1.0
        for _, own, guess in rotation_starts(problem, rng):
            refined, contrast = refine_rotation(own, guess, query, n_rounds=10)
            if contrast > reached:
                pairing, rotation, reached = own, refined, contrast
            if contrast > CLEAR:
                break
        kernel = None if self.found.kernel is None else kernel_features(pairing, rng)
        found = fit_map(pairing, rotation, query, kernel, min_gain=0.01)
        return replace(self, pairing=pairing, found=found).solution()


def register(problem: Problem, rng: np.random.Generator) -> Registration:
    """The map between the sides that makes partners most evident, from the first start that does.

    After the first failure every later start is tried on a quarter of the queries first, and given
    up when it stays near what a random rotation reaches on them.
    """
    query = rng.permutation(len(problem.x))
    few, many = np.sort(query[:N_QUERIES]), query[: 4 * N_QUERIES]
    fewest = few[::4] if len(few) >= FEWEST else few
    tried: dict[str, float] = {}
    best: tuple[Pairing, ScoreMap] | None = None
    null: float | None = None
    floors: dict[int, float] = {}
    trusted = False
    starts = rotation_starts(problem, rng)
    for name, pairing, guess in track(starts, "Looking for evident partners"):
        hopeless = False
        if null is not None and len(fewest) < len(few):
            if id(pairing) not in floors:
                floors[id(pairing)] = _floor(pairing, fewest)
            rotation, contrast = refine_rotation(pairing, guess, fewest, n_rounds=10)
            hopeless = contrast < HOPELESS * floors[id(pairing)]
        if not hopeless:
            rotation, contrast = refine_rotation(pairing, guess, few)
        if contrast <= CLEAR and null is None:
            null = _null_contrast(pairing, few, rng)
        if hopeless and null is not None:  # fewer queries read higher: told in units of all
            contrast *= null / max(floors[id(pairing)], 1e-12)
            fitted = rotation_map(rotation, contrast)
        else:
            clear = contrast > CLEAR or null is None
            promising = null is not None and contrast > 1.2 * null  # of what wrong rotations reach
            rows, gain = (few, 0.01) if clear else (many if promising else few, 0.002)
            fitted = fit_map(pairing, rotation, rows, kernel_features(pairing, rng), min_gain=gain)
        if best is None or fitted.contrast > best[1].contrast:
            best = (pairing, fitted)
        trusted = not hopeless and _stands_out(fitted.contrast, null, list(tried.values()))
        tried[name] = fitted.contrast
        if trusted:
            break
    assert best is not None  # there is always a first start
    return Registration(*best, tried, null, trusted)


def _stands_out(contrast: float, null: float | None, others: list[float]) -> bool:
    """Whether a contrast is out of reach of wrong answers: a random rotation, the other starts."""
    if contrast > CLEAR or null is None:
        return True
    return contrast > STAND_OUT * max(null, float(np.median(others or [0.0])))


def _null_contrast(pairing: Pairing, query: Index, rng: np.random.Generator) -> float:
    """The contrast reached from a random rotation: what wrong answers look like."""
    size = pairing.x.shape[1]
    rotation = np.linalg.qr(rng.normal(size=(size, size)))[0]
    rotation, contrast = refine_rotation(pairing, rotation, query)
    kernel = kernel_features(pairing, rng)
    return max(contrast, fit_map(pairing, rotation, query, kernel, min_gain=0.002).contrast)


def _floor(pairing: Pairing, fewest: Index) -> float:
    """The contrast that a random rotation, always the same, reaches on the fewest queries."""
    size = pairing.x.shape[1]
    rotation = np.linalg.qr(np.random.default_rng(0).normal(size=(size, size)))[0]
    return refine_rotation(pairing, rotation, fewest, n_rounds=10)[1]
