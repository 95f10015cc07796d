"""Convex kernelized sorting as an estimator (Djuric et al. 2012)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from unpaired._checks import check_number
from unpaired.baselines.sorting import SortingMethod
from unpaired.solvers.convex_sorting import convex_sorting
from unpaired.solvers.quadratic import Optimum, alignment
from unpaired.types import FloatArray, IntArray


@dataclass(eq=False, repr=False, kw_only=True)
class ConvexKernelizedSorting(SortingMethod):
    """Rows matched by the convex relaxation min |K P - P L|^2, rounded, then CCA.

    The relaxed optimum does not depend on the start, so there is one run. Views of unequal size
    are cut to the smaller one.

    Args:
        max_iter: Frank-Wolfe steps, at most.
        n_sorted: See SortingMethod, as all that follow.

    References: djuric2012.
    """

    max_iter: int = 300
    n_sorted: int = 500

    equal_sizes: ClassVar[bool] = True

    def _check_params(self) -> None:
        super()._check_params()
        check_number(self.max_iter, "max_iter", 1, integer=True)

    def _starts(self, gram_x: FloatArray, gram_y: FloatArray) -> list[FloatArray | None]:
        return [None]

    def _value(self, gram_x: FloatArray, gram_y: FloatArray, run: Optimum) -> float:
        return alignment(gram_x, gram_y, run.partner)

    def _solve(
        self, gram_x: FloatArray, gram_y: FloatArray, start: FloatArray | None, known: IntArray
    ) -> Optimum:
        return convex_sorting(gram_x, gram_y, start, known, max_iter=self.max_iter)
