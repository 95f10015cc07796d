"""Without pairs: more directions from the few that an alignment gets right.

An alignment of two geometries gets its strongest directions right and few others; refined as a
whole it drifts, its second direction first. Here the leading directions are held as they are. Rows
are matched softly by the density ratio of what is held, the rest of both views is regressed out of
them, and the cross-covariance of the remainders names more directions, which join the ratio and are
named again. Directions are modelled as pairs of normal variates of correlation rho, whose log ratio
is (rho a b - rho^2 (a^2 + b^2) / 2) / (1 - rho^2): an inner product less a penalty on length.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from unpaired.matching.soft_refine import sinkhorn
from unpaired.training.closed_form import Coordinates
from unpaired.training.common_space import CommonSpace, Part
from unpaired.training.features import regress

HELD = ((2, 6), (3, 1))
"""Directions that are held, and rounds that follow; the log ratios are averaged."""
LEAST_STRENGTH = 0.05
"""Of the first direction that is never held, against the strongest: with less there is no rest."""
N_GROWN = 40
"""Directions that are named besides."""
N_COORDINATES = 60
"""Half-whitened principal coordinates in which they are looked for."""
HELD_BELIEF = (0.9, 0.6)
"""Correlation of a held direction: the first number times its strength to the second."""
GROWN_BELIEF = (0.4, 0.5)
"""The same for directions named besides."""
HELD_RIDGE = 1e-3
"""Ridge of the maps to held directions, in units of the total variance."""
TAKEN_SHARE = 0.5
"""What the alignment as a whole counts beside what has grown."""
MAX_ROWS = 3000
"""Rows of each view that are matched, at most."""
N_SINKHORN = 20


def gaussian_log_ratio(a: Tensor, b: Tensor, rho: Tensor) -> Tensor:
    """Log density ratio of pairs of unit normal variates, (n, k), (m, k), (k,) -> (n, m)."""
    product, square = rho / (1.0 - rho**2), 0.5 * rho**2 / (1.0 - rho**2)
    return (a * product) @ b.T - ((a**2) @ square)[:, None] - (b**2) @ square


def leading_directions(x: Tensor, y: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Unit variates of embedded rows, strongest first, and their strengths against the first.

    The inner product of two rows is the sum over directions of strength times both variates.
    """
    centred, roots, inverses = [], [], []
    for rows in (x, y):
        centred.append(rows - rows.mean(0))
        values, axes = torch.linalg.eigh(centred[-1].T @ centred[-1] / len(rows))
        kept = values > 1e-6 * values[-1].clamp_min(1e-12)
        roots.append(axes[:, kept] * values[kept].sqrt())
        inverses.append(axes[:, kept] * values[kept].rsqrt())
    left, strengths, right = torch.linalg.svd(roots[0].T @ roots[1], full_matrices=False)
    variates = centred[0] @ inverses[0] @ left, centred[1] @ inverses[1] @ right.T
    return *variates, strengths / strengths[:1].clamp_min(1e-12)


def grow_space(
    x: Tensor, y: Tensor, placed: tuple[Tensor, Tensor], taken: CommonSpace, seed: int
) -> CommonSpace | None:
    """A space grown from the leading directions of an alignment that embeds all rows at ``placed``.

    ``taken`` is the space that takes the alignment over; its scores count TAKEN_SHARE, in standard
    deviations, beside the mean of the log ratios. None where the alignment has hardly more than the
    directions that are held. Cost O(n^2) time and memory in the rows that are matched, MAX_ROWS of
    each view at most.
    """
    generator = torch.Generator().manual_seed(seed)
    kept = [torch.randperm(len(v), generator=generator)[:MAX_ROWS].to(v.device) for v in (x, y)]
    rows = x[kept[0]], y[kept[1]]
    map_x, map_y = taken.features[0]
    seen = Coordinates(map_x, map_y, map_x(rows[0]), map_y(rows[1]))
    held_x, held_y, strengths = leading_directions(placed[0][kept[0]], placed[1][kept[1]])
    most = max(count for count, _ in HELD)
    if min(len(strengths), seen.x.shape[1], seen.y.shape[1]) <= most:
        return None
    if float(strengths[most]) < LEAST_STRENGTH:
        return None
    parts, penalties = [], []
    for count, n_rounds in HELD:
        part, rho = _grow(seen, (held_x[:, :count], held_y[:, :count]), strengths[:count], n_rounds)
        parts.append(part)
        penalties.append(0.5 * rho)
    grown = replace(taken, parts=tuple(parts), penalty=torch.cat(penalties))
    spreads = [float(space.scores(*rows).std()) for space in (grown, taken)]
    share = TAKEN_SHARE * spreads[0] / max(spreads[1], 1e-12) * len(parts) / len(taken.parts)
    before = [_scaled(part, share**0.5) for part in taken.parts]
    free = sum(part.maps[0].shape[1] for part in before)
    return replace(
        taken,
        parts=(*parts, *before),
        penalty=torch.cat([*penalties, penalties[0].new_zeros(free)]),
    )


def _scaled(part: Part, factor: float) -> Part:
    """A part whose embeddings are ``factor`` times as long."""
    assert part.offsets is not None
    return replace(
        part,
        maps=(part.maps[0] * factor, part.maps[1] * factor),
        offsets=(part.offsets[0] * factor, part.offsets[1] * factor),
    )


def _grow(
    seen: Coordinates, held: tuple[Tensor, Tensor], strengths: Tensor, n_rounds: int
) -> tuple[Part, Tensor]:
    """Maps to the held directions and to those named besides, with their correlations (k,)."""
    sides = (seen.features_x, seen.x), (seen.features_y, seen.y)
    width = min(N_COORDINATES, seen.x.shape[1], seen.y.shape[1])
    first, whole, rests = [], [], []
    for (features, rows), target in zip(sides, held, strict=True):
        solved = regress(rows, target, HELD_RIDGE * features.total_variance)
        first.append(solved / (rows @ solved).std(0).clamp_min(1e-12))
        scale = torch.diag(features.variances[:width].clamp_min(1e-12) ** -0.25)
        lifted = torch.cat([scale, scale.new_zeros(rows.shape[1] - width, width)])
        kept = regress(rows @ first[-1], rows @ lifted, 1e-6)
        whole.append(lifted - first[-1] @ kept)  # coordinates to what the held leave of them
        rests.append(rows @ whole[-1])
    rho = HELD_BELIEF[0] * strengths ** HELD_BELIEF[1]
    maps, belief = first, rho
    for _ in range(n_rounds):
        ratio = gaussian_log_ratio(seen.x @ maps[0], seen.y @ maps[1], belief)
        plan = torch.as_tensor(sinkhorn(ratio.cpu().numpy(), 1.0, N_SINKHORN), device=ratio.device)
        left, values, right = torch.linalg.svd(rests[0].T @ (plan @ rests[1]))
        axes, n_grown = (left, right.T), min(N_GROWN, width - len(strengths))
        maps = []
        for start, lifted, rest, found in zip(first, whole, rests, axes, strict=True):
            spread = (rest @ found[:, :n_grown]).std(0).clamp_min(1e-12)
            maps.append(torch.cat([start, lifted @ found[:, :n_grown] / spread], 1))
        named = (values[:n_grown] / values[:1].clamp_min(1e-12)) ** GROWN_BELIEF[1]
        belief = torch.cat([rho, GROWN_BELIEF[0] * named])
    scale = (belief / (1.0 - belief**2)).sqrt()
    offset = scale.new_zeros(1, len(scale))
    return Part(0, (maps[0] * scale, maps[1] * scale), offsets=(offset, offset)), belief
