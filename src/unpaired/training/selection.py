"""What known pairs, held out in turn, say about constants: how values are taken, and the ridge."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from typing import TypeVar

import torch
from torch import Tensor

from unpaired.training.closed_form import (
    ClosedFormConfig,
    Coordinates,
    Maps,
    Moments,
    Rows,
    join,
    moments_of,
    solve_maps,
)
from unpaired.training.features import SPREADS, FeatureMap, fit_features

N_FOLDS = 4
RIDGE_FACTORS = (1.0, 0.3, 0.1, 0.03)
"""Ridges that are tried, as multiples of the one given."""
MAX_HELD = 1000
"""Held-out pairs, and free rows of each view beside them, that are ranked in each fold, at most."""
MAX_OWNERS = 20_000
"""Rows of x whose pairs take part, at most."""
N_DEVIATIONS = 2.5
"""Standard errors by which another choice must place held-out pairs better than the default."""

Spreads = tuple[str, str]
Choice = TypeVar("Choice", bound=Hashable)


@dataclass(frozen=True)
class HeldOut:
    """Known pairs in parts that are held out in turn; all pairs of a row of x are in one part."""

    parts: list[tuple[Tensor, Tensor]]
    """Pairs (k, 2) and their weights."""
    decoys: tuple[Tensor, Tensor]
    """Free rows of x and of y that are ranked beside the held-out ones."""


def hold_out(rows: Rows, generator: torch.Generator) -> HeldOut | None:
    """The known pairs in N_FOLDS parts, or None where they are too few to tell."""
    owners = torch.unique(rows.pairs[:, 0])
    if len(owners) < 2 * N_FOLDS:
        return None
    part = torch.full((int(owners.max()) + 1,), -1, device=owners.device)
    order = torch.randperm(len(owners), generator=generator)[:MAX_OWNERS].to(owners.device)
    part[owners[order]] = torch.arange(len(order), device=owners.device) % N_FOLDS
    fold = part[rows.pairs[:, 0]]
    decoys = [
        free[torch.randperm(len(free), generator=generator)[:MAX_HELD].to(free.device)]
        for free in (rows.free_x, rows.free_y)
    ]
    return HeldOut(
        [(rows.pairs[fold == number], rows.weights[fold == number]) for number in range(N_FOLDS)],
        (decoys[0], decoys[1]),
    )


def renumber(held: HeldOut) -> tuple[Tensor, Tensor, HeldOut]:
    """The rows of x and of y that are used, and the same with numbers among these."""
    used = [
        torch.unique(torch.cat([*(pairs[:, view] for pairs, _ in held.parts), held.decoys[view]]))
        for view in (0, 1)
    ]
    parts = [
        (
            torch.stack([torch.searchsorted(used[v], pairs[:, v].contiguous()) for v in (0, 1)], 1),
            weights,
        )
        for pairs, weights in held.parts
    ]
    decoys = [torch.searchsorted(used[view], held.decoys[view]) for view in (0, 1)]
    return used[0], used[1], HeldOut(parts, (decoys[0], decoys[1]))


def choose_spreads(
    x: Tensor, y: Tensor, rows: Rows, config: ClosedFormConfig, generator: torch.Generator
) -> Spreads:
    """How the values of both views are taken: as linear maps place held-out pairs best."""
    default = (SPREADS[0], SPREADS[0])
    found = hold_out(rows, generator)
    if found is None:
        return default
    used_x, used_y, held = renumber(found)
    placed: list[dict[str, tuple[FeatureMap, Tensor]]] = [{}, {}]
    for of, view, used in zip(placed, (x, y), (used_x, used_y), strict=True):
        for spread in SPREADS:
            features = fit_features(
                view, max_rank=config.max_rank, spread=spread, generator=generator
            )
            if spread != "plain" or of["roots"][0].take_root:
                of[spread] = features, features(view[used])
    errors: dict[Spreads, Tensor] = {}
    for a, (map_x, rows_x) in placed[0].items():
        for b, (map_y, rows_y) in placed[1].items():
            part = Coordinates(map_x, map_y, rows_x, rows_y)
            moments = [[moments_of(part, *pairs)] for pairs in held.parts]
            errors[a, b] = placing_errors([part], moments, held, config)
    return clearly_best(errors, default)


def choose_ridge(
    coordinates: Sequence[Coordinates],
    rows: Rows,
    config: ClosedFormConfig,
    generator: torch.Generator,
) -> ClosedFormConfig:
    """The config with the ridge that places held-out known pairs best."""
    held = hold_out(rows, generator)
    if held is None:
        return config
    moments = [[moments_of(each, *pairs) for each in coordinates] for pairs in held.parts]
    errors = {
        factor: placing_errors(
            coordinates, moments, held, replace(config, ridge=factor * config.ridge)
        )
        for factor in RIDGE_FACTORS
    }
    return replace(config, ridge=clearly_best(errors, 1.0) * config.ridge)


def clearly_best(errors: dict[Choice, Tensor], default: Choice) -> Choice:
    """The choice of smallest mean error of those clearly below the default's, or the default.

    Errors are of the same rows; clearly means by N_DEVIATIONS standard errors of the difference.
    """
    best = default
    for choice, found in errors.items():
        gain = errors[default] - found
        clear = float(gain.mean()) > N_DEVIATIONS * float(gain.std()) / math.sqrt(len(gain))
        if clear and float(found.mean()) < float(errors[best].mean()):
            best = choice
    return best


def placing_errors(
    coordinates: Sequence[Coordinates],
    moments: Sequence[Sequence[Moments]],
    held: HeldOut,
    config: ClosedFormConfig,
) -> Tensor:
    """``misplaced`` of all held-out parts, by maps from the others; ``moments`` are the parts'."""
    errors = []
    for number, (pairs, _) in enumerate(held.parts):
        others = [other for other in range(len(moments)) if other != number]
        rest = [
            reduce(Moments.plus, parts)
            for parts in zip(*(moments[other] for other in others), strict=True)
        ]
        n_pairs = sum(float(held.parts[other][1].sum()) for other in others)
        maps = solve_maps(coordinates, rest, n_pairs, config)
        errors.append(misplaced(coordinates, maps, pairs[:MAX_HELD], held.decoys))
    return torch.cat(errors)


def misplaced(
    coordinates: Sequence[Coordinates], maps: Maps, pairs: Tensor, decoys: tuple[Tensor, Tensor]
) -> Tensor:
    """Mean log rank of partners among the pairs' rows and decoys, both ways, by row of x, (k,)."""
    rows_x, rows_y = (torch.cat([pairs[:, view], decoys[view]]) for view in (0, 1))
    parts = list(zip(coordinates, maps, strict=True))
    left = join([part.x[rows_x] @ found[0] for part, found in parts])
    right = join([part.y[rows_y] @ found[1] for part, found in parts])
    scores, k = left @ right.T, len(pairs)
    truth = scores[:k, :k].diagonal()
    above = (scores[:k] > truth[:, None]).sum(1), (scores[:, :k] > truth).sum(0)
    ranks = ((1.0 + above[0]).log() + (1.0 + above[1]).log()) / 2.0
    owners, owner = torch.unique(pairs[:, 0], return_inverse=True)
    return ranks.new_zeros(len(owners)).index_add_(0, owner, ranks) / torch.bincount(owner)
