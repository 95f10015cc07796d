"""Finished cells on disk: one file ``cells.jsonl`` a table, one JSON object a line.

One process writes: it appends each cell as one whole line as soon as it is done. A line that was
cut off is no cell, and the next one begins on a line of its own. A cell that was run again stands
further down; the last line of a cell counts.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from unpaired._files import atomic_writer
from unpaired.errors import DataError

FORMAT = 2
FILE = "cells.jsonl"
REQUIRED = {"key", "heading", "label", "metrics"}
Record = dict[str, Any]


def cells_file(out: Path) -> Path:
    """Where the cells of a table belong."""
    return out / FILE


def identity(key: dict[str, Any]) -> str:
    """The key of a cell as one text, whatever the order of its fields."""
    return json.dumps(key, sort_keys=True)


def read_cells(path: Path) -> tuple[dict[str, Record], list[int]]:
    """Records by identity, in the order of the file, and the numbers of lines that are none."""
    records: dict[str, Record] = {}
    damaged = []
    text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    for number, line in enumerate(text.split("\n"), 1):
        if not line.strip():
            continue
        record = _parsed(line)
        if record is None:
            damaged.append(number)
        else:
            records[identity(record["key"])] = record
    return records, damaged


def append_cell(path: Path, record: Record) -> None:
    """Add a record at the end, by one write of one line.

    Numbers that are not finite are left out, JSON has no word for them.
    """
    line = _line(record)
    path.parent.mkdir(parents=True, exist_ok=True)
    with _locked(path), open(path, "ab+") as handle:
        if handle.tell():
            handle.seek(-1, os.SEEK_END)
            line = line if handle.read(1) == b"\n" else b"\n" + line
        handle.write(line)
        handle.flush()
        os.fsync(handle.fileno())


def rewrite_cells(path: Path, change: Callable[[Record], Record] = lambda record: record) -> None:
    """Write the file anew: the last line of each cell, changed; damaged lines go."""
    with _locked(path):
        records = read_cells(path)[0].values()
        with atomic_writer(path) as handle:
            handle.write("".join(_line(change(record)).decode() for record in records))


def read_folder(folder: Path) -> tuple[list[Record], list[str]]:
    """All finished records in or below ``folder``, and the lines that could not be read.

    Raises:
        DataError: when there is no such folder or nothing finished in it.
    """
    if not folder.is_dir():
        raise DataError(f"There is no folder {folder}. Name the one given to --out.")
    records: list[Record] = []
    damaged = []
    for path in sorted(folder.rglob(FILE)):
        found, bad = read_cells(path)
        records += found.values()
        damaged += [f"{path}:{number}" for number in bad]
    if not records:
        raise DataError(
            f"{folder} must hold finished cells: there is none. Run: unpaired bench TASK --config "
            f"FILE --out {folder}."
        )
    return records, damaged


def _parsed(line: str) -> Record | None:
    try:
        record = json.loads(line)
    except ValueError:
        return None
    whole = isinstance(record, dict) and record.get("format") == FORMAT and set(record) >= REQUIRED
    return record if whole else None


def _line(record: Record) -> bytes:
    text = json.dumps(_finite({**record, "format": FORMAT}), allow_nan=False, ensure_ascii=False)
    return (text + "\n").encode()


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Keep other processes of this machine from writing the file meanwhile."""
    try:
        import fcntl
    except ImportError:  # not on Windows: there one command at a time writes a table
        yield
        return
    descriptor = os.open(path.parent, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


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
