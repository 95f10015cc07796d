"""Starts compared without labels: each is refined in each view, and judged by what it reaches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from joblib import Parallel, delayed
from torch import Tensor

from unpaired.alignment.alternation import (
    CanonicalCritic,
    Pairs,
    Step,
    alternate,
    make_pairs,
    place_free,
)
from unpaired.alignment.profiles import Profiles, joined, profile_score, with_side_information
from unpaired.plans.plan import DensePlan, Plan, dense_plan
from unpaired.spaces.space import Part
from unpaired.views.view import View

OWN, JOINT = "own", "joint"
"""Starts from the profiles of one view, and of all views together."""


@dataclass(frozen=True)
class SearchConfig:
    """Constants of the comparison of starts."""

    n_rows: int = 1000
    """Rows a side on which starts are compared."""
    temperature: float = 0.25
    """Of plans, in standard deviations of the scores."""
    n_rounds: int = 5
    profile_weight: float = 0.5
    """Of profile scores in every round."""
    power: float = 0.25
    """Of the singular values in maps that are read; rounds use rotations."""
    unsteady: float = 0.4
    """A view is read when its own and the joint profile lead to maps less than this apart."""
    n_null: int = 2
    """Random maps refined likewise, for what geometry alone reaches."""
    nearly: float = 0.95
    """Share of the best dependence in a view from which on a finalist has a say in agreement."""


@dataclass(frozen=True, eq=False)
class Finalist:
    """What one start is refined to in one view."""

    view: str
    start: str
    """OWN or JOINT, or the name of a start that was given."""
    dependence: float
    """Matched CKA."""
    gap: float
    """Dependence above that of random maps, as a share of what there is beyond it."""
    scores: Tensor


@dataclass(frozen=True, eq=False)
class Comparison:
    """All finalists, the one that won, the views that are read, and the rows looked at."""

    finalists: list[Finalist]
    winner: Finalist
    views: list[str]
    rows: tuple[Tensor, Tensor]
    """Numbers of the free rows of x and of y in the sample."""

    def agreement(self, scores: Tensor, config: SearchConfig) -> float:
        """How well scores of the sampled rows agree with the finalists of the views, 0 to 1."""
        peers = [f for f in self.finalists if f.start in (OWN, JOINT, self.winner.start)]
        best = {name: max(f.dependence for f in peers if f.view == name) for name in self.views}
        near = [f for f in peers if f.view in best and f.dependence >= config.nearly * best[f.view]]
        return max(0.0, 1.0 - 2.0 * float(np.mean([disagreement(scores, f.scores) for f in near])))


def compare_starts(
    views: Mapping[str, View],
    profiles: Mapping[str, Profiles],
    pairs: Pairs,
    side: Tensor | None,
    given: Mapping[str, DensePlan],
    rng: np.random.Generator,
    config: SearchConfig,
) -> Comparison:
    """One finalist per view and start, on a sample of the rows.

    They are independent of each other and may run at once (``joblib.parallel_config``); all that is
    random is drawn first, so that the result is the same.
    """
    known = pairs.known.cpu().numpy()
    first = next(iter(views.values()))
    rows = [
        np.union1d(rng.permutation(len(placed))[: config.n_rows], known[:, number])
        for number, placed in enumerate((first.x, first.y))
    ]
    places = np.column_stack([np.searchsorted(r, known[:, i]) for i, r in enumerate(rows)])
    device = pairs.known.device
    every_x, every_y = (torch.as_tensor(r, device=device) for r in rows)
    sample = make_pairs(places, len(every_x), len(every_y), device)
    free_x, free_y = every_x[sample.free_x], every_y[sample.free_y]
    extra = None if side is None else side[free_x][:, free_y]
    union = joined(list(profiles.values()))
    jobs = []
    for name, view in views.items():
        critic = CanonicalCritic([view.take(every_x, every_y)], sample)
        noise = [rng.normal(size=(view.x.shape[1], view.y.shape[1])) for _ in range(config.n_null)]
        starts: list[tuple[str, tuple[Tensor, Tensor], DensePlan | None]] = [
            (OWN, joined([profiles[name]]), None),
            (JOINT, union, None),
        ]
        starts += [
            (kind, union, DensePlan(plan.shares[free_x][:, free_y])) for kind, plan in given.items()
        ]
        for kind, profile, plan in starts:
            anchor = profile_score(profile[0][free_x.cpu()], profile[1][free_y.cpu()]).to(device)
            anchor = with_side_information(anchor, extra)
            jobs.append(delayed(_finalist)(name, kind, critic, anchor, plan, noise, config))
    finalists = Parallel(require="sharedmem")(jobs)
    winner, chosen = choose(finalists, config.unsteady)
    return Comparison(finalists, winner, chosen, (free_x, free_y))


def _finalist(
    view: str,
    start: str,
    critic: CanonicalCritic,
    anchor: Tensor,
    plan: DensePlan | None,
    noise: Sequence[np.ndarray],
    config: SearchConfig,
) -> Finalist:
    """What one start is refined to in one view."""
    step = Step(config.temperature, power=0.0, held=config.profile_weight)
    begin = dense_plan(anchor, config.temperature) if plan is None else plan
    *_, last = alternate(critic, [step] * config.n_rounds, begin, held=anchor)
    reached = matched_cka(critic, last.plan)
    null = float(np.mean([_null_dependence(critic, draw, step) for draw in noise]))
    parts, _ = critic(last.plan, Step(config.temperature, power=config.power))
    gap = (reached - null) / max(1.0 - null, 1e-9)
    left, right = place_free(critic, parts)
    return Finalist(view, start, reached, gap, left @ right.T)


def _null_dependence(critic: CanonicalCritic, draw: np.ndarray, step: Step) -> float:
    """The dependence that a random rotation reaches under the same refinement, without profiles."""
    view = critic.views[0]
    random = torch.as_tensor(draw, dtype=view.x.dtype, device=view.x.device)
    left, _, right = torch.linalg.svd(random, full_matrices=False)
    placed = place_free(critic, [Part(0, (left, right.T.contiguous()))])
    plan = dense_plan(placed[0] @ placed[1].T, step.temperature)
    *_, last = alternate(critic, [Step(step.temperature, power=0.0)] * 2, plan)
    return matched_cka(critic, last.plan)


def matched_cka(critic: CanonicalCritic, plan: Plan) -> float:
    """Linear CKA of the first view's free rows under a plan."""
    view = critic.views[0]
    x, y = view.x[critic.pairs.free_x], view.y[critic.pairs.free_y]
    cross = x.T @ plan.apply(y) / len(x)
    own = (x.T @ x / len(x)).norm() * (y.T @ y / len(y)).norm()
    return min(1.0, float(cross.square().sum() / own.clamp_min(1e-30)))  # plans are nearly even


def choose(finalists: Sequence[Finalist], unsteady: float) -> tuple[Finalist, list[str]]:
    """The finalist with the largest dependence among steady views, and all steady views.

    A view is steady when its own profile and the joint one lead to the same map; if none is, all
    that is left is the finalist with the largest dependence. A start that was given is taken where
    it reaches more than all profiles.
    """
    chosen = []
    profiles = [f for f in finalists if f.start in (OWN, JOINT)]
    for name in dict.fromkeys(f.view for f in profiles):
        own, joint = (f.scores for f in profiles if f.view == name)
        if disagreement(own, joint) + disagreement(joint, own) < 2 * unsteady:
            chosen.append(name)
    steady = [f for f in profiles if f.view in chosen]
    winner = max(steady or profiles, key=lambda f: f.dependence)
    best = max(finalists, key=lambda f: f.dependence)
    if best.start not in (OWN, JOINT) and best.dependence > winner.dependence:
        winner = best
    return winner, list(dict.fromkeys([winner.view, *chosen]))


def disagreement(scores: Tensor, others: Tensor) -> float:
    """The mean relative rank, under ``others``, of the best partners under ``scores``.

    0 means that both name the same partners, 0.5 that they are unrelated.
    """
    best = scores.argmax(1, keepdim=True)
    return float((others > others.gather(1, best)).float().mean())
