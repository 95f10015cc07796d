"""Frank-Wolfe on the relaxed quadratic assignment problem (FAQ; Vogelstein et al. 2015)."""

from __future__ import annotations

import numpy as np

from unpaired.matching.assignment import assign
from unpaired.types import FloatArray, IntArray


def plan_of(partner: IntArray, n_y: int) -> FloatArray:
    """The matching as a (n_x, n_y) matrix of zeros and ones; a row left out is all zero."""
    plan = np.zeros((len(partner), n_y))
    rows = np.flatnonzero(partner >= 0)
    plan[rows, partner[rows]] = 1.0
    return plan


def frank_wolfe(
    gram_x: FloatArray,
    gram_y: FloatArray,
    start: FloatArray,
    known: IntArray | None = None,
    *,
    max_iter: int = 100,
    tol: float = 1e-6,
) -> tuple[IntArray, bool]:
    """Partner of each row of x that maximises tr(K P L P'), from a start plan, and "converged".

    Notation: K = gram_x (n_x, n_x), L = gram_y (n_y, n_y), P (n_x, n_y) with row and column sums
    of at most 1. Each step solves a linear assignment on the gradient 2 K P L and takes the exact
    best step towards it. ``known`` pairs are kept. Cost per step O(n^3).
    """
    plan = start
    converged = False
    product = gram_x @ plan @ gram_y
    for _ in range(max_iter):
        target = plan_of(assign(product, known), gram_y.shape[0])
        target_product = gram_x @ target @ gram_y
        step, step_product = target - plan, target_product - product
        slope = 2.0 * float((product * step).sum())
        if slope <= tol * max(1.0, abs(float((product * plan).sum()))):
            converged = True
            break
        curvature = float((step_product * step).sum())
        length = 1.0 if curvature >= 0 else min(1.0, -slope / (2.0 * curvature))
        plan = plan + length * step
        product = product + length * step_product
    return assign(plan, known), converged
