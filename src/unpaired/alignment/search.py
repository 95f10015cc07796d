"""Soft alignment: maps between sides whose rows have no evident partners, only like geometry.

Rows are described by profiles (how similarity falls off around them), which need no pairs; profiles
give a soft plan, the plan gives maps in each of several views, and views that agree are read
together. More rounds drift towards what two geometries share by accident, unless known pairs hold
them, or they are made on random samples (``refinement``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from unpaired.alignment.alternation import (
    CanonicalCritic,
    Pairs,
    Round,
    Step,
    Trust,
    alternate,
    make_pairs,
    mean_plan,
    place_free,
    standardise,
)
from unpaired.alignment.finalists import JOINT, OWN, SearchConfig, compare_starts
from unpaired.alignment.profiles import (
    Profiles,
    profile_scores,
    profiles_of,
    relative_score,
    with_side_information,
)
from unpaired.alignment.refinement import refine
from unpaired.plans.plan import DensePlan, dense_plan
from unpaired.spaces.solution import Evidence, Solution
from unpaired.spaces.space import Part, build_space
from unpaired.types import FloatArray, IntArray
from unpaired.views.view import GEODESICS, KERNEL, LINEAR, View, fit_view, smooth_view

VIEWS = (LINEAR, *GEODESICS)
READ_TEMPERATURES = {"profiles": 0.25, "known pairs": 0.15, "refined": 0.1}
"""At which confidence is read from the scores, by how the maps were found."""
HUB_SHARE = 15
"""One row in so many of the other side counts as near a row in the hub correction."""
N_NEAREST = 10
"""Rows that count as near where single partners were found."""


@dataclass(frozen=True)
class HandfulConfig:
    """Constants for fewer known pairs than GrowthConfig asks for: they join the profiles."""

    temperatures: tuple[float, ...] = (0.3, 0.2, 0.15, 0.15)
    weight: float = 0.3
    """Of profiles and closeness to known pairs in every round."""
    closeness: float = 2.0
    """Weight of closeness to known pairs beside profiles."""


@dataclass(frozen=True)
class GrowthConfig:
    """Constants of the rounds of regularised CCA that grow a plan from known pairs."""

    least: int = 8
    """Known pairs from which on they are a start."""
    temperatures: tuple[float, ...] = tuple(float(t) for t in np.geomspace(0.8, 0.13, 14))
    ridge: float = 10.0
    """For one pair, in units of the total variance."""
    weight: float = 0.2
    """Of profiles and maps of the pairs alone in every round."""
    plenty: int = 20
    """With fewer known pairs, profiles count for more in proportion."""
    width: int = 160
    """Directions of each view that enter the scores."""


SEARCH, HANDFUL, GROWTH = SearchConfig(), HandfulConfig(), GrowthConfig()


@dataclass(frozen=True, eq=False)
class Clues:
    """What is known of the free rows beside the views: profiles and side information."""

    views: list[View]
    """The views that are searched and read."""
    profiles: list[Profiles]
    side: Tensor | None
    """(n_x, n_y) standardised side information."""

    def scores(self) -> Tensor:
        """What profiles and side information say of all pairs, (n_x, n_y), standardised."""
        device = self.views[0].x.device
        return with_side_information(profile_scores(self.profiles).to(device), self.side)


def align_softly(
    x: Tensor,
    y: Tensor,
    rng: np.random.Generator,
    *,
    known: IntArray | None = None,
    similarity: Tensor | None = None,
    starts: Mapping[str, FloatArray] | None = None,
    refines: bool = True,
) -> Solution:
    """Align the rows of x (n_x, d_x) and y (n_y, d_y), with no or few known pairs.

    ``similarity`` (n_x, n_y) is standardised side information that joins the profiles. ``starts``
    are plans (n_x, n_y) tried beside the profiles: one is used if it reaches the largest
    dependence. Without ``refines`` the alignment is not refined. Cost O(n^2 (d + log n)).
    """
    pairs = make_pairs(known, len(x), len(y), x.device)
    views = {name: fit_view(name, x, y, rng) for name in VIEWS}
    profiles = {name: profiles_of(v, directions=name == LINEAR) for name, v in views.items()}
    given = {
        name: DensePlan(torch.as_tensor(plan / plan.sum() * len(x), device=x.device).float())
        for name, plan in (starts or {}).items()
        if plan.any()
    }
    found = compare_starts(views, profiles, pairs, similarity, given, rng, SEARCH)
    searched = [views[name] for name in found.views]
    clues = Clues(searched, [profiles[name] for name in found.views], similarity)
    read = list(searched)
    if LINEAR in found.views:
        read += [fit_view(KERNEL, x, y, rng), smooth_view(views[LINEAR])]
    start = given.get(found.winner.start)
    rounds: list[Round] = []
    last = Step(SEARCH.temperature, power=SEARCH.power)
    critic = CanonicalCritic(read, pairs)
    if len(pairs.known) >= GROWTH.least and start is None:
        critic = CanonicalCritic(read, pairs, Trust())
        rounds = _grow(critic, clues)
        plan, last = rounds[-1].plan, rounds[-1].step
    elif len(pairs.known) or start is not None:
        rounds = _refine(critic, list(views.values()), clues, start)
        plan = rounds[-1].plan
    else:
        plan = profile_plan(clues, pairs)
    parts, dependence = critic(plan, last)
    scores = _sampled_scores(critic, parts, found.rows)
    agreement = found.agreement(scores, SEARCH) if scores.numel() else float("nan")
    kind, notes = ("known pairs" if len(pairs.known) else "profiles"), []
    smooth_by: tuple[int, ...] = ()
    n_nearest = -(-len(y) // HUB_SHARE)
    confirmed = float("nan")
    climbs = refines and len(pairs.known) < GROWTH.least  # more known pairs say more by themselves
    refined = refine(x, y, pairs, place_free(critic, parts), rng) if climbs else None
    if refined is not None and refined.accepted:
        confirmed = refined.confirmed
        kind, read, parts, n_nearest = "refined", [refined.view], refined.parts, N_NEAREST
        notes.append(
            "Refinement on random samples was kept: its runs end at one answer, and "
            f"{refined.confirmed:.0%} of the rows find their partner again."
        )
    elif LINEAR in found.views:  # rows that were never seen gain most
        smooth_by = (found.views.index(LINEAR), len(found.views))
    history = [{"dependence": r.dependence} for r in rounds] or [{"dependence": dependence}]
    reached = {
        f"{f.view}, {f.start}" + (" profile" if f.start in (OWN, JOINT) else ""): f.dependence
        for f in found.finalists
    }
    return Solution(
        build_space(read, parts, n_nearest=n_nearest, smooth_by=smooth_by),
        Evidence(reached, agreement, found.winner.gap, confirmed),
        kind,
        certainty=1.0,
        temperature=READ_TEMPERATURES[kind],
        history=history,
        notes=notes,
    )


def profile_plan(clues: Clues, pairs: Pairs) -> DensePlan:
    """The mean plan of profiles before and after one step, over all views and all but one."""
    every = list(range(len(clues.views)))
    subsets = [every]
    if len(every) > 1:
        subsets += [[v for v in every if v != out] for out in every]
    step = Step(SEARCH.temperature, power=SEARCH.power, held=SEARCH.profile_weight)
    plans = []
    for subset in subsets:
        views = [clues.views[v] for v in subset]
        anchor = Clues(views, [clues.profiles[v] for v in subset], clues.side).scores()
        before = dense_plan(anchor, SEARCH.temperature)
        (after,) = alternate(CanonicalCritic(views, pairs), [step], before, held=anchor)
        assert isinstance(after.plan, DensePlan)
        plans += [before, after.plan]
    return mean_plan(plans)


def _refine(
    critic: CanonicalCritic, views: Sequence[View], clues: Clues, start: DensePlan | None
) -> list[Round]:
    """Rounds from profiles and a handful of known pairs, or from a start that was given."""
    pairs = critic.pairs
    held = clues.scores()
    schedule = [Step(SEARCH.temperature, power=SEARCH.power, held=SEARCH.profile_weight)]
    if len(pairs.known):
        units = [View(v.map_x, v.map_y, normalize(v.x), normalize(v.y)) for v in views[:1]]
        near = relative_score([*units, *views[1:]], pairs.known).to(held)
        held = standardise(held + HANDFUL.closeness * near)
        schedule = [Step(t, power=SEARCH.power, held=HANDFUL.weight) for t in HANDFUL.temperatures]
    held = held[pairs.free_x][:, pairs.free_y]
    begin = dense_plan(held, SEARCH.temperature)
    if start is not None:
        begin = DensePlan(start.shares[pairs.free_x][:, pairs.free_y])
    return list(alternate(critic, schedule, begin, held=held))


def _grow(critic: CanonicalCritic, clues: Clues) -> list[Round]:
    """Rounds of regularised CCA that grow from the known pairs while they cool down."""
    pairs, views = critic.pairs, critic.views
    scarce = max(1.0, GROWTH.plenty / len(pairs.known))
    parts, _ = CanonicalCritic(views, pairs)(None, Step(1.0))
    every = make_pairs(None, len(views[0].x), len(views[0].y), pairs.known.device)
    left, right = place_free(CanonicalCritic(views, every), parts)
    near = standardise(left @ right.T)
    plain = Clues(clues.views, clues.profiles, None).scores()
    held = standardise(plain + HANDFUL.closeness / scarce * near)
    held = with_side_information(held, clues.side)[pairs.free_x][:, pairs.free_y]
    weight = GROWTH.weight * scarce
    schedule = [Step(t, GROWTH.ridge, held=weight) for t in GROWTH.temperatures]
    return list(alternate(critic, schedule, held=held, width=GROWTH.width))


def _sampled_scores(
    critic: CanonicalCritic, parts: Sequence[Part], rows: tuple[Tensor, Tensor]
) -> Tensor:
    """Scores of some rows of x with some rows of y by the parts."""
    some = Pairs(critic.pairs.known, critic.pairs.weights, *rows)
    left, right = place_free(CanonicalCritic(critic.views, some), parts)
    return left @ right.T
