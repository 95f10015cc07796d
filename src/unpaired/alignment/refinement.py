"""Refinement on random samples: rounds that climb where both sides are nearly the same geometry.

Long refinement on all rows settles on the first answer, or drifts. On rows drawn anew in every
round, few at first and more later, it does neither: what a sample shares by accident is gone in the
next one, and what both sides really share adds up. Two runs on different draws tell which it was:
they name the same single partners only where there is something to find.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from torch import Tensor

from unpaired.alignment.alternation import CanonicalCritic, Pairs, Step, alternate, place_free
from unpaired.math.hubness import csls
from unpaired.plans.plan import plan_of
from unpaired.spaces.space import Part
from unpaired.views.features import fit_features
from unpaired.views.view import View


@dataclass(frozen=True)
class RefinementConfig:
    """Constants of the refinement."""

    max_rank: int = 256
    """Principal components of unit rows, not whitened, in which the rotation is looked for."""
    n_rounds: int = 60
    n_rows: tuple[int, int] = (800, 2000)
    """Rows a side in the first and in the last round, geometric between; less than all of them."""
    start: float = 0.25
    """Temperature of the first plan, in standard deviations of the scores it comes from."""
    temperature: float = 0.4
    """Of the plans, in standard deviations of the cosines."""
    n_judges: int = 2000
    """Rows a side on which two runs are compared."""


REFINEMENT = RefinementConfig()


def plain_view(x: Tensor, y: Tensor, rng: np.random.Generator) -> View:
    """Both sides as directions around their means, in principal components as they are."""
    map_x, map_y = (fit_features(s, rng, max_rank=REFINEMENT.max_rank) for s in (x, y))
    return View(map_x, map_y, map_x(x), map_y(y))


def refine(
    view: View, pairs: Pairs, placed: tuple[Tensor, Tensor], rng: np.random.Generator
) -> list[Part]:
    """The rotation that rounds on random samples reach, from scores of all free rows.

    ``placed`` are the free rows of both sides such that products are the scores to begin with.
    """
    most = min(len(pairs.free_x), len(pairs.free_y))
    last = min(REFINEMENT.n_rows[1], most)
    first = min(REFINEMENT.n_rows[0], max(most // 2, 1))
    sizes = np.geomspace(first, last, REFINEMENT.n_rounds).round().astype(int)
    schedule = [Step(REFINEMENT.temperature, power=0.0, n_rows=int(size)) for size in sizes]
    critic = CanonicalCritic([view], pairs)
    *_, end = alternate(critic, schedule, plan_of(*placed, REFINEMENT.start), rng=rng)
    return critic.on(end.pairs)(end.plan, schedule[-1])[0]


def shared_partners(
    view: View, pairs: Pairs, runs: tuple[list[Part], list[Part]], rng: np.random.Generator
) -> float:
    """The share of rows for which two runs name the same best partner, both ways; 0 to 1."""
    critic = CanonicalCritic([view], pairs.draw(REFINEMENT.n_judges, rng))
    scores = []
    for parts in runs:
        left, right = place_free(critic, parts)
        scores.append(csls(left @ right.T))
    same = [float((scores[0].argmax(d) == scores[1].argmax(d)).float().mean()) for d in (0, 1)]
    return sum(same) / 2
