"""Kernelized sorting as an estimator (Quadrianto et al. 2009)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from unpaired.baselines.sorting import SortingMethod
from unpaired.solvers.kernelized_sorting import kernelized_sorting
from unpaired.solvers.quadratic import Optimum
from unpaired.types import FloatArray, IntArray


@dataclass(eq=False, repr=False, kw_only=True)
class KernelizedSorting(SortingMethod):
    """Rows matched so that HSIC is largest, by repeated linear assignment, then CCA.

    The authors' start, sorted principal components, is one of those tried; the run that reaches
    the largest HSIC is kept.

    Args:
        n_sorted: See SortingMethod, as all that follow.

    References: quadrianto2009, gretton2005.
    """

    centred: ClassVar[bool] = True

    def _solve(
        self, gram_x: FloatArray, gram_y: FloatArray, start: FloatArray | None, known: IntArray
    ) -> Optimum:
        return kernelized_sorting(gram_x, gram_y, start, known)
