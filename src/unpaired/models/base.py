"""Saving and loading of estimators: safetensors and JSON, nothing pickled."""

from __future__ import annotations

import json
import os
import tempfile
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any, Self

import numpy as np
from safetensors.numpy import load_file, save
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from unpaired.errors import DataError
from unpaired.types import Match, Objective, Verdict, atomic_writer

ARRAYS, CONFIG = "arrays.safetensors", "config.json"
MATCH_ARRAYS = ("partner", "confidence", "runner_up", "margin")


class SavedEstimator(BaseEstimator):  # type: ignore[misc]
    """An estimator whose fitted state is a dict of arrays and a dict of plain values."""

    def _state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Arrays by name, and values that JSON can hold: all that ``_restore`` needs."""
        raise NotFittedError

    def _restore(self, arrays: dict[str, np.ndarray], values: dict[str, Any]) -> None:
        """Become fitted again."""
        raise NotFittedError

    def _check_fitted(self) -> None:
        if not hasattr(self, "history_"):
            name = type(self).__name__
            raise NotFittedError(f"This {name} is not fitted yet: call fit first.")

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Write the fitted estimator to ``directory``: config.json and arrays.safetensors."""
        self._check_fitted()
        arrays, values = self._state()
        match = self.match_
        for name in MATCH_ARRAYS:
            arrays[f"match.{name}"] = getattr(match, name)
        config = {
            "format": 1,
            "unpaired": version("unpaired"),
            "estimator": type(self).__name__,
            "params": self.get_params(deep=False),
            "values": values,
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
        }
        folder = Path(directory)
        folder.mkdir(parents=True, exist_ok=True)
        # np.ascontiguousarray would make vectors of single numbers.
        data = save({name: np.asarray(array, order="C") for name, array in arrays.items()})
        fd, temporary = tempfile.mkstemp(dir=folder)
        with os.fdopen(fd, "wb") as handle:
            handle.write(data)
        os.replace(temporary, folder / ARRAYS)
        with atomic_writer(folder / CONFIG) as handle:
            json.dump(config, handle, indent=1, default=_plain)

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
        estimator._restore(arrays, config["values"])
        return estimator


def _plain(value: Any) -> Any:
    """NumPy scalars as Python numbers, for JSON."""
    if isinstance(value, np.generic):
        return value.item()
    raise DataError(
        f"A parameter of type {type(value).__name__} cannot be saved. "
        "Give random_state as an integer."
    )


def _tuples(value: Any) -> Any:
    """JSON's lists as the tuples they were."""
    return tuple(value) if isinstance(value, list) else value


def read_saved(directory: str | os.PathLike[str]) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """The config and the arrays in ``directory``.

    Raises:
        DataError: when the folder does not hold a saved estimator.
    """
    folder = Path(directory)
    try:
        config = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        arrays = load_file(folder / ARRAYS)
    except (OSError, ValueError) as error:
        raise DataError(
            f"{folder} does not hold a saved estimator ({CONFIG} and {ARRAYS}): {error}. "
            "Write one with model.save(directory)."
        ) from error
    if config.get("format") != 1:
        raise DataError(
            f"{folder} was saved in format {config.get('format')}, this version reads 1. "
            "Load it with the version of unpaired that wrote it."
        )
    return config, arrays
