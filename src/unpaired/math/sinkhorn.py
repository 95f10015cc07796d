"""Entropic matching: Sinkhorn's scaling of a kernel to given row and column sums."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

ABSORB_ABOVE = 1e30
"""Scalings beyond this are moved into the potentials, so nothing over- or underflows."""

Product = Callable[[Tensor], Tensor]


def scale(
    times: Product,
    times_transposed: Product,
    row_mass: Tensor,
    column_mass: Tensor,
    rounds: int,
    relaxation: float = 1.0,
) -> tuple[Tensor, Tensor]:
    """Factors u (n,) and v (m,) with which diag(u) K diag(v) has the column sums, nearly the rows'.

    K enters by its products only, so that it may be dense or sparse. With a ``relaxation`` above 1
    every round but the first goes that much farther (Thibault et al. 2017): fewer rounds are needed
    to come as near, and columns are met nearly too.
    """
    tiny = torch.finfo(row_mass.dtype).tiny
    u, v = torch.ones_like(row_mass), torch.ones_like(column_mass)
    for number in range(rounds):
        farther = relaxation - 1.0 if number else 0.0
        found = (row_mass / times(v).clamp_min(tiny)).clamp_max(ABSORB_ABOVE)
        u = (found * (found / u) ** farther).clamp(tiny, ABSORB_ABOVE) if farther else found
        found = (column_mass / times_transposed(u).clamp_min(tiny)).clamp_max(ABSORB_ABOVE)
        v = (found * (found / v) ** farther).clamp(tiny, ABSORB_ABOVE) if farther else found
    return u, v


def sinkhorn(
    scores: Tensor, temperature: float, *, max_iter: int = 1000, tol: float = 1e-6
) -> Tensor:
    """The plan P (n, m) that maximises <P, scores> + temperature * entropy(P).

    Notation: P = diag(u) exp((S - f - g) / T) diag(v). Columns sum to 1/m exactly, rows to 1/n when
    it has converged; u and v are absorbed into the potentials f and g whenever they grow, which
    keeps plain matrix products exact at any temperature (Schmitzer 2019). It stops when no row sum
    is off by more than the share ``tol``, looked at every ten rounds.

    >>> sinkhorn(torch.tensor([[1.0, 0.0], [0.0, 1.0]]), 0.1).mul(2).round().tolist()
    [[1.0, 0.0], [0.0, 1.0]]
    """
    n, m = scores.shape
    row_mass, column_mass = scores.new_full((n,), 1.0 / n), scores.new_full((m,), 1.0 / m)
    f = scores.amax(1)
    g = torch.zeros_like(column_mass)
    plan, done = torch.empty_like(scores), 0
    while True:
        torch.sub(scores, f[:, None], out=plan).sub_(g).div_(temperature).clamp_(max=80.0).exp_()
        rounds = min(10, max_iter - done)
        u, v = scale(plan.mv, plan.T.mv, row_mass, column_mass, rounds)
        done += rounds
        settled = float((u * plan.mv(v) - row_mass).abs().max()) <= tol / n
        if settled or done >= max_iter:
            return plan.mul_(u[:, None]).mul_(v)
        floor = torch.finfo(scores.dtype).tiny
        f = f - temperature * u.clamp_min(floor).log()
        g = g - temperature * v.clamp_min(floor).log()
