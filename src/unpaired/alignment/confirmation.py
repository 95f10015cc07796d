"""Whether partners that a map names are found again without themselves, or by finer structure."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor

from unpaired.alignment.alternation import place_free
from unpaired.alignment.critics import CanonicalCritic
from unpaired.math.hubness import csls
from unpaired.math.rotations import nearest_rotation
from unpaired.plans.plan import Pairs
from unpaired.spaces.space import Part, rotation_parts
from unpaired.views.view import View

PER_COMPONENT = 8
"""Mutual partners for each of the next components by which they are told apart."""


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
        cross = x[rows[fitted]].T @ y[partners[fitted]]
        (part,) = rotation_parts(nearest_rotation(cross.cpu().numpy()), x)
        placed = part.embed(x[rows[held_out]], 0), part.embed(y[partners[held_out]], 1)
        again = csls(placed[0] @ placed[1].T).argmax(1)
        found += int((again == torch.arange(len(held_out), device=again.device)).sum())
    return float(found / min(scores.shape))


def finer_structure(view: View, pairs: Pairs, parts: list[Part]) -> float:
    """How well the next components tell apart the mutual partners that the leading ones name.

    Half of the partners make a rotation of components that had no part in naming them, and those of
    the other half are ranked by it: the mean rank in standard deviations above chance, NaN where
    there are too few components or partners. What two geometries share by accident in the leading
    components goes no further.
    """
    critic = CanonicalCritic([view.leading(max(len(side) for side in parts[0].maps))], pairs)
    left, right = place_free(critic, parts)
    rows, partners = mutual(csls(left @ right.T))
    rank = max(left.shape[1], right.shape[1])
    x = view.x[pairs.free_x][rows, rank : 2 * rank]
    y = view.y[pairs.free_y][partners, rank : 2 * rank]
    size = min(x.shape[1], y.shape[1], len(rows) // PER_COMPONENT)
    if size < 2:
        return math.nan
    x, y, above = x[:, :size], y[:, :size], []
    halves = slice(0, None, 2), slice(1, None, 2)
    for fitted, held_out in (halves, halves[::-1]):
        (part,) = rotation_parts(nearest_rotation((x[fitted].T @ y[fitted]).cpu().numpy()), x)
        scores = part.embed(x[held_out], 0) @ part.embed(y[held_out], 1).T
        above.append((scores < scores.diagonal()[:, None]).double().mean(1))
    ranks = torch.cat(above)
    return float((ranks.mean() - 0.5) * (12.0 * len(ranks)) ** 0.5)
