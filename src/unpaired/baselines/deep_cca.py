"""Deep canonical correlation analysis (Andrew et al. 2013)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from unpaired._checks import check_number
from unpaired.baselines.towers import Batch, TowerMethod, Towers


def total_correlation(z_x: Tensor, z_y: Tensor, ridge: float) -> Tensor:
    """The sum of the canonical correlations of matched latents: the trace norm of T.

    Notation: T = Cxx^(-1/2) Cxy Cyy^(-1/2) of centred z_x (n, p), z_y (n, q), with ``ridge`` times
    the mean variance (and a little more, for latents that do not vary) on both diagonals. Cholesky
    factors stand for the square roots: the singular values are the same, and no gradient divides
    by the difference of two eigenvalues, which is where others meet NaN. Cost O(n p^2 + p^3).
    """
    white = []
    centred = [z - z.mean(0, keepdim=True) for z in (z_x, z_y)]
    for z in centred:
        moment = z.T @ z / len(z)
        floor = ridge * moment.diagonal().mean() + 1e-6
        moment = moment + floor * torch.eye(len(moment), dtype=z.dtype, device=z.device)
        white.append(torch.linalg.cholesky(moment))
    cross = centred[0].T @ centred[1] / len(z_x)
    half = torch.linalg.solve_triangular(white[0], cross, upper=False)
    whole = torch.linalg.solve_triangular(white[1], half.T, upper=False)
    return torch.linalg.svdvals(whole).sum()


@dataclass(eq=False, repr=False, kw_only=True)
class DeepCCA(TowerMethod):
    """Two towers whose latents correlate as much as they can, then CCA of the latents.

    Batches must be several times ``n_latent`` to estimate covariances; smaller ones stay finite,
    held by the ridge.

    Args:
        loss_ridge: Ridge of the batch covariances, in units of their mean variance.
        n_latent: See TowerMethod, as all that follow.

    References: andrew2013, wang2015.
    """

    loss_ridge: float = 0.01
    n_latent: int = 256
    batch_size: int = 2048
    n_epochs: int = 6
    least_steps: int = 100
    learning_rate: float = 3e-4
    readout: Literal["cosine", "cca"] = "cca"

    def _check_params(self) -> None:
        super()._check_params()
        check_number(self.loss_ridge, "loss_ridge", 1e-6)

    def _loss(self, towers: Towers, batch: Batch) -> Tensor:
        z_x, z_y = towers[0](batch.x), towers[1](batch.y)
        return -total_correlation(z_x, z_y, self.loss_ridge) / z_x.shape[1]
