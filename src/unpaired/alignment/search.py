"""Soft alignment: which views are looked at, and maps where rows have no evident partners.

Rows are described by profiles (how similarity falls off around them), which need no pairs; profiles
give a soft plan, the plan gives maps in each of several views, and views that agree are read
together. More rounds drift towards what two geometries share by accident, unless known pairs hold
them, or they are made on random samples (``refinement``). With eight known pairs or more what grows
from them is one of several answers, whose mean is taken (``answers``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from unpaired._log import track
from unpaired.alignment.alternation import Round, alternate, place_free, standardise
from unpaired.alignment.answers import (
    ANSWERS,
    climbed,
    log_ranks,
    mean_parts,
    numbered_from,
    pairs_alone,
    weights_by,
)
from unpaired.alignment.critics import CanonicalCritic, PeakWeight, Step
from unpaired.alignment.finalists import SearchConfig, compare_starts
from unpaired.alignment.profiles import (
    Profiles,
    profile_scores,
    profiles_of,
    relative_score,
    with_side_information,
)
from unpaired.alignment.refinement import REFINEMENT, directions, refine, settle
from unpaired.alignment.starts import JOINT, OWN
from unpaired.plans.plan import DensePlan, Pairs, dense_plan, make_pairs, mean_plan
from unpaired.spaces.readout import held_out
from unpaired.spaces.solution import Evidence, HeldPair, Solution
from unpaired.spaces.space import Part, Space, build_space
from unpaired.types import FloatArray, IntArray
from unpaired.views.view import GEODESICS, LINEAR, View, fit_view, length_views

VIEWS = (LINEAR, *GEODESICS)
REFINED = "refined"
"""The kind of a solution whose refinement was kept."""
READ_TEMPERATURES = {"profiles": 0.25, "known pairs": 0.15, REFINED: 0.1}
"""At which confidence is read from the scores, by how the maps were found."""
HUB_SHARE = 15
"""One row in so many of the other side counts as near a row in the hub correction."""
N_NEAREST = 10
"""Rows that count as near where single partners were found."""
N_FOLDS = 3
"""Shares of the known pairs that are held out in turn;"""
FEW_PAIRS, MORE_FOLDS = 20, 5
"""more where pairs are few: without a third of ten, another schedule would be judged."""


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
    held_out: tuple[float, ...] = tuple(float(t) for t in np.geomspace(0.8, 0.13, 3))
    """Temperatures where known pairs are held out: their ranks are the same after fewer."""
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

    @cached_property
    def plain(self) -> Tensor:
        """What profiles say of all pairs, (n_x, n_y), standardised."""
        return profile_scores(self.profiles).to(self.views[0].x.device)

    def scores(self) -> Tensor:
        """What profiles and side information say of all pairs, (n_x, n_y), standardised."""
        return with_side_information(self.plain, self.side)


def align_softly(
    x: Tensor,
    y: Tensor,
    rng: np.random.Generator,
    *,
    known: IntArray | None = None,
    similarity: Tensor | None = None,
    starts: Mapping[str, FloatArray] | None = None,
    n_searches: int = REFINEMENT.n_searches,
) -> Solution:
    """Align the rows of x (n_x, d_x) and y (n_y, d_y), with no or few known pairs.

    ``similarity`` (n_x, n_y) is standardised side information that joins the profiles. ``starts``
    are plans (n_x, n_y) tried beside the profiles: one is used if it reaches the largest
    dependence. With ``n_searches`` 0 the alignment is not refined. Cost O(n^2 (d + log n)).
    """
    pairs = make_pairs(known, len(x), len(y), x.device)
    views = {name: fit_view(name, x, y, rng) for name in track(VIEWS, "Fitting views")}
    profiles = {name: profiles_of(v, directions=name == LINEAR) for name, v in views.items()}
    given = {
        name: DensePlan(torch.as_tensor(plan / plan.sum() * len(x), device=x.device).float())
        for name, plan in (starts or {}).items()
        if plan.any()
    }
    found = compare_starts(views, profiles, pairs, similarity, given, rng, SEARCH)
    searched = [views[name] for name in found.views]
    clues = Clues(searched, [profiles[name] for name in found.views], similarity)
    search = _Search(list(views.values()), clues, given.get(found.winner.start))
    critic, parts, history = search.maps(pairs)
    scores = _sampled_scores(critic, parts, found.rows)
    agreement = found.agreement(scores, SEARCH) if scores.numel() else float("nan")
    reached = {
        f"{f.view}, {f.start}" + (" profile" if f.start in (OWN, JOINT) else ""): f.dependence
        for f in found.finalists
    }
    evidence = Evidence(reached, agreement, found.winner.gap)
    kind, notes, space = "known pairs" if len(pairs.known) else "profiles", [], None
    if len(pairs.known) >= GROWTH.least:
        search = replace(search, lengths=length_views(x, y, rng))
        if n_searches and min(len(pairs.free_x), len(pairs.free_y)) >= ANSWERS.least_rows:
            search = replace(search, directions=[directions(x, y, ANSWERS.rank, rng)])
        parts, held = search.averaged(x, y, pairs, parts, rng)
        evidence = replace(evidence, held_out=held)
    elif n_searches:
        refined = refine(x, y, pairs, place_free(critic, parts), n_searches, rng)
        evidence = replace(
            evidence,
            confirmed=refined.confirmed,
            surprise=refined.surprise,
            finer=refined.finer,
        )
        if refined.accepted:
            kind, space = REFINED, build_space([refined.view], refined.parts, n_nearest=N_NEAREST)
            notes.append("Refinement on random samples was kept: strangers would not end so close.")
    return Solution(
        search.space(parts) if space is None else space,
        evidence,
        kind,
        certainty=1.0,
        temperature=READ_TEMPERATURES[kind],
        history=history,
        notes=notes,
    )


def settled(space: Space, x: Tensor, y: Tensor, known: IntArray, rng: np.random.Generator) -> Space:
    """The space of a refined solution after rounds on all rows, also those it was not found on."""
    ((map_x, map_y),) = space.features
    view = View(map_x, map_y, map_x(x), map_y(y))
    pairs = make_pairs(known, len(x), len(y), x.device)
    return build_space([view], settle(view, pairs, space.parts, rng), n_nearest=N_NEAREST)


@dataclass(frozen=True, eq=False)
class _Search:
    """What maps are made of, whichever pairs are known."""

    views: list[View]
    """All of them."""
    clues: Clues
    start: DensePlan | None
    """A given start, where it reached the largest dependence."""
    lengths: Sequence[View] = ()
    """Views for the known pairs alone,"""
    directions: Sequence[View] = ()
    """and the one of refinement, where it begins at known pairs."""

    @property
    def every(self) -> list[View]:
        """The views as parts count them."""
        return [*self.clues.views, *self.lengths, *self.directions]

    def maps(
        self, pairs: Pairs, temperatures: Sequence[float] = GROWTH.temperatures
    ) -> tuple[CanonicalCritic, list[Part], list[dict[str, float]]]:
        """The parts that known pairs, profiles or a start lead to, and one dict per step.

        Eight known pairs or more grow at the ``temperatures``.
        """
        last = Step(SEARCH.temperature, power=SEARCH.power)
        critic = CanonicalCritic(self.clues.views, pairs)
        rounds: list[Round] = []
        if not min(len(pairs.free_x), len(pairs.free_y)):  # nothing is left to be planned
            parts, dependence = critic(None, Step(1.0, GROWTH.ridge))
            return critic, parts, [{"dependence": dependence}]
        if len(pairs.known) >= GROWTH.least and self.start is None:
            critic = CanonicalCritic(self.clues.views, pairs, PeakWeight())
            rounds = _grow(critic, self.clues, temperatures)
            last = rounds[-1].step
        elif len(pairs.known) or self.start is not None:
            rounds = _few_turns(critic, self.views, self.clues, self.start)
        plan = rounds[-1].plan if rounds else profile_plan(self.clues, pairs)
        parts, dependence = critic(plan, last)
        return (
            critic,
            parts,
            [{"dependence": r.dependence} for r in rounds] or [{"dependence": dependence}],
        )

    def space(self, parts: Sequence[Part]) -> Space:
        """The space of the parts, with the views that they need."""
        used = sorted({part.view for part in parts})
        return build_space(
            [self.every[view] for view in used],
            [replace(part, view=used.index(part.view)) for part in parts],
            n_nearest=-(-len(self.clues.views[0].y) // HUB_SHARE),
            max_reference=max(
                len(rows) for view in self.clues.views[:1] for rows in (view.x, view.y)
            ),
        )

    def answers(
        self, pairs: Pairs, grown: list[Part], n_climbs: int, rng: np.random.Generator
    ) -> list[list[Part]]:
        """What has grown, maps of the pairs alone in two kinds of views, and the end of runs."""
        found = [grown, pairs_alone(self.clues.views, pairs, GROWTH.ridge)]
        for whitens in ((True, True), (True, False), (False, True)):  # CCA, and two regressions
            alone = pairs_alone(self.lengths, pairs, ANSWERS.ridge, whitens)
            found.append(numbered_from(alone, len(self.clues.views)))
        for view in self.directions:
            placed = place_free(CanonicalCritic(self.clues.views, pairs), grown)
            single = climbed(view, pairs, placed, n_climbs, rng)
            found.append(numbered_from(single, len(self.clues.views) + len(self.lengths)))
        return found

    def averaged(
        self, x: Tensor, y: Tensor, pairs: Pairs, grown: list[Part], rng: np.random.Generator
    ) -> tuple[list[Part], tuple[HeldPair, ...]]:
        """The mean of several answers by how they place known pairs, and where it places those.

        Pairs are held out in turn; the views are those chosen with all of them. A pair is placed by
        the mean of answers that did not know it, and had no say in what each of them counts. These
        means without some pairs, made anyway, join the one of answers to all pairs: together they
        count as much (bagging).
        """
        known, found, losses = pairs.known.cpu().numpy(), [], []
        n_folds = MORE_FOLDS if len(known) < FEW_PAIRS else N_FOLDS
        folds = np.array_split(rng.permutation(len(known)), n_folds)
        for fold in folds:
            some = make_pairs(np.delete(known, fold, axis=0), len(x), len(y), x.device)
            _, parts, _ = self.maps(some, GROWTH.held_out)
            answers = self.answers(some, parts, ANSWERS.n_climbs_held, rng)
            free = some.free_x.cpu().numpy(), some.free_y.cpu().numpy()
            among = [np.union1d(free[side], known[fold, side]) for side in (0, 1)]
            losses.append([log_ranks(self.space(one), known[fold], among) for one in answers])
            found.append((answers, among[1]))
        held: list[HeldPair] = []
        bag: list[Part] = []
        for number, (answers, columns) in enumerate(found):
            weights = weights_by(np.hstack(losses[:number] + losses[number + 1 :]))
            mean = mean_parts(answers, weights, self.every)
            bag += [replace(part, weight=part.weight / n_folds) for part in mean]
            space = self.space(mean)
            rows, own = known[folds[number]].T
            scores = space.scores(x[rows], y[columns]).cpu().numpy().astype(np.float64)
            heat = READ_TEMPERATURES["known pairs"]
            held += held_out(scores, np.searchsorted(columns, own), heat)
        answers = self.answers(pairs, grown, ANSWERS.n_climbs, rng)
        return mean_parts(answers, weights_by(np.hstack(losses)), self.every) + bag, tuple(held)


def profile_plan(clues: Clues, pairs: Pairs) -> DensePlan:
    """The mean of the plan of profiles and of the one that a step makes of it."""
    held = clues.scores()
    before = dense_plan(held, SEARCH.temperature)
    step = Step(SEARCH.temperature, power=SEARCH.power, held=SEARCH.profile_weight)
    (after,) = alternate(CanonicalCritic(clues.views, pairs), [step], before, held=held)
    assert isinstance(after.plan, DensePlan)
    return mean_plan([before, after.plan])


def _few_turns(
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


def _grow(critic: CanonicalCritic, clues: Clues, temperatures: Sequence[float]) -> list[Round]:
    """Rounds of regularised CCA that grow from the known pairs while they cool down."""
    pairs, views = critic.pairs, critic.views
    scarce = max(1.0, GROWTH.plenty / len(pairs.known))
    parts, _ = CanonicalCritic(views, pairs)(None, Step(1.0))
    every = make_pairs(None, len(views[0].x), len(views[0].y), pairs.known.device)
    left, right = place_free(CanonicalCritic(views, every), parts)
    near = standardise(left @ right.T)
    held = standardise(clues.plain + HANDFUL.closeness / scarce * near)
    held = with_side_information(held, clues.side)[pairs.free_x][:, pairs.free_y]
    weight = GROWTH.weight * scarce
    schedule = [Step(t, GROWTH.ridge, held=weight) for t in temperatures]
    return list(alternate(critic, schedule, held=held, width=GROWTH.width))


def _sampled_scores(
    critic: CanonicalCritic, parts: Sequence[Part], rows: tuple[Tensor, Tensor]
) -> Tensor:
    """Scores of some rows of x with some rows of y by the parts."""
    some = Pairs(critic.pairs.known, critic.pairs.weights, *rows)
    left, right = place_free(CanonicalCritic(critic.views, some), parts)
    return left @ right.T
