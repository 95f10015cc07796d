"""Finished cells on disk: one JSON file each, written whole or not at all."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from unpaired.bench.config import Cell
from unpaired.errors import DataError
from unpaired.types import atomic_writer

FORMAT = 1
FOLDER = "cells"


def cell_path(out: Path, cell: Cell) -> Path:
    """Where the result of a cell belongs."""
    return out / FOLDER / cell.file_name


def is_finished(out: Path, cell: Cell) -> bool:
    """Whether a whole result of exactly this cell is there; a damaged one counts as absent."""
    record = read_cell(cell_path(out, cell))
    return record is not None and record["key"] == json.loads(json.dumps(cell.key))


def read_cell(path: Path) -> dict[str, Any] | None:
    """The record in a file, or None when it is absent, damaged or not one."""
    try:
        record = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    whole = (
        isinstance(record, dict)
        and record.get("format") == FORMAT
        and record.get("finished") is True
        and {"key", "heading", "label", "metrics"} <= set(record)
    )
    return record if whole else None


def write_cell(path: Path, record: dict[str, Any]) -> None:
    """Write a record; numbers that are not finite are left out, JSON has no word for them."""
    with atomic_writer(path) as handle:
        json.dump(_finite({"format": FORMAT, **record}), handle, indent=1, allow_nan=False)
        handle.write("\n")


def read_folder(folder: Path) -> tuple[list[dict[str, Any]], list[Path]]:
    """All finished records in or below ``folder``, and the files that could not be read.

    Raises:
        DataError: when there is no such folder or nothing finished in it.
    """
    if not folder.is_dir():
        raise DataError(f"There is no folder {folder}. Name the one given to --out.")
    records, damaged = [], []
    for path in _files(folder):
        record = read_cell(path)
        if record is None:
            damaged.append(path)
        else:
            records.append(record)
    if not records:
        raise DataError(
            f"{folder} must hold finished cells: there is none. Run: unpaired bench TASK --config "
            f"FILE --out {folder}."
        )
    return records, damaged


def _files(folder: Path) -> Iterator[Path]:
    for path in sorted(folder.rglob("*.json")):
        if path.parent.name == FOLDER and not path.name.startswith("."):
            yield path


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        kept = {k: _finite(v) for k, v in value.items()}
        return {k: v for k, v in kept.items() if not (isinstance(v, float) and math.isnan(v))}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    if hasattr(value, "item"):  # NumPy numbers
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return float("nan")
    return value
