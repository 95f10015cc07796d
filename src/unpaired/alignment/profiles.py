"""Profiles: what a row looks like from inside its own side, comparable across sides."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from scipy.special import ndtri
from scipy.stats import rankdata
from torch import Tensor
from torch.nn.functional import normalize

from unpaired.alignment.alternation import standardise
from unpaired.math.kernels import squared_distances
from unpaired.math.principal import principal
from unpaired.types import FloatArray
from unpaired.views.view import View

Profiles = tuple[FloatArray, FloatArray]
"""Descriptors of every row of x and of y in one view."""

N_SCALES = 12
"""Numbers of neighbours, log-spaced, over which similarity is averaged."""
N_SMOOTHINGS = 3
"""Rounds in which descriptors are averaged over neighbours."""
COMMON_AXES = 12
COARSE_AND_FINE = (8, 16)
"""Axes of the common basis of profiles; the scores of a coarse and a fine one are averaged."""


def rank_gauss(values: FloatArray) -> FloatArray:
    """The columns replaced by standard normal scores of their ranks."""
    return np.asarray(ndtri((rankdata(values, axis=0) - 0.5) / len(values)))


def raw_profile(similarity: FloatArray) -> FloatArray:
    """Descriptors per row of a similarity matrix (n, n).

    Drops in mean similarity from the top k rows to the top k' > k rows at log-spaced k (a local
    dimension at every scale, blind to the overall density), spread, skew and kurtosis of the row;
    each smoothed over neighbours in several rounds, with the spread among neighbours.
    """
    n = len(similarity)
    ordered = np.array(similarity, dtype=np.float32)
    np.fill_diagonal(ordered, np.inf)
    ordered.sort(axis=1)
    rest = ordered[:, -2::-1]
    total = np.cumsum(rest, axis=1, dtype=np.float64)
    counts = np.round(np.geomspace(max(2, n / 200), n * 0.9, N_SCALES)).astype(int)
    counts = np.minimum(counts, n - 1)  # few rows repeat scales: sides must have equally many
    drop = np.diff(total[:, counts - 1] / counts, axis=1)
    centred = rest - total[:, -1:].astype(np.float32) / (n - 1)
    deviation = np.sqrt((centred**2).mean(axis=1, keepdims=True)) + 1e-12
    centred /= deviation
    square = centred * centred
    kurtosis = (square * square).mean(axis=1, keepdims=True)
    square *= centred
    skew = square.mean(axis=1, keepdims=True)
    base = rank_gauss(np.concatenate([drop, deviation, skew, kurtosis], axis=1))
    k = min(max(10, min(40, n // 50)), n - 1)
    np.copyto(ordered, similarity)
    np.fill_diagonal(ordered, -np.inf)
    near = np.argpartition(ordered, n - k, axis=1)[:, n - k :]
    blocks = [base]
    current = base
    for _ in range(N_SMOOTHINGS):
        gathered = current[near]
        spread = gathered.std(axis=1)
        current = gathered.mean(axis=1)
        blocks += [rank_gauss(current), rank_gauss(spread)]
    return np.concatenate(blocks, axis=1)


def profiles_of(view: View, *, directions: bool) -> Profiles:
    """The raw profiles of both sides; by ``directions`` similarity is a cosine, else a product."""
    found = []
    for placed in (view.x, view.y):
        rows = normalize(placed) if directions else placed
        found.append(raw_profile((rows @ rows.T).cpu().numpy()))
    return found[0], found[1]


def joined(profiles: Sequence[Profiles], n_axes: int = COMMON_AXES) -> tuple[Tensor, Tensor]:
    """The profiles of several views in one common basis of unit total variance."""
    sides = [torch.as_tensor(np.concatenate(side, axis=1)) for side in zip(*profiles, strict=True)]
    found = principal(torch.cat(sides), n_axes)
    axes = found.axes / max(float(found.variances.sum()) ** 0.5, 1e-30)
    return (sides[0] - found.mean) @ axes, (sides[1] - found.mean) @ axes


def profile_score(x: Tensor, y: Tensor) -> Tensor:
    """Standardised closeness of profiles, (n_x, n_y)."""
    return standardise(-squared_distances(x, y).float())


def profile_scores(profiles: Sequence[Profiles]) -> Tensor:
    """Profile scores (n_x, n_y) averaged over a coarse and a fine common basis."""
    coarse, fine = (profile_score(*joined(profiles, n_axes)) for n_axes in COARSE_AND_FINE)
    return standardise(coarse + fine)


def with_side_information(scores: Tensor, side: Tensor | None) -> Tensor:
    """Profile scores joined by the caller's side information, standardised again."""
    return scores if side is None else standardise(scores + side)


def relative_score(views: Sequence[View], known: Tensor) -> Tensor:
    """Standardised likeness of rows by their closeness to known pairs, (n_x, n_y).

    Each row is described by the rank of its distance to every known row of its own side, in every
    view (relative representations, Moschella et al. 2023); known pairs make columns comparable.
    """
    sides = []
    for side in (0, 1):
        blocks = []
        for view in views:
            rows = (view.x, view.y)[side]
            gaps = squared_distances(rows, rows[known[:, side]])
            blocks.append(rank_gauss(-gaps.cpu().numpy().astype(np.float64)))
        sides.append(torch.as_tensor(np.concatenate(blocks, axis=1)))
    found = principal(torch.cat(sides), sides[0].shape[1])
    axes = found.axes / found.variances**0.25
    left, right = (normalize((side - found.mean) @ axes).float() for side in sides)
    return standardise(left @ right.T)
