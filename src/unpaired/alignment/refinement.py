"""Refinement that climbs: runs on random samples of rows compete, and the closest end is kept.

Long refinement on all rows settles on the first answer, or drifts. On rows drawn anew in every
round, few at first and more later, it does neither: what a sample shares by accident is gone in the
next one, and what both sides really share adds up. One such run reaches the right answer only if it
begins near; which answer is right shows in how close both sides come to each other. So many runs
compete: the first begin at the alignment given, with random signs of some principal components, the
others at a mixture of two of the closest ends (a genetic algorithm).

Whether there was something to climb is told without labels: runs, and then a second search, begin
where the answer ends, but with random signs of all principal components. That start has the same
spectra and is as good for strangers, who end as close to each other as before; what belongs
together ends farther apart, or comes back to the same answer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from unpaired._log import track
from unpaired.alignment.alternation import alternate, place_free
from unpaired.alignment.critics import CanonicalCritic, Step
from unpaired.math.canonical import Moments, canonical_maps
from unpaired.math.hubness import csls
from unpaired.plans.plan import Pairs, plan_of
from unpaired.spaces.space import Part
from unpaired.views.features import fit_features
from unpaired.views.view import View


@dataclass(frozen=True)
class RefinementConfig:
    """Constants of the refinement; docs/notebook/refinement.md tells what each of them buys."""

    search_rank: int = 64
    """Principal components that the runs see, at most;"""
    per_root: float = 1.5
    """so many times the root of the number of rows: fewer are easier to find, and fewer rows tell
    fewer apart."""
    read_rank: int = 512
    """Principal components that are read in the end,"""
    n_wide_rounds: int = 5
    """after so many rounds with twice as many each time,"""
    n_wide_rows: int = 2000
    """on so many rows a side."""
    n_rounds: int = 80
    n_rows: tuple[int, int] = (300, 1000)
    """Rows a side in the first and in the last round, geometric between;"""
    first_share: float = 0.3
    """this share of the rows at first, at most."""
    temperature: float = 0.3
    """Of the plans, in standard deviations of the cosines."""
    n_runs: int = 40
    """At most; fewer where"""
    n_back: int = 10
    """so many of them end where the closest one did, which is"""
    settled: float = 0.92
    """this overlap of two rotations."""
    n_first: int = 13
    """Runs that begin at the alignment given,"""
    first_signs: float = 0.2
    """all but one with the signs of this share of the components changed."""
    n_parents: int = 8
    """Closest ends of which two are mixed to begin the other runs,"""
    later_signs: float = 0.03
    """with the signs of this share changed."""
    start: float = 0.25
    """Temperature of the first plan, in standard deviations of the scores it comes from."""
    n_flips: int = 12
    """Starts with random signs."""
    came_back: float = 0.3
    """Overlap with the answer from which on a run from one of them was on its way back there."""
    n_judged: int = 2000
    """Rows a side on which runs are compared, at most."""
    n_judged_rounds: int = 40
    """Rounds of the runs from starts with random signs, and of the one they are compared with."""
    least_spread: float = 0.07
    """Standard deviation of closeness that is believed at least, for one row; closeness is a mean
    over rows, and this falls with the root of their number."""
    surprise: float = 4.0
    """Standard deviations above runs from flipped starts from which on a second search is made,"""
    margin: float = 2.5
    """and above its end, from which on the answer is accepted, if that is another answer."""


REFINEMENT = RefinementConfig()


@dataclass(frozen=True, eq=False)
class Refined:
    """Maps between the directions of both sides, and what speaks for them."""

    view: View
    parts: list[Part]
    confirmed: float
    """Share of rows whose mutual partner is found again without them; 0 where not accepted."""
    surprise: float
    """How much closer the rows end than from starts with random signs, in the standard deviations
    of those."""
    accepted: bool
    """Whether both sides end closer to each other than strangers could."""


def directions(x: Tensor, y: Tensor, rank: int, rng: np.random.Generator) -> View:
    """Both sides as directions around their means, in principal components as they are."""
    map_x, map_y = (fit_features(side, rng, max_rank=rank) for side in (x, y))
    return View(map_x, map_y, map_x(x), map_y(y))


def refine(
    x: Tensor, y: Tensor, pairs: Pairs, placed: tuple[Tensor, Tensor], rng: np.random.Generator
) -> Refined:
    """Maps by the closest of many runs from an alignment, of more components where it is accepted.

    ``placed`` are the free rows of both sides such that products are the scores to begin with.
    """
    n_rows = min(len(pairs.free_x), len(pairs.free_y))
    rank = min(REFINEMENT.search_rank, max(2, round(REFINEMENT.per_root * n_rows**0.5)))
    wide = directions(x, y, REFINEMENT.read_rank, rng)
    view = leading(wide, rank)
    critic = _critic(view, pairs)
    rotation = _rotation(critic(plan_of(*placed, REFINEMENT.start), Step(1.0, power=0.0))[0])
    rotation = search(view, pairs, rotation, rng)
    surprise, accepted = judge(view, pairs, rotation, rng)
    found = Refined(view, _parts(rotation), 0.0, surprise, accepted)
    if not accepted:
        return found
    rotation = search(view, pairs, rotation, rng)  # what is right in part leads further
    parts = widen(wide, pairs, rotation, rng)
    confirmed = confirmed_share(CanonicalCritic([wide], pairs), parts, rng)
    return replace(found, view=wide, parts=parts, confirmed=confirmed)


def search(view: View, pairs: Pairs, start: Tensor, rng: np.random.Generator) -> Tensor:
    """The rotation (r_x, r_y) of the run that brings both sides closest to each other."""
    judged = pairs.draw(REFINEMENT.n_judged, rng)
    runs: list[Tensor] = []
    reached: list[float] = []
    for number in track(range(REFINEMENT.n_runs), "Refining on random samples"):
        begin = start
        if number >= REFINEMENT.n_first:
            parents = np.argsort(reached)[-REFINEMENT.n_parents :]
            begin = mix([runs[parent] for parent in parents], rng)
        elif number:
            begin = change_signs(start, REFINEMENT.first_signs, rng)
        runs.append(climb(view, pairs, begin, rng, REFINEMENT.n_rounds))
        reached.append(closeness(view, judged, runs[-1]))
        best = runs[int(np.argmax(reached))]
        back = sum(overlap(best, run) >= REFINEMENT.settled for run in runs)
        if back > REFINEMENT.n_back:
            break
    return best


def change_signs(rotation: Tensor, share: float, rng: np.random.Generator) -> Tensor:
    """The rotation after this share of the components of x, drawn at random, change their sign."""
    signs = np.where(rng.random((len(rotation), 1)) < share, -1.0, 1.0)
    return torch.as_tensor(signs).to(rotation) * rotation


def mix(rotations: list[Tensor], rng: np.random.Generator) -> Tensor:
    """Where two of the rotations, drawn at random, send components of x: each as one of them."""
    one, other = (rotations[i] for i in rng.permutation(len(rotations))[:2])
    from_one = torch.as_tensor(rng.random((len(one), 1)) < 0.5, device=one.device)
    return change_signs(torch.where(from_one, one, other), REFINEMENT.later_signs, rng)


def climb(
    view: View,
    pairs: Pairs,
    rotation: Tensor,
    rng: np.random.Generator,
    n_rounds: int,
) -> Tensor:
    """The rotation (r_x, r_y) that one run on random samples ends at."""
    critic = _critic(view, pairs)
    schedule = _schedule(min(len(pairs.free_x), len(pairs.free_y)), n_rounds)
    *_, end = alternate(critic, schedule, parts=_parts(rotation), rng=rng)
    return _rotation(critic.on(end.pairs)(end.plan, schedule[-1])[0])


def judge(
    view: View, pairs: Pairs, rotation: Tensor, rng: np.random.Generator
) -> tuple[float, bool]:
    """How much closer the rotation is than runs from random signs end, and whether it is accepted.

    In standard deviations of the latter; a run from the rotation is compared with them. Those that
    come back to the same answer are not counted; 0 where more than half of them do. One run does
    not reach what a search does: a search from random signs has to come back, too, or to end
    farther apart.
    """
    free = Pairs(pairs.known[:0], pairs.weights[:0], pairs.free_x, pairs.free_y)
    judged, rounds = free.draw(REFINEMENT.n_judged, rng), REFINEMENT.n_judged_rounds
    own = climb(view, judged, rotation, rng, rounds)
    ends: list[float] = []
    for _ in track(range(2 * REFINEMENT.n_flips), "Comparing with starts of random signs"):
        other = climb(view, judged, change_signs(rotation, 0.5, rng), rng, rounds)
        if overlap(own, other) < REFINEMENT.came_back:
            ends.append(closeness(view, judged, other))
        if len(ends) == REFINEMENT.n_flips:
            break
    else:
        return 0.0, False
    n_rows = min(len(judged.free_x), len(judged.free_y))
    spread = max(float(np.std(ends, ddof=1)), REFINEMENT.least_spread / math.sqrt(n_rows))
    reached = closeness(view, judged, own)
    surprise = float(reached - np.mean(ends)) / spread
    if surprise < REFINEMENT.surprise:
        return surprise, False
    rival = search(view, free, change_signs(rotation, 0.5, rng), rng)
    rival = climb(view, judged, rival, rng, rounds)
    back = overlap(own, rival) >= REFINEMENT.came_back
    margin = (reached - closeness(view, judged, rival)) / spread
    return surprise, back or margin >= REFINEMENT.margin


def closeness(view: View, pairs: Pairs, rotation: Tensor) -> float:
    """The mean cosine of the free rows with the nearest one of the other side, once rotated."""
    left, right = place_free(CanonicalCritic([view], pairs), _parts(rotation))
    scores = left @ right.T
    return float(scores.amax(1).mean() + scores.amax(0).mean()) / 2.0


def overlap(one: Tensor, other: Tensor) -> float:
    """The mean cosine of where two rotations send a component: 1 if the same, about 0 by chance."""
    return float((one * other).sum()) / min(one.shape)


def mutual(scores: Tensor) -> tuple[Tensor, Tensor]:
    """Rows with a mutual best partner, and those partners."""
    forward, backward = scores.argmax(1), scores.argmax(0)
    rows = torch.nonzero(backward[forward] == torch.arange(len(forward), device=scores.device))
    return rows[:, 0], forward[rows[:, 0]]


def confirmed_share(critic: CanonicalCritic, parts: list[Part], rng: np.random.Generator) -> float:
    """The share of rows whose mutual best partner is found again without them.

    Half of the mutual pairs make a rotation, which has to tell the partners of the other half
    apart. Accidental pairs lose more of them than right ones, but not all: alone it is no proof.
    """
    view, pairs = critic.views[0], critic.pairs
    x, y = view.x[pairs.free_x], view.y[pairs.free_y]
    left, right = place_free(critic, parts)
    scores = csls(left @ right.T)
    rows, partners = mutual(scores)
    order = torch.as_tensor(rng.permutation(len(rows)), device=rows.device)
    halves, found = (order[::2], order[1::2]), 0
    for fitted, held_out in (halves, halves[::-1]):
        if not len(fitted) or not len(held_out):
            continue
        (part,) = _parts(x[rows[fitted]].T @ y[partners[fitted]])
        placed = part.embed(x[rows[held_out]], 0), part.embed(y[partners[held_out]], 1)
        again = csls(placed[0] @ placed[1].T).argmax(1)
        found += int((again == torch.arange(len(held_out), device=again.device)).sum())
    return float(found / min(scores.shape))


def widen(view: View, pairs: Pairs, rotation: Tensor, rng: np.random.Generator) -> list[Part]:
    """Rotations of all components of the view, from one of its leading ones.

    Partners named by some components teach twice as many, until all are taught.
    """
    step = Step(REFINEMENT.temperature, power=0.0, n_rows=REFINEMENT.n_wide_rows)
    rank, most = max(rotation.shape), max(view.x.shape[1], view.y.shape[1])
    parts, narrow = _parts(rotation), leading(view, rank)
    while True:
        (last,) = alternate(_critic(narrow, pairs), [step], parts=parts, rng=rng)
        rank = min(2 * rank, most)
        narrow = leading(view, rank)
        parts, _ = _critic(narrow, last.pairs)(last.plan, step)
        steps = [step] * REFINEMENT.n_wide_rounds
        *_, last = alternate(_critic(narrow, pairs), steps, parts=parts, rng=rng)
        parts, _ = _critic(narrow, last.pairs)(last.plan, step)
        if rank == most:
            return parts


def leading(view: View, rank: int) -> View:
    """The leading coordinates of both sides."""
    return View(view.map_x, view.map_y, view.x[:, :rank], view.y[:, :rank])


def _critic(view: View, pairs: Pairs) -> CanonicalCritic:
    """The critic of a single view, whose scores are cosines."""
    return CanonicalCritic([view], pairs, even=False)


def _schedule(n_rows: int, n_rounds: int) -> list[Step]:
    """Steps on samples that grow by a constant factor."""
    first = min(REFINEMENT.n_rows[0], math.ceil(REFINEMENT.first_share * n_rows))
    last = min(REFINEMENT.n_rows[1], n_rows)
    sizes = np.geomspace(first, last, n_rounds).round().astype(int)
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
