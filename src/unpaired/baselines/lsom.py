"""Least-squares object matching as an estimator (Yamada & Sugiyama 2011)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from unpaired._checks import check_number
from unpaired.baselines.sorting import SortingMethod
from unpaired.solvers.lsom import lsom
from unpaired.solvers.quadratic import Optimum
from unpaired.types import FloatArray, IntArray


@dataclass(eq=False, repr=False, kw_only=True)
class LSOM(SortingMethod):
    """Rows matched so that squared-loss mutual information is largest, then CCA.

    Views of unequal size are cut to the smaller one.

    Args:
        ratio_ridge: Ridge of the density-ratio fit.
        n_sorted: See SortingMethod, as all that follow.

    References: yamada2011, yamada2015.
    """

    ratio_ridge: float = 1.0
    n_sorted: int = 500

    equal_sizes: ClassVar[bool] = True

    def _check_params(self) -> None:
        super()._check_params()
        check_number(self.ratio_ridge, "ratio_ridge", 1e-12)

    def _solve(
        self, gram_x: FloatArray, gram_y: FloatArray, start: FloatArray | None, known: IntArray
    ) -> Optimum:
        return lsom(gram_x, gram_y, start, known, ratio_ridge=self.ratio_ridge)
