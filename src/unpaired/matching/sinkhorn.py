"""Entropic matching: Sinkhorn's scaling, stable for small temperatures, with slack when asked."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from unpaired.errors import InputError

Float = NDArray[np.float64]
ABSORB_ABOVE = 1e30
"""Scalings beyond this are moved into the potentials, so nothing over- or underflows."""


def sinkhorn(
    cost: ArrayLike,
    temperature: float,
    *,
    row_mass: ArrayLike | None = None,
    column_mass: ArrayLike | None = None,
    row_slack: float | None = None,
    column_slack: float | None = None,
    max_iter: int = 1000,
    tol: float = 1e-6,
) -> Float:
    """The plan P minimising <P, cost> - temperature * entropy(P) with the given sums.

    Notation: P = diag(u) exp((f + g - C) / eps) diag(v); u and v are absorbed into the potentials f
    and g whenever they grow, which keeps plain matrix products exact at any eps (Schmitzer 2019).
    With a slack rho the sums are not forced but priced by rho * KL (Chizat et al. 2018).

    Args:
        cost: (n, m), finite.
        temperature: eps > 0, in units of the cost.
        row_mass: (n,) sums of the rows, default 1/n each.
        column_mass: (m,) sums of the columns, default 1/m each; same total unless slack.
        row_slack: rho of the rows; None forces the sums.
        column_slack: rho of the columns; None forces the sums.
        max_iter: Rounds at most.
        tol: Stop when no row sum is off by more than this share (balanced), or when the scalings
            move by less (unbalanced).

    Returns:
        The (n, m) plan. Columns meet their sums exactly in the balanced case.
    """
    costs = np.asarray(cost, dtype=np.float64)
    if costs.ndim != 2 or not np.isfinite(costs).all():
        raise InputError(
            f"cost must be a finite matrix. Got shape {costs.shape}, or NaN or infinities. "
            "Replace those entries by a large number."
        )
    if not temperature > 0:
        raise InputError(f"temperature must be > 0. Got {temperature}. Use assign for 0.")
    n, m = costs.shape
    a = _masses(row_mass, n, "row_mass")
    b = _masses(column_mass, m, "column_mass")
    free = row_slack is not None or column_slack is not None
    if not free and abs(a.sum() - b.sum()) > 1e-6 * a.sum():
        raise InputError(
            "row_mass and column_mass must have equal totals. "
            f"Got {a.sum():g} and {b.sum():g}. Rescale one, or give a slack or a dustbin."
        )
    power_a = 1.0 if row_slack is None else row_slack / (row_slack + temperature)
    power_b = 1.0 if column_slack is None else column_slack / (column_slack + temperature)
    f = costs.min(axis=1)
    g = (costs - f[:, None]).min(axis=0)
    tiny = np.finfo(np.float64).tiny
    kernel = np.exp((f[:, None] + g - costs) / temperature)
    u, v = np.ones(n), np.ones(m)
    for _ in range(max_iter):
        last = u
        # With slack the potentials already absorbed count as part of the scaling.
        damp_u = np.exp(-(1 - power_a) * f / temperature) if row_slack is not None else 1.0
        u = (a / np.maximum(kernel @ v, tiny)) ** power_a * damp_u
        damp_v = np.exp(-(1 - power_b) * g / temperature) if column_slack is not None else 1.0
        v = (b / np.maximum(kernel.T @ u, tiny)) ** power_b * damp_v
        if free:
            done = np.abs(np.log(np.maximum(u, tiny) / np.maximum(last, tiny))).max() < tol
        else:
            done = float(np.abs(u * (kernel @ v) - a).max()) <= tol * float(a.max())
        smallest = max(min(u[a > 0].min(), v[b > 0].min()), tiny)
        largest = max(u.max(), v.max(), 1 / smallest)
        if largest > ABSORB_ABOVE:
            f = f + temperature * np.log(np.maximum(u, tiny))
            g = g + temperature * np.log(np.maximum(v, tiny))
            kernel = np.exp(np.minimum((f[:, None] + g - costs) / temperature, 700.0))
            u, v = np.ones(n), np.ones(m)
        if done:
            break
    return np.asarray(u[:, None] * kernel * v)


def sinkhorn_dustbin(
    cost: ArrayLike,
    temperature: float,
    skip_cost: float,
    *,
    max_iter: int = 1000,
    tol: float = 1e-6,
) -> tuple[Float, Float, Float]:
    """The soft one-to-one plan whose rows and columns may stay unmatched, and their unmatched mass.

    The soft counterpart of `assign(..., skip_cost=...)`: each row and column has mass 1, and a pair
    is worth making when it costs less than `skip_cost`; an extra row and column take the rest.

    Returns:
        Plan (n, m), mass left out per row (n,), mass left out per column (m,).
    """
    costs = np.asarray(cost, dtype=np.float64)
    n, m = costs.shape
    larger = np.full((n + 1, m + 1), 0.5 * skip_cost)
    larger[:n, :m] = costs
    larger[n, m] = 0.0
    plan = sinkhorn(
        larger,
        temperature,
        row_mass=np.append(np.ones(n), float(m)),
        column_mass=np.append(np.ones(m), float(n)),
        max_iter=max_iter,
        tol=tol,
    )
    return plan[:n, :m], plan[:n, m], plan[n, :m]


def _masses(mass: ArrayLike | None, size: int, name: str) -> Float:
    """The masses as a non-negative float64 vector, 1/size each by default."""
    if mass is None:
        return np.full(size, 1.0 / size)
    array = np.asarray(mass, dtype=np.float64)
    if array.shape != (size,) or not np.isfinite(array).all() or (array < 0).any():
        raise InputError(
            f"{name} must hold {size} numbers >= 0. Got shape {array.shape}. Pass one per line."
        )
    return array
