"""Measures of dependence between two matched views: larger means more dependent.

Each takes ``(gram_x, gram_y, perm)`` where ``y[perm[i]]`` is the partner of ``x[i]`` and None means
"already in order". Gradients reach both Gram matrices and never ``perm``. Pi is never formed:
``gram_y[perm][:, perm]`` is Pi' L Pi. For a many-to-one matching index ``gram_y`` by the partners
and pass no perm.
"""

from __future__ import annotations

import torch
from torch import Tensor

from unpaired._checks import check_gram_pair
from unpaired.math.density_ratio import fit_ratio
from unpaired.math.kernels import center_gram


def align_gram(gram: Tensor, perm: Tensor | None) -> Tensor:
    """Pi' L Pi: the rows and columns of ``gram`` in the order of ``perm``."""
    return gram if perm is None else gram[perm][:, perm]


def ukta(gram_x: Tensor, gram_y: Tensor, perm: Tensor | None = None) -> Tensor:
    """Unnormalised kernel target alignment, tr(K Pi' L Pi).

    Notation: K = gram_x, L = gram_y, both (n, n) and symmetric; pi = perm, (n,). Cost O(n^2).
    It is largest when all latents coincide: a learner needs something to hold against that.

    >>> ukta(torch.eye(3), torch.eye(3), torch.tensor([2, 0, 1])).item()
    3.0
    """
    check_gram_pair(gram_x, gram_y, perm)
    return (gram_x * align_gram(gram_y, perm)).sum()  # symmetric K, so tr(KL) is a sum


def hsic(gram_x: Tensor, gram_y: Tensor, perm: Tensor | None = None) -> Tensor:
    """Hilbert-Schmidt independence criterion, tr(HKH Pi' HLH Pi) / n^2 (biased estimate).

    Zero when one view is constant, so collapse does not pay. Cost O(n^2).

    >>> hsic(torch.ones(3, 3), torch.eye(3)).item()
    0.0
    """
    check_gram_pair(gram_x, gram_y, perm)
    aligned_y = align_gram(center_gram(gram_y), perm)
    return (center_gram(gram_x) * aligned_y).sum() / len(gram_x) ** 2


def cka(gram_x: Tensor, gram_y: Tensor, perm: Tensor | None = None) -> Tensor:
    """Centred kernel alignment: HSIC over the geometric mean of both self-HSICs, in [0, 1].

    Blind to the scale of either Gram matrix; 0 when a view is constant. Cost O(n^2).

    >>> round(cka(torch.eye(3), 5 * torch.eye(3)).item(), 6)
    1.0
    """
    check_gram_pair(gram_x, gram_y, perm)
    centred_x, centred_y = center_gram(gram_x), align_gram(center_gram(gram_y), perm)
    norm = torch.linalg.norm(centred_x) * torch.linalg.norm(centred_y)
    # What centring leaves of a constant view is rounding: no value and no gradient comes of it.
    floor = torch.linalg.norm(gram_x.detach()) * torch.linalg.norm(gram_y.detach())
    varies = norm > 10.0 * torch.finfo(norm.dtype).eps * floor
    return torch.where(varies, (centred_x * centred_y).sum() / torch.where(varies, norm, 1.0), 0.0)


def smi(
    gram_x: Tensor, gram_y: Tensor, perm: Tensor | None = None, *, ratio_ridge: float = 1e-3
) -> Tensor:
    """Squared-loss mutual information by least-squares density-ratio fitting.

    Notation: (1/2n) tr(diag(alpha) K Pi' L Pi) - 1/2, where alpha is fitted in closed form with
    ridge ``ratio_ridge`` and every row as a basis point. alpha depends on both Gram matrices and
    gradients pass through it. Cost O(n^3).

    >>> smi(torch.eye(4, dtype=torch.float64), torch.eye(4, dtype=torch.float64)).item() > 0.9
    True
    """
    check_gram_pair(gram_x, gram_y, perm)
    aligned_y = align_gram(gram_y, perm)
    return fit_ratio(gram_x, aligned_y, ratio_ridge=ratio_ridge).smi
