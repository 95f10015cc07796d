"""The least-squares density-ratio fit under SMI, and its score.

The model is r(x, y) = sum_l alpha_l K(x_l, x) L(y_l, y) for p(x, y) / (p(x) p(y)).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class RatioFit:
    """A fitted density ratio and the moments it was fitted from."""

    coef: Tensor
    """alpha, (n_basis,)."""
    all_pairs_moment: Tensor
    """H, (n_basis, n_basis): mean of phi phi' over all n^2 pairs of rows."""
    matched_mean: Tensor
    """h, (n_basis,): mean of phi over the n matched pairs."""

    @property
    def smi(self) -> Tensor:
        """Squared-loss mutual information, alpha'h / 2 - 1/2."""
        return 0.5 * (self.coef * self.matched_mean).sum() - 0.5


def fit_ratio(gram_x: Tensor, gram_y: Tensor, *, ratio_ridge: float = 1e-3) -> RatioFit:
    """The density ratio fitted to matched rows, alpha = (H + ridge I)^-1 h.

    Notation: gram_x = K (n, n_basis) and gram_y = L (n, n_basis) hold the kernel values of n
    matched rows against the basis points of their own view (row i of both is one pair, basis l of
    both too). H = (K'K) o (L'L) / n^2, h = (K o L)'1 / n. Differentiable. Cost O(n b^2 + b^3).
    """
    n_rows, n_basis = gram_x.shape
    all_pairs_moment = (gram_x.T @ gram_x) * (gram_y.T @ gram_y) / n_rows**2
    matched_mean = (gram_x * gram_y).mean(0)
    ridge = ratio_ridge * torch.eye(n_basis, dtype=gram_x.dtype, device=gram_x.device)
    coef = torch.linalg.solve(all_pairs_moment + ridge, matched_mean)
    return RatioFit(coef, all_pairs_moment, matched_mean)
