"""What the methods that match by geometry alone share: similarities, starts and read-out."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import torch

from unpaired._checks import check_number
from unpaired.baselines.base import Found
from unpaired.baselines.closed_form import PairedMaps, Ridge, check_ridge, fit_cca
from unpaired.baselines.linear import LinearMethod
from unpaired.baselines.rematch import one_to_one, partner_of
from unpaired.math.kernels import center_gram, gaussian_gram, median_bandwidth
from unpaired.plans.assignment import assign
from unpaired.solvers.kernelized_sorting import principal_start
from unpaired.solvers.quadratic import Optimum
from unpaired.solvers.signatures import signature_scores
from unpaired.types import FloatArray, IntArray


@dataclass(eq=False, repr=False, kw_only=True)
class SortingMethod(LinearMethod):
    """A method that matches rows by their Gram matrices, then fits CCA to the matching.

    Gram matrices are Gaussian with the median distance as bandwidth. Solvers of this kind take
    n^3 steps, so at most ``n_sorted`` rows of a view take part, known pairs first; the others are
    left without a partner, and every row is embedded by the read-out. ``trace_`` holds the matching
    that the best run began from, where it was one, and the one it came to.

    Args:
        n_sorted: Rows of each view that are matched, at most; drawn when there are more.
        ridge: Ridge of the read-out, or "auto".
        n_components: Dimensions of the embedding, at most.
        n_inputs: Principal components of each view that the read-out uses, at most.
        random_state: Seed of the rows drawn and of held-out pairs.
    """

    n_sorted: int = 1000
    ridge: Ridge = "auto"
    n_components: int = 256

    least_pairs: ClassVar[int] = 0
    equal_sizes: ClassVar[bool] = False
    """Whether the solver needs as many rows in x as in y."""
    centred: ClassVar[bool] = False

    def _check_params(self) -> None:
        super()._check_params()
        check_number(self.n_sorted, "n_sorted", 2, integer=True)
        check_number(self.n_components, "n_components", 1, integer=True)
        check_ridge(self.ridge, "ridge")

    @abstractmethod
    def _solve(
        self, gram_x: FloatArray, gram_y: FloatArray, start: FloatArray | None, known: IntArray
    ) -> Optimum:
        """One run of the solver."""

    def _value(self, gram_x: FloatArray, gram_y: FloatArray, run: Optimum) -> float:
        """What the runs from several starts are compared by; larger is better."""
        return run.trace[-1]

    def _similarities(self, rows: FloatArray, name: str) -> FloatArray:
        """The (n, n) matrix of a view that the solver matches by."""
        tensor = torch.as_tensor(rows)
        gram = gaussian_gram(tensor, bandwidth=median_bandwidth(tensor, name))
        return (center_gram(gram) if self.centred else gram).numpy()

    def _starts(self, gram_x: FloatArray, gram_y: FloatArray) -> list[FloatArray | None]:
        """The plans to begin from: sorted principal components, and rows of one profile."""
        return [*principal_start(gram_x, gram_y), signature_scores(gram_x, gram_y)]

    def _rows(
        self, known: IntArray, n_x: int, n_y: int, rng: np.random.Generator
    ) -> tuple[IntArray, IntArray, IntArray]:
        """Rows of x and of y that are matched, and known pairs counted within them."""
        given = known[: self.n_sorted]
        rows = []
        for column, size in enumerate((n_x, n_y)):
            free = rng.permutation(np.setdiff1d(np.arange(size), known[:, column]))
            room = min(self.n_sorted, min(n_x, n_y) if self.equal_sizes else size)
            rows.append(np.concatenate([given[:, column], free[: max(0, room - len(given))]]))
        if self.equal_sizes:
            size = min(map(len, rows))
            rows = [part[:size] for part in rows]
        place = np.arange(len(given))
        return rows[0], rows[1], np.column_stack([place, place])

    def _fit_maps(
        self, x: FloatArray, y: FloatArray, known: IntArray, rng: np.random.Generator
    ) -> tuple[PairedMaps, Found | None]:
        rows_x, rows_y, given = self._rows(one_to_one(known), len(x), len(y), rng)
        gram_x = self._similarities(x[rows_x], "x")
        gram_y = self._similarities(y[rows_y], "y")
        starts = self._starts(gram_x, gram_y)
        runs = [self._solve(gram_x, gram_y, start, given) for start in starts]
        values = [self._value(gram_x, gram_y, run) for run in runs]
        chosen = int(np.argmax(values))
        best, begin = runs[chosen], starts[chosen]
        self.history_ = [
            {"step": float(step), "loss": -value} for step, value in enumerate(best.trace)
        ]
        began = [] if begin is None else [assign(-begin, known=given)]
        for partner in (*began, best.partner):
            matched = np.flatnonzero(partner >= 0)
            found = np.column_stack([rows_x[matched], rows_y[partner[matched]]])
            self.trace_.append(np.concatenate([known, found]))
        pairs = np.unique(self.trace_[-1], axis=0)
        maps = fit_cca(
            x, y, pairs, rng, ridge_x=self.ridge, ridge_y=self.ridge, n_components=self.n_components
        )
        partner = partner_of(self.trace_[-1], len(x))
        return maps, Found(partner, max(values), best.converged)
