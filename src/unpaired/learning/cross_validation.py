"""What known pairs, held out in turn, say: how values are taken, the ridge, and how sure to be."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from unpaired.alignment.critics import moments_of
from unpaired.math.canonical import Maps, Moments
from unpaired.plans.plan import Pairs
from unpaired.spaces.solution import HeldPair
from unpaired.spaces.space import Part, join
from unpaired.views.features import VALUES, Features, fit_features
from unpaired.views.view import View

N_FOLDS = 4
RIDGE_FACTORS = (1.0, 0.3, 0.1, 0.03)
"""Ridges that are tried, as multiples of the one given."""
MAX_HELD = 1000
"""Held-out pairs, and free rows of each side beside them, that are ranked in each fold, at most."""
BLOCK = 100
"""Of those, so many at a time are scored against all free rows."""
MAX_OWNERS = 20_000
"""Rows of x whose pairs take part, at most."""
N_DEVIATIONS = 2.5
"""Standard errors by which another choice must place held-out pairs better than the default."""
TEMPERATURES = tuple(float(t) for t in np.geomspace(0.03, 3.0, 40))
"""Of the shares that held-out pairs choose from, in standard deviations of the scores."""

Solve = Callable[[int, Moments], Maps]
"""Number of a view and the moments of pairs in it -> maps."""
Choice = TypeVar("Choice", bound=Hashable)


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Known pairs in parts that are held out in turn; all pairs of a row of x are in one part."""

    folds: list[tuple[Tensor, Tensor]]
    """Pairs (k, 2) and their weights."""
    decoys: tuple[Tensor, Tensor]
    """Free rows of x and of y that are ranked beside the held-out ones."""

    @property
    def used(self) -> tuple[Tensor, Tensor]:
        """The rows of x and of y that occur, sorted."""
        x, y = (
            torch.unique(torch.cat([*(p[:, side] for p, _ in self.folds), self.decoys[side]]))
            for side in (0, 1)
        )
        return x, y

    def renumber(self, used: tuple[Tensor, Tensor]) -> HeldOut:
        """The same with numbers among the rows that are used."""
        parts = [
            (
                torch.stack([torch.searchsorted(used[s], p[:, s].contiguous()) for s in (0, 1)], 1),
                weights,
            )
            for p, weights in self.folds
        ]
        decoys = [torch.searchsorted(used[side], self.decoys[side]) for side in (0, 1)]
        return HeldOut(parts, (decoys[0], decoys[1]))


def hold_out(pairs: Pairs, rng: np.random.Generator) -> HeldOut | None:
    """The known pairs in N_FOLDS parts, or None where they are too few to tell."""
    owners = torch.unique(pairs.known[:, 0])
    if len(owners) < 2 * N_FOLDS:
        return None
    part = torch.full((int(owners.max()) + 1,), -1, device=owners.device)
    order = torch.as_tensor(rng.permutation(len(owners))[:MAX_OWNERS], device=owners.device)
    part[owners[order]] = torch.arange(len(order), device=owners.device) % N_FOLDS
    fold = part[pairs.known[:, 0]]
    decoys = [
        free[torch.as_tensor(rng.permutation(len(free))[:MAX_HELD], device=free.device)]
        for free in (pairs.free_x, pairs.free_y)
    ]
    return HeldOut(
        [(pairs.known[fold == n], pairs.weights[fold == n]) for n in range(N_FOLDS)],
        (decoys[0], decoys[1]),
    )


def choose_values(
    x: Tensor, y: Tensor, pairs: Pairs, solve: Solve, max_rank: int, rng: np.random.Generator
) -> tuple[str, str]:
    """How the values of both sides are taken: as linear maps place held-out pairs best."""
    default = (VALUES[0], VALUES[0])
    found = hold_out(pairs, rng)
    if found is None:
        return default
    used = found.used
    held = found.renumber(used)
    placed: list[dict[str, tuple[Features, Tensor]]] = [{}, {}]
    for of, side, rows in zip(placed, (x, y), used, strict=True):
        for values in VALUES:
            features = fit_features(side, rng, max_rank=max_rank, values=values)
            if values != "plain" or of["roots"][0].preparation.roots:
                of[values] = features, features(side[rows])
    errors: dict[tuple[str, str], Tensor] = {}
    for a, (map_x, rows_x) in placed[0].items():
        for b, (map_y, rows_y) in placed[1].items():
            errors[a, b] = placing_errors([View(map_x, map_y, rows_x, rows_y)], held, solve)
    return clearly_best(errors, default)


def choose_ridge_factor(
    views: Sequence[View],
    pairs: Pairs,
    solve: Callable[[float], Solve],
    rng: np.random.Generator,
) -> float:
    """The factor of the ridge that places held-out known pairs best; 1 where they cannot tell."""
    held = hold_out(pairs, rng)
    if held is None:
        return 1.0
    errors = {factor: placing_errors(views, held, solve(factor)) for factor in RIDGE_FACTORS}
    return clearly_best(errors, 1.0)


def choose_temperature(
    views: Sequence[View], pairs: Pairs, solve: Solve, rng: np.random.Generator
) -> float | None:
    """The temperature at which shares of scores are probabilities of held-out partners.

    Temperature scaling (Guo et al. 2017): the one of the largest likelihood. Decoys stand for all
    free rows. None where there are too few pairs to tell.
    """
    held = hold_out(pairs, rng)
    if held is None:
        return None
    totals = torch.zeros(len(TEMPERATURES))
    for scores, own in _held_scores(views, held, solve):
        k = len(own)
        n_decoys, n_free = scores.shape[1] - k, len(pairs.free_y)
        more = math.log(max(n_free, 1) / n_decoys) if n_decoys else 0.0
        logits = scores[:k] / scores.std(correction=0).clamp_min(1e-12)
        for number, temperature in enumerate(TEMPERATURES):
            heated = logits / temperature
            heated[:, k:] += more
            totals[number] += torch.log_softmax(heated, 1)[:, :k].diagonal().sum()
    return TEMPERATURES[int(totals.argmax())]


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


def placing_errors(views: Sequence[View], held: HeldOut, solve: Solve) -> Tensor:
    """Mean log rank of held-out partners among held-out rows and decoys, both ways, by row of x."""
    errors = []
    for scores, pairs in _held_scores(views, held, solve):
        k = len(pairs)
        truth = scores[:k, :k].diagonal()
        above = (scores[:k] > truth[:, None]).sum(1), (scores[:, :k] > truth).sum(0)
        ranks = ((1.0 + above[0]).log() + (1.0 + above[1]).log()) / 2.0
        owners, owner = torch.unique(pairs[:, 0], return_inverse=True)
        sums = ranks.new_zeros(len(owners)).index_add_(0, owner, ranks)
        errors.append(sums / torch.bincount(owner))
    return torch.cat(errors)


def held_out_pairs(
    views: Sequence[View], pairs: Pairs, solve: Solve, rng: np.random.Generator
) -> tuple[HeldPair, ...]:
    """How each held-out pair fares: its rank, and whether a partner comes first of all free rows.

    The rank is the share of drawn rows above the partner, mean of both ways: FOSCTTM, pair by pair.
    No share is measured. Empty where there are too few pairs to tell.
    """
    held, found = hold_out(pairs, rng), []
    if held is None:
        return ()
    for parts, known in _folds(views, held, solve):
        scores = _scores(views, parts, known, held.decoys)
        k = len(known)
        truth = scores[:k, :k].diagonal()
        above = (
            (scores[:k] > truth[:, None]).float().mean(1),
            (scores[:, :k] > truth).float().mean(0),
        )
        ranks = ((above[0] + above[1]) / 2.0).tolist()
        named = _named(views, parts, known, pairs).tolist()
        found += [HeldPair(r, right=n) for r, n in zip(ranks, named, strict=True)]
    return tuple(found)


def _named(views: Sequence[View], parts: Sequence[Part], known: Tensor, pairs: Pairs) -> Tensor:
    """Whether a known partner has the best score of all rows of y that are free or held out."""
    columns = torch.unique(torch.cat([pairs.free_y, known[:, 1]]))
    left = join(parts, [view.x[known[:, 0]] for view in views], 0)
    right = join(parts, [view.y[columns] for view in views], 1)
    best = torch.cat([(rows @ right.T).argmax(1) for rows in torch.split(left, BLOCK)])
    n_y = int(torch.cat([columns, pairs.known[:, 1]]).max()) + 1
    codes = [rows * n_y + own for rows, own in (pairs.known.T, (known[:, 0], columns[best]))]
    return torch.isin(codes[1], codes[0])


def _held_scores(views: Sequence[View], held: HeldOut, solve: Solve) -> list[tuple[Tensor, Tensor]]:
    """Scores of held-out pairs' rows and decoys, pairs first, by maps from the other parts."""
    return [
        (_scores(views, parts, pairs, held.decoys), pairs)
        for parts, pairs in _folds(views, held, solve)
    ]


def _folds(
    views: Sequence[View], held: HeldOut, solve: Solve
) -> Iterator[tuple[list[Part], Tensor]]:
    """Held-out pairs, MAX_HELD at most, each time with the maps that the other parts make."""
    moments = [[moments_of(view, *pairs) for view in views] for pairs in held.folds]
    for number, (every, _) in enumerate(held.folds):
        others = [other for other in range(len(moments)) if other != number]
        parts = []
        for view in range(len(views)):
            maps = solve(view, reduce(Moments.plus, [moments[other][view] for other in others]))
            parts.append(Part(view, (maps.x, maps.y)))
        yield parts, every[:MAX_HELD]


def _scores(
    views: Sequence[View], parts: Sequence[Part], pairs: Tensor, decoys: tuple[Tensor, Tensor]
) -> Tensor:
    """Scores of the rows of pairs, and of decoys after them."""
    rows = [torch.cat([pairs[:, side], decoys[side]]) for side in (0, 1)]
    left = join(parts, [view.x[rows[0]] for view in views], 0)
    right = join(parts, [view.y[rows[1]] for view in views], 1)
    return left @ right.T
