"""Several answers to one problem, judged by known pairs that are held out in turn, and their mean.

A plan that grows from known pairs is the best answer where the other rows help, and a bad one where
they mislead; maps of the pairs alone, by CCA or by regression of one side on the other, are not
misled; runs of the refinement find single partners.
Which it is, is seen in the ranks of pairs that an answer did not know. A few pairs tell this
roughly: scores are averaged by what speaks for each answer, and none is chosen.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from unpaired.alignment.critics import CanonicalCritic, Step
from unpaired.alignment.refinement import REFINEMENT, beginning, starts_near, widen
from unpaired.math.rotations import nearest_rotation
from unpaired.plans.plan import Pairs
from unpaired.spaces.readout import relative_ranks
from unpaired.spaces.space import Part, Space, join, rotation_parts, spread
from unpaired.types import FloatArray, IntArray
from unpaired.views.view import View


@dataclass(frozen=True)
class AnswersConfig:
    """Constants of the mean of several answers; docs/notebook/pairs-on-unseen-data.md."""

    ridge: float = 1.0
    """For one pair, of maps of the pairs alone where rows keep their length: little noise."""
    n_climbs: int = 4
    """Runs on random samples, of which the closest end is kept; one may miss the partners,"""
    n_climbs_held: int = 1
    """and so many where pairs are held out: what they say is then no better than it is."""
    rank: int = 256
    """Principal components that they end in; half of what refinement reads, in half the time."""
    least_rows: int = 30
    """Free rows of each side below which no run is made: there is nothing to sample."""
    rate: float = 0.5
    """What a held-out pair counts of its log rank: fits that share pairs are not independent."""
    least_weight: float = 0.01
    """An answer of less weight is left out, and its views with it."""


ANSWERS = AnswersConfig()


def pairs_alone(
    views: Sequence[View], pairs: Pairs, ridge: float, whitens: tuple[bool, bool] = (True, True)
) -> list[Part]:
    """Maps of the known pairs, and of nothing else: regularised CCA, or ridge regression.

    The latter where one side alone is whitened.
    """
    return CanonicalCritic(views, pairs, whitens=whitens)(None, Step(1.0, ridge))[0]


def climbed(
    view: View,
    pairs: Pairs,
    placed: tuple[Tensor, Tensor],
    n_runs: int,
    rng: np.random.Generator,
) -> list[Part]:
    """A rotation of all components of the view: the closest end of runs on random samples.

    They begin where ``placed`` has the free rows, such that products are scores, all but the first
    with the signs of some components changed, and are held by the known pairs (``refinement``).
    """
    narrow, sides, cross = beginning(view, pairs, placed)
    compared = sides.draw(REFINEMENT.n_compared, rng)
    starts = starts_near(nearest_rotation(cross), rng, n_runs)
    ends = [sides.climb(start, REFINEMENT.n_steady, rng) for start in starts]
    best = rotation_parts(max(ends, key=compared.closeness), narrow.x)
    return widen(view, pairs, best, rng)


def numbered_from(parts: Sequence[Part], first: int) -> list[Part]:
    """The parts where their views are counted from another number on."""
    return [replace(part, view=part.view + first) for part in parts]


def log_ranks(space: Space, pairs: IntArray, among: Sequence[IntArray]) -> FloatArray:
    """(k,) logs of the places of pairs (k, 2) by their scores, 1 = best; the mean of both ways.

    ``among`` are the rows of x and of y, in order, that they are ranked among.
    """
    placed = [
        space.corrected(space.references[side][torch.as_tensor(rows)], side).cpu().numpy()
        for side, rows in enumerate(among)
    ]
    found = []
    for side in (0, 1):
        own, other = (np.searchsorted(among[s], pairs[:, s]) for s in (side, 1 - side))
        scores = (placed[side][own] @ placed[1 - side].T).astype(np.float64)
        found.append(np.log1p(relative_ranks(scores, other) * (scores.shape[1] - 1)))
    return np.asarray((found[0] + found[1]) / 2.0)


def weights_by(losses: FloatArray) -> FloatArray:
    """What each answer counts, (n_answers,), sum one, by its log ranks of held-out pairs.

    Exponential weights: a pair at place r speaks for an answer as 1 / r would (Zipf), to a power
    below one. Answers of hardly any weight have none.

    >>> weights_by(np.array([[0.0, 0.0], [20.0, 20.0]]))
    array([1., 0.])
    """
    total = ANSWERS.rate * losses.sum(axis=1)
    weights = np.exp(total.min() - total)
    weights = np.where(weights < ANSWERS.least_weight * weights.sum(), 0.0, weights)
    return np.asarray(weights / weights.sum())


def mean_parts(
    answers: Sequence[list[Part]], weights: FloatArray, views: Sequence[View]
) -> list[Part]:
    """Parts whose scores are the weighted mean of those of all answers, each of one spread."""
    found: list[Part] = []
    for parts, weight in zip(answers, weights, strict=True):
        if weight > 0.0:
            left = join(parts, [view.x for view in views], 0)
            right = join(parts, [view.y for view in views], 1)
            factor = float(weight) / spread(left, right)
            found += [replace(part, weight=factor * part.weight) for part in parts]
    return found
