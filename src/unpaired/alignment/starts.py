"""Starts: where a search begins. Rotations for evident partners, plans for a soft alignment."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import torch
from scipy.optimize import linear_sum_assignment
from torch import Tensor

from unpaired.alignment.icp import Float, Pairing, pair_spaces, weighted_rotation
from unpaired.alignment.profiles import Profiles, joined, profile_score, with_side_information
from unpaired.math.kernels import squared_distances
from unpaired.math.neighbours import Float32, Index
from unpaired.math.sinkhorn import sinkhorn
from unpaired.plans.plan import DensePlan
from unpaired.problem.problem import Problem
from unpaired.problem.weights import repeated
from unpaired.views.features import fit_features

RANK = 64
KEEP = 0.9999
"""Share of the variance that the scores hold."""
N_KERNEL = 600
"""Landmarks of kernel scores."""
OWN, JOINT = "own", "joint"
"""Soft starts from the profiles of one view, and of all views together."""


@dataclass(frozen=True, eq=False)
class SoftStart:
    """Scores that a soft alignment holds on to, and the plan that it begins with."""

    name: str
    held: Tensor
    """(n, m) standardised."""
    plan: DensePlan | None = None
    """None begins with the plan of the scores."""


def soft_starts(
    profiles: Mapping[str, Profiles],
    side: Tensor | None,
    given: Mapping[str, DensePlan],
    rows_x: Tensor,
    rows_y: Tensor,
) -> Iterator[tuple[str, SoftStart]]:
    """A view's name and a start in it, for some rows of both sides: profiles, and given plans.

    ``side`` is the side information of these rows.
    """
    every = joined(list(profiles.values()))
    plans = {name: DensePlan(plan.shares[rows_x][:, rows_y]) for name, plan in given.items()}
    for view, own in profiles.items():
        starts: list[tuple[str, tuple[Tensor, Tensor], DensePlan | None]]
        starts = [(OWN, joined([own]), None), (JOINT, every, None)]
        starts += [(name, every, plan) for name, plan in plans.items()]
        for name, (left, right), plan in starts:
            held = profile_score(left[rows_x.cpu()], right[rows_y.cpu()]).to(rows_x.device)
            yield view, SoftStart(name, with_side_information(held, side), plan)


def rotation_starts(
    problem: Problem, rng: np.random.Generator
) -> Iterator[tuple[str, Pairing, Float]]:
    """Named rotations to refine, cheapest first; later ones are computed only when asked for."""
    known = problem.known
    linear = _paired(problem, rng, None)
    if len(known) >= 4:
        pairs = (linear.x[known[:, 0]], linear.y[known[:, 1]], np.ones(len(known)))
        yield "known pairs", linear, weighted_rotation(*pairs)
    for guess in problem.guesses():
        points = [
            found(torch.as_tensor(rows, dtype=torch.float32)).numpy()
            for found, rows in zip(linear.features, (guess.left, guess.right), strict=True)
        ]
        weight = guess.weight.astype(np.float64)
        yield guess.name, linear, rotation_between(points[0], points[1], weight)
    # A row of weight w stands w times among the rows that starts are made from.
    counted_x = repeated(problem.weights[0], len(problem.x), rng)
    counted_y = repeated(problem.weights[1], len(problem.y), rng)
    left, right = linear.x[counted_x], linear.y[counted_y]
    yield "axes", linear, axis_start(left, right)
    yield "profiles", linear, soft_refine(left, right, profile_start(left, right, rng), rng)
    kernel = _paired(problem, rng, 1.0)
    left, right = kernel.x[counted_x], kernel.y[counted_y]
    yield "kernel", kernel, soft_refine(left, right, profile_start(left, right, rng), rng)


def axis_start(x: Float32, y: Float32, *, n_quantiles: int = 128) -> Float:
    """The signed permutation of axes under which the marginal distributions agree best.

    Principal axes of a rotated set agree up to order (where variances are close) and sign; the
    quantile functions of the scores tell both. Uses every row: O(n r log n).
    """
    level = (np.arange(n_quantiles) + 0.5) / n_quantiles
    profile_x = np.quantile(x, level, axis=0).T  # (r_x, n_quantiles)
    profile_y = np.quantile(y, level, axis=0).T
    flipped = -profile_x[:, ::-1]
    plain = np.square(profile_x[:, None] - profile_y).mean(axis=2)
    mirror = np.square(flipped[:, None] - profile_y).mean(axis=2)
    rows, columns = linear_sum_assignment(np.minimum(plain, mirror))
    rotation = np.zeros((x.shape[1], y.shape[1]))
    sign = np.where(plain[rows, columns] <= mirror[rows, columns], 1.0, -1.0)
    rotation[rows, columns] = sign
    return rotation


def profile_start(
    x: Float32,
    y: Float32,
    rng: np.random.Generator,
    *,
    n_rows: int = 1200,
    temperature: float = 0.1,
) -> Float:
    """The rotation from a soft matching of rows by how similarity to all others is distributed."""
    pick_x = rng.choice(len(x), min(n_rows, len(x)), replace=False)
    pick_y = rng.choice(len(y), min(n_rows, len(y)), replace=False)
    profile_x, profile_y = _profiles(x, pick_x, rng), _profiles(y, pick_y, rng)
    both = np.vstack([profile_x, profile_y])
    spread = both.std(axis=0) + 1e-12
    scale = np.sqrt(profile_x.shape[1])
    plan = _soft_plan(profile_x / spread / scale, profile_y / spread / scale, temperature, 60)
    return _rotation_of_plan(x[pick_x], y[pick_y], plan)


def soft_refine(
    x: Float32,
    y: Float32,
    rotation: Float,
    rng: np.random.Generator,
    *,
    n_rows: int = 1000,
    temperatures: tuple[float, ...] = (0.2, 0.15, 0.1, 0.1, 0.05, 0.05, 0.03, 0.02),
) -> Float:
    """The rotation after rounds of soft matching between samples, cooling as it goes.

    The samples hold few true partners; soft plans still agree on the rotation they imply.
    """
    for temperature in temperatures:
        pick_x = rng.choice(len(x), min(n_rows, len(x)), replace=False)
        pick_y = rng.choice(len(y), min(n_rows, len(y)), replace=False)
        moved, fixed = x[pick_x] @ rotation, y[pick_y]
        plan = _soft_plan(moved, fixed, temperature, 40)
        rotation = _rotation_of_plan(x[pick_x], fixed, plan)
    return rotation


def _profiles(rows: Float32, chosen: Index, rng: np.random.Generator) -> Float:
    """Quantiles of each chosen row's inner products with a large sample, tails resolved finely."""
    sample = rows[rng.choice(len(rows), min(len(rows), 8000), replace=False)]
    level = np.array([0.002, 0.01, 0.03, 0.1, 0.25, 0.5, 0.75, 0.9, 0.97, 0.99, 0.998])
    out = np.empty((len(chosen), len(level) + 1))
    for start in range(0, len(chosen), 200):
        part = rows[chosen[start : start + 200]]
        out[start : start + 200, :-1] = np.quantile(part @ sample.T, level, axis=1).T
        out[start : start + 200, -1] = np.square(part).sum(axis=1)
    return out


def _soft_plan(left: Float, right: Float | Float32, temperature: float, max_iter: int) -> Float:
    """Sinkhorn's plan of the squared distances between two sets of rows."""
    sides = (torch.as_tensor(rows, dtype=torch.float64) for rows in (left, right))
    return sinkhorn(-squared_distances(*sides), temperature, max_iter=max_iter).numpy()


def _rotation_of_plan(x: Float32, y: Float32, plan: Float) -> Float:
    """The rotation of least squares under a soft plan."""
    mass = plan.sum(axis=1)
    target = (plan @ y) / np.maximum(mass, 1e-300)[:, None]
    return rotation_between(x, target.astype(np.float32), mass)


def rotation_between(x: Float32, y: Float32, weight: Float) -> Float:
    """The rotation of least squares from rows of x to the rows of y in the same places."""
    rotation = weighted_rotation(x, y, weight)
    left, _, right = np.linalg.svd(rotation, full_matrices=False)  # plans shrink: drop the scale
    return np.asarray(left @ right)


def _paired(problem: Problem, rng: np.random.Generator, bandwidth: float | None) -> Pairing:
    """Principal scores of both sides, linear or of a Gaussian kernel."""
    features = tuple(
        fit_features(
            torch.as_tensor(rows, dtype=torch.float32),
            rng,
            max_rank=RANK,
            metric="euclidean",
            bandwidth=bandwidth,
            n_landmarks=N_KERNEL,
            weights=None if weight is None else torch.as_tensor(weight, dtype=torch.float32),
            keep=KEEP,
        )
        for rows, weight in zip((problem.x, problem.y), problem.weights, strict=True)
    )
    return pair_spaces((features[0], features[1]), problem.x, problem.y, rng, problem.weights)
