"""Convex kernelized sorting (Djuric et al. 2012): min |K P - P L|^2 over doubly stochastic P.

For permutations this is the same problem as maximising tr(K P L P'); relaxed it is convex, so the
relaxed optimum does not depend on the start, also for indefinite Gram matrices. Both forms need as
many rows in x as in y.
"""

from __future__ import annotations

import numpy as np

from unpaired.errors import InputError
from unpaired.plans.assignment import assign
from unpaired.solvers.quadratic import Optimum, check_grams, fix_known, partner_matrix, uniform_plan
from unpaired.types import FloatArray, IntArray


def mismatch(gram_x: FloatArray, gram_y: FloatArray, plan: FloatArray) -> float:
    """|K P - P L|_F^2, the convex objective (smaller is better). Cost O(n^3)."""
    return float(((gram_x @ plan - plan @ gram_y) ** 2).sum())


def mismatch_gradient(gram_x: FloatArray, gram_y: FloatArray, plan: FloatArray) -> FloatArray:
    """Gradient of ``mismatch`` in P: 2 (K R - R L) with R = K P - P L."""
    residual = gram_x @ plan - plan @ gram_y
    return 2.0 * (gram_x @ residual - residual @ gram_y)


def sum_penalty_gradient(plan: FloatArray) -> FloatArray:
    """Gradient in P of the squared errors of its row and column sums."""
    return 2.0 * ((plan.sum(1) - 1.0)[:, None] + (plan.sum(0) - 1.0)[None, :])


def _square(gram_x: FloatArray, gram_y: FloatArray) -> None:
    if len(gram_x) != len(gram_y):
        raise InputError(
            f"convex sorting needs equally many rows: x has {len(gram_x)}, y has {len(gram_y)}. "
            "Use frank_wolfe, which leaves rows out, or subsample the larger view."
        )


def convex_sorting(
    gram_x: FloatArray,
    gram_y: FloatArray,
    start: FloatArray | None = None,
    known: IntArray | None = None,
    *,
    max_iter: int = 300,
    tol: float = 1e-4,
) -> Optimum:
    """One-to-one matching from the convex relaxation, kept doubly stochastic at every step.

    Frank-Wolfe with exact line search on the doubly stochastic matrices; stops when the duality
    gap is at most ``tol`` times the objective at the start. The result is rounded to a matching.
    """
    gram_x, gram_y, start = check_grams(gram_x, gram_y, start, known)
    _square(gram_x, gram_y)
    n_rows = len(gram_x)
    plan = fix_known(uniform_plan(n_rows, n_rows) if start is None else start, known)
    trace, converged = [mismatch(gram_x, gram_y, plan)], False
    scale = max(trace[0], 1e-300)
    for _ in range(max_iter):
        gradient = mismatch_gradient(gram_x, gram_y, plan)
        step = partner_matrix(assign(gradient, known=known), n_rows) - plan
        gap = -float((gradient * step).sum())
        if gap <= tol * scale:
            converged = True
            break
        curvature = mismatch(gram_x, gram_y, step)
        length = 1.0 if curvature <= 0 else min(1.0, gap / (2.0 * curvature))
        plan = plan + length * step
        trace.append(mismatch(gram_x, gram_y, plan))
    return Optimum(assign(-plan, known=known), plan, converged, trace)


def penalised_convex_sorting(
    gram_x: FloatArray,
    gram_y: FloatArray,
    start: FloatArray | None = None,
    known: IntArray | None = None,
    *,
    sum_penalty: float = 1.0,
    max_iter: int = 500,
    tol: float = 1e-7,
) -> Optimum:
    """One-to-one matching from the paper's practical form: P >= 0 and a penalty on its sums.

    Minimises |K P - P L|^2 / s + sum_penalty * (squared errors of row and column sums), where
    s = (|K| + |L|)^2 in spectral norm makes the penalty mean the same for every scale, by
    accelerated projected gradient; then rounds.
    """
    gram_x, gram_y, start = check_grams(gram_x, gram_y, start, known)
    _square(gram_x, gram_y)
    n_rows = len(gram_x)
    scale = max(float(np.linalg.norm(gram_x, 2) + np.linalg.norm(gram_y, 2)), 1e-300)
    k, l = gram_x / scale, gram_y / scale
    rate = 1.0 / (2.0 + 4.0 * sum_penalty * n_rows)  # one over a bound on the curvature

    def value(plan: FloatArray) -> float:
        errors = ((plan.sum(0) - 1.0) ** 2).sum() + ((plan.sum(1) - 1.0) ** 2).sum()
        return mismatch(k, l, plan) + sum_penalty * float(errors)

    plan = fix_known(uniform_plan(n_rows, n_rows) if start is None else start, known)
    ahead, momentum = plan, 1.0
    trace, converged = [value(plan)], False
    for _ in range(max_iter):
        gradient = mismatch_gradient(k, l, ahead) + sum_penalty * sum_penalty_gradient(ahead)
        new = fix_known(np.maximum(ahead - rate * gradient, 0.0), known)
        next_momentum = (1.0 + np.sqrt(1.0 + 4.0 * momentum**2)) / 2.0
        ahead = new + (momentum - 1.0) / next_momentum * (new - plan)
        change = float(np.linalg.norm(new - plan))
        plan, momentum = new, next_momentum
        trace.append(value(plan))
        if trace[-1] > trace[-2]:  # momentum overshot: begin it anew
            ahead, momentum = plan, 1.0
        if change <= tol * np.sqrt(n_rows):
            converged = True
            break
    return Optimum(assign(-plan, known=known), plan, converged, trace)
