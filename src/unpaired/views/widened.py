"""Coordinates with kernel features of themselves beside them, for evident partners."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from unpaired.views.features import Features


@dataclass(frozen=True)
class Widened:
    """The coordinates of ``base``, and what ``kernel`` makes of them."""

    base: Features
    kernel: Features

    kind: ClassVar[str] = "widened"

    def __call__(self, rows: Tensor) -> Tensor:
        """Coordinates (n, r + l) of rows."""
        placed = self.base(rows)
        return torch.cat([placed, self.kernel(placed)], 1)
