"""Gromov-Wasserstein matching through POT (Memoli 2011; Peyre et al. 2016; Flamary et al. 2021)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from unpaired._checks import check_number
from unpaired.baselines.sorting import SortingMethod
from unpaired.errors import DataError
from unpaired.plans.assignment import assign
from unpaired.solvers.quadratic import Optimum, fix_known, partner_matrix, uniform_plan
from unpaired.solvers.signatures import signature_scores
from unpaired.types import FloatArray, IntArray


def load_pot() -> Any:
    """The gromov module of POT.

    Raises:
        DataError: when POT is not installed.
    """
    try:
        from ot import gromov
    except ImportError as error:
        raise DataError(
            "GromovWasserstein needs the package POT, which is not installed. Install it with "
            "pip install POT, or use KernelizedSorting, which needs nothing more."
        ) from error
    return gromov


@dataclass(eq=False, repr=False, kw_only=True)
class GromovWasserstein(SortingMethod):
    """Rows matched so that distances within the views agree, by POT's solver, then CCA.

    Distances are Euclidean, divided by their mean. Known pairs enter as in fused
    Gromov-Wasserstein: a pair of rows costs as much as their distances to the known pairs differ.
    The run of the smaller loss, from the uniform plan or from rows of one profile, is kept.

    Args:
        trade_off: Weight of the Gromov-Wasserstein term against that cost, 0 to 1.
        max_iter: Steps of the solver, at most.
        n_sorted: See SortingMethod, as all that follow.

    References: memoli2011, peyre2016, vayer2019, flamary2021.
    """

    trade_off: float = 0.5
    max_iter: int = 1000
    n_sorted: int = 800

    def _check_params(self) -> None:
        super()._check_params()
        check_number(self.trade_off, "trade_off", 0.0)
        check_number(self.max_iter, "max_iter", 1, integer=True)
        load_pot()

    def _similarities(self, rows: FloatArray, name: str) -> FloatArray:
        distances = cdist(rows, rows)
        return np.asarray(distances / distances.mean())

    def _starts(self, gram_x: FloatArray, gram_y: FloatArray) -> list[FloatArray | None]:
        likeness = signature_scores(-gram_x, -gram_y)
        return [None, partner_matrix(assign(-likeness), len(gram_y))]

    def _solve(
        self, gram_x: FloatArray, gram_y: FloatArray, start: FloatArray | None, known: IntArray
    ) -> Optimum:
        gromov = load_pot()
        n_x, n_y = gram_x.shape[0], gram_y.shape[0]
        masses = np.full(n_x, 1.0 / n_x), np.full(n_y, 1.0 / n_y)
        begin = uniform_plan(n_x, n_y) if start is None else start
        begin = _with_masses(fix_known(begin, known), *masses)
        options = {"G0": begin, "max_iter": self.max_iter, "log": True, "symmetric": True}
        if len(known):
            cost = cdist(gram_x[:, known[:, 0]], gram_y[:, known[:, 1]], "sqeuclidean")
            cost /= len(known)
            plan, log = gromov.fused_gromov_wasserstein(
                cost, gram_x, gram_y, *masses, alpha=min(self.trade_off, 1.0), **options
            )
            loss = float(log["fgw_dist"])
        else:
            plan, log = gromov.gromov_wasserstein(gram_x, gram_y, *masses, **options)
            loss = float(log["gw_dist"])
        return Optimum(assign(-plan, known=known), plan, True, [-loss])


def _with_masses(plan: FloatArray, mass_x: FloatArray, mass_y: FloatArray) -> FloatArray:
    """A plan near ``plan`` whose rows and columns sum to the masses, as POT asks of a start.

    Rows and columns that are too heavy are scaled down and the rest is filled with a product
    (Altschuler et al. 2017), which meets both sums exactly.
    """
    lighter = plan * np.minimum(1.0, mass_x / np.maximum(plan.sum(1), 1e-300))[:, None]
    lighter = lighter * np.minimum(1.0, mass_y / np.maximum(lighter.sum(0), 1e-300))[None, :]
    left_x, left_y = mass_x - lighter.sum(1), mass_y - lighter.sum(0)
    left_x, left_y = np.maximum(left_x, 0.0), np.maximum(left_y, 0.0)
    left = float(left_x.sum())
    return lighter + np.outer(left_x, left_y) / left if left > 1e-12 else lighter
