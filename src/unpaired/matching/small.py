"""Matching a handful of rows, too few for statistics: every start refined, the best one kept."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import permutations

import numpy as np
from scipy.spatial.distance import pdist, squareform

from unpaired.matching.assignment import assign
from unpaired.matching.frank_wolfe import frank_wolfe
from unpaired.matching.kernelized_sorting import principal_start
from unpaired.matching.solution import alignment, plan_of, uniform_plan
from unpaired.matching.starts import signature_scores
from unpaired.matching.weighing import Weights
from unpaired.types import FloatArray, IntArray

BRUTE_ROWS = 7


def centred_gram(rows: FloatArray, weight: FloatArray | None = None) -> FloatArray:
    """Doubly centred Gaussian Gram matrix at the median bandwidth, of Frobenius norm 1.

    With weights, centred by weighted means, each entry counted by the weights of its two rows.
    """
    distances = pdist(rows, "sqeuclidean")
    width = float(np.median(distances)) or float(distances.mean())
    gram = np.exp(-squareform(distances) / (2.0 * width))
    if weight is None:
        gram = gram - gram.mean(0) - gram.mean(1)[:, None] + gram.mean()
    else:
        mean = weight @ gram / weight.sum()
        gram = gram - mean[None, :] - mean[:, None] + weight @ mean / weight.sum()
        gram = weight[:, None] * gram * weight[None, :]
    return gram / max(float(np.linalg.norm(gram)), 1e-300)


def match_small(
    x: FloatArray,
    y: FloatArray,
    known: IntArray,
    similarity: FloatArray | None = None,
    starts: Mapping[str, FloatArray] | None = None,
    weights: Weights = (None, None),
) -> tuple[IntArray, FloatArray, dict[str, float]]:
    """Partner of each row of x, the scores behind it, and the CKA that each start reached.

    Up to seven free rows on both sides all matchings are tried. ``similarity`` and
    ``starts`` (n_x, n_y) add a start each.
    """
    gram_x, gram_y = centred_gram(x, weights[0]), centred_gram(y, weights[1])
    n_x, n_y = len(x), len(y)
    plans = {
        "signatures": plan_of(assign(-signature_scores(gram_x, gram_y)), n_y),
        "uniform": uniform_plan(n_x, n_y),
        **{f"principal {i}": p for i, p in enumerate(principal_start(gram_x, gram_y))},
    }
    if similarity is not None:
        plans["similarity"] = plan_of(assign(-similarity), n_y)
    for name, plan in (starts or {}).items():
        plans[name] = plan / max(float(plan.sum(axis=1).max()), float(plan.sum(axis=0).max()))
    found = {name: frank_wolfe(gram_x, gram_y, plan, known).partner for name, plan in plans.items()}
    if max(n_x, n_y) - len(known) <= BRUTE_ROWS:
        found["all matchings"] = _best_of_all(gram_x, gram_y, known)
    reached = {name: alignment(gram_x, gram_y, partner) for name, partner in found.items()}
    best = found[max(reached, key=lambda name: reached[name])]
    return best, gram_x @ plan_of(best, n_y) @ gram_y, reached


def _best_of_all(gram_x: FloatArray, gram_y: FloatArray, known: IntArray) -> IntArray:
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
