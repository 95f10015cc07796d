"""Least-squares object matching (Yamada & Sugiyama 2011; Yamada et al. 2015): SMI over matchings.

SMI of a matching is (1/2n) sum_il alpha_l K_il L_p(i)p(l) - 1/2 with alpha fitted to it. Both forms
alternate: alpha from the matching, then a better matching with alpha held fixed. A small ridge fits
the ratio so tightly to the current matching that nothing moves; hence the large default. The fit of
alpha squares the Gram matrices, so indefinite ones are fine.
"""

from __future__ import annotations

import numpy as np
import torch

from unpaired.errors import InputError
from unpaired.math.density_ratio import fit_ratio
from unpaired.plans.assignment import assign
from unpaired.solvers.convex_sorting import sum_penalty_gradient
from unpaired.solvers.frank_wolfe import frank_wolfe
from unpaired.solvers.quadratic import Optimum, check_grams, fix_known, partner_matrix, uniform_plan
from unpaired.types import FloatArray, IntArray


def ratio_of_plan(
    gram_x: FloatArray, gram_y: FloatArray, plan: FloatArray, ratio_ridge: float
) -> tuple[FloatArray, float]:
    """Alpha (n_x,) and SMI under a plan, where L becomes P L P' (P (n_x, n_y), rows sum to 1)."""
    aligned_y = plan @ gram_y @ plan.T
    fit = fit_ratio(torch.as_tensor(gram_x), torch.as_tensor(aligned_y), ratio_ridge=ratio_ridge)
    return fit.coef.numpy(), float(fit.smi)


def smi_gradient(
    gram_x: FloatArray, gram_y: FloatArray, plan: FloatArray, coef: FloatArray
) -> FloatArray:
    """Gradient in P of (1/2n) tr(diag(alpha) K P L P') with alpha held fixed."""
    weighted = coef[:, None] * gram_x
    return (weighted + weighted.T) @ plan @ gram_y / (2.0 * len(gram_x))


def _equal_sizes(gram_x: FloatArray, gram_y: FloatArray) -> None:
    if len(gram_x) > len(gram_y):
        raise InputError(
            f"LSOM needs a partner for every row of x: x has {len(gram_x)} rows, y has "
            f"{len(gram_y)}. Swap the views or subsample x."
        )


def lsom(
    gram_x: FloatArray,
    gram_y: FloatArray,
    start: FloatArray | None = None,
    known: IntArray | None = None,
    *,
    ratio_ridge: float = 1.0,
    max_iter: int = 50,
    tol: float = 1e-9,
) -> Optimum:
    """One-to-one matching by alternating alpha and a matching that is better under it.

    With alpha held fixed the problem is quadratic assignment with K weighted by alpha; Frank-Wolfe
    steps from the current matching improve it. A new matching is kept only when its own SMI, with
    alpha fitted anew, is higher, so the SMI rises until the end. Cost per step O(n^3).
    """
    gram_x, gram_y, start = check_grams(gram_x, gram_y, start, known)
    _equal_sizes(gram_x, gram_y)
    n_x, n_y = len(gram_x), len(gram_y)
    begin = uniform_plan(n_x, n_y) if start is None else start
    plan = partner_matrix(assign(-fix_known(begin, known), known=known), n_y)
    coef, value = ratio_of_plan(gram_x, gram_y, plan, ratio_ridge)
    trace, converged = [value], False
    for _ in range(max_iter):
        weighted = coef[:, None] * gram_x
        better = frank_wolfe((weighted + weighted.T) / 2.0, gram_y, plan, known, max_iter=20)
        new = partner_matrix(better.partner, n_y)
        coef, new_value = ratio_of_plan(gram_x, gram_y, new, ratio_ridge)
        if new_value <= value + tol * max(1.0, abs(value)):
            converged = True
            break
        plan, value = new, new_value
        trace.append(value)
    return Optimum(assign(-plan, known=known), plan, converged, trace)


def penalised_lsom(
    gram_x: FloatArray,
    gram_y: FloatArray,
    start: FloatArray | None = None,
    known: IntArray | None = None,
    *,
    ratio_ridge: float = 1.0,
    sum_penalty: float = 1.0,
    n_rounds: int = 10,
    max_iter: int = 50,
    tol: float = 1e-7,
) -> Optimum:
    """One-to-one matching by gradient ascent on SMI minus a penalty on the sums of P >= 0.

    The published form adds the penalty; it must be subtracted. alpha is fitted at the beginning of
    each round and held fixed within it. The rise of the SMI counts without its row and column
    means, which no matching can gain, and in units of its spread, so that ``sum_penalty`` means the
    same for all data; then the plan is rounded.
    """
    gram_x, gram_y, start = check_grams(gram_x, gram_y, start, known)
    _equal_sizes(gram_x, gram_y)
    n_x, n_y = len(gram_x), len(gram_y)
    plan = fix_known(uniform_plan(n_x, n_y) if start is None else start, known)
    trace, converged = [], False
    for _ in range(n_rounds):
        coef, value = ratio_of_plan(gram_x, gram_y, plan, ratio_ridge)
        trace.append(value)
        rate = 0.5 / (1.0 + 2.0 * sum_penalty * (n_x + n_y))
        before = plan
        for _ in range(max_iter):
            rise = smi_gradient(gram_x, gram_y, plan, coef)
            rise = rise - rise.mean(0) - rise.mean(1)[:, None] + rise.mean()
            step = rise / max(float(rise.std()), 1e-300)
            step = step - sum_penalty * sum_penalty_gradient(plan)
            plan = fix_known(np.clip(plan + rate * step, 0.0, 1.0), known)
        if float(np.abs(plan - before).max()) <= tol:
            converged = True
            break
    return Optimum(assign(-plan, known=known), plan, converged, trace)
