"""People's files in and out: npy, npz, csv, tsv and parquet."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unpaired.errors import DataError, InputError
from unpaired.types import IntArray, Match, atomic_writer

KINDS = ".npy, .npz, .csv, .tsv, .parquet"


@dataclass(frozen=True)
class Table:
    """Numbers from a file, and the names of its rows when the file has them."""

    values: NDArray[Any]
    ids: tuple[str, ...] | None = None


def read_table(path: str | Path) -> Table:
    """The numbers in a file, (rows, columns); a first column of text becomes the row names.

    ``file.npz:key`` picks one array of an archive that holds several.

    Raises:
        DataError: when the file is missing, of another kind, or not what its name says.
    """
    text = str(path)
    name, key = text.rsplit(":", 1) if ".npz:" in text else (text, None)
    file = Path(name)
    if not file.is_file():
        raise DataError(f"There is no file {file}. Check the path; known kinds: {KINDS}.")
    readers = {
        ".npy": _read_npy,
        ".npz": lambda f: _read_npz(f, key),
        ".csv": lambda f: _read_text(f, ","),
        ".tsv": lambda f: _read_text(f, "\t"),
        ".parquet": _read_parquet,
    }
    if file.suffix not in readers:
        raise DataError(f"{file} is not of a known kind ({KINDS}). Convert it to one of these.")
    try:
        return readers[file.suffix](file)
    except DataError:
        raise
    except (OSError, ValueError, EOFError) as error:
        raise DataError(f"{file} could not be read as {file.suffix[1:]}: {error}.") from error


def _read_npy(file: Path) -> Table:
    return Table(np.load(file, allow_pickle=False))


def _read_npz(file: Path, key: str | None) -> Table:
    with np.load(file, allow_pickle=False) as archive:
        names = list(archive.files)
        if key is None and len(names) == 1:
            key = names[0]
        if key not in names:
            raise DataError(
                f"{file} holds the arrays {', '.join(names)}. "
                f"Say which one, e.g. {file}:{names[0] if names else 'name'}."
            )
        return Table(archive[key])


def _read_text(file: Path, delimiter: str) -> Table:
    with file.open(newline="", encoding="utf-8-sig") as handle:
        rows = [row for row in csv.reader(handle, delimiter=delimiter) if row]
    if not rows:
        raise DataError(f"{file} is empty. It needs one line per row.")
    if len({len(row) for row in rows}) > 1:
        widths = sorted({len(row) for row in rows})
        raise DataError(f"{file} must have equally many columns in every line: it has {widths}.")
    named = len(rows) > 1 and len(rows[0]) > 1 and not any(_is_number(row[0]) for row in rows[1:])
    first = 1 if named else 0
    if not all(_is_number(cell) for cell in rows[0][first:]):
        rows = rows[1:]  # a header
    try:
        values = np.array([[float(cell) for cell in row[first:]] for row in rows])
    except ValueError as error:
        raise DataError(
            f"{file} must hold numbers, apart from a header line and a first column of names: "
            f"{error}. Drop or encode the other columns."
        ) from error
    return Table(values, tuple(row[0] for row in rows) if named else None)


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _read_parquet(file: Path) -> Table:
    try:
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise DataError(f"Reading {file} needs PyArrow: pip install 'unpaired[frames]'.") from error
    table = parquet.read_table(file)
    columns = [column.to_numpy(zero_copy_only=False) for column in table.columns]
    named = len(columns) > 1 and columns[0].dtype.kind not in "fiub"
    body = columns[1:] if named else columns
    wrong = [
        n for n, c in zip(table.column_names[named:], body, strict=True) if c.dtype.kind == "O"
    ]
    if wrong:
        raise DataError(f"{file} must hold numbers: column {wrong[0]} does not. Drop or encode it.")
    ids = tuple(str(value) for value in columns[0]) if named else None
    return Table(np.column_stack(body), ids)


def read_pairs(path: str | Path, x: Table, y: Table) -> IntArray:
    """Known pairs from a two-column file of row numbers, or of row names where there are any.

    Raises:
        DataError: when the file does not have two columns.
        InputError: when a name is not in its table.
    """
    file = Path(path)
    if file.suffix in {".csv", ".tsv"}:
        if not file.is_file():
            raise DataError(f"There is no file {file}. It should have two columns: x, y.")
        delimiter = "," if file.suffix == ".csv" else "\t"
        with file.open(newline="", encoding="utf-8-sig") as handle:
            rows = [row for row in csv.reader(handle, delimiter=delimiter) if row]
        if any(len(row) != 2 for row in rows):
            raise DataError(f"{file} must have two columns in every line: row of x, row of y.")
        lookups = [_lookup(x), _lookup(y)]
        if rows and any(cell not in lookup for cell, lookup in zip(rows[0], lookups, strict=True)):
            rows = rows[1:]  # a header
        found = []
        for line, row in enumerate(rows):
            for cell, lookup, side in zip(row, lookups, "xy", strict=True):
                if cell not in lookup:
                    raise InputError(
                        f'pairs names "{cell}" in pair {line}, which is no row of {side}. '
                        "Use row names of the first column, or row numbers from 0."
                    )
            found.append([lookup[cell] for cell, lookup in zip(row, lookups, strict=True)])
        return np.array(found, dtype=np.int64).reshape(-1, 2)
    return np.asarray(read_table(file).values)


def _lookup(table: Table) -> dict[str, int]:
    """Row name (or row number as text) -> row number."""
    names = table.ids or tuple(str(i) for i in range(len(table.values)))
    return {name: row for row, name in enumerate(names)}


def write_match(match: Match, path: str | Path, x: Table, y: Table) -> None:
    """Write one line per row of x; with the rows' names where the tables have them."""
    if x.ids is None and y.ids is None:
        match.to_csv(path)
        return
    names_x = x.ids or tuple(str(i) for i in range(len(x.values)))
    names_y = (*(y.ids or tuple(str(i) for i in range(len(y.values)))), "")  # -1 -> ""
    with atomic_writer(path) as handle:
        writer = csv.writer(handle)
        writer.writerow(["x", "y", "confidence", "row", "partner", "runner_up", "margin"])
        for row, partner in enumerate(match.partner.tolist()):
            numbers = [row, partner, int(match.runner_up[row]), float(match.margin[row])]
            confidence = float(match.confidence[row])
            writer.writerow([names_x[row], names_y[partner], confidence, *numbers])
