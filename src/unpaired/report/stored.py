"""What a report page is drawn from, kept beside it as JSON, so that it can be drawn again."""

from __future__ import annotations

import json
import math
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import numpy as np

from unpaired.errors import DataError
from unpaired.results import Items, Place, RunResult
from unpaired.types import Match, Objective, Verdict

FILE = "report.json"
FORMAT = 1
_PER_ROW = {
    "partner": np.int64,
    "confidence": np.float64,
    "runner_up": np.int64,
    "margin": np.float64,
}
_PLAIN = ("title", "headline", "settings", "seed", "versions", "seconds", "history")


def write_stored(result: RunResult, folder: Path) -> None:
    """Write report.json into ``folder``: all that the page of a match shows."""
    record: dict[str, Any] = {"format": FORMAT}
    record |= {name: getattr(result, name) for name in _PLAIN}
    record |= {name: list(getattr(result, name)) for name in ("notes", "advice", "ids_x", "ids_y")}
    for name in ("items_x", "items_y"):  # texts; photos are read anew
        record[name] = {str(row): text for row, text in getattr(result, name).texts.items()}
    record["places"] = [[p.side, p.row, p.across, p.up] for p in result.places]
    if result.match is not None:
        own = {f.name: getattr(result.match, f.name) for f in fields(Match)}
        own |= {name: own[name].tolist() for name in _PER_ROW}
        own["per_start"] = result.match.objective.per_start
        own["verdict"] = None if result.match.verdict is None else asdict(result.match.verdict)
        record["match"] = own
    text = json.dumps(_written(record), allow_nan=False, default=str)
    (folder / FILE).write_text(text, encoding="utf-8")


def read_stored(folder: Path) -> RunResult:
    """The result that ``write_stored`` wrote.

    Raises:
        DataError: when the folder holds none, or one that was changed or is of another version.
    """
    path = folder / FILE
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise DataError(
            f"DIR must be a folder that unpaired match wrote: {path} cannot be read ({error}). "
            "Run unpaired match again."
        ) from error
    try:
        if record["format"] != FORMAT:
            raise DataError(
                f"{path} is of format {record['format']}, and this version reads {FORMAT}. Draw "
                "the page with the version that wrote it."
            )
        return _result(record)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DataError(
            f"{path} is not what unpaired match wrote ({type(error).__name__}: {error}). "
            "Run unpaired match again."
        ) from error


def _result(record: dict[str, Any]) -> RunResult:
    plain = {name: _read(record[name]) for name in _PLAIN}
    for name in ("notes", "advice", "ids_x", "ids_y"):
        plain[name] = tuple(str(text) for text in record[name])
    for name in ("items_x", "items_y"):
        texts = record.get(name, {})  # earlier pages had none
        plain[name] = Items({int(row): str(text) for row, text in texts.items()})
    places = tuple(
        Place(str(side), int(row), float(across), float(up))
        for side, row, across, up in _read(record["places"])
    )
    found = None
    if "match" in record:
        own = _read(record["match"])
        own |= {name: np.asarray(own[name], dtype=kind) for name, kind in _PER_ROW.items()}
        own["objective"] = Objective(own["objective"], own.pop("per_start"))
        if own["verdict"] is not None:
            said = own["verdict"]
            low, high = said["interval"]
            own["verdict"] = Verdict(
                str(said["level"]),
                float(said["probability"]),
                float(said["expected_rank"]),
                (float(low), float(high)),
                tuple(map(str, said["reasons"])),
            )
        found = Match(**own)
        _check_rows(found, plain["ids_x"], plain["ids_y"], places)
    return RunResult(**plain, places=places, match=found)


def _check_rows(
    match: Match, ids_x: tuple[str, ...], ids_y: tuple[str, ...], places: tuple[Place, ...]
) -> None:
    """Accept numbers of rows that there are.

    Raises:
        ValueError: otherwise.
    """
    n_x, n_y = len(match.partner), match.n_y
    if any(getattr(match, name).shape != (n_x,) for name in _PER_ROW):
        raise ValueError(f"a column does not have {n_x} rows")
    if len(ids_x) not in (0, n_x) or len(ids_y) not in (0, n_y):
        raise ValueError("there are more or fewer names than rows")
    rows = [*match.partner.tolist(), *match.runner_up.tolist()]
    rows += [place.row for place in places if place.side == "y"]
    if any(not -1 <= row < n_y for row in rows):
        raise ValueError(f"a row of y is not among the {n_y}")
    if any(not 0 <= place.row < n_x for place in places if place.side == "x"):
        raise ValueError(f"a row of x is not among the {n_x}")


def _written(value: Any) -> Any:
    """``value`` as strict JSON has it: numbers that are not finite become {"float": "nan"}."""
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": str(float(value))}
    if isinstance(value, dict):
        return {str(key): _written(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_written(inner) for inner in value]
    return value.item() if isinstance(value, np.generic) else value


def _read(value: Any) -> Any:
    """What ``_written`` made of a value, turned back."""
    if isinstance(value, list):
        return [_read(inner) for inner in value]
    if isinstance(value, dict):
        if list(value) == ["float"] and value["float"] in ("nan", "inf", "-inf"):
            return float(value["float"])
        return {key: _read(inner) for key, inner in value.items()}
    return value
