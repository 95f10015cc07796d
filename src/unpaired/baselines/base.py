"""The face all methods share: fit(x, y, pairs), transform_x, transform_y, score_matrix, match_."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from unpaired._checks import check_pairs
from unpaired._random import RandomState, resolve_seed
from unpaired.errors import InputError
from unpaired.models.base import SavedEstimator
from unpaired.naming.smooth_space import unit_rows
from unpaired.spaces.readout import Reading, read_partners, to_match
from unpaired.spaces.solution import Evidence
from unpaired.types import FloatArray, IntArray, Match

BLOCK_ROWS = 2048


@dataclass(frozen=True)
class Found:
    """A matching as a method infers it."""

    partner: IntArray
    """(n_x,) row of y for each row of x, -1 = left out."""
    objective: float = float("nan")
    converged: bool = True


@dataclass(eq=False, repr=False, kw_only=True)
class TwoViewMethod(SavedEstimator, ABC):
    """An estimator of two views that embeds rows of both in one space.

    A child is a dataclass whose fields are its parameters. It writes ``_fit``, which fills
    ``_arrays`` and may return a matching, and ``_map``, which embeds rows from ``_arrays``.

    Args:
        random_state: Seed; the same seed on the same machine gives the same bits.

    After ``fit``: ``match_`` (a Match over the rows given; where the method infers none, the known
    pairs and -1 elsewhere), ``history_`` (one dict per step of learning), ``trace_`` (the pairs
    (k, 2) after each round of matching; empty where the method matches nothing), ``seed_``.
    """

    random_state: RandomState = None

    least_pairs: ClassVar[int] = 2
    """Known pairs without which the method cannot begin."""

    def fit(self, x: Any, y: Any, pairs: Any = None) -> Self:
        """Learn from the rows of x and y; ``pairs`` names known partners.

        Args:
            x: First view, (n_x, d_x).
            y: Second view, (n_y, d_y); n_y may differ from n_x.
            pairs: None, "aligned", or a (k, 2) array of (row of x, row of y). A row may occur in
                several pairs, as an image with five captions does.
        """
        self._check_params()
        rows_x, rows_y = self._rows_of_fit(x=x, y=y)
        known = check_pairs(pairs, len(rows_x), len(rows_y))
        if len(known) < self.least_pairs:
            raise InputError(
                f"{type(self).__name__} learns from known pairs and needs at least "
                f"{self.least_pairs}: got {len(known)}. Pass them as pairs=, or use a method that "
                "needs none, such as DMAE."
            )
        self.seed_ = resolve_seed(self.random_state)
        self.history_: list[dict[str, float]] = []
        self.trace_: list[IntArray] = []
        self._arrays: dict[str, np.ndarray] = {}
        self._values: dict[str, Any] = {}
        found = self._fit(rows_x, rows_y, known)
        if found is None:
            self.match_ = _known_match(known, len(rows_x), len(rows_y))
        else:
            self.match_ = self._describe(rows_x, rows_y, known, found)
        return self

    def transform_x(self, x: Any) -> FloatArray:
        """Embed rows of the first view, (n, d_x) -> (n, n_embedding), unit length."""
        return self._embed(x, 0)

    def transform_y(self, y: Any) -> FloatArray:
        """Embed rows of the second view, (n, d_y) -> (n, n_embedding), unit length."""
        return self._embed(y, 1)

    def score_matrix(self, x: Any, y: Any) -> FloatArray:
        """How well each row of x goes with each row of y, (n_x, n_y); larger = better."""
        return self.transform_x(x) @ self.transform_y(y).T

    # ---- what a child writes ----

    def _check_params(self) -> None:
        """Raise InputError for a parameter that breaks a rule."""

    @abstractmethod
    def _fit(self, x: FloatArray, y: FloatArray, known: IntArray) -> Found | None:
        """Fill ``_arrays`` from checked rows; return the matching when the method infers one."""

    @abstractmethod
    def _map(self, rows: FloatArray, view: int) -> FloatArray:
        """Embed checked rows of view 0 (x) or 1 (y); the caller scales them to unit length."""

    def _rebuild(self) -> None:
        """Build what is not an array (networks) anew from ``_arrays`` after loading."""

    # ---- what all share ----

    def _embed(self, rows: Any, view: int) -> FloatArray:
        array = self._rows_like_fit(rows, "xy"[view])
        blocks = [
            self._map(array[begin : begin + BLOCK_ROWS], view)
            for begin in range(0, len(array), BLOCK_ROWS)
        ]
        return unit_rows(np.concatenate(blocks))

    def _describe(self, x: FloatArray, y: FloatArray, known: IntArray, found: Found) -> Match:
        """The Match over the rows given to fit; a known pair has confidence 1."""
        placed = self.transform_x(x), self.transform_y(y)
        return to_match(
            read_partners(placed, found.partner),
            Evidence({"own start": found.objective}),
            len(y),
            known=known[np.unique(known[:, 0], return_index=True)[1]],
            relation=getattr(self, "relation", "one-to-one"),
            converged=found.converged,
        )

    def _state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        values = {
            "seed": self.seed_,
            "history": self.history_,
            "own": self._values,
        }
        return dict(self._arrays), values

    def _restore(self, arrays: dict[str, np.ndarray], values: dict[str, Any]) -> None:
        self.seed_, self.history_ = values["seed"], values["history"]
        self._arrays, self._values = arrays, values["own"]
        self.trace_ = []  # not saved: it can be as large as the data
        self._rebuild()


def _known_match(known: IntArray, n_x: int, n_y: int) -> Match:
    """The Match that holds the known pairs and nothing else."""
    nobody = np.full(n_x, -1, dtype=np.int64)
    reading = Reading(nobody, nobody, np.full(n_x, np.nan), np.zeros(n_x))
    first = known[np.unique(known[:, 0], return_index=True)[1]]
    return to_match(reading, Evidence({}), n_y, known=first)
