"""Finalists: what each start of a soft alignment reaches in each view, compared without labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from joblib import Parallel, delayed
from torch import Tensor

from unpaired.alignment.alternation import alternate, place_free
from unpaired.alignment.critics import CanonicalCritic, Step
from unpaired.alignment.profiles import Profiles
from unpaired.alignment.starts import JOINT, OWN, SoftStart, soft_starts
from unpaired.plans.plan import DensePlan, Pairs, Plan, dense_plan, make_pairs
from unpaired.spaces.space import Part
from unpaired.views.view import View


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
    if not min(len(sample.free_x), len(sample.free_y)):  # all is known: compare as if nothing was
        sample = make_pairs(None, len(every_x), len(every_y), device)
    free_x, free_y = every_x[sample.free_x], every_y[sample.free_y]
    extra = None if side is None else side[free_x][:, free_y]
    critics = {n: CanonicalCritic([v.take(every_x, every_y)], sample) for n, v in views.items()}
    draws = [
        (name, rng.normal(size=(view.x.shape[1], view.y.shape[1])))
        for name, view in views.items()
        for _ in range(config.n_null)
    ]
    reached = Parallel(require="sharedmem")(
        delayed(_null_dependence)(critics[name], draw, config.temperature) for name, draw in draws
    )
    nulls = dict(zip(views, np.reshape(reached, (len(views), -1)).mean(axis=1), strict=True))
    finalists = Parallel(require="sharedmem")(
        delayed(_finalist)(name, start, critics[name], float(nulls[name]), config)
        for name, start in soft_starts(profiles, extra, given, free_x, free_y)
    )
    winner, chosen = choose(finalists, config.unsteady)
    return Comparison(finalists, winner, chosen, (free_x, free_y))


def _finalist(
    view: str, start: SoftStart, critic: CanonicalCritic, null: float, config: SearchConfig
) -> Finalist:
    """What one start is refined to in one view, where random maps reach ``null``."""
    step = Step(config.temperature, power=0.0, held=config.profile_weight)
    begin = dense_plan(start.held, config.temperature) if start.plan is None else start.plan
    *_, last = alternate(critic, [step] * config.n_rounds, begin, held=start.held)
    reached = matched_cka(critic, last.plan)
    parts, _ = critic(last.plan, Step(config.temperature, power=config.power))
    gap = (reached - null) / max(1.0 - null, 1e-9)
    left, right = place_free(critic, parts)
    return Finalist(view, start.name, reached, gap, left @ right.T)


def _null_dependence(critic: CanonicalCritic, draw: np.ndarray, temperature: float) -> float:
    """The dependence that a random rotation reaches under the same refinement, without profiles."""
    view = critic.views[0]
    random = torch.as_tensor(draw, dtype=view.x.dtype, device=view.x.device)
    left, _, right = torch.linalg.svd(random, full_matrices=False)
    placed = place_free(critic, [Part(0, (left, right.T.contiguous()))])
    plan = dense_plan(placed[0] @ placed[1].T, temperature)
    *_, last = alternate(critic, [Step(temperature, power=0.0)] * 2, plan)
    return matched_cka(critic, last.plan)


def matched_cka(critic: CanonicalCritic, plan: Plan) -> float:
    """Linear CKA of the first view's free rows under a plan."""
    view = critic.views[0]
    x, y = view.x[critic.pairs.free_x], view.y[critic.pairs.free_y]
    cross = x.T @ plan.apply(y) / len(x)
    own = (x.T @ x / len(x)).norm() * (y.T @ y / len(y)).norm()
    return min(1.0, float(cross.square().sum() / own.clamp_min(1e-30)))  # plans are nearly even


def choose(finalists: Sequence[Finalist], unsteady: float) -> tuple[Finalist, list[str]]:
    """The finalist that wins, and the views to be read: its own and all steady ones.

    A view is steady when its own profile and the joint one lead to the same map. The largest
    dependence among these wins; if none is steady, the largest of all. A start that was given is
    taken where it reaches more than all profiles.
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
