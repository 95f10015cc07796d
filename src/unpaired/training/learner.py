"""The default learner: closed forms, soft matching of the rest, then networks on top.

Known pairs, or the alignment that the matching engine finds, give a first soft plan; closed-form
maps and the plan take turns (``closed_form``); networks that begin at the closed form learn from
known and soft pairs (``towers``); the score is the mean over all of these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor

from unpaired.training.closed_form import (
    ClosedFormConfig,
    Coordinates,
    Round,
    Rows,
    lay_out,
    maps_from_sums,
    metric_of,
    moments_of,
    soft_rounds,
    trust_of,
    weighted_pairs,
)
from unpaired.training.common_space import CommonSpace, Part, build_space
from unpaired.training.features import regress
from unpaired.training.objective import ObjectiveConfig
from unpaired.training.pair_density import density_of
from unpaired.training.selection import choose_ridge, choose_spreads
from unpaired.training.soft_plan import SoftPlan
from unpaired.training.towers import TowerConfig, train_towers

N_NEIGHBOURS = 10
MAX_REFERENCE = 5000
SOFT_SHARE = 0.5
"""How much soft pairs weigh for the networks, as a share of what they weigh in the closed forms."""
N_TOWERS = 2
"""Pairs of networks; their scores are averaged."""
TOWER_LATENT = 256
TOWER_RIDGES = (4.5, 1.5)
"""Ridges of the networks' features of x and y, as multiples of the closed forms'."""
DISTIL_RIDGE = 1e-3
"""Ridge of the maps that take over an alignment, in units of the total variance."""


@dataclass
class Learning:
    """What a fit leaves behind."""

    space: CommonSpace
    plan: SoftPlan | None
    """The last soft plan over the free rows."""
    dependence: float
    history: list[dict[str, float]] = field(default_factory=list)
    trace: list[Tensor] = field(default_factory=list)
    """Best partner of each free row after each soft round."""


@dataclass(frozen=True)
class LearnerConfig:
    """All constants of a fit."""

    closed_form: ClosedFormConfig
    towers: TowerConfig
    objective: ObjectiveConfig
    keeps_ridge: bool = False
    """Take the ridge as it is, whatever held-out pairs say."""


def learn(
    x: Tensor,
    y: Tensor,
    rows: Rows,
    config: LearnerConfig,
    seed: int,
    *,
    start: SoftPlan | None = None,
    balanced: bool = True,
    on_step: Callable[[dict[str, float]], None] = lambda step: None,
) -> Learning:
    """Learn a common space of x (n_x, d_x) and y (n_y, d_y) from known pairs and free rows."""
    generator = torch.Generator().manual_seed(seed)
    history: list[dict[str, float]] = []
    trace: list[Tensor] = []
    rounds: list[Round] = []

    def note(entry: dict[str, float]) -> None:
        history.append({"step": float(len(history)), **entry})
        on_step(history[-1])

    def on_round(found: Round) -> None:
        rounds.append(found)
        trace.append(found.plan.partners())
        changed = 1.0 if len(trace) < 2 else float((trace[-1] != trace[-2]).float().mean())
        confidence = float(found.plan.peaks().mean())
        note({"dependence": found.dependence, "changed": changed, "confidence": confidence})

    spreads = choose_spreads(x, y, rows, config.closed_form, generator)
    coordinates = lay_out(x, y, config.closed_form, generator, spreads)
    if not config.keeps_ridge:
        chosen = choose_ridge(coordinates, rows, config.closed_form, generator)
        config = replace(config, closed_form=chosen)
    canonical = soft_rounds(
        coordinates, rows, config.closed_form, start=start, balanced=balanced, on_round=on_round
    )
    plan = rounds[-1].plan if rounds else None
    n_pairs = max(rounds[-1].n_pairs if rounds else float(rows.weights.sum()), 1.0)
    parts = [Part(number, (t.map_x, t.map_y)) for number, t in enumerate(canonical)]
    if config.towers.n_epochs:
        parts += [
            deepen(coordinates, rows, plan, n_pairs, config, seed + number, note)
            for number in range(N_TOWERS)
        ]
    dependence = 0.5 * float((canonical[0].correlations ** 2).sum())
    space = build_space(
        parts,
        coordinates,
        n_neighbours=N_NEIGHBOURS,
        max_reference=MAX_REFERENCE,
        generator=generator,
    )
    density = density_of(
        (coordinates[0].x, coordinates[0].y),
        metric_of(coordinates[0]),
        *weighted_pairs(rows, plan, config.closed_form),
        generator,
    )
    return Learning(replace(space, density=density), plan, dependence, history, trace)


def training_pairs(
    rows: Rows, plan: SoftPlan | None, config: ClosedFormConfig, n_y: int
) -> tuple[Tensor, Tensor]:
    """Known pairs, and each free row of x with its expected partner; with their weights.

    The expected partner of the i-th free row, the mean of y under its row of the plan, has number
    n_y + i: networks see it in coordinates of their own.
    """
    pairs, weights = rows.pairs, rows.weights.to(torch.float32)
    if plan is None or not config.soft_weight:
        return pairs, weights
    expected = torch.arange(n_y, n_y + len(rows.free_x), device=pairs.device)
    soft = torch.stack([rows.free_x, expected], 1)
    return torch.cat([pairs, soft]), torch.cat([weights, SOFT_SHARE * trust_of(plan, config)])


def deepen(
    coordinates: Sequence[Coordinates],
    rows: Rows,
    plan: SoftPlan | None,
    n_pairs: float,
    config: LearnerConfig,
    seed: int,
    on_epoch: Callable[[dict[str, float]], None],
) -> Part:
    """Networks on the last coordinates that begin at the closed form and learn from the pairs.

    Inputs are whitened up to a ridge, with noise of the variance that the ridge stands for.
    """
    taken = coordinates[-1]
    inputs, white, noise = [], [], []
    for features, placed, factor in (
        (taken.features_x, taken.x, TOWER_RIDGES[0]),
        (taken.features_y, taken.y, TOWER_RIDGES[1]),
    ):
        ridge = factor * config.closed_form.ridge / n_pairs
        scale = features.whitening(ridge)
        inputs.append(placed * scale)
        white.append(scale)
        noise.append((ridge * features.total_variance * scale**2).sqrt())
    pairs, weights = training_pairs(rows, plan, config.closed_form, len(inputs[1]))
    if plan is not None:
        inputs[1] = torch.cat([inputs[1], plan.apply(inputs[1][rows.free_y])])
    seen = replace(taken, x=inputs[0], y=inputs[1])
    start_x, start_y, _ = maps_from_sums(
        moments_of(seen, pairs, weights),
        float(weights.sum()),
        [spread**2 for spread in noise],
        min(TOWER_LATENT, config.closed_form.n_components),
        config.closed_form.belief,
    )
    towers = train_towers(
        inputs[0],
        inputs[1],
        pairs,
        (start_x, start_y),
        (noise[0], noise[1]),
        config.towers,
        config.objective,
        seed=seed,
        weights=weights,
        on_epoch=on_epoch,
    )
    return Part(len(coordinates) - 1, (white[0], white[1]), towers)


def take_over(
    x: Tensor,
    y: Tensor,
    placed: tuple[Tensor, Tensor],
    config: ClosedFormConfig,
    seed: int,
) -> CommonSpace:
    """A space that takes over an alignment: ridge maps from coordinates to its embeddings.

    ``placed`` holds the embeddings of all rows, whose inner products are scores with hubs
    corrected already. As a function of the rows it can be saved, and averages over coordinates;
    ``grown`` learns more from it where it can be trusted.
    """
    generator = torch.Generator().manual_seed(seed)
    coordinates = lay_out(x, y, config, generator)
    parts = []
    for number, part in enumerate(coordinates):
        maps, offsets = [], []
        for features, rows, target in zip(
            (part.features_x, part.features_y), (part.x, part.y), placed, strict=True
        ):
            offset = target.mean(0, keepdim=True)
            ridge = DISTIL_RIDGE * features.total_variance
            maps.append(regress(rows, target - offset, ridge).contiguous())
            offsets.append(offset)
        parts.append(Part(number, (maps[0], maps[1]), offsets=(offsets[0], offsets[1])))
    empty = torch.zeros(0, 1, device=x.device)
    laid_out = tuple((part.features_x, part.features_y) for part in coordinates)
    return CommonSpace(laid_out, tuple(parts), empty, empty, N_NEIGHBOURS)
