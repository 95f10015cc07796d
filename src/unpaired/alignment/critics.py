"""Critics: a plan becomes maps of both sides. The protocol, and regularised CCA, which keeps it.

Networks are another critic (``LearnedCritic`` of ``learning.learner``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol, Self

import torch
from torch import Tensor

from unpaired.math.canonical import LEAST_RIDGE, Moments, canonical_maps
from unpaired.plans.plan import Pairs, Plan
from unpaired.spaces.space import Part, even_weights
from unpaired.views.view import View


@dataclass(frozen=True)
class Step:
    """What one turn of the alternation shall do."""

    temperature: float
    """Of the plan, in standard deviations of the scores."""
    ridge: float = math.inf
    """Of the whitening for one pair, in units of the total variance; it falls with the number of
    pairs. Infinity whitens nothing: maps are those of the cross-covariance."""
    power: float = 0.5
    """Of the correlations in the scores; 0 is a rotation."""
    belief: float = 0.0
    """Share of a correlation that is believed (``math.canonical.canonical_maps``)."""
    held: float = 0.0
    """Weight of the scores that are held through all steps."""
    n_rows: int = 0
    """Rows of each side, drawn at random, that the plan is made for; 0 takes all of them."""
    networks: bool = False
    """Whether networks are trained on the plan, and join the scores."""


class Critic(Protocol):
    """Turns a plan into parts of a space."""

    @property
    def views(self) -> Sequence[View]:
        """The views whose coordinates it maps."""
        ...

    @property
    def pairs(self) -> Pairs:
        """Known pairs and free rows."""
        ...

    def __call__(self, plan: Plan | None, step: Step) -> tuple[list[Part], float]:
        """Parts, and the dependence they reach; without a plan from the known pairs alone."""
        ...

    def on(self, pairs: Pairs) -> Self:
        """The same critic for plans over other free rows."""
        ...


@dataclass(frozen=True)
class PeakWeight:
    """How much a row's soft pairs count against a known pair, by the peak of its plan."""

    soft_weight: float = 0.4
    """Of a row of full confidence."""
    doubt: float = 0.1
    """Peak share at which a row counts half as much."""

    def __call__(self, plan: Plan) -> Tensor:
        """(n_x,) weights."""
        peak = plan.peaks()
        return self.soft_weight * peak / (peak + self.doubt)


@dataclass(frozen=True, eq=False)
class CanonicalCritic:
    """Maps of every view in closed form, from known pairs and the plan: regularised CCA.

    At an infinite ridge the SVD of the cross-covariance instead.
    """

    views: Sequence[View]
    pairs: Pairs
    peak_weight: PeakWeight | None = None
    """None counts all rows alike, which is what rows without any known pair do."""
    width: int = 600
    """Directions kept."""
    extra_ridges: Sequence[float] = ()
    """What each view adds to the ridge; nothing by default."""
    even: bool = True
    """Weigh views so that their scores spread alike; else products are the sum of cosines."""
    whitens: tuple[bool, bool] = (True, True)
    """The sides that are whitened. One alone is ridge regression on it: its rows are put where the
    pairs expect their partners."""

    def on(self, pairs: Pairs) -> Self:
        """The same critic for plans over other free rows."""
        return replace(self, pairs=pairs)

    @cached_property
    def known(self) -> list[Moments]:
        """The moments of the known pairs in every view."""
        return [moments_of(view, self.pairs.known, self.pairs.weights) for view in self.views]

    def __call__(self, plan: Plan | None, step: Step) -> tuple[list[Part], float]:
        """Maps of every view, weighted so that their scores spread alike where ``even``."""
        parts, dependence = [], 0.0
        for number, moments in enumerate(self.moments(plan, own=math.isfinite(step.ridge))):
            own = self.extra_ridges[number] if self.extra_ridges else 0.0
            ridge = max(LEAST_RIDGE, step.ridge / max(moments.n_pairs, 1.0) + own)
            left, right = (ridge if whitens else math.inf for whitens in self.whitens)
            found = canonical_maps(
                moments, (left, right), width=self.width, power=step.power, belief=step.belief
            )
            parts.append(Part(number, (found.x, found.y)))
            dependence = found.dependence if number == 0 else dependence
        return (even_weights(parts, self.views) if self.even else parts), dependence

    def moments(self, plan: Plan | None, *, own: bool = True) -> list[Moments]:
        """Known pairs and soft ones, in every view; those of one side only where ``own``."""
        if plan is None:
            return self.known
        free_x, free_y = self.pairs.free_x, self.pairs.free_y
        ones = self.views[0].x.new_ones(len(free_x))
        counts = ones if self.peak_weight is None else self.peak_weight(plan)
        sizes = [view.y.shape[1] for view in self.views]
        expected = plan.apply(torch.cat([view.y[free_y] for view in self.views], 1))
        partners = torch.split(expected * counts[:, None], sizes, 1)
        load, n_pairs = plan.loads(counts) if own else None, float(counts.sum())
        none, found = counts.new_zeros(()), []
        for view, partner, known in zip(self.views, partners, self.known, strict=True):
            left, right = view.x[free_x], view.y[free_y]
            squares = none, none
            if load is not None:
                squares = weighted_square(left, counts), weighted_square(right, load)
            soft = Moments(left.T @ partner, *squares, n_pairs)
            found.append(soft.plus(known) if self.peak_weight is not None else blend(soft, known))
        return found


def blend(soft: Moments, known: Moments) -> Moments:
    """Covariances of soft pairs that weigh nothing yet, and of a few known ones beside them.

    Diffuse plans have small covariances, so both are brought to one size.
    """
    if not known.n_pairs:
        return soft
    size = soft.cross.norm().clamp_min(1e-30) / known.cross.norm().clamp_min(1e-30)
    cross = soft.cross + known_share(known) * size * known.cross
    return Moments(cross, soft.own_x, soft.own_y, soft.n_pairs)


def known_share(known: Moments) -> float:
    """How much k known pairs count beside all other rows together: 2 k / (k + 30)."""
    return 2.0 * known.n_pairs / (known.n_pairs + 30.0)


def moments_of(view: View, pairs: Tensor, weights: Tensor) -> Moments:
    """Weighted sums over pairs (k, 2); a row in several pairs is multiplied once."""
    own, weigh = [], weights.to(view.x.dtype)
    if not len(pairs):
        r_x, r_y = view.x.shape[1], view.y.shape[1]
        own = [weigh.new_zeros(rank, rank) for rank in (r_x, r_y)]
        return Moments(weigh.new_zeros(r_x, r_y), own[0], own[1], 0.0)
    for side, placed in enumerate((view.x, view.y)):
        rows, place = torch.unique(pairs[:, side], return_inverse=True)
        load = weigh.new_zeros(len(rows)).index_add_(0, place, weigh)
        own.append(weighted_square(placed[rows], load))
    cross = (view.x[pairs[:, 0]] * weigh[:, None]).T @ view.y[pairs[:, 1]]
    return Moments(cross, own[0], own[1], float(weigh.sum()))


def weighted_square(rows: Tensor, weights: Tensor) -> Tensor:
    """Sum of the weighted outer products of rows with themselves, (n, r), (n,) -> (r, r)."""
    return (rows * weights[:, None]).T @ rows
