"""Refinement that climbs: runs on random samples of rows compete, and the closest end is kept.

Long refinement on all rows settles on the first answer, or drifts. On rows drawn anew in every
round, few at first and more later, it does neither: what a sample shares by accident is gone in the
next one, and what both sides really share adds up. One such run reaches the right answer only if it
begins near; which answer is right shows in how close both sides come to each other. So many runs
compete: the first begin at the alignment given, at independent components that both sides have in
common (``components``) and at both together, the others at a mixture of two of the closest ends (a
genetic algorithm).

Whether there was something to climb is told without labels: runs, and then a second search, begin
where the answer ends, but with random signs of all principal components, or with independent
components paired at random. Such starts have the same spectra and are as good for strangers, who
end as close to each other as before; what belongs together ends farther apart, or comes back to the
same answer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from torch import Tensor
from torch.nn.functional import normalize

from unpaired._log import track
from unpaired.alignment.alternation import alternate
from unpaired.alignment.components import component_starts
from unpaired.alignment.confirmation import confirmed_share, finer_structure
from unpaired.alignment.critics import CanonicalCritic, Step, known_share, moments_of
from unpaired.math.neighbours import Float32
from unpaired.math.rotations import climb, closeness, nearest_rotation, overlap
from unpaired.plans.plan import Pairs, plan_of
from unpaired.spaces.space import Part, rotation_parts
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
    n_rows: tuple[int, int] = (300, 1000)
    """Rows a side in the first rounds and in the last one, at most;"""
    first_share: float = 0.3
    """this share of the rows in the first, at most."""
    n_steady: int = 60
    """Rounds on few rows of a run that begins far away,"""
    n_steady_near: int = 25
    """and of one that begins at what others have reached;"""
    n_growing: int = 15
    """rounds in which the rows then grow by a constant factor."""
    temperature: float = 0.3
    """Of the plans, in standard deviations of the cosines."""
    n_runs: int = 40
    """At most; fewer where"""
    n_back: int = 10
    """so many of them end where the closest one did, which is"""
    settled: float = 0.92
    """this overlap of two rotations."""
    n_near: int = 13
    """Runs that begin near a rotation that is given,"""
    near_signs: float = 0.2
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
    n_compared: int = 1000
    """Rows a side on which the runs of a search are compared, at most,"""
    n_judged: int = 2000
    """and its end with runs from random signs."""
    least_spread: float = 0.07
    """Standard deviation of closeness that is believed at least, for one row; closeness is a mean
    over rows, and this falls with the root of their number."""
    n_searches: int = 2
    """At most, from the same starts, one after another while the last one was"""
    promising: float = 1.8
    """so many standard deviations above runs from flipped starts, and not kept: that of nine in ten
    runs with noise or unrelated data is not, and the next search finds what this one missed;"""
    surprise: float = 4.0
    """from so many on a rival search is made,"""
    margin: float = 2.5
    """and so many above its end the answer is accepted, if that is another answer."""
    read_rank: int = 512
    """Principal components that are read in the end,"""
    n_wide_rounds: int = 5
    """after so many rounds with twice as many each time,"""
    n_wide_rows: int = 2000
    """on so many rows a side;"""
    n_settled_rounds: int = 2
    """and so many rounds"""
    n_settled_rows: int = 12000
    """on so many, at most."""


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
    finer: float = math.nan
    """How well components that were not searched tell mutual partners apart, in standard deviations
    above chance; NaN where there are none, or nothing was accepted."""


@dataclass(frozen=True, eq=False)
class Sides:
    """The free rows of both sides in leading components, of unit length, and known pairs."""

    x: Float32
    y: Float32
    known: Float32 | None = None
    """(r_x, r_y) products of known pairs, in the size that they have beside those of soft ones."""

    def draw(self, n_rows: int, rng: np.random.Generator) -> Sides:
        """At most so many rows of each side; known pairs stay."""
        x, y = (rows[np.sort(rng.permutation(len(rows))[:n_rows])] for rows in (self.x, self.y))
        return replace(self, x=x, y=y)

    def climb(self, rotation: Float32, n_steady: int, rng: np.random.Generator) -> Float32:
        """Where a run on random samples ends: so many rounds on few rows, then on more and more."""
        n_rows, heat = min(len(self.x), len(self.y)), REFINEMENT.temperature
        first = min(REFINEMENT.n_rows[0], math.ceil(REFINEMENT.first_share * n_rows))
        last = min(REFINEMENT.n_rows[1], n_rows)
        growing = np.geomspace(first, last, REFINEMENT.n_growing).round().astype(int)
        sizes = [*[first] * n_steady, *growing.tolist()]
        return climb(self.x, self.y, rotation, sizes, heat, rng, self.known)

    def closeness(self, rotation: Float32) -> float:
        """The mean cosine of rows with the nearest one of the other side, once rotated."""
        return closeness(self.x, self.y, rotation)


def directions(x: Tensor, y: Tensor, rank: int, rng: np.random.Generator) -> View:
    """Both sides as directions around their means, in principal components as they are."""
    map_x, map_y = (fit_features(side, rng, max_rank=rank) for side in (x, y))
    return View(map_x, map_y, map_x(x), map_y(y))


def refine(
    x: Tensor,
    y: Tensor,
    pairs: Pairs,
    placed: tuple[Tensor, Tensor],
    n_searches: int,
    rng: np.random.Generator,
) -> Refined:
    """Maps by the closest of many runs from an alignment, of more components where it is accepted.

    ``placed`` are the free rows of both sides such that products are the scores to begin with. Of
    so many searches another one is made only where the last one was promising.
    """
    wide = directions(x, y, REFINEMENT.read_rank, rng)
    view, sides, cross = beginning(wide, pairs, placed)
    for _ in range(n_searches):
        rotation = search(sides, first_starts(sides, cross, rng), rng)
        surprise, accepted = compare_with_flips(replace(sides, known=None), rotation, rng)
        if accepted or surprise < REFINEMENT.promising:
            break
    if not accepted:
        return Refined(view, rotation_parts(rotation, view.x), 0.0, surprise, accepted)
    rotation = search(sides, starts_near(rotation, rng), rng)  # right in part leads further
    narrow = rotation_parts(rotation, view.x)
    parts = widen(wide, pairs, narrow, rng)
    confirmed = confirmed_share(CanonicalCritic([wide], pairs), parts, rng)
    finer = finer_structure(wide, pairs, narrow)
    return Refined(wide, parts, confirmed, surprise, accepted, finer)


def beginning(
    view: View, pairs: Pairs, placed: tuple[Tensor, Tensor]
) -> tuple[View, Sides, Float32]:
    """The leading components that runs see, both sides in them, and products to begin with.

    The products (r_x, r_y) are those of the partners that ``placed`` names and of known pairs.
    """
    n_rows = min(len(pairs.free_x), len(pairs.free_y))
    rank = min(REFINEMENT.search_rank, max(2, round(REFINEMENT.per_root * n_rows**0.5)))
    narrow = view.leading(rank)
    sides = sides_of(narrow, pairs)
    partners = plan_of(*placed, REFINEMENT.start).apply(narrow.y[pairs.free_y])
    cross = (narrow.x[pairs.free_x].T @ partners).cpu().numpy()
    if sides.known is not None:
        cross += np.linalg.norm(cross) * sides.known
    return narrow, sides, cross


def sides_of(view: View, pairs: Pairs) -> Sides:
    """The free rows of a view, and its known pairs."""
    x, y = (
        normalize(placed[free]).cpu().numpy()
        for placed, free in ((view.x, pairs.free_x), (view.y, pairs.free_y))
    )
    if not len(pairs.known):
        return Sides(x, y)
    known = moments_of(view, pairs.known, pairs.weights)
    cross = known_share(known) * known.cross / known.cross.norm().clamp_min(1e-30)
    return Sides(x, y, cross.cpu().numpy())


def first_starts(sides: Sides, cross: Float32, rng: np.random.Generator) -> list[Float32]:
    """Rotations to begin with: of an alignment's products, of paired components, and of both."""
    own = cross / max(float(np.linalg.norm(cross)), 1e-30)
    found = list(component_starts(sides.x, sides.y, rng))
    return [nearest_rotation(c) for c in (own, *(own + other for other in found), *found)]


def starts_near(
    rotation: Float32, rng: np.random.Generator, n_starts: int = REFINEMENT.n_near
) -> list[Float32]:
    """The rotation, and others with the signs of some components changed."""
    share = REFINEMENT.near_signs
    return [rotation, *(change_signs(rotation, share, rng) for _ in range(n_starts - 1))]


def null_starts(sides: Sides, rotation: Float32, rng: np.random.Generator) -> list[Float32]:
    """As many starts with random signs of the rotation, and with components paired at random."""
    found = [nearest_rotation(c) for c in component_starts(sides.x, sides.y, rng, at_random=True)]
    flipped = change_signs(rotation, 0.5, rng)
    return [*starts_near(flipped, rng, REFINEMENT.n_near - len(found)), *found]


def search(sides: Sides, starts: Sequence[Float32], rng: np.random.Generator) -> Float32:
    """The rotation (r_x, r_y) of the run that brings both sides closest to each other."""
    compared = sides.draw(REFINEMENT.n_compared, rng)
    runs: list[Float32] = []
    reached: list[float] = []
    for number in track(range(REFINEMENT.n_runs), "Refining on random samples"):
        if number < len(starts):
            begin, n_steady = starts[number], REFINEMENT.n_steady
        else:
            parents = np.argsort(reached)[-REFINEMENT.n_parents :]
            begin = mix([runs[parent] for parent in parents], rng)
            n_steady = REFINEMENT.n_steady_near
        runs.append(sides.climb(begin, n_steady, rng))
        reached.append(compared.closeness(runs[-1]))
        best = runs[int(np.argmax(reached))]
        back = sum(overlap(best, run) >= REFINEMENT.settled for run in runs)
        if back > REFINEMENT.n_back:
            break
    return best


def change_signs(rotation: Float32, share: float, rng: np.random.Generator) -> Float32:
    """The rotation after this share of the components of x, drawn at random, change their sign."""
    signs = np.where(rng.random((len(rotation), 1)) < share, -1.0, 1.0)
    return np.asarray(signs.astype(rotation.dtype) * rotation)


def mix(rotations: list[Float32], rng: np.random.Generator) -> Float32:
    """A rotation that sends each component of x where one of two, drawn at random, does.

    A few change their sign.
    """
    one, other = (rotations[i] for i in rng.permutation(len(rotations))[:2])
    mixed = np.where(rng.random((len(one), 1)) < 0.5, one, other)
    return change_signs(mixed, REFINEMENT.later_signs, rng)


def compare_with_flips(
    sides: Sides, rotation: Float32, rng: np.random.Generator
) -> tuple[float, bool]:
    """How much closer the rotation is than runs from random signs end, and whether it is accepted.

    In standard deviations of the latter; a run from the rotation is compared with them. Those that
    come back to the same answer are not counted; 0 where more than half of them do. One run does
    not reach what a search does: a search from random signs has to come back, too, or to end
    farther apart.
    """
    judged, n_steady = sides.draw(REFINEMENT.n_judged, rng), REFINEMENT.n_steady_near
    own = judged.climb(rotation, n_steady, rng)
    ends: list[float] = []
    for _ in track(range(2 * REFINEMENT.n_flips), "Comparing with starts of random signs"):
        other = judged.climb(change_signs(rotation, 0.5, rng), n_steady, rng)
        if overlap(own, other) < REFINEMENT.came_back:
            ends.append(judged.closeness(other))
        if len(ends) == REFINEMENT.n_flips:
            break
    else:
        return 0.0, False
    n_rows = min(len(judged.x), len(judged.y))
    spread = max(float(np.std(ends, ddof=1)), REFINEMENT.least_spread / math.sqrt(n_rows))
    reached = judged.closeness(own)
    surprise = float(reached - np.mean(ends)) / spread
    if surprise < REFINEMENT.surprise:
        return surprise, False
    rival = search(sides, null_starts(sides, rotation, rng), rng)
    rival = judged.climb(rival, n_steady, rng)
    back = overlap(own, rival) >= REFINEMENT.came_back
    margin = (reached - judged.closeness(rival)) / spread
    return surprise, back or margin >= REFINEMENT.margin


def widen(view: View, pairs: Pairs, parts: list[Part], rng: np.random.Generator) -> list[Part]:
    """The rotation of all components of the view, grown from that of its leading ones.

    Partners named by some components teach twice as many, until all are taught.
    """
    step = Step(REFINEMENT.temperature, power=0.0, n_rows=REFINEMENT.n_wide_rows)
    rank, most = max(len(side) for side in parts[0].maps), max(view.x.shape[1], view.y.shape[1])
    narrow = view.leading(rank)
    while True:
        (last,) = alternate(_critic(narrow, pairs), [step], parts=parts, rng=rng)
        rank = min(2 * rank, most)
        narrow = view.leading(rank)
        parts, _ = _critic(narrow, last.pairs)(last.plan, step)
        steps = [step] * REFINEMENT.n_wide_rounds
        *_, last = alternate(_critic(narrow, pairs), steps, parts=parts, rng=rng)
        parts, _ = _critic(narrow, last.pairs)(last.plan, step)
        if rank == most:
            return parts


def settle(view: View, pairs: Pairs, parts: Sequence[Part], rng: np.random.Generator) -> list[Part]:
    """The rotation after rounds on all rows: what finds partners tells them apart on many."""
    step = Step(REFINEMENT.temperature, power=0.0, n_rows=REFINEMENT.n_settled_rows)
    critic = _critic(view, pairs)
    steps = [step] * REFINEMENT.n_settled_rounds
    *_, last = alternate(critic, steps, parts=list(parts), rng=rng)
    return critic.on(last.pairs)(last.plan, step)[0]


def _critic(view: View, pairs: Pairs) -> CanonicalCritic:
    """The critic of a single view, whose scores are cosines."""
    return CanonicalCritic([view], pairs, even=False)
