"""What models of two sides with a space share: rows of one side in the other's own columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from unpaired._random import derive_rng
from unpaired._threads import few_threads
from unpaired.errors import InputError
from unpaired.models.base import SavedEstimator
from unpaired.models.output import FrameOutput
from unpaired.spaces.space import Space
from unpaired.types import FloatArray, IntArray

if TYPE_CHECKING:  # fitting does without; loaded when a translation is asked for
    from unpaired.spaces.translation import Translation


class TranslatingEstimator(FrameOutput, SavedEstimator):
    """An estimator with a space, whose rows can be told in the other side's own columns.

    The maps are learned from the rows of ``fit`` when they are first asked for, or saved.
    """

    seed_: int
    _space: Space
    _learned_from: tuple[NDArray[Any], NDArray[Any], IntArray] | None
    _maps: tuple[Translation, Translation] | None

    def translate_x(self, x: Any) -> FloatArray:
        """Rows of the first side in the second's own columns, (n, d_y): a linear guess at them.

        See ``unpaired.spaces.translation.Translation``: the regression of partners on rows.
        """
        return self._translated(x, 0)

    def translate_y(self, y: Any) -> FloatArray:
        """Rows of the second side in the first's own columns, (n, d_x): a linear guess at them."""
        return self._translated(y, 1)

    def _translated(self, rows: Any, side: int) -> FloatArray:
        self._check_fitted()
        checked = rows  # arrays are checked a block at a time
        if not isinstance(rows, np.ndarray):
            checked = self._rows_like_fit(rows, "xy"[side])
        _, names = self._columns_of_view(1 - side)
        return self._as_asked(self.translations[side](checked), rows, names)

    def _remember(self, x: NDArray[Any], y: NDArray[Any], known: IntArray) -> None:
        """Keep what translations are learned from; it is not saved."""
        self._learned_from, self._maps = (x, y, known), None

    @property
    def translations(self) -> tuple[Translation, Translation]:
        """Maps from the first side's columns into the second's, and back."""
        from unpaired.spaces.translation import MOST_COLUMNS, learn_translations

        if self._maps is None:
            if self._learned_from is None:
                raise InputError(
                    f"x and y must have at most {MOST_COLUMNS} columns to be translated, and this "
                    "saved model has more. Reduce them first, by principal components."
                )
            x, y, known = self._learned_from
            first = known[np.unique(known[:, 0], return_index=True)[1]]
            rng = derive_rng(self.seed_, "translation")
            with few_threads(len(x)):
                self._maps = learn_translations(
                    self._space, x, y, rng, known=first, partner=self.match_.partner
                )
        return self._maps

    def _translation_arrays(self) -> dict[str, np.ndarray]:
        """What is saved of the translations: nothing where there are too many columns."""
        from unpaired.spaces.translation import MOST_COLUMNS, translations_to_arrays

        if max(width for width, _ in self.columns_.values()) > MOST_COLUMNS:
            return {}
        return translations_to_arrays(self.translations)

    def _restore_translations(self, arrays: dict[str, np.ndarray]) -> None:
        from unpaired.spaces.translation import translations_from_arrays

        self._learned_from, self._maps = None, translations_from_arrays(arrays)
