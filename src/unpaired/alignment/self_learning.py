"""Stochastic self-learning: sharpen a rough linear map where both sides hold the same items.

The map names a partner for every row; the partners give a better map; and so on (Artetxe et al.
2018). Hiding most candidates at random at first, and fewer later, keeps it from settling on the
first answer. It pays where partners exist and drifts where they do not; ``confirmed_share`` tells.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from unpaired.alignment.alternation import CanonicalCritic, Step, place_free
from unpaired.math.canonical import Moments, canonical_maps
from unpaired.math.hubness import csls
from unpaired.plans.plan import Plan
from unpaired.spaces.space import Part

KNOWN_WEIGHT = 10.0
"""How often a known pair counts in a round; few of them, counted as all the rest, bend the map."""
KEEP = 0.3
"""Share of the other side that is visible at first; doubled whenever nothing improves."""
PATIENCE = 10
"""Rounds without improvement before more candidates are shown, or the end."""
MAX_ROUNDS = 150
MOSTLY_CONFIRMED = 0.5
"""The map is kept where more than this share of rows has a confirmed partner."""
LEAST_MUTUAL = 0.42
"""Give up after 10 or 30 rounds when fewer rows than this share have a mutual partner."""


def mutual(scores: Tensor) -> tuple[Tensor, Tensor]:
    """Rows with a mutual best partner, and those partners."""
    forward, backward = scores.argmax(1), scores.argmax(0)
    rows = torch.nonzero(backward[forward] == torch.arange(len(forward), device=scores.device))
    return rows[:, 0], forward[rows[:, 0]]


def self_learn(
    critic: CanonicalCritic, plan: Plan, rng: np.random.Generator, *, power: float
) -> list[Part]:
    """The linear map after self-learning from the map of ``plan``, in the critic's only view."""
    view, pairs = critic.views[0], critic.pairs
    started, _ = critic(plan, Step(1.0, power=power))
    parts = [replace(started[0], weight=1.0)]  # cosines, as in every round
    x, y = view.x[pairs.free_x], view.y[pairs.free_y]
    most = min(len(x), len(y))
    known = KNOWN_WEIGHT * (view.x[pairs.known[:, 0]].T @ view.y[pairs.known[:, 1]])
    best, since, keep = -np.inf, 0, KEEP
    for number in range(MAX_ROUNDS):
        left, right = place_free(critic, parts)
        forward, value_x = best_partners(left, right, keep, rng)
        backward, value_y = best_partners(right, left, keep, rng)
        value = (value_x + value_y) / 2
        since = 0 if value > best + 1e-3 * abs(best) else since + 1
        best = max(best, value)
        if since >= PATIENCE:
            if keep >= 1.0:
                break
            keep, since, best = min(1.0, 2.0 * keep), 0, -np.inf
        if number in (10, 30) and len(mutual(_hubless(critic, parts))[0]) < LEAST_MUTUAL * most:
            break
        parts = [_part(x.T @ y[forward] + x[backward].T @ y + known, power)]
    return parts


def best_partners(
    rows: Tensor, others: Tensor, keep: float, rng: np.random.Generator
) -> tuple[Tensor, float]:
    """The best partner of each row among a random share ``keep`` of the others, and how good.

    Hubs are corrected among those that are visible; the second value is the mean best score.
    """
    seen = torch.arange(len(others), device=others.device)
    if keep < 1.0:
        count = max(2, round(keep * len(others)))
        drawn = np.sort(rng.permutation(len(others))[:count])
        seen = torch.as_tensor(drawn, device=others.device)
    scores = csls(rows @ others[seen].T)
    best, index = scores.max(1)
    return seen[index], float(best.mean())


def confirmed_share(
    critic: CanonicalCritic, parts: list[Part], rng: np.random.Generator, *, power: float
) -> float:
    """The share of rows whose mutual best partner is found again without them.

    Half of the mutual pairs make a map, which has to tell the partners of the other half apart.
    Maps of accidental pairs lose more of them than right ones, but not all: unrelated Gaussians
    have kept 0.58 of their rows, so this share alone is no proof of partners.
    """
    view, pairs = critic.views[0], critic.pairs
    x, y = view.x[pairs.free_x], view.y[pairs.free_y]
    scores = _hubless(critic, parts)
    rows, partners = mutual(scores)
    order = torch.as_tensor(rng.permutation(len(rows)), device=rows.device)
    halves, found = (order[::2], order[1::2]), 0
    for fitted, held_out in (halves, halves[::-1]):
        if not len(fitted) or not len(held_out):
            continue
        part = _part(x[rows[fitted]].T @ y[partners[fitted]], power)
        left, right = part.embed(x[rows[held_out]], 0), part.embed(y[partners[held_out]], 1)
        again = csls(left @ right.T).argmax(1)
        found += int((again == torch.arange(len(held_out), device=again.device)).sum())
    return float(found / min(scores.shape))


def _part(cross: Tensor, power: float) -> Part:
    """The map of a cross-covariance."""
    none = torch.zeros(0, 0)
    maps = canonical_maps(
        Moments(cross, none, none, 1.0), (np.inf, np.inf), width=min(cross.shape), power=power
    )
    return Part(0, (maps.x, maps.y))


def _hubless(critic: CanonicalCritic, parts: list[Part]) -> Tensor:
    left, right = place_free(critic, parts)
    return csls(left @ right.T)
