"""A null that is fair to the data: the same alignment with directions turned round.

Random maps are easy to beat where few directions hold the variance: any map that takes the first to
the first does. A map whose directions have random signs keeps all that both sides are by themselves
(spectra, tails, clusters); refined alike, it reaches what unrelated data of this shape would.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from unpaired.math.neighbours import Float32
from unpaired.math.principal import principal
from unpaired.math.rotations import nearest_rotation, products, soft_cross
from unpaired.problem.problem import Problem
from unpaired.spaces.solution import Solution

N_FLIPS = 24
"""Starts with random signs; in every other one the first direction is turned round for sure."""
LEVEL = 0.9
"""Share of them that stay below what the answer is compared with."""
N_ROUNDS = 3
"""Of plan and rotation in turn, from each start."""
TEMPERATURE = 0.25
"""Of the plans, in standard deviations of the scores."""
MOST_ROWS = 500
"""Rows a side, at most: what is compared is coarse."""
MOST_DIRECTIONS = 64
KEPT = 0.999
"""Share of the variance that the directions hold."""
CAME_BACK = 0.7
"""Correlation of scores from which on a flipped start has returned to the answer."""
LEAST_ENDS = 3
"""Flipped starts that must have stayed away."""


def gap_above_flips(problem: Problem, solution: Solution, rng: np.random.Generator) -> float:
    """How far the dependence of a solution lies above what flipped starts reach, 0 to 1.

    As a share of what is possible beyond what nine of ten of them reach; 0 where they reach as
    much, or where nearly all of them return to the solution.
    """
    rows = [np.sort(rng.permutation(len(s))[:MOST_ROWS]) for s in (problem.x, problem.y)]
    x, y = (
        torch.as_tensor(side[own], dtype=torch.float32)
        for side, own in zip((problem.x, problem.y), rows, strict=True)
    )
    scores = solution.space.scores(x, y).cpu().numpy()
    return gap_of_scores(scores, half_whitened(x), half_whitened(y), rng)


def gap_of_scores(scores: Float32, x: Float32, y: Float32, rng: np.random.Generator) -> float:
    """The gap above flips by scores (n_x, n_y) of rows in coordinates x (n_x, p), y (n_y, q)."""
    begin = nearest_rotation(soft_cross(x, y, scores.copy(), TEMPERATURE))
    reached, rotation = _climb(x, y, begin)
    answer = products(x, y, rotation)
    cross = soft_cross(x, y, answer.copy(), TEMPERATURE)
    left, _, right = np.linalg.svd(cross, full_matrices=False)
    ends = []
    for number in range(N_FLIPS):
        signs = (1 - 2 * rng.integers(2, size=left.shape[1])).astype(left.dtype)
        signs = signs * -signs[0] if number % 2 else signs
        other, end = _climb(x, y, (left * signs) @ right)
        if _correlation(products(x, y, end), answer) < CAME_BACK:
            ends.append(other)
    if len(ends) < LEAST_ENDS:
        return 0.0
    usual = float(np.quantile(ends, LEVEL))
    return max(0.0, (reached - usual) / max(1.0 - usual, 1e-6))


def half_whitened(rows: Tensor) -> Float32:
    """Principal scores (n, r), each spread by the root of what it was, rows of unit length."""
    found = principal(rows, MOST_DIRECTIONS)
    inside = torch.cumsum(found.variances, 0) < KEPT * found.total
    kept = min(int(inside.sum()) + 1, len(found.variances))
    variances = found.variances[:kept].clamp_min(1e-30)
    placed = (rows - found.mean) @ found.axes[:, :kept] / variances**0.25
    return (placed / placed.square().sum(1).mean().clamp_min(1e-30).sqrt()).cpu().numpy()


def _climb(x: Float32, y: Float32, rotation: Float32) -> tuple[float, Float32]:
    """The dependence (linear CKA under a soft plan) that rounds from a rotation end at."""
    own = max(float(np.linalg.norm(x.T @ x) * np.linalg.norm(y.T @ y)), 1e-30)
    reached = 0.0
    for _ in range(N_ROUNDS):
        cross = soft_cross(x, y, products(x, y, rotation), TEMPERATURE)
        reached = float(np.square(cross).sum()) / own
        rotation = nearest_rotation(cross)
    return min(reached * len(y) / len(x), 1.0), rotation


def _correlation(first: Float32, second: Float32) -> float:
    a, b = first - first.mean(), second - second.mean()
    return float((a * b).sum() / max(float(np.linalg.norm(a) * np.linalg.norm(b)), 1e-30))
