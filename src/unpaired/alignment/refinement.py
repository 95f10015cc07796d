"""Refinement that climbs: rounds on random samples of rows, several runs, their mean, again.

Long refinement on all rows settles on the first answer, or drifts. On rows drawn anew in every
round, few at first and more later, it does neither: what a sample shares by accident is gone in the
next one, and what both sides really share adds up. Runs differ in their draws alone; the mean of
their rotations keeps what they share and is the start of the next generation. Whether there was
something to climb is told without labels: the answer is blurred, and has to be found again on two
disjoint halves of the rows.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from unpaired.alignment.alternation import CanonicalCritic, Pairs, Step, alternate
from unpaired.math.canonical import Moments, canonical_maps
from unpaired.plans.plan import plan_of
from unpaired.spaces.space import Part
from unpaired.views.features import fit_features
from unpaired.views.view import View


@dataclass(frozen=True)
class RefinementConfig:
    """Constants of the refinement; docs/notebook/refinement.md tells what each of them buys."""

    search_rank: int = 128
    """Principal components that the runs see: fewer are easier to find."""
    read_rank: int = 512
    """Principal components that are read in the end."""
    n_rounds: int = 60
    n_rows: tuple[int, int] = (800, 2000)
    """Rows a side in the first and in the last round, geometric between; at first half at most."""
    temperature: float = 0.3
    """Of the plans, in standard deviations of the cosines."""
    n_runs: int = 3
    n_generations: int = 3
    start: float = 0.25
    """Temperature of the first plan, in standard deviations of the scores it comes from."""
    blur: float = 1.0
    """Random matrix added to the answer before it has to be found again, in units of its norm."""
    accepted: float = 0.5
    """Overlap of two blurred answers found again on halves of the rows from which on it counts."""


REFINEMENT = RefinementConfig()


@dataclass(frozen=True, eq=False)
class Refined:
    """A rotation between the directions of both sides, and how far it is found again."""

    view: View
    parts: list[Part]
    overlap: float
    """Mean singular value of the mean of two rotations found again: 1 = the same, 0 = unrelated."""

    @property
    def accepted(self) -> bool:
        """Whether it was found again."""
        return self.overlap >= REFINEMENT.accepted


def directions(x: Tensor, y: Tensor, rank: int, rng: np.random.Generator) -> View:
    """Both sides as directions around their means, in principal components as they are."""
    map_x, map_y = (fit_features(side, rng, max_rank=rank) for side in (x, y))
    return View(map_x, map_y, map_x(x), map_y(y))


def refine(
    x: Tensor, y: Tensor, pairs: Pairs, placed: tuple[Tensor, Tensor], rng: np.random.Generator
) -> Refined:
    """The rotation that rounds on random samples reach, from an alignment.

    ``placed`` are the free rows of both sides such that products are the scores to begin with.
    """
    view = directions(x, y, REFINEMENT.search_rank, rng)
    critic = CanonicalCritic([view], pairs, even=False)
    rotation = _rotation(critic(plan_of(*placed, REFINEMENT.start), Step(1.0, power=0.0))[0])
    for _ in range(REFINEMENT.n_generations):
        runs = [climb(view, pairs, rotation, rng) for _ in range(REFINEMENT.n_runs)]
        rotation = torch.stack(runs).mean(0)
    overlap = found_again(view, pairs, rotation, rng)
    wide = directions(x, y, REFINEMENT.read_rank, rng)
    return Refined(wide, _widened(view, wide, pairs, rotation, rng), overlap)


def climb(view: View, pairs: Pairs, rotation: Tensor, rng: np.random.Generator) -> Tensor:
    """The rotation (r_x, r_y) that one run on random samples ends at."""
    critic = CanonicalCritic([view], pairs, even=False)
    schedule = _schedule(min(len(pairs.free_x), len(pairs.free_y)))
    *_, end = alternate(critic, schedule, parts=_parts(rotation), rng=rng)
    return _rotation(critic.on(end.pairs)(end.plan, schedule[-1])[0])


def found_again(view: View, pairs: Pairs, rotation: Tensor, rng: np.random.Generator) -> float:
    """How far two runs from blurred answers, on disjoint halves of the rows, overlap; 0 to 1."""
    found = []
    orders = [rng.permutation(len(free)) for free in (pairs.free_x, pairs.free_y)]
    for half in (0, 1):
        free_x, free_y = (
            free[torch.as_tensor(np.sort(order[half::2]), device=free.device)]
            for free, order in zip((pairs.free_x, pairs.free_y), orders, strict=True)
        )
        some = Pairs(pairs.known[:0], pairs.weights[:0], free_x, free_y)
        noise = torch.as_tensor(rng.standard_normal(tuple(rotation.shape)), dtype=rotation.dtype)
        noise = noise.to(rotation) * (REFINEMENT.blur * rotation.norm() / noise.norm())
        found.append(climb(view, some, rotation + noise, rng))
    return float(torch.linalg.svdvals(torch.stack(found).mean(0)).mean())


def _widened(
    view: View, wide: View, pairs: Pairs, rotation: Tensor, rng: np.random.Generator
) -> list[Part]:
    """Rotations of all components: partners named by the first ones teach the rest."""
    size = REFINEMENT.n_rows[1]
    narrow = CanonicalCritic([view], pairs, even=False)
    step = Step(REFINEMENT.temperature, power=0.0, n_rows=size)
    (first,) = alternate(narrow, [step], parts=_parts(rotation), rng=rng)
    critic = CanonicalCritic([wide], first.pairs, even=False)
    parts, _ = critic(first.plan, step)
    every = critic.on(pairs)
    *_, end = alternate(every, [step] * (REFINEMENT.n_rounds // 6), parts=parts, rng=rng)
    return every.on(end.pairs)(end.plan, step)[0]


def _schedule(n_rows: int) -> list[Step]:
    """Steps on samples that grow by a constant factor."""
    first = min(REFINEMENT.n_rows[0], -(-n_rows // 2))
    last = min(REFINEMENT.n_rows[1], n_rows)
    sizes = np.geomspace(first, last, REFINEMENT.n_rounds).round().astype(int)
    return [Step(REFINEMENT.temperature, power=0.0, n_rows=int(size)) for size in sizes]


def _rotation(parts: list[Part]) -> Tensor:
    """The orthogonal map (r_x, r_y) of a part whose directions count alike."""
    left, right = parts[0].maps
    return left @ right.T


def _parts(rotation: Tensor) -> list[Part]:
    """The orthogonal map nearest to a matrix, as a part."""
    none = rotation.new_zeros(0, 0)
    size = min(rotation.shape)
    maps = canonical_maps(
        Moments(rotation, none, none, 1.0), (np.inf, np.inf), width=size, power=0.0
    )
    return [Part(0, (maps.x, maps.y))]
