"""Naming m things by m names: every assignment scored exactly, or a strong search above ten."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from math import factorial

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]

EXACT_SIZE = 10


@dataclass(frozen=True)
class Assignments:
    """What is known about the assignments of m things to m names.

    Attributes:
        best: Name of each thing (m,) in the assignment with the highest score.
        score: Its score.
        expected: Name of each thing (m,) in the assignment with the most names right on average.
        marginals: Probability (m, m) of each name for each thing.
        mean: Mean score over all assignments (or over those visited).
        spread: Standard deviation of the score over all assignments (or over those visited).
        exact: Whether every assignment was scored.
    """

    best: Ints
    score: float
    expected: Ints
    marginals: Floats
    mean: float
    spread: float
    exact: bool


def best_assignments(
    kernels: Sequence[tuple[Floats, Floats]],
    linear: Floats | None = None,
    *,
    temperature: float = 0.5,
    spread: float | None = None,
    rng: np.random.Generator | None = None,
    n_starts: int = 200,
) -> Assignments:
    """Return the best assignment and the marginals of a sum of quadratic and linear objectives.

    The score of an assignment ``p`` is the sum over the pairs of kernels (K, L) of
    ``(K * L[p][:, p]).sum()`` plus ``linear[i, p[i]].sum()``. Up to ten names every assignment is
    scored; above, many starts of Frank-Wolfe and random order are improved by exchanges.

    Args:
        kernels: Pairs of symmetric (m, m) matrices, things first, names second.
        linear: Value (m, m) of giving thing i name j; added to the quadratic score.
        temperature: Softness of the marginals, in units of ``spread``.
        spread: Scale of the score; by default its standard deviation over assignments.
        rng: Randomness of the search; unused when all assignments are scored.
        n_starts: Starts of the search above ten names.
    """
    size = len(kernels[0][0]) if len(kernels) else len(np.asarray(linear))
    value = np.zeros((size, size)) if linear is None else np.asarray(linear, dtype=np.float64)
    pairs = [(_symmetric(k), _symmetric(c)) for k, c in kernels]
    if size <= EXACT_SIZE:
        return _score_all(pairs, value, temperature, spread)
    generator = np.random.default_rng(0) if rng is None else rng
    return _search(pairs, value, temperature, spread, generator, n_starts)


def _symmetric(kernel: Floats) -> Floats:
    kernel = np.asarray(kernel, dtype=np.float64)
    return (kernel + kernel.T) / 2


def _score_all(
    pairs: list[tuple[Floats, Floats]], linear: Floats, temperature: float, scale: float | None
) -> Assignments:
    """Score all assignments: the names are split in two sets, the cross term is one product."""
    size = len(linear)
    half, rest = size // 2, size - size // 2
    table = sum(np.einsum("ij,st->isjt", k, c) for k, c in pairs) + np.zeros((size,) * 4)
    things = np.arange(size)
    table[things[:, None], things[None, :], things[:, None], things[None, :]] += linear
    orders_a = np.array(list(permutations(range(half))), dtype=np.int64).reshape(
        factorial(half), half
    )
    orders_b = np.array(list(permutations(range(rest))), dtype=np.int64)
    sets = [np.array(chosen, dtype=np.int64) for chosen in combinations(range(size), half)]
    others = [np.setdiff1d(things, chosen) for chosen in sets]
    place = (orders_b[:, :, None] == np.arange(rest)).astype(np.float64).reshape(-1, rest * rest)
    scores = np.empty((len(sets), len(orders_a), len(orders_b)))
    for s, (names_a, names_b) in enumerate(zip(sets, others, strict=True)):
        own_a = _within(table[:half, :, :half][:, names_a][..., names_a], orders_a)
        own_b = _within(table[half:, :, half:][:, names_b][..., names_b], orders_b)
        block = table[:half, :, half:][:, names_a][..., names_b].reshape(half, half, rest * rest)
        cross = np.zeros((len(orders_a), rest * rest))
        for thing in range(half):
            cross += block[thing, orders_a[:, thing]]
        scores[s] = own_a[:, None] + own_b[None, :] + 2.0 * (cross @ place.T)
    top = np.unravel_index(int(scores.argmax()), scores.shape)
    best = np.concatenate([sets[top[0]][orders_a[top[1]]], others[top[0]][orders_b[top[2]]]])
    highest, mean, spread = float(scores.max()), float(scores.mean()), float(scores.std())
    scores -= highest
    scores /= max(temperature * (spread if scale is None else scale), 1e-300)
    weights = np.exp(scores, out=scores)
    marginals = np.zeros((size, size))
    for s, (names_a, names_b) in enumerate(zip(sets, others, strict=True)):
        by_a, by_b = weights[s].sum(axis=1), weights[s].sum(axis=0)
        for thing in range(half):
            marginals[thing] += np.bincount(names_a[orders_a[:, thing]], by_a, size)
        for thing in range(rest):
            marginals[half + thing] += np.bincount(names_b[orders_b[:, thing]], by_b, size)
    marginals /= weights.sum()
    return Assignments(best, highest, _most_likely(marginals), marginals, mean, spread, True)


def _within(table: Floats, orders: Ints) -> Floats:
    """Return the score of each order under a table indexed by thing, name, thing, name."""
    total = np.zeros(len(orders))
    for i in range(orders.shape[1]):
        for j in range(orders.shape[1]):
            total += table[i, orders[:, i], j, orders[:, j]]
    return total


def _most_likely(marginals: Floats) -> Ints:
    return np.asarray(linear_sum_assignment(-marginals)[1], dtype=np.int64)


def _total(pairs: list[tuple[Floats, Floats]], linear: Floats, order: Ints) -> float:
    score = float(linear[np.arange(len(order)), order].sum())
    return score + sum(float((k * c[np.ix_(order, order)]).sum()) for k, c in pairs)


def _climb(pairs: list[tuple[Floats, Floats]], linear: Floats, order: Ints) -> tuple[Ints, float]:
    """Return the order after the best exchange of two names, repeated until none improves."""
    order = order.copy()
    size = len(order)
    rows = np.arange(size)
    scale = 1e-12 * max(1.0, abs(_total(pairs, linear, order)))
    for _ in range(100 * size):
        placed = linear[:, order]
        own = placed[rows, rows]
        gain = placed + placed.T - own[:, None] - own[None, :]
        for things, names in pairs:
            moved = names[np.ix_(order, order)]
            product = things @ moved  # [i, j] = sum over k of things[i, k] moved[k, j]
            diagonal = np.diag(product)
            td, md = np.diag(things), np.diag(moved)
            change = product + product.T - diagonal[:, None] - diagonal[None, :]
            # remove the terms k = i and k = j, which an exchange treats differently
            step_t, step_m = td[:, None] - things, md[:, None] - moved
            wrong = -step_t * step_m - step_t.T * step_m.T
            right = -(td[:, None] - td[None, :]) * (md[:, None] - md[None, :])
            gain = gain + 2.0 * (change - wrong) + right
        np.fill_diagonal(gain, 0.0)
        i, j = np.unravel_index(int(gain.argmax()), gain.shape)
        if gain[i, j] <= scale:
            break
        order[[i, j]] = order[[j, i]]
    return order, _total(pairs, linear, order)


def _relax(
    pairs: list[tuple[Floats, Floats]], linear: Floats, plan: Floats, n_steps: int = 30
) -> Ints:
    """Return the order that Frank-Wolfe with exact line search reaches from a plan."""
    rows = np.arange(len(linear))
    for _ in range(n_steps):
        gradient = linear + sum(2.0 * k @ plan @ c for k, c in pairs)
        target = np.zeros_like(plan)
        target[rows, linear_sum_assignment(-gradient)[1]] = 1.0
        step = target - plan
        slope = float((gradient * step).sum())
        if slope <= 1e-10 * max(1.0, abs(float((gradient * plan).sum()))):
            break
        curve = sum(float((step * (k @ step @ c)).sum()) for k, c in pairs)
        length = 1.0 if curve >= 0 else min(1.0, -slope / (2.0 * curve))
        plan = plan + length * step
    return _most_likely(plan)


def _search(
    pairs: list[tuple[Floats, Floats]],
    linear: Floats,
    temperature: float,
    scale: float | None,
    rng: np.random.Generator,
    n_starts: int,
) -> Assignments:
    """Search above ten names: Frank-Wolfe starts, random starts and kicks of the best, climbed."""
    size = len(linear)
    found: dict[tuple[int, ...], float] = {}
    best: Ints = np.arange(size)
    highest = -np.inf
    for start in range(n_starts):
        if start == 0:
            order = _relax(pairs, linear, np.full((size, size), 1.0 / size))
        elif start < n_starts // 3:
            noise = np.eye(size)[rng.permutation(size)]
            mix = rng.uniform(0.2, 0.8)
            order = _relax(pairs, linear, mix / size + (1.0 - mix) * noise)
        elif start < n_starts // 2:
            order = rng.permutation(size)
        else:
            order = best.copy()
            moved = rng.choice(
                size, size=int(rng.integers(3, max(4, size // 2) + 1)), replace=False
            )
            order[moved] = order[rng.permutation(moved)]
        order, score = _climb(pairs, linear, order)
        found[tuple(int(name) for name in order)] = score
        if score > highest:
            best, highest = order, score
    draws = [_total(pairs, linear, rng.permutation(size)) for _ in range(1000)]
    mean, spread = float(np.mean(draws)), float(np.std(draws))
    softness = max(temperature * (spread if scale is None else scale), 1e-300)
    marginals = np.zeros((size, size))
    for names, score in found.items():
        weight = np.exp((score - highest) / softness)
        marginals[np.arange(size), list(names)] += weight
    marginals /= marginals.sum(axis=1, keepdims=True)
    return Assignments(best, highest, _most_likely(marginals), marginals, mean, spread, False)
