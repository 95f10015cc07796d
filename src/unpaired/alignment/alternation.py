"""The one alternation, of any critic: maps from a plan, scores of the maps, a plan from scores.

Everything that is learned here is a schedule of it: the search without pairs, few pairs, many
pairs, networks. A schedule is data; a critic (``alignment.critics``) turns a plan into maps.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from torch import Tensor

from unpaired.alignment.critics import Critic, Step
from unpaired.plans.plan import Pairs, Plan, dense_plan, plan_of
from unpaired.spaces.space import Part, join


@dataclass(frozen=True, eq=False)
class Round:
    """What one turn of the alternation has made."""

    step: Step
    parts: list[Part]
    """Fitted on the plan before."""
    plan: Plan
    """By the scores of the parts."""
    pairs: Pairs
    """Whose free rows the plan is over."""
    dependence: float
    """SMI of the first part where its maps are whitened; else the sum of its squared values."""


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
