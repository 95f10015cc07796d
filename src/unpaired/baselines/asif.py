"""ASIF: relative representations by known pairs, with nothing trained (Norelli et al. 2023)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unpaired._checks import check_number
from unpaired._random import derive_rng
from unpaired.baselines.base import Found, TwoViewMethod
from unpaired.naming.smooth_space import unit_rows
from unpaired.types import FloatArray, IntArray


def relative_rows(similarities: FloatArray, n_nearest: int, power: float) -> FloatArray:
    """Similarities (n, k) to anchors with all but the ``n_nearest`` largest, and negatives, at 0.

    What is left is raised to ``power``. Rows keep their scale; a cosine does not mind.
    """
    kept = np.maximum(similarities, 0.0)
    n_dropped = kept.shape[1] - min(n_nearest, kept.shape[1])
    if n_dropped:
        least = np.partition(kept, n_dropped, axis=1)[:, n_dropped : n_dropped + 1]
        kept = np.where(kept >= least, kept, 0.0)
    return kept**power


@dataclass(eq=False, repr=False, kw_only=True)
class ASIF(TwoViewMethod):
    """Each row told by its similarities to the known pairs of its own view, scored by cosine.

    Rows are centred and scaled to unit length. An image that resembles the same anchors as a
    caption belongs to it.

    Args:
        n_anchors: Known pairs that serve as anchors, at most; distinct rows of x come first.
        n_nearest: Anchors kept for each row; the others count 0.
        power: Power of the similarities kept; the authors' 8 suits many more anchors than
            thousands.
        random_state: Seed of the choice among too many pairs.

    References: norelli2023, moschella2023.
    """

    n_anchors: int = 6000
    n_nearest: int = 800
    power: float = 4.0

    def _check_params(self) -> None:
        check_number(self.n_anchors, "n_anchors", 2, integer=True)
        check_number(self.n_nearest, "n_nearest", 1, integer=True)
        check_number(self.power, "power", 1e-3)

    def _fit(self, x: FloatArray, y: FloatArray, known: IntArray) -> Found | None:
        mixed = derive_rng(self.seed_, "anchors").permutation(known)
        first = np.unique(mixed[:, 0], return_index=True)[1]
        rest = np.setdiff1d(np.arange(len(mixed)), first)
        chosen = mixed[np.concatenate([first, rest])[: self.n_anchors]]
        for name, rows, column in (("x", x, 0), ("y", y, 1)):
            centre = rows.mean(0)
            anchors = unit_rows(rows[chosen[:, column]] - centre)
            self._arrays |= {f"centre.{name}": centre, f"anchors.{name}": anchors}
        return None

    def _map(self, rows: FloatArray, view: int) -> FloatArray:
        name = "xy"[view]
        centred = unit_rows(rows - self._arrays[f"centre.{name}"])
        similarities = centred @ self._arrays[f"anchors.{name}"].T
        return relative_rows(similarities, self.n_nearest, self.power).astype(np.float32)
