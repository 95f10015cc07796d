"""Coordinates with kernel features of themselves beside them, for evident partners."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from unpaired.views.features import Arrays, Features, under


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

    def arrays(self) -> Arrays:
        """Arrays by name."""
        parts = {"base": self.base, "kernel": self.kernel}
        return {
            f"{p}.{name}": a for p, found in parts.items() for name, a in found.arrays().items()
        }

    @classmethod
    def from_arrays(cls, arrays: Arrays, device: torch.device) -> Widened:
        """The map that ``arrays`` were taken from."""
        base, kernel = (under(f"{part}.", arrays) for part in ("base", "kernel"))
        return cls(Features.from_arrays(base, device), Features.from_arrays(kernel, device))
