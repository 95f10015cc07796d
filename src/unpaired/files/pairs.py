"""Known pairs in, matches out."""

from __future__ import annotations

import csv
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from unpaired._files import atomic_writer
from unpaired.errors import DataError, InputError
from unpaired.files.reading import check_exists, kind_of, read_columns, split_part, told
from unpaired.files.sheet import Sheet, Table, is_number, labels
from unpaired.files.text import read_rows
from unpaired.types import IntArray, Match

_RUN_BY_SPREADSHEETS = ("=", "+", "-", "@", "\t", "\r")


def read_pairs(
    path: str | Path,
    x: Table,
    y: Table,
    argument: str = "pairs",
    tell: Callable[[str], object] = lambda note: None,
) -> IntArray:
    """Known pairs from a two-column file of row names where there are any, else of row numbers.

    Arrays (.npy, .npz) hold row numbers in any case. ``tell`` hears of a line taken as a header,
    and of a file without pairs.

    Raises:
        DataError: when the file does not have two columns.
        InputError: when a name is not in its table, or occurs there twice.
    """
    file, _ = split_part(path)
    check_exists(file)
    read = _rows_of(path, file)
    if isinstance(read, np.ndarray):
        return read
    rows, places, headed = read
    lookups = [_lookup(x, "x", argument), _lookup(y, "y", argument)]
    known = {*lookups[0], *lookups[1]}  # of both, as the columns may have been swapped
    if rows and headed and not any(cell in known or is_number(cell) for cell in rows[0]):
        tell(f"{file}, {places[0]}: {', '.join(rows[0])} taken as a header.")
        rows, places = rows[1:], places[1:]
    if not rows:
        tell(f"{file} holds no {argument}.")
    for row, place in zip(rows, places, strict=True):
        for cell, lookup, side, table in zip(row, lookups, "xy", (x, y), strict=True):
            if cell not in lookup:
                named = "row numbers from 0" if table.ids is None else "its row names"
                other = next(one for one in lookups if one is not lookup)
                swapped = table.ids is not None and cell in other
                raise InputError(
                    f'{argument} names "{cell}" in {place}, which is no row of {side}'
                    + (" but one of the other side: swap the columns. " if swapped else ". ")
                    + f"Use {named}, e.g. {next(iter(lookup), 0)}."
                )
    found = [[lookup[cell] for cell, lookup in zip(row, lookups, strict=True)] for row in rows]
    return np.array(found, dtype=np.int64).reshape(-1, 2)


def _rows_of(path: str | Path, file: Path) -> IntArray | tuple[list[list[str]], list[str], bool]:
    """An array as it is; or cells in two columns, where each row stands, and if one may name them.

    Raises:
        DataError: when there are not two columns.
    """
    if kind_of(file) in {".csv", ".tsv", ".txt"}:
        with told(file):
            rows, lines = read_rows(file)
        if rows and len(rows[0]) != 2:
            raise DataError(
                f"{file} must have two columns in every line, row of x and row of y: line "
                f"{lines[0]} has {len(rows[0])}."
            )
        cells = [[cell.strip() for cell in row] for row in rows]
        return cells, [f"line {line}" for line in lines], True
    read = read_columns(path, header=False)
    if not isinstance(read, Sheet):
        return np.asarray(read)
    held = read.columns
    if len(held) == 1 and all(isinstance(cell, list) and len(cell) == 2 for cell in held[0]):
        read = replace(read, columns=list(zip(*held[0], strict=True)))  # lists in JSON lines
    if len(read.columns) != 2:
        raise DataError(
            f"{file} must have two columns, row of x and row of y: it has {len(read.columns)}."
        )
    columns = [labels(read, column) for column in range(2)]
    rows = [list(row) for row in zip(*columns, strict=True)]
    numbers = range(len(rows)) if read.lines is None else read.lines
    kind = "row" if read.lines is None else "line"
    return rows, [f"{kind} {number}" for number in numbers], read.names is None


def _lookup(table: Table, side: str, argument: str) -> dict[str, int]:
    """Row name (or row number as text) -> row number."""
    names = row_names(table)
    lookup = {name: row for row, name in enumerate(names)}
    if len(lookup) < len(names):
        twice = next(name for row, name in enumerate(names) if lookup[name] != row)
        raise InputError(
            f'{argument} by name need row names that differ: {side} has several rows "{twice}". '
            "Rename them, or pair by row number with --id-column none."
        )
    return {**{plain_cell(name): row for name, row in lookup.items()}, **lookup}


def row_names(table: Table) -> tuple[str, ...]:
    """The names of a table's rows: its ids, or their numbers from 0."""
    return table.ids or tuple(str(i) for i in range(len(table.values)))


def plain_cell(text: str) -> str:
    """A name as it is written into a CSV file, so that no spreadsheet runs it as a formula.

    >>> plain_cell("=1+1"), plain_cell("-2.5"), plain_cell("ant")
    ("'=1+1", '-2.5', 'ant')
    """
    runs = text.startswith(_RUN_BY_SPREADSHEETS) and not is_number(text)
    return f"'{text}" if runs else text


def write_match(match: Match, path: str | Path, x: Table, y: Table) -> None:
    """Write one line per row of x; with the rows' names where the tables have them."""
    if x.ids is None and y.ids is None:
        match.to_csv(path)
        return
    names_x = [plain_cell(name) for name in row_names(x)]
    names_y = [*(plain_cell(name) for name in row_names(y)), ""]  # -1 -> ""
    with atomic_writer(path) as handle:
        writer = csv.writer(handle)
        writer.writerow(["x", "y", "confidence", "row", "partner", "runner_up", "margin"])
        for row, partner in enumerate(match.partner.tolist()):
            numbers = [row, partner, int(match.runner_up[row]), float(match.margin[row])]
            confidence = float(match.confidence[row])
            writer.writerow([names_x[row], names_y[partner], confidence, *numbers])
