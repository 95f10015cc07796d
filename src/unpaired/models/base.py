"""What all estimators share: saving and loading, and the columns they were fitted on.

A saved estimator is a folder of ``config.json`` and ``arrays.safetensors``; nothing is pickled. The
folder is written whole and then put in the place of an earlier one. The config holds digests of the
arrays and of itself, so that a folder that was changed since is refused.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from unpaired import __version__
from unpaired._checks import check_columns, check_view, column_names
from unpaired._files import whole_folder
from unpaired.errors import DataError
from unpaired.types import Match, Objective, Verdict

ARRAYS, CONFIG = "arrays.safetensors", "config.json"
FORMAT = 2
MATCH_ARRAYS = ("partner", "confidence", "runner_up", "margin")
_NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


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

    # ---- the columns of fit ----

    def _rows_of_fit(self, **views: Any) -> list[NDArray[np.float64]]:
        """The checked rows of each view, by argument name; their columns are remembered."""
        rows = [check_view(value, name) for name, value in views.items()]
        self.columns_: dict[str, tuple[int, tuple[str, ...] | None]] = {
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
        from safetensors.numpy import save

        self._check_fitted()
        arrays, values = self._state()
        match = self.match_
        for name in MATCH_ARRAYS:
            arrays[f"match.{name}"] = getattr(match, name)
        # not ascontiguousarray, which makes vectors of single numbers
        data = save({name: np.asarray(array, order="C") for name, array in arrays.items()})
        config = _written(
            {
                "format": FORMAT,
                "unpaired": __version__,
                "estimator": type(self).__name__,
                "params": self.get_params(deep=False),
                "values": values,
                "columns": getattr(self, "columns_", {}),
                "match": {
                    "objective": float(match.objective),
                    "per_start": match.objective.per_start,
                    "n_y": match.n_y,
                    "relation": match.relation,
                    "agreement": match.agreement,
                    "gap": match.gap,
                    "converged": match.converged,
                    "verdict": None if match.verdict is None else asdict(match.verdict),
                },
                "arrays_sha256": hashlib.sha256(data).hexdigest(),
            }
        )
        config["config_sha256"] = _digest(config)
        with whole_folder(Path(directory), (ARRAYS, CONFIG)) as folder:
            (folder / ARRAYS).write_bytes(data)
            text = json.dumps(config, indent=1, allow_nan=False)
            (folder / CONFIG).write_text(text, encoding="utf-8")

    @classmethod
    def _load(cls, config: dict[str, Any], arrays: dict[str, np.ndarray]) -> Self:
        estimator = cls(**{k: _tuples(v) for k, v in config["params"].items()})
        facts = dict(config["match"])
        objective = Objective(facts.pop("objective"), facts.pop("per_start"))
        verdict = facts.pop("verdict")
        if verdict is not None:
            facts["verdict"] = Verdict(**{k: _tuples(v) for k, v in verdict.items()})
        per_row: dict[str, Any] = {name: arrays.pop(f"match.{name}") for name in MATCH_ARRAYS}
        estimator.match_ = Match(objective=objective, **per_row, **facts)
        estimator.columns_ = {
            view: (width, _tuples(names)) for view, (width, names) in config["columns"].items()
        }
        estimator._restore(arrays, config["values"])
        return estimator


def _written(value: Any) -> Any:
    """``value`` as JSON holds it; numbers that are not finite become {"float": "nan"}.

    Raises:
        DataError: when it is of a kind that JSON does not have.
    """
    value = value.item() if isinstance(value, np.generic) else value
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(float(value))}
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, list | tuple):
        return [_written(inner) for inner in value]
    if isinstance(value, dict):
        return {str(key): _written(inner) for key, inner in value.items()}
    raise DataError(
        f"A parameter of type {type(value).__name__} cannot be saved. "
        "Give random_state as an integer."
    )


def _read(value: Any) -> Any:
    """What ``_written`` made of a value, turned back."""
    if isinstance(value, list):
        return [_read(inner) for inner in value]
    if isinstance(value, dict):
        if list(value) == ["float"] and value["float"] in _NOT_FINITE:
            return _NOT_FINITE[value["float"]]
        return {key: _read(inner) for key, inner in value.items()}
    return value


def _tuples(value: Any) -> Any:
    """JSON's lists as the tuples they were."""
    return tuple(value) if isinstance(value, list) else value


def _digest(config: dict[str, Any]) -> str:
    """SHA-256 of all of a config but its own digest."""
    rest = {key: value for key, value in config.items() if key != "config_sha256"}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def read_saved(directory: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The config and the arrays in ``directory``.

    Raises:
        DataError: when the folder does not hold a saved estimator, was written by another version,
            or was changed since.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import load

    folder = Path(directory)
    try:
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        data = (folder / ARRAYS).read_bytes()
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(
            f"{folder} does not hold a saved estimator ({CONFIG} and {ARRAYS}): {error}. "
            "Write one with model.save(directory)."
        ) from error
    if not isinstance(config, dict) or "format" not in config:
        raise DataError(
            f"{folder / CONFIG} is not the config of a saved estimator: it has no format. "
            "Write one with model.save(directory)."
        )
    if config["format"] != FORMAT:
        raise DataError(
            f"{folder} was saved in format {config['format']} by unpaired "
            f"{config.get('unpaired', 'of an unknown version')}, and this version, {__version__}, "
            f"reads {FORMAT}. Load it with the version that wrote it."
        )
    if config.get("config_sha256") != _digest(config):
        raise DataError(
            f"{folder / CONFIG} was changed since it was saved. Bring back the original, or fit "
            "the model again with the settings you want."
        )
    if config["arrays_sha256"] != hashlib.sha256(data).hexdigest():
        raise DataError(
            f"{folder / ARRAYS} was changed or cut short since it was saved. Bring back the "
            "original, or fit the model again."
        )
    try:
        return _read(config), load(data)
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"{folder / ARRAYS} could not be read: {error}. Fit again.") from error
