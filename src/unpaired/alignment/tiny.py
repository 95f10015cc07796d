"""A handful of rows, too few for statistics: the matching with the largest kernel alignment."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import torch

from unpaired.plans.assignment import assign
from unpaired.problem.problem import Problem
from unpaired.solvers.frank_wolfe import frank_wolfe
from unpaired.solvers.kernelized_sorting import principal_start
from unpaired.solvers.quadratic import alignment, partner_matrix, uniform_plan
from unpaired.solvers.signatures import signature_scores
from unpaired.spaces.solution import Evidence, Solution
from unpaired.spaces.space import Part, Space
from unpaired.types import FloatArray, IntArray
from unpaired.views.features import fit_features

BRUTE_ROWS = 7
"""Free rows up to which all matchings are tried."""


def align_tiny(problem: Problem, rng: np.random.Generator) -> Solution:
    """The matching with the largest kernel alignment of any start; no confidence is claimed.

    Scores are K P L, the gradient of the alignment tr(K P L P') at the matching P, for centred
    Gaussian kernels K and L: at the best matching its own pairs have the largest sum of them.
    """
    features, placed, weighed = [], [], []
    for side, weight in zip((problem.x, problem.y), problem.weights, strict=True):
        tensor = torch.as_tensor(side, dtype=torch.float32)
        counts = None if weight is None else torch.as_tensor(weight, dtype=torch.float32)
        features.append(
            fit_features(
                tensor,
                rng,
                max_rank=len(side),
                metric="euclidean",
                bandwidth=1.0,
                n_landmarks=len(side),
                weights=counts,
            )
        )
        placed.append(features[-1](tensor).double().numpy())
        weighed.append(placed[-1] if weight is None else placed[-1] * weight[:, None])
    gram_x, gram_y = (_unit(side @ side.T) for side in weighed)
    partner, reached = best_matching(gram_x, gram_y, problem)
    rows = np.flatnonzero(partner >= 0)
    cross = weighed[0][rows].T @ weighed[1][partner[rows]]
    maps = torch.as_tensor(cross).float(), torch.eye(cross.shape[1])
    part = Part(0, maps, penalty=torch.zeros(cross.shape[1]))
    empty = torch.zeros(0, cross.shape[1])
    space = Space(((features[0], features[1]),), (part,), (empty, empty))
    values = list(reached.values())
    agreement = float(np.mean(np.isclose(values, max(values), rtol=1e-3)))
    return Solution(space, Evidence(reached, agreement), "tiny")


def best_matching(
    gram_x: FloatArray, gram_y: FloatArray, problem: Problem
) -> tuple[IntArray, dict[str, float]]:
    """The partner of each row of x under the best start, and the alignment that each reached.

    Up to seven free rows on both sides all matchings are tried.
    """
    n_x, n_y = len(gram_x), len(gram_y)
    every = np.arange(n_x), np.arange(n_y)
    plans: dict[str, FloatArray] = {
        "signatures": partner_matrix(assign(-signature_scores(gram_x, gram_y)), n_y),
        "uniform": uniform_plan(n_x, n_y),
        **{f"principal {i}": p for i, p in enumerate(principal_start(gram_x, gram_y))},
    }
    if problem.side is not None:
        plans["side information"] = partner_matrix(assign(-problem.side.block(*every)), n_y)
    if problem.start is not None:
        plan = problem.start.block(*every)
        plans[problem.start.name] = plan / max(plan.sum(axis=1).max(), plan.sum(axis=0).max())
    known = problem.known
    found = {name: frank_wolfe(gram_x, gram_y, plan, known).partner for name, plan in plans.items()}
    if max(n_x, n_y) - len(known) <= BRUTE_ROWS:
        found["all matchings"] = best_of_all(gram_x, gram_y, known)
    reached = {name: alignment(gram_x, gram_y, partner) for name, partner in found.items()}
    return found[max(reached, key=lambda name: reached[name])], reached


def best_of_all(gram_x: FloatArray, gram_y: FloatArray, known: IntArray) -> IntArray:
    """The matching with the highest alignment, by trying all of them."""
    free_x = np.setdiff1d(np.arange(len(gram_x)), known[:, 0])
    free_y = np.setdiff1d(np.arange(len(gram_y)), known[:, 1])
    partner = np.full(len(gram_x), -1, dtype=np.int64)
    partner[known[:, 0]] = known[:, 1]
    best, highest = partner, -np.inf
    short, long = (free_x, free_y) if len(free_x) <= len(free_y) else (free_y, free_x)
    for chosen in permutations(long.tolist(), len(short)):
        trial = partner.copy()
        if short is free_x:
            trial[free_x] = chosen
        else:
            trial[list(chosen)] = free_y
        value = alignment(gram_x, gram_y, trial)
        if value > highest:
            best, highest = trial, value
    return best


def _unit(gram: FloatArray) -> FloatArray:
    return gram / max(float(np.linalg.norm(gram)), 1e-300)
