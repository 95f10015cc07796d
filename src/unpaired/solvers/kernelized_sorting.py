"""Kernelized sorting (Quadrianto et al. 2009) and Procrustes / Hungarian alternation."""

from __future__ import annotations

import numpy as np

from unpaired.plans.assignment import assign
from unpaired.solvers.quadratic import Optimum, check_grams, partner_matrix
from unpaired.types import FloatArray, IntArray


def principal_start(gram_x: FloatArray, gram_y: FloatArray) -> list[FloatArray]:
    """The two plans that sort both views along their first principal component.

    The sign of a component is arbitrary, so there are two.
    """
    first = [np.linalg.eigh(gram)[1][:, -1] * np.sqrt(len(gram)) for gram in (gram_x, gram_y)]
    return [
        partner_matrix(assign(-sign * first[0][:, None] * first[1][None, :]), len(gram_y))
        for sign in (1.0, -1.0)
    ]


def kernelized_sorting(
    gram_x: FloatArray,
    gram_y: FloatArray,
    start: FloatArray | None = None,
    known: IntArray | None = None,
    *,
    max_iter: int = 100,
    tol: float = 1e-9,
) -> Optimum:
    """One-to-one matching by repeated linear assignment on the gradient of tr(K P L P').

    Without a ``start`` both principal-component sortings are tried and the better one is kept.
    For positive semidefinite K and L every step raises the objective; where it would fall, the
    iteration stops with the better matching. Cost per step O(n^3).
    """
    gram_x, gram_y, start = check_grams(gram_x, gram_y, start, known)
    if start is None:
        runs = [
            kernelized_sorting(gram_x, gram_y, plan, known, max_iter=max_iter, tol=tol)
            for plan in principal_start(gram_x, gram_y)
        ]
        return max(runs, key=lambda run: run.trace[-1])
    n_y = len(gram_y)
    plan = partner_matrix(assign(-start, known=known), n_y)
    product = gram_x @ plan @ gram_y
    trace, converged = [float((product * plan).sum())], False
    for _ in range(max_iter):
        new = partner_matrix(assign(-product, known=known), n_y)
        new_product = gram_x @ new @ gram_y
        value = float((new_product * new).sum())
        if value <= trace[-1] + tol * abs(trace[-1]):
            converged = True
            break
        plan, product = new, new_product
        trace.append(value)
    return Optimum(assign(-plan, known=known), plan, converged, trace)


def gram_factors(gram: FloatArray, n_components: int) -> FloatArray:
    """Rows whose inner products are nearest to ``gram``: (n, n_components). Cost O(n^3)."""
    values, vectors = np.linalg.eigh(gram)
    kept = slice(len(values) - min(n_components, len(values)), None)
    return vectors[:, kept] * np.sqrt(np.maximum(values[kept], 0.0))


def procrustes_hungarian(
    gram_x: FloatArray,
    gram_y: FloatArray,
    start: FloatArray | None = None,
    known: IntArray | None = None,
    *,
    n_components: int = 32,
    max_iter: int = 100,
    tol: float = 1e-9,
) -> Optimum:
    """One-to-one matching by turns: the best rotation for a matching, the best matching for it.

    Works on factors of the Gram matrices, K = X X' and L = Y Y' (an indefinite part is dropped).
    Each step raises sum_i <X_i R, Y_partner(i)>. Cost per step O(n^2 n_components + n^3).
    """
    gram_x, gram_y, start = check_grams(gram_x, gram_y, start, known)
    factors_x, factors_y = gram_factors(gram_x, n_components), gram_factors(gram_y, n_components)
    width = max(factors_x.shape[1], factors_y.shape[1])
    factors_x, factors_y = (
        np.pad(f, ((0, 0), (0, width - f.shape[1]))) for f in (factors_x, factors_y)
    )
    if start is None:
        start = max(
            principal_start(gram_x, gram_y),
            key=lambda plan: float(((gram_x @ plan @ gram_y) * plan).sum()),
        )
    plan, trace, converged = start, [-np.inf], False
    for _ in range(max_iter):
        left, values, right = np.linalg.svd(factors_x.T @ plan @ factors_y)
        trace.append(float(values.sum()))
        if trace[-1] <= trace[-2] + tol * abs(trace[-1]):
            converged = True
            break
        scores = factors_x @ (left @ right) @ factors_y.T
        plan = partner_matrix(assign(-scores, known=known), len(gram_y))
    return Optimum(assign(-plan, known=known), plan, converged, trace[1:])
