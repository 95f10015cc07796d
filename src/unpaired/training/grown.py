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
from unpaired.training.closed_form import ClosedFormConfig, Coordinates, lay_out
from unpaired.training.common_space import CommonSpace, Part

HELD = ((2, 6), (3, 1))
"""Directions that are held, and rounds that follow; the log ratios are averaged."""
LEAST_STRENGTH = 0.05
"""Of the first direction that is never held, against the strongest: with less there is no rest."""
N_GROWN = 20
"""Directions that are named besides."""
N_COORDINATES = 60
"""Half-whitened principal coordinates in which they are looked for."""
HELD_BELIEF = (0.9, 0.6)
"""Correlation of a held direction: the first number times its strength to the second."""
GROWN_BELIEF = (0.3, 0.5)
"""The same for directions named besides."""
HELD_RIDGE = 1e-3
"""Ridge of the maps to held directions, in units of the total variance."""
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
    x: Tensor, y: Tensor, placed: tuple[Tensor, Tensor], config: ClosedFormConfig, seed: int
) -> CommonSpace | None:
    """A space grown from the leading directions of an alignment that embeds all rows at ``placed``.

    None where the alignment has hardly more than the directions that are held. Cost O(n^2) time and
    memory in the rows that are matched, MAX_ROWS of each view at most.
    """
    generator = torch.Generator().manual_seed(seed)
    coordinates = lay_out(x, y, replace(config, bandwidths=()), generator)[0]
    kept = [torch.randperm(len(v), generator=generator)[:MAX_ROWS].to(v.device) for v in (x, y)]
    seen = replace(coordinates, x=coordinates.x[kept[0]], y=coordinates.y[kept[1]])
    held_x, held_y, strengths = leading_directions(placed[0][kept[0]], placed[1][kept[1]])
    most = max(count for count, _ in HELD)
    if len(strengths) <= most or float(strengths[most]) < LEAST_STRENGTH:
        return None
    parts, penalties = [], []
    for count, n_rounds in HELD:
        part, rho = _grow(seen, (held_x[:, :count], held_y[:, :count]), strengths[:count], n_rounds)
        parts.append(part)
        penalties.append(0.5 * rho)
    empty = torch.zeros(0, 1, device=x.device)
    features = ((coordinates.features_x, coordinates.features_y),)
    return CommonSpace(features, tuple(parts), empty, empty, 0, penalty=torch.cat(penalties))


def _grow(
    seen: Coordinates, held: tuple[Tensor, Tensor], strengths: Tensor, n_rounds: int
) -> tuple[Part, Tensor]:
    """Maps to the held directions and to those named besides, with their correlations (k,)."""
    sides = (seen.features_x, seen.x), (seen.features_y, seen.y)
    width = min(N_COORDINATES, seen.x.shape[1], seen.y.shape[1])
    first, whole, rests = [], [], []
    for (features, rows), target in zip(sides, held, strict=True):
        penalty = HELD_RIDGE * features.total_variance * len(rows)
        gram = rows.T @ rows + penalty * torch.eye(rows.shape[1], device=rows.device)
        solved = torch.linalg.solve(gram, rows.T @ target)
        first.append(solved / (rows @ solved).std(0).clamp_min(1e-12))
        scale = torch.diag(features.variances[:width].clamp_min(1e-12) ** -0.25)
        lifted = torch.cat([scale, scale.new_zeros(rows.shape[1] - width, width)])
        kept = torch.linalg.lstsq(rows @ first[-1], rows @ lifted).solution
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
