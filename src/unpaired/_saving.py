"""A folder that holds something fitted: ``config.json`` and ``arrays.safetensors``; no pickles.

The folder is written whole and then put in the place of an earlier one. The config holds digests of
the arrays and of itself, so that a folder that was changed since is refused.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from unpaired import __version__
from unpaired._files import whole_folder
from unpaired.errors import DataError
from unpaired.types import Match, Objective, Verdict

ARRAYS, CONFIG = "arrays.safetensors", "config.json"
FORMAT = 3
KEYS = frozenset({"unpaired", "estimator", "params", "values", "columns", "match", "arrays_sha256"})
"""What every config says, beside its format and its own digest."""
MATCH_ARRAYS = ("partner", "confidence", "runner_up", "margin")
_NOT_FINITE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}

Columns = dict[str, tuple[int, tuple[str, ...] | None]]
"""View -> how many columns it has, and their names where they have any."""


def write_saved(
    directory: str | os.PathLike[str],
    kind: str,
    arrays: dict[str, np.ndarray],
    *,
    params: dict[str, Any] | None = None,
    values: dict[str, Any] | None = None,
    columns: Columns | None = None,
    match: Match | None = None,
) -> None:
    """Write a folder that ``read_saved`` reads; an earlier save there is replaced as a whole.

    Raises:
        InputError: when ``directory`` cannot be written, or holds other files.
        DataError: when a value cannot be written as JSON.
    """
    from safetensors.numpy import save

    arrays = dict(arrays)
    for name in MATCH_ARRAYS if match is not None else ():
        arrays[f"match.{name}"] = getattr(match, name)
    # not ascontiguousarray, which makes vectors of single numbers
    data = save({name: np.asarray(array, order="C") for name, array in arrays.items()})
    config = _written(
        {
            "format": FORMAT,
            "unpaired": __version__,
            "estimator": kind,
            "params": params or {},
            "values": values or {},
            "columns": columns or {},
            "match": None if match is None else _facts(match),
            "arrays_sha256": hashlib.sha256(data).hexdigest(),
        }
    )
    config["config_sha256"] = _digest(config)
    with whole_folder(Path(directory), (ARRAYS, CONFIG)) as folder:
        (folder / ARRAYS).write_bytes(data)
        text = json.dumps(config, indent=1, allow_nan=False)
        (folder / CONFIG).write_text(text, encoding="utf-8")


def _facts(match: Match) -> dict[str, Any]:
    """What a match holds beside its arrays."""
    return {
        "objective": float(match.objective),
        "per_start": match.objective.per_start,
        "n_y": match.n_y,
        "relation": match.relation,
        "agreement": match.agreement,
        "gap": match.gap,
        "converged": match.converged,
        "verdict": None if match.verdict is None else asdict(match.verdict),
    }


def saved_match(config: dict[str, Any], arrays: dict[str, np.ndarray]) -> Match:
    """The match in a saved folder; its arrays are taken out of ``arrays``."""
    facts = dict(config["match"])
    objective = Objective(facts.pop("objective"), facts.pop("per_start"))
    verdict = facts.pop("verdict")
    if verdict is not None:
        facts["verdict"] = Verdict(**{k: tuples(v) for k, v in verdict.items()})
    per_row: dict[str, Any] = {name: arrays.pop(f"match.{name}") for name in MATCH_ARRAYS}
    return Match(objective=objective, **per_row, **facts)


def saved_columns(config: dict[str, Any]) -> Columns:
    """The columns of both views in a saved folder."""
    return {view: (width, tuples(names)) for view, (width, names) in config["columns"].items()}


def under(prefix: str, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays whose names begin with ``prefix``, by the rest of their names."""
    return {k.removeprefix(prefix): a for k, a in arrays.items() if k.startswith(prefix)}


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
    missing = sorted(KEYS - set(config))
    if missing:
        raise DataError(
            f"{folder / CONFIG} must say what was saved: it has no {missing[0]}. Bring back the "
            "original, or fit the model again."
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


def tuples(value: Any) -> Any:
    """JSON's lists as the tuples they were."""
    return tuple(value) if isinstance(value, list) else value
