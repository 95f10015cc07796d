"""Registration: two sets of rows in which each has one evident partner, up to a linear map.

Rotations and linear maps of the same rows, with noise, at any size: no n x n array is made anywhere
and time is close to linear in n. Where no start stands out against wrong rotations nothing is
claimed, and the search for a soft alignment takes over, which also finds what is bent more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import torch

from unpaired._log import track
from unpaired.alignment.icp import Pairing, ScoreMap, fit_score_map, refine_rotation
from unpaired.alignment.starts import rotation_starts
from unpaired.math.neighbours import Index
from unpaired.problem.problem import Problem
from unpaired.spaces.solution import Evidence, Solution
from unpaired.spaces.space import Part, Space

CLEAR = 0.3
"""A start is taken at once when its mean contrast (nearest against runner-up) exceeds this."""
STAND_OUT = 4.0
"""Otherwise it must exceed by this factor what a random rotation and other starts reach."""
PROMISING = 1.2
"""From this many times a random rotation's contrast on maps are fitted to more rows."""
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
        space = Space((self.pairing.features,), (part,), (empty, empty))
        return Solution(space, evidence, "evident", certainty=1.0)

    def again(self, problem: Problem, rng: np.random.Generator) -> Solution:
        """A fit of the same kind, from scratch: the first clear start is taken, or the best.

        Whether it stands out is not asked: what it finds is compared, not claimed.
        """
        query, reached = np.arange(len(problem.x)), -1.0
        for _, own, guess in rotation_starts(problem, rng):
            refined, contrast = refine_rotation(own, guess, query, n_rounds=10)
            if contrast > reached:
                pairing, rotation, reached = own, refined, contrast
            if contrast > CLEAR:
                break
        found = fit_score_map(pairing, rotation, query, min_gain=0.01)
        return replace(self, pairing=pairing, found=found).solution()


def register(problem: Problem, rng: np.random.Generator) -> Registration:
    """The map between the sides that makes partners most evident, from the first start that does.

    Where the first start is not clear, a random rotation tells what wrong answers reach.
    """
    query = rng.permutation(len(problem.x))
    few, many = np.sort(query[:N_QUERIES]), query[: 4 * N_QUERIES]
    tried: dict[str, float] = {}
    best: tuple[Pairing, ScoreMap] | None = None
    null: float | None = None
    starts = rotation_starts(problem, rng)
    for name, pairing, guess in track(starts, "Looking for evident partners"):
        rotation, contrast = refine_rotation(pairing, guess, few)
        rows, gain = few, 0.01
        if contrast <= CLEAR:
            null = _null_contrast(pairing, few, rng) if null is None else null
            rows, gain = many if contrast > PROMISING * null else few, 0.002
        fitted = fit_score_map(pairing, rotation, rows, min_gain=gain)
        if best is None or fitted.contrast > best[1].contrast:
            best = (pairing, fitted)
        stands_out = _stands_out(fitted.contrast, null, list(tried.values()))
        tried[name] = fitted.contrast
        if stands_out:
            break
    assert best is not None  # there is always a first start
    return Registration(*best, tried, null, stands_out)


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
    return max(contrast, fit_score_map(pairing, rotation, query, min_gain=0.002).contrast)
