"""The one alternation: maps from a plan, scores from the maps, a plan from the scores.

Everything that is learned here is a schedule of it: the search without pairs, few pairs, many
pairs, networks. A schedule is data; a critic turns a plan into parts of a space.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Protocol, Self

import numpy as np
import torch
from torch import Tensor

from unpaired.math.canonical import LEAST_RIDGE, Moments, canonical_maps
from unpaired.plans.plan import DensePlan, Plan, dense_plan, plan_of
from unpaired.spaces.space import Part, even_weights, join
from unpaired.types import IntArray
from unpaired.views.view import View


@dataclass(frozen=True)
class Step:
    """One turn of the alternation."""

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


@dataclass(frozen=True, eq=False)
class Pairs:
    """Which rows are paired, with what weight, and which are free to be matched."""

    known: Tensor
    """(k, 2) known pairs; a row may occur in several."""
    weights: Tensor
    free_x: Tensor
    free_y: Tensor
    balanced: bool = True
    """Every row of y has its share of the rows of x; not so in many-to-one."""

    def draw(self, n_rows: int, rng: np.random.Generator) -> Pairs:
        """The same known pairs with at most ``n_rows`` of the free rows of each side."""
        free_x, free_y = (
            free[torch.as_tensor(np.sort(rng.permutation(len(free))[:n_rows]), device=free.device)]
            for free in (self.free_x, self.free_y)
        )
        return replace(self, free_x=free_x, free_y=free_y)


def make_pairs(
    known: IntArray | None, n_x: int, n_y: int, device: torch.device, *, many_to_one: bool = False
) -> Pairs:
    """Known pairs with their weights, and the rows that are free.

    A pair counts one over how often its busier row occurs: five captions of an image count as one.
    Many-to-one, a row of y is meant to occur often, and only repeats of x count.
    """
    found = torch.as_tensor(
        np.zeros((0, 2), dtype=np.int64) if known is None else known, device=device
    )
    taken_x = torch.bincount(found[:, 0], minlength=n_x)
    taken_y = torch.bincount(found[:, 1], minlength=n_y)
    count = taken_x[found[:, 0]]
    free_y = torch.arange(n_y, device=device)
    if not many_to_one:
        count = torch.maximum(count, taken_y[found[:, 1]])
        free_y = torch.nonzero(taken_y == 0)[:, 0]
    free_x = torch.nonzero(taken_x == 0)[:, 0]
    return Pairs(found, 1.0 / count, free_x, free_y, not many_to_one)


@dataclass(frozen=True)
class Trust:
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
class Round:
    """What one step left."""

    step: Step
    parts: list[Part]
    """Fitted on the plan before."""
    plan: Plan
    """By the scores of the parts."""
    pairs: Pairs
    """Whose free rows the plan is over."""
    dependence: float
    """SMI of the first part where its maps are whitened; else the sum of its squared values."""


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


def alternate(
    critic: Critic,
    schedule: Sequence[Step],
    plan: Plan | None = None,
    *,
    parts: list[Part] | None = None,
    held: Tensor | None = None,
    width: int | None = None,
    rng: np.random.Generator | None = None,
) -> Iterator[Round]:
    """Maps from the plan, scores from the maps, a plan from the scores; once for each step.

    Args:
        critic: Fits the maps.
        schedule: What is done in each step.
        plan: To begin with; None begins from the critic's known pairs.
        parts: To begin with in the place of those of a plan.
        held: Standardised scores (n_free_x, n_free_y) that join in with each step's weight.
        width: Directions of each part that enter the scores, all by default.
        rng: Draws the rows of steps that take some only.
    """
    every = critic.pairs
    for number, step in enumerate(schedule):
        if number or parts is None:
            parts, dependence = critic(plan, step)
        else:
            dependence = math.nan
        if rng is not None:
            critic = critic.on(every.draw(step.n_rows, rng) if step.n_rows else every)
        left, right = place_free(critic, parts, width)
        if held is None:
            plan = plan_of(left, right, step.temperature, balanced=critic.pairs.balanced)
        else:
            scores = standardise(left @ right.T) + step.held * held
            plan = dense_plan(scores, step.temperature, balanced=critic.pairs.balanced)
        yield Round(step, parts, plan, critic.pairs, dependence)


def place_free(
    critic: Critic, parts: Sequence[Part], width: int | None = None
) -> tuple[Tensor, Tensor]:
    """The free rows of both sides in the space of the parts; products are scores."""
    pairs = critic.pairs
    return (
        join(parts, [view.x[pairs.free_x] for view in critic.views], 0, width),
        join(parts, [view.y[pairs.free_y] for view in critic.views], 1, width),
    )


def standardise(scores: Tensor) -> Tensor:
    """Scores with mean 0 and standard deviation 1."""
    centred = scores - scores.mean()
    return centred / centred.square().mean().sqrt().clamp_min(1e-12)


@dataclass(frozen=True, eq=False)
class CanonicalCritic:
    """Regularised CCA in every view, from known pairs and the plan: closed forms, no networks."""

    views: Sequence[View]
    pairs: Pairs
    trust: Trust | None = None
    """None counts all rows alike, which is what rows without any known pair do."""
    width: int = 600
    """Directions kept."""
    extra_ridges: Sequence[float] = ()
    """What each view adds to the ridge; nothing by default."""
    even: bool = True
    """Weigh views so that their scores spread alike; else products are the sum of cosines."""

    def on(self, pairs: Pairs) -> Self:
        """The same critic for plans over other free rows."""
        return replace(self, pairs=pairs)

    @cached_property
    def known(self) -> list[Moments]:
        """The moments of the known pairs in every view."""
        return [moments_of(view, self.pairs.known, self.pairs.weights) for view in self.views]

    def __call__(self, plan: Plan | None, step: Step) -> tuple[list[Part], float]:
        """Maps of every view, weighted so that their scores spread alike."""
        parts, dependence = [], 0.0
        for number, moments in enumerate(self.moments(plan)):
            own = self.extra_ridges[number] if self.extra_ridges else 0.0
            ridge = max(LEAST_RIDGE, step.ridge / max(moments.n_pairs, 1.0) + own)
            found = canonical_maps(
                moments, (ridge, ridge), width=self.width, power=step.power, belief=step.belief
            )
            parts.append(Part(number, (found.x, found.y)))
            dependence = found.dependence if number == 0 else dependence
        return (even_weights(parts, self.views) if self.even else parts), dependence

    def moments(self, plan: Plan | None) -> list[Moments]:
        """Known pairs and soft ones, in every view."""
        if plan is None:
            return self.known
        free_x, free_y = self.pairs.free_x, self.pairs.free_y
        trust = plan.peaks().new_ones(len(free_x)) if self.trust is None else self.trust(plan)
        sizes = [view.y.shape[1] for view in self.views]
        expected = plan.apply(torch.cat([view.y[free_y] for view in self.views], 1))
        partners = torch.split(expected * trust[:, None], sizes, 1)
        load, n_pairs = plan.loads(trust), float(trust.sum())
        found = []
        for view, partner, known in zip(self.views, partners, self.known, strict=True):
            left, right = view.x[free_x], view.y[free_y]
            own = weighted_square(left, trust), weighted_square(right, load)
            soft = Moments(left.T @ partner, *own, n_pairs)
            found.append(soft.plus(known) if self.trust is not None else blend(soft, known))
        return found


def blend(soft: Moments, known: Moments) -> Moments:
    """Covariances of soft pairs that weigh nothing yet, and of a few known ones beside them.

    Diffuse plans have small covariances, so both are brought to one size; k known pairs count
    2 k / (k + 30) times as much as all other rows together.
    """
    if not known.n_pairs:
        return soft
    share = 2.0 * known.n_pairs / (known.n_pairs + 30.0)
    size = soft.cross.norm().clamp_min(1e-30) / known.cross.norm().clamp_min(1e-30)
    return Moments(soft.cross + share * size * known.cross, soft.own_x, soft.own_y, soft.n_pairs)


def moments_of(view: View, pairs: Tensor, weights: Tensor) -> Moments:
    """Weighted sums over pairs (k, 2); a row in several pairs is multiplied once."""
    own, weigh = [], weights.to(view.x.dtype)
    for side, placed in enumerate((view.x, view.y)):
        rows, place = torch.unique(pairs[:, side], return_inverse=True)
        load = weigh.new_zeros(len(rows)).index_add_(0, place, weigh)
        own.append(weighted_square(placed[rows], load))
    cross = (view.x[pairs[:, 0]] * weigh[:, None]).T @ view.y[pairs[:, 1]]
    return Moments(cross, own[0], own[1], float(weigh.sum()))


def weighted_square(rows: Tensor, weights: Tensor) -> Tensor:
    """Sum of the weighted outer products of rows with themselves, (n, r), (n,) -> (r, r)."""
    return (rows * weights[:, None]).T @ rows


def mean_plan(plans: Sequence[DensePlan]) -> DensePlan:
    """The mean of dense plans: their errors differ, and are less in the mean."""
    total = plans[0].shares.clone()
    for plan in plans[1:]:
        total += plan.shares
    return DensePlan(total / len(plans))
