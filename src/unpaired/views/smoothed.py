"""Directions averaged over each row's nearest rows: noise cancels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor
from torch.nn.functional import normalize

from unpaired.views.features import Features, in_blocks

N_NEIGHBOURS = 20


@dataclass(frozen=True)
class Smoothed:
    """Unit coordinates of ``base``, added up over a row and its nearest fitted rows."""

    base: Features
    rows: Tensor
    """(n, r) unit coordinates of the fitted rows."""
    offset: Tensor
    """(1, r)."""
    scale: float

    kind: ClassVar[str] = "smoothed"

    def __call__(self, rows: Tensor) -> Tensor:
        """Coordinates (n, r) of rows."""
        return in_blocks(lambda part: self._average(normalize(self.base(part))), rows)

    def _average(self, units: Tensor, *, skip_self: bool = False) -> Tensor:
        close = units @ self.rows.T
        if skip_self:
            close.fill_diagonal_(-torch.inf)
        count = min(N_NEIGHBOURS, len(self.rows) - 1)
        near = close.topk(count, 1).indices
        total = units + self.rows[near.reshape(-1)].view(*near.shape, -1).sum(1)
        return (normalize(total) - self.offset) / self.scale


def fit_smoothed(base: Features, placed: Tensor) -> tuple[Smoothed, Tensor]:
    """The map fitted on rows that ``base`` places at ``placed``, and their coordinates.

    The fitted rows are averaged over their neighbours without counting themselves twice.
    """
    units = normalize(placed)
    plain = Smoothed(base, units, torch.zeros_like(units[:1]), 1.0)
    known = plain._average(units, skip_self=True)
    offset = known.mean(0, keepdim=True)
    scale = max(float((known - offset).square().sum(1).mean()) ** 0.5, 1e-30)
    return Smoothed(base, units, offset, scale), (known - offset) / scale
