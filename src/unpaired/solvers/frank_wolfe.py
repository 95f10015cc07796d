"""Frank-Wolfe on relaxed quadratic assignment: one-to-one (FAQ), many-to-one, and smoothed.

All maximise tr(K P L P') over plans P (n_x, n_y) with row sums of at most 1, where K = gram_x and
L = gram_y. The gradient is 2 K P L. Cost per step: two matrix products and one linear problem.
Indefinite Gram matrices are fine: the line search never lowers the objective.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from unpaired._checks import check_one_class, check_pairs
from unpaired.math.sinkhorn import sinkhorn
from unpaired.plans.assignment import assign, assign_many
from unpaired.solvers.quadratic import Optimum, check_grams, fix_known, partner_matrix, uniform_plan
from unpaired.types import FloatArray, IntArray

Vertex = Callable[[FloatArray], FloatArray]


def frank_wolfe(
    gram_x: FloatArray,
    gram_y: FloatArray,
    start: FloatArray | None = None,
    known: IntArray | None = None,
    *,
    max_iter: int = 100,
    tol: float = 1e-6,
) -> Optimum:
    """One-to-one matching by FAQ (Vogelstein et al. 2015) with exact line search.

    ``start`` is a plan, uniform by default; ``known`` pairs are kept.
    """
    gram_x, gram_y, start = check_grams(gram_x, gram_y, start, known)
    n_x, n_y = len(gram_x), len(gram_y)

    def vertex(gradient: FloatArray) -> FloatArray:
        return partner_matrix(assign(-gradient, known=known), n_y)

    begin = uniform_plan(n_x, n_y) if start is None else start
    plan, trace, converged = ascend(gram_x, gram_y, fix_known(begin, known), vertex, max_iter, tol)
    return Optimum(assign(-plan, known=known), plan, converged, trace)


def semi_relaxed(
    gram_x: FloatArray,
    gram_y: FloatArray,
    start: FloatArray | None = None,
    known: IntArray | None = None,
    *,
    max_iter: int = 100,
    tol: float = 1e-6,
) -> Optimum:
    """Many-to-one matching: every row of x takes one row of y, rows of y take any number."""
    gram_x, gram_y, start = check_grams(gram_x, gram_y, start)
    n_x, n_y = len(gram_x), len(gram_y)
    check_one_class(check_pairs(known, n_x, n_y))

    def choose(scores: FloatArray) -> IntArray:
        return assign_many(-scores, known=known)

    def vertex(gradient: FloatArray) -> FloatArray:
        return partner_matrix(choose(gradient), n_y)

    begin = np.full((n_x, n_y), 1.0 / n_y) if start is None else start.copy()
    if known is not None and len(known):
        begin[known[:, 0]] = partner_matrix(known[:, 1], n_y)
    plan, trace, converged = ascend(gram_x, gram_y, begin, vertex, max_iter, tol)
    return Optimum(choose(plan), plan, converged, trace)


def ascend(
    gram_x: FloatArray,
    gram_y: FloatArray,
    plan: FloatArray,
    vertex: Vertex,
    max_iter: int,
    tol: float,
) -> tuple[FloatArray, list[float], bool]:
    """Frank-Wolfe: move to the vertex that the gradient points to, by the exact best length."""
    product = gram_x @ plan @ gram_y
    trace = [float((product * plan).sum())]
    for _ in range(max_iter):
        target = vertex(product)
        target_product = gram_x @ target @ gram_y
        step, step_product = target - plan, target_product - product
        slope = 2.0 * float((product * step).sum())
        if slope <= tol * max(1e-300, abs(trace[-1])):
            return plan, trace, True
        curvature = float((step_product * step).sum())
        length = 1.0 if curvature >= 0 else min(1.0, -slope / (2.0 * curvature))
        plan = plan + length * step
        product = product + length * step_product
        trace.append(float((product * plan).sum()))
    return plan, trace, False


def annealed_sinkhorn(
    gram_x: FloatArray,
    gram_y: FloatArray,
    start: FloatArray | None = None,
    known: IntArray | None = None,
    *,
    temperatures: tuple[float, ...] = (1.0, 0.5, 0.2, 0.1, 0.05, 0.02),
    max_iter: int = 10,
    tol: float = 1e-6,
) -> Optimum:
    """One-to-one matching by softassign: P <- Sinkhorn(gradient / temperature), cooling down.

    Temperatures count in standard deviations of the gradient. Also known as entropic
    Gromov-Wasserstein with annealing (Gold & Rangarajan 1996; Peyre et al. 2016).
    """
    gram_x, gram_y, start = check_grams(gram_x, gram_y, start, known)
    n_x, n_y = len(gram_x), len(gram_y)
    plan: FloatArray = fix_known(uniform_plan(n_x, n_y) if start is None else start, known)
    trace: list[float] = []
    converged = False
    for temperature in temperatures:
        for _ in range(max_iter):
            gradient = gram_x @ plan @ gram_y
            scale = max(float(gradient.std()), 1e-300)
            scores = torch.as_tensor(gradient / scale, dtype=torch.float64)
            soft = sinkhorn(scores, temperature, max_iter=200).numpy()
            new = fix_known(min(n_x, n_y) * soft, known)
            trace.append(float((gradient * plan).sum()))
            converged = float(np.abs(new - plan).max()) < tol
            plan = new
            if converged:
                break
    return Optimum(assign(-plan, known=known), plan, converged, trace)
