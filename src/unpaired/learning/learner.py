"""The learner: closed forms, soft matching of the rest, and networks, as one schedule.

Known pairs, or a plan from the matching engine, give first maps (``alternation``); rows without a
partner are matched softly, and the soft pairs join the known ones in the moments while the
temperature falls. In the last step networks that begin at the closed form learn from known and soft
pairs (``towers``), and the plan is made once more by the scores of all parts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
import torch
from torch import Tensor

from unpaired._log import track
from unpaired.alignment.alternation import alternate
from unpaired.alignment.critics import CanonicalCritic, PeakWeight, Step, moments_of
from unpaired.learning.cross_validation import (
    Solve,
    choose_ridge_factor,
    choose_temperature,
    choose_values,
    held_out_pairs,
)
from unpaired.learning.towers import TowerConfig, train_towers
from unpaired.math.canonical import LEAST_RIDGE, Maps, Moments, canonical_maps
from unpaired.plans.plan import Pairs, Plan
from unpaired.spaces.solution import Evidence, Solution
from unpaired.spaces.space import Part, build_space
from unpaired.types import IntArray
from unpaired.views.features import Features, fit_features
from unpaired.views.view import View

UNSURE = 0.3
"""Temperature of confidence where too few pairs are known to choose one."""


@dataclass(frozen=True)
class LearnerConfig:
    """All constants of a fit; one set for all data, chosen on Flickr8k's dev images."""

    width: int = 600
    """Directions kept per pair of maps; the weak ones matter for the length of a row."""
    plan_width: int = 160
    """Directions that enter the scores of the soft steps."""
    max_rank: int = 600
    """Principal components kept of each side."""
    bandwidth: float = 0.5
    """Squared kernel width in units of the median squared distance."""
    n_landmarks: int = 2000
    """Nystroem landmarks of the kernel."""
    ridge: float = 2.0
    """Ridge of n pairs, in units of the total variance: ridge / n."""
    keeps_ridge: bool = False
    """Take the ridge as it is, whatever held-out pairs say."""
    linear_ridge: float = 0.0008
    """What the linear maps add to that ridge."""
    belief: float = 0.9
    """Share of a canonical correlation that is believed when directions are weighed."""
    n_rounds: int = 9
    """Soft steps."""
    temperatures: tuple[float, float] = (0.8, 0.13)
    """Of the first and the last step, in standard deviations of the scores; geometric between."""
    warm_rounds: int = 3
    """Steps that a start stands for."""
    peak_weight: PeakWeight = PeakWeight()
    towers: TowerConfig = TowerConfig()
    n_towers: int = 2
    """Pairs of networks; their scores are averaged with those of the closed forms."""
    tower_latent: int = 256
    tower_ridges: tuple[float, float] = (4.5, 1.5)
    """Ridges of the networks' features of x and y, as multiples of the closed forms'."""
    soft_share: float = 0.5
    """How much soft pairs weigh for the networks, as a share of what they weigh elsewhere."""
    n_nearest: int = 10
    """Rows that count as near in the hub correction."""


@dataclass(frozen=True, eq=False)
class LearnedCritic:
    """Closed forms in every view, and networks on the last view in steps that ask for them."""

    closed: CanonicalCritic
    config: LearnerConfig
    seed: int
    on_epoch: Callable[[dict[str, float]], None]

    @property
    def views(self) -> Sequence[View]:
        """The views of the closed forms."""
        return self.closed.views

    @property
    def pairs(self) -> Pairs:
        """Known pairs and free rows."""
        return self.closed.pairs

    def on(self, pairs: Pairs) -> Self:
        """The same critic for plans over other free rows."""
        return replace(self, closed=self.closed.on(pairs))

    def __call__(self, plan: Plan | None, step: Step) -> tuple[list[Part], float]:
        """Parts of the closed forms, and of the networks."""
        parts, dependence = self.closed(plan, step)
        if step.networks:
            n_pairs = self.closed.moments(plan)[0].n_pairs
            deep = [
                self._deepen(plan, n_pairs, step.ridge, self.seed + number)
                for number in range(self.config.n_towers)
            ]
            parts = [*parts, *deep]
        return parts, dependence

    def _deepen(self, plan: Plan | None, n_pairs: float, ridge: float, seed: int) -> Part:
        """Networks on the last view that begin at the closed form and learn from the pairs.

        Inputs are whitened up to a ridge, with noise of the variance that the ridge stands for. A
        free row of x learns from its expected partner, the mean of y under its row of the plan.
        """
        config, pairs, view = self.config, self.pairs, self.views[-1]
        inputs, white, noise = [], [], []
        for features, placed, factor in (
            (view.map_x, view.x, config.tower_ridges[0]),
            (view.map_y, view.y, config.tower_ridges[1]),
        ):
            assert isinstance(features, Features)
            own = factor * ridge / max(n_pairs, 1.0)
            scale = (features.variances + own).clamp_min(1e-12).rsqrt()
            inputs.append(placed * scale)
            white.append(scale)
            noise.append((own * scale**2).sqrt())
        known, weights = pairs.known, pairs.weights.float()
        if plan is not None:
            expected = torch.arange(len(pairs.free_x), device=known.device) + len(inputs[1])
            known = torch.cat([known, torch.stack([pairs.free_x, expected], 1)])
            weights = torch.cat([weights, config.soft_share * config.peak_weight(plan)])
            inputs[1] = torch.cat([inputs[1], plan.apply(inputs[1][pairs.free_y])])
        seen = replace(view, x=inputs[0], y=inputs[1])
        width = min(config.tower_latent, config.width)
        start = canonical_maps(
            moments_of(seen, known, weights),
            (noise[0] ** 2, noise[1] ** 2),
            width=width,
            belief=config.belief,
        )
        towers = train_towers(
            inputs[0],
            inputs[1],
            known,
            (start.x, start.y),
            (noise[0], noise[1]),
            config.towers,
            seed=seed,
            weights=weights,
            on_epoch=self.on_epoch,
        )
        return Part(len(self.views) - 1, (white[0], white[1]), towers)


@dataclass
class Learning:
    """What a fit leaves behind."""

    solution: Solution
    trace: list[IntArray] = field(default_factory=list)
    """Best partner of each free row, counted among the free rows of y, after each step."""


def learn(
    x: Tensor,
    y: Tensor,
    pairs: Pairs,
    config: LearnerConfig,
    seed: int,
    *,
    start: Plan | None = None,
    on_step: Callable[[dict[str, float]], None] = lambda step: None,
) -> Learning:
    """Learn a common space of x (n_x, d_x) and y (n_y, d_y) from known pairs and free rows."""
    rng = np.random.default_rng(seed)
    history: list[dict[str, float]] = []
    trace: list[IntArray] = []

    def note(entry: dict[str, float]) -> None:
        history.append({"step": float(len(history)), **entry})
        on_step(history[-1])

    def solver(ridge: float) -> Solve:
        return lambda view, moments: _solve(view, moments, config, ridge)

    values = choose_values(x, y, pairs, solver(config.ridge), config.max_rank, rng)
    views = [
        _view(x, y, values, None, config, rng),
        _view(x, y, values, config.bandwidth, config, rng),
    ]
    ridge = config.ridge
    if not config.keeps_ridge:
        ridge *= choose_ridge_factor(views, pairs, lambda f: solver(f * config.ridge), rng)
    heat = choose_temperature(views, pairs, solver(ridge), rng)
    held = held_out_pairs(views, pairs, solver(ridge), rng)
    ridges = (config.linear_ridge, 0.0)
    closed = CanonicalCritic(views, pairs, config.peak_weight, config.width, ridges, even=False)
    critic = LearnedCritic(closed, config, seed, note)
    last = Step(
        config.temperatures[1], ridge, belief=config.belief, networks=config.towers.n_epochs > 0
    )
    if min(len(pairs.free_x), len(pairs.free_y)):
        schedule = _schedule(config, ridge, skipped=0 if start is None else config.warm_rounds)
        width = config.plan_width
        rounds = alternate(critic, [*schedule, last], start, width=width)
        for found in track(rounds, "Learning", len(schedule) + 1):
            parts = found.parts
            trace.append(found.plan.partners().cpu().numpy())
            changed = float((trace[-1] != trace[-2]).mean()) if len(trace) > 1 else 1.0
            peak = float(found.plan.peaks().mean())
            note({"dependence": found.dependence, "changed": changed, "confidence": peak})
    else:
        parts, dependence = critic(None, last)
        note({"dependence": dependence})
    dependence = [entry["dependence"] for entry in history if "dependence" in entry][-1]
    solution = Solution(
        build_space(views, parts, n_nearest=config.n_nearest),
        Evidence({"known pairs": dependence}, held_out=held),
        "known pairs",
        certainty=1.0,
        temperature=UNSURE if heat is None else heat,
        history=history,
    )
    return Learning(solution, trace)


def _schedule(config: LearnerConfig, ridge: float, *, skipped: int) -> list[Step]:
    """Soft steps that cool down while the belief in correlations rises to the full by half way."""
    heats = np.geomspace(*config.temperatures, max(config.n_rounds, 1))[: config.n_rounds]
    beliefs = config.belief * np.minimum(1.0, 2.0 * np.arange(len(heats)) / max(len(heats), 1))
    steps = [Step(float(t), ridge, belief=float(b)) for t, b in zip(heats, beliefs, strict=True)]
    return steps[min(skipped, max(len(steps) - 1, 0)) :]


def _view(
    x: Tensor,
    y: Tensor,
    values: tuple[str, str],
    bandwidth: float | None,
    config: LearnerConfig,
    rng: np.random.Generator,
) -> View:
    """Both sides in linear coordinates, or in those of a kernel."""
    map_x, map_y = (
        fit_features(
            side,
            rng,
            max_rank=config.max_rank,
            values=taken,
            bandwidth=bandwidth,
            n_landmarks=config.n_landmarks,
        )
        for side, taken in zip((x, y), values, strict=True)
    )
    return View(map_x, map_y, map_x(x), map_y(y))


def _solve(view: int, moments: Moments, config: LearnerConfig, ridge: float) -> Maps:
    """The maps of one view from moments of known pairs."""
    own = config.linear_ridge if view == 0 else 0.0
    size = max(LEAST_RIDGE, ridge / max(moments.n_pairs, 1.0) + own)
    return canonical_maps(moments, (size, size), width=config.width, belief=config.belief)
