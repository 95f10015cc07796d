"""Stale cells whose figures today's code still gives: one of each method is run again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from unpaired.bench.cells import append_cell, cells_file, identity, read_cells, rewrite_cells
from unpaired.bench.config import BenchConfig
from unpaired.bench.provenance import cell_digest, is_stale, repository_state
from unpaired.bench.run import Tell, execute
from unpaired.bench.tables import row_value

Record = dict[str, Any]


def confirm_stale(
    config: BenchConfig,
    out: Path,
    *,
    data_root: str | None = None,
    tell: Tell = lambda line: None,
) -> int:
    """How many stale cells were confirmed: those of a method of which one came out the same.

    Stale cells of one method and setting that the same code ran are looked at together, those
    without a pair or label apart from the others, as they go another way. Where the one with the
    fewest pairs (the quickest of those), for which methods ask the engine if they ever do, gives
    the same figures to the last digit when run again, all get today's digest and say by
    which cell and which commit they were ``confirmed``; that the others would come out the same is
    then likely and not shown. Otherwise that cell is replaced, and the rest stays stale.
    """
    file = cells_file(out)
    cells = {identity(cell.key): cell for cell in config.cells()}
    groups: dict[str, list[str]] = {}
    records = read_cells(file)[0]
    for key, record in records.items():
        if key in cells and is_stale(record):
            own = record["key"]
            blind = row_value(own["row"]) == 0
            alike = [own["method"], own["setting"], record.get("digest"), blind]
            groups.setdefault(json.dumps(alike, sort_keys=True), []).append(key)
    code, confirmed = repository_state(), 0
    for keys in groups.values():
        first = min(keys, key=lambda key: _cost(records[key]))
        cell, before = cells[first], records[first]
        where = f"{cell.setting} {cell.row} {cell.method.label} seed {cell.seed}"
        after = execute(cell, data_root, str(out))[1]
        digest = cell_digest(cell.task, cell.key["method"])
        if "error" in after:
            tell(f"{where}: FAILED, {after['error']}")
        elif _figures(after) == _figures(before):
            by = {"commit": code.commit, "dirty": code.dirty, "by": where}
            rewrite_cells(file, _stamper(keys, {"digest": digest, "confirmed": by}))
            confirmed += len(keys)
            tell(f"{where}: the same, {len(keys)} cells confirmed")
        else:
            ran = {"commit": code.commit, "dirty": code.dirty, "digest": digest}
            append_cell(file, {**before, **after, **ran})
            tell(f"{where}: other figures, {len(keys) - 1} cells stay stale")
    rewrite_cells(file)
    return confirmed


def _cost(record: Record) -> tuple[float, float]:
    """What cells are ordered by: how much is known, and the seconds."""
    return row_value(record["key"]["row"]), float(record["seconds"]["total"])


def _stamper(keys: list[str], stamp: Record) -> Callable[[Record], Record]:
    """A function that gives the records of ``keys`` the fields of ``stamp``."""
    return lambda record: {**record, **stamp} if identity(record["key"]) in keys else record


def _figures(record: Record) -> str:
    """All that a cell measured but its seconds, as text."""
    parts = {name: record.get(name) for name in ("metrics", "sizes", "history")}
    return json.dumps(parts, sort_keys=True)
