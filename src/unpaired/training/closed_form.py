"""Two views in one space by closed forms: linear and kernel CCA, with soft matching of the rest.

SMI with a linear critic, and with a kernel critic, has a closed form: regularised CCA. Known pairs
give first maps. Rows without a partner are then matched softly, the soft pairs join the known ones
in the moments, and the maps are solved again while the temperature falls. A row counts in the
variances as it does in the pairs: what is chance about them cancels against the covariances, where
variances of all rows would leave it. Soft plans help without being right, where hard ones do not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from unpaired.math.eigen import inverse_factor
from unpaired.training.features import FeatureMap, fit_features
from unpaired.training.pair_density import N_NEAREST, nearest_rows, with_density
from unpaired.training.soft_plan import SoftPlan, product_blocks, soft_plan

WARM_ROUNDS = 3
LOCAL_ROUNDS = 3
"""Last rounds in which the density of pairs around two rows has a say in their score."""
LEAST_RIDGE = 1e-6
"""In units of the total variance: single precision tells no smaller variances apart."""
TINY = 1e-12
"""Variance of what does not vary."""
METRIC_RIDGE = 0.003
"""Ridge of the whitening of linear coordinates in which rows are near, of the total variance."""
LEAST_SHARE = 0.01
"""Soft pairs with a smaller share of their row are left out of the density of pairs."""


@dataclass(frozen=True)
class ClosedFormConfig:
    """Constants of the closed forms; one set for all data, chosen on Flickr8k's dev images."""

    n_components: int = 600
    """Directions kept per pair of maps; the weak ones matter for the length of a row."""
    plan_components: int = 160
    """Directions that enter the scores of the soft rounds."""
    ridge: float = 2.0
    """Ridge of n pairs, in units of the total variance: ridge / n."""
    linear_ridge: float = 0.0008
    """What the linear maps add to that ridge."""
    belief: float = 0.9
    """Share of a canonical correlation that is believed when directions are weighed."""
    bandwidths: tuple[float, ...] = (0.5,)
    """Squared kernel widths in units of the median squared distance; one kernel tower each."""
    n_landmarks: int = 2000
    """Nystroem landmarks of each kernel."""
    max_rank: int = 800
    """Principal components kept of each view."""
    n_rounds: int = 9
    """Soft rounds."""
    temperatures: tuple[float, float] = (0.8, 0.13)
    """Of the first and the last round, in standard deviations of the scores; geometric between."""
    soft_weight: float = 0.4
    """Weight of a soft pair of full confidence against a known pair."""
    doubt: float = 0.1
    """Peak share at which a row of the plan counts half."""
    n_candidates: int = 64
    """Candidates kept per row and per column of the plan."""


@dataclass(frozen=True)
class CanonicalTower:
    """One pair of feature maps with the linear maps that make them comparable."""

    features_x: FeatureMap
    features_y: FeatureMap
    map_x: Tensor
    map_y: Tensor
    correlations: Tensor
    """Canonical correlations, falling; half their sum of squares is SMI with this critic."""


@dataclass(frozen=True)
class Moments:
    """Weighted sums over pairs of products of coordinates: xy (r_x, r_y), xx and yy."""

    cross: Tensor
    own_x: Tensor
    own_y: Tensor

    def plus(self, other: Moments) -> Moments:
        """The sums over the pairs of both."""
        return Moments(self.cross + other.cross, self.own_x + other.own_x, self.own_y + other.own_y)


@dataclass(frozen=True)
class Round:
    """What one soft round left: the plan over free rows and how dependent the maps became."""

    plan: SoftPlan
    dependence: float
    n_pairs: float
    """Known pairs plus soft ones, as far as they are trusted."""


@dataclass(frozen=True)
class Coordinates:
    """All rows of both views in the principal coordinates of one pair of feature maps."""

    features_x: FeatureMap
    features_y: FeatureMap
    x: Tensor
    y: Tensor


@dataclass(frozen=True)
class Rows:
    """Which rows are paired, with what weight, and which are free to be matched."""

    pairs: Tensor
    """(k, 2) known pairs; a row may occur in several."""
    weights: Tensor
    free_x: Tensor
    free_y: Tensor


Maps = list[tuple[Tensor, Tensor, Tensor]]


def join(parts: Sequence[Tensor], width: int | None = None) -> Tensor:
    """Unit rows of every part, cut to ``width``, side by side: products are mean cosines."""
    return torch.cat([normalize(part)[:, :width] for part in parts], 1) / math.sqrt(len(parts))


def pair_weights(pairs: Tensor, n_x: int, n_y: int, *, many_to_one: bool = False) -> Tensor:
    """One over how often a pair's busier row occurs: five captions of an image count as one.

    Many-to-one, a row of y is meant to occur often, and only repeats of x count.
    """
    count_x = torch.bincount(pairs[:, 0], minlength=n_x)[pairs[:, 0]]
    if many_to_one:
        return 1.0 / count_x
    count_y = torch.bincount(pairs[:, 1], minlength=n_y)[pairs[:, 1]]
    return 1.0 / torch.maximum(count_x, count_y)


def lay_out(
    x: Tensor,
    y: Tensor,
    config: ClosedFormConfig,
    generator: torch.Generator,
    spreads: tuple[str, str] = ("roots", "roots"),
) -> list[Coordinates]:
    """Both views in linear coordinates, and in those of each kernel."""
    found = []
    for bandwidth in (None, *config.bandwidths):
        map_x, map_y = (
            fit_features(
                view,
                max_rank=config.max_rank,
                bandwidth=bandwidth,
                n_landmarks=config.n_landmarks,
                spread=spread,
                generator=generator,
            )
            for view, spread in zip((x, y), spreads, strict=True)
        )
        found.append(Coordinates(map_x, map_y, map_x(x), map_y(y)))
    return found


def ridge_of(features: FeatureMap, n_pairs: float, config: ClosedFormConfig) -> float:
    """The ridge for so many pairs, in units of the total variance: more pairs need less."""
    own = config.linear_ridge if features.landmarks is None else 0.0
    return config.ridge / max(n_pairs, 1.0) + own


def weigh_directions(correlations: Tensor, belief: float) -> Tensor:
    """Square roots of what the product of two unit variates counts in a score, (k,).

    The log density ratio of normal variates of correlation r has r / (1 - r^2) times it; of r in
    the denominator only the share ``belief`` is believed.
    """
    return (correlations / (1.0 - (belief * correlations.clamp(max=1.0)) ** 2)).sqrt()


def solve_maps(
    coordinates: Sequence[Coordinates],
    moments: Sequence[Moments],
    n_pairs: float,
    config: ClosedFormConfig,
    belief: float | None = None,
) -> Maps:
    """Regularised CCA in each coordinates: the SVD of the whitened mean cross product.

    ``moments`` are sums over pairs that weigh ``n_pairs`` together. Maps are whitening times
    singular vectors times ``weigh_directions``, with the config's belief unless another is given.
    Cost O(r^3).
    """
    believed = config.belief if belief is None else belief
    maps = []
    for part, sums in zip(coordinates, moments, strict=True):
        ridges = [
            max(LEAST_RIDGE, ridge_of(features, n_pairs, config)) * features.total_variance
            for features in (part.features_x, part.features_y)
        ]
        maps.append(maps_from_sums(sums, n_pairs, ridges, config.n_components, believed))
    return maps


def maps_from_sums(
    sums: Moments,
    n_pairs: float,
    ridges: Sequence[float | Tensor],
    n_components: int,
    belief: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """Maps of x and of y, and their correlations, from sums over pairs; ridges are variances."""
    count = max(n_pairs, 1.0)
    white_x, white_y = (
        inverse_factor(own / count + torch.eye(len(own), device=own.device) * (ridge + TINY))
        for own, ridge in zip((sums.own_x, sums.own_y), ridges, strict=True)
    )
    left, values, right = torch.linalg.svd(
        white_x.T @ (sums.cross / count) @ white_y, full_matrices=False
    )
    values = values[:n_components]
    scale = weigh_directions(values, belief)
    return (
        (white_x @ left[:, :n_components] * scale).contiguous(),
        (white_y @ right[:n_components].T * scale).contiguous(),
        values,
    )


def soft_rounds(
    coordinates: Sequence[Coordinates],
    rows: Rows,
    config: ClosedFormConfig,
    *,
    start: SoftPlan | None = None,
    balanced: bool = True,
    on_round: Callable[[Round], None] = lambda found: None,
) -> list[CanonicalTower]:
    """Maps after soft rounds, from the known pairs or from ``start``, a plan over the free rows.

    The weight of a soft pair grows with the peak of its row's plan. A start stands for the first
    rounds, WARM_ROUNDS at most. Cost of a round O(n_x n_y k + n r^2) time, no n_x x n_y memory.
    """
    n_known = float(rows.weights.sum())
    known = [moments_of(part, rows.pairs, rows.weights) for part in coordinates]
    free = [(part.x[rows.free_x], part.y[rows.free_y]) for part in coordinates]
    shape = (len(rows.free_x), len(rows.free_y))
    sizes = [right.shape[1] for _, right in free]
    joint_y = torch.cat([right for _, right in free], 1)
    schedule = np.geomspace(*config.temperatures, config.n_rounds) if min(shape) else np.empty(0)
    beliefs = config.belief * _rise(len(schedule))
    maps = solve_maps(coordinates, known, n_known, config, beliefs[0]) if n_known else []
    skipped = 0 if start is None else min(WARM_ROUNDS, max(len(schedule) - 1, 0))
    near = _neighbours(coordinates[0], rows) if balanced and len(schedule) else None
    plan: SoftPlan | None = None
    for step, temperature in enumerate(schedule[skipped:]):
        if step == 0 and start is not None:
            plan = start
        else:
            blocks = _score_blocks(free, maps, config.plan_components)
            if near is not None and step + skipped >= len(schedule) - LOCAL_ROUNDS:
                blocks = with_density(blocks, near, *weighted_pairs(rows, plan, config))
            plan = soft_plan(
                blocks, shape, float(temperature), config.n_candidates, balanced=balanced
            )
        trust = trust_of(plan, config)
        partners = torch.split(plan.apply(joint_y) * trust[:, None], sizes, 1)
        n_pairs = n_known + float(trust.sum())
        load = plan.loads(trust)
        moments = [
            first.plus(
                Moments(
                    left.T @ partner, weighted_square(left, trust), weighted_square(right, load)
                )
            )
            for first, (left, right), partner in zip(known, free, partners, strict=True)
        ]
        maps = solve_maps(coordinates, moments, n_pairs, config, beliefs[skipped + step + 1])
        on_round(Round(plan, 0.5 * float((maps[0][2] ** 2).sum()), n_pairs))
    return [
        CanonicalTower(part.features_x, part.features_y, *found)
        for part, found in zip(coordinates, maps, strict=True)
    ]


def _rise(n_rounds: int) -> np.ndarray:
    """Shares of the belief before the first round and after each: all of it from half way on."""
    return np.minimum(1.0, 2.0 * np.arange(n_rounds + 1) / n_rounds) if n_rounds else np.ones(1)


def moments_of(part: Coordinates, pairs: Tensor, weights: Tensor) -> Moments:
    """Weighted sums over pairs (k, 2); a row in several pairs is multiplied once."""
    own, weigh = [], weights.to(part.x.dtype)
    for view, placed in enumerate((part.x, part.y)):
        rows, place = torch.unique(pairs[:, view], return_inverse=True)
        load = weigh.new_zeros(len(rows)).index_add_(0, place, weigh)
        own.append(weighted_square(placed[rows], load))
    cross = (part.x[pairs[:, 0]] * weigh[:, None]).T @ part.y[pairs[:, 1]]
    return Moments(cross, own[0], own[1])


def weighted_square(rows: Tensor, weights: Tensor) -> Tensor:
    """Sum of the weighted outer products of rows with themselves, (n, r), (n,) -> (r, r)."""
    return (rows * weights[:, None]).T @ rows


def trust_of(plan: SoftPlan, config: ClosedFormConfig) -> Tensor:
    """How much each row's soft pairs count against a known pair, (n_x,)."""
    peak = plan.peaks()
    return config.soft_weight * peak / (peak + config.doubt)


def weighted_pairs(
    rows: Rows, plan: SoftPlan | None, config: ClosedFormConfig
) -> tuple[Tensor, Tensor]:
    """Known pairs and soft ones (k, 2), with what they count; tiny shares are left out."""
    weights = rows.weights.to(torch.float32)
    if plan is None:
        return rows.pairs, weights
    kept = plan.shares > LEAST_SHARE
    soft = torch.stack([rows.free_x[plan.rows[kept]], rows.free_y[plan.columns[kept]]], 1)
    trust = trust_of(plan, config)[plan.rows[kept]]
    return torch.cat([rows.pairs, soft]), torch.cat([weights, plan.shares[kept] * trust])


def metric_of(part: Coordinates) -> tuple[Tensor, Tensor]:
    """Factors of the coordinates of x and of y after which near rows are alike."""
    return part.features_x.whitening(METRIC_RIDGE), part.features_y.whitening(METRIC_RIDGE)


def _neighbours(part: Coordinates, rows: Rows) -> tuple[SoftPlan, SoftPlan] | None:
    """The rows nearest to the free rows of x and of y, or None where there are too few rows."""
    if min(len(part.x), len(part.y)) <= N_NEAREST:
        return None
    scale_x, scale_y = metric_of(part)
    return (
        nearest_rows(normalize(part.x * scale_x), rows.free_x),
        nearest_rows(normalize(part.y * scale_y), rows.free_y),
    )


def _score_blocks(
    free: Sequence[tuple[Tensor, Tensor]], maps: Maps, width: int
) -> Iterator[tuple[Tensor, Tensor]]:
    """Row numbers and their mean cosines to all free rows of y, block by block."""
    parts = list(zip(free, maps, strict=True))
    right = join([y @ map_y for (_, y), (_, map_y, _) in parts], width)
    left = join([x @ map_x for (x, _), (map_x, _, _) in parts], width)
    return product_blocks(left, right)
