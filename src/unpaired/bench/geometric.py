"""``unpaired.match`` with the face of an estimator, so that it stands in the tables."""

from __future__ import annotations

from typing import Any, Self

from unpaired.matching import align
from unpaired.types import FloatArray


class GeometricMatch:
    """Rows matched by geometry, one-to-one, without networks."""

    def __init__(self, *, random_state: int | None = 0) -> None:
        self.random_state = random_state

    def fit(self, x: Any, y: Any, pairs: Any = None) -> Self:
        """Match the rows of x and y."""
        self._alignment = align(x, y, pairs, random_state=self.random_state)
        self.match_ = self._alignment.match
        return self

    def score_matrix(self, x: Any, y: Any) -> FloatArray:
        """How well each row of x goes with each row of y, larger = better."""
        return self._alignment.score_matrix(x, y)
