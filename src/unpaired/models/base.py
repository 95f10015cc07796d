"""What all estimators share: saving and loading, and the columns they were fitted on."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from unpaired._checks import check_columns, check_view, column_names
from unpaired.types import Verdict

if TYPE_CHECKING:  # fitting does without; loaded when a model is saved or read
    from unpaired._saving import Columns


class SavedEstimator(BaseEstimator):  # type: ignore[misc]
    """An estimator whose fitted state is a dict of arrays and a dict of plain values.

    After ``fit``: ``n_features_in_`` (columns of the first view) and ``n_features_in_y_`` (of y);
    where views came as frames whose columns have names, ``feature_names_in_`` and
    ``feature_names_in_y_``.
    """

    def _state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays by name, and values that JSON can hold: all that ``_restore`` needs."""
        raise NotFittedError

    def _restore(self, arrays: dict[str, np.ndarray], values: dict[str, Any]) -> None:
        """Become fitted again."""
        raise NotFittedError

    def __sklearn_tags__(self) -> Any:
        """Return what scikit-learn wants to know of an estimator."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _check_fitted(self) -> None:
        if not hasattr(self, "history_"):
            name = type(self).__name__
            raise NotFittedError(f"This {name} is not fitted yet: call fit first.")

    @property
    def verdict_(self) -> Verdict | None:
        """What may be claimed of ``match_`` as a whole; None where nothing was judged."""
        self._check_fitted()
        return self.match_.verdict

    # ---- the columns of fit ----

    def _rows_of_fit(self, **views: Any) -> list[NDArray[np.float64]]:
        """The checked rows of each view, by argument name; their columns are remembered."""
        rows = [check_view(value, name) for name, value in views.items()]
        self.columns_: Columns = {
            name: (array.shape[1], column_names(value))
            for (name, value), array in zip(views.items(), rows, strict=True)
        }
        return rows

    def _rows_like_fit(self, value: Any, name: str) -> NDArray[np.float64]:
        """The checked rows of a view that has the columns of ``fit``, in the same order.

        Raises:
            InputError: when its columns are others, or stand in another order.
        """
        self._check_fitted()
        rows = check_view(value, name, min_rows=1)
        check_columns(column_names(value), rows.shape[1], name, *self.columns_[name])
        return rows

    @property
    def n_features_in_(self) -> int:
        """Number of the first view's columns in ``fit``."""
        return self._columns_of_view(0)[0]

    @property
    def n_features_in_y_(self) -> int:
        """Number of the second view's columns in ``fit``."""
        return self._columns_of_view(1)[0]

    @property
    def feature_names_in_(self) -> NDArray[Any]:
        """Names of the first view's columns in ``fit``."""
        return self._names_of_view(0)

    @property
    def feature_names_in_y_(self) -> NDArray[Any]:
        """Names of the second view's columns in ``fit``."""
        return self._names_of_view(1)

    def _columns_of_view(self, view: int) -> tuple[int, tuple[str, ...] | None]:
        kept = list(getattr(self, "columns_", {}).values())
        if view >= len(kept):  # as in scikit-learn's estimators: hasattr tells
            raise AttributeError("fit has not seen the columns of this view")
        return kept[view]

    def _names_of_view(self, view: int) -> NDArray[Any]:
        names = self._columns_of_view(view)[1]
        if names is None:
            raise AttributeError("fit has not seen a frame whose columns have names")
        return np.asarray(names, dtype=object)

    # ---- saving ----

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Write the fitted estimator to ``directory``: config.json and arrays.safetensors.

        An earlier save there is replaced as a whole; when writing fails it is left as it was.

        Raises:
            InputError: when ``directory`` cannot be written, or holds other files.
            DataError: when a parameter cannot be written as JSON.
        """
        from unpaired._saving import write_saved

        self._check_fitted()
        arrays, values = self._state()
        write_saved(
            directory,
            type(self).__name__,
            arrays,
            params=self.get_params(deep=False),
            values=values,
            columns=getattr(self, "columns_", {}),
            match=self.match_,
        )

    @classmethod
    def _load(cls, config: dict[str, Any], arrays: dict[str, np.ndarray]) -> Self:
        from unpaired._saving import saved_columns, saved_match, tuples

        estimator = cls(**{k: tuples(v) for k, v in config["params"].items()})
        estimator.match_ = saved_match(config, arrays)
        estimator.columns_ = saved_columns(config)
        estimator._restore(arrays, config["values"])
        return estimator
