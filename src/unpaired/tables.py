"""People's files in and out: npy, npz, csv, tsv and parquet."""

from __future__ import annotations

import csv
import zipfile
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

    ``file.npz:key`` picks one array of an archive that holds several. The index that pandas writes
    along with a frame counts as row names too.

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
    kind = file.suffix.lower()
    if kind not in readers:
        raise DataError(f"{file} is not of a known kind ({KINDS}). Convert it to one of these.")
    try:
        return readers[kind](file)
    except DataError:
        raise
    except (OSError, ValueError, EOFError, csv.Error, zipfile.BadZipFile) as error:
        raise DataError(
            f"{file} could not be read as {kind[1:]}: {str(error).rstrip('.')}. "
            "Check that it is what its name says, or write it again as plain numbers."
        ) from error


def _read_npy(file: Path) -> Table:
    with file.open("rb") as handle:
        return Table(np.lib.format.read_array(handle, allow_pickle=False))


def _read_npz(file: Path, key: str | None) -> Table:
    with file.open("rb") as handle, np.lib.npyio.NpzFile(handle, allow_pickle=False) as archive:
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
    rows = _read_rows(file, delimiter)
    if not rows:
        raise DataError(f"{file} is empty. It needs one line per row.")
    if len({len(row) for row in rows}) > 1:
        widths = sorted({len(row) for row in rows})
        raise DataError(f"{file} must have equally many columns in every line: it has {widths}.")
    several = len(rows) > 1 and len(rows[0]) > 1
    indexed = several and not rows[0][0].strip() and all(row[0].strip() for row in rows[1:])
    named = indexed or (several and not any(_is_number(row[0]) for row in rows[1:]))
    first = 1 if named else 0
    if indexed or not all(_is_number(c) or _is_missing(c) for c in rows[0][first:]):
        rows = rows[1:]  # a header
    if not rows:
        raise DataError(f"{file} has a header and no rows. It needs one line per row.")
    try:
        values = np.array([[float(cell) for cell in row[first:]] for row in rows])
    except ValueError as error:
        raise DataError(
            f"{file} must hold numbers, apart from a header line and a first column of names: "
            f"{error}. Drop or encode the other columns."
        ) from error
    return Table(values, tuple(row[0] for row in rows) if named else None)


def _read_rows(file: Path, delimiter: str) -> list[list[str]]:
    """The lines of a text file that are not empty, split into cells."""
    with file.open(newline="", encoding="utf-8-sig") as handle:
        reader = csv.reader(handle, delimiter=delimiter, skipinitialspace=True)
        return [row for row in reader if row]


def _is_missing(cell: str) -> bool:
    """Whether a cell stands for a missing number, which no header does."""
    return cell.strip().lower() in {"", "na", "n/a", "nan", "null", "none"}


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
    index = table.schema.get_field_index("__index_level_0__")  # where pandas keeps row names
    if index >= 0:
        rest = [i for i in range(table.num_columns) if i != index]
        table = table.select([index, *rest])
    columns = [column.to_numpy(zero_copy_only=False) for column in table.columns]
    named = len(columns) > 1 and (index >= 0 or columns[0].dtype.kind not in "fiub")
    body = columns[1:] if named else columns
    wrong = [
        name
        for name, column in zip(table.column_names[named:], body, strict=True)
        if column.dtype.kind not in "fiub"
    ]
    if wrong:
        raise DataError(f"{file} must hold numbers: column {wrong[0]} does not. Drop or encode it.")
    ids = tuple(str(value) for value in columns[0]) if named else None
    return Table(np.column_stack(body), ids)


def read_pairs(path: str | Path, x: Table, y: Table) -> IntArray:
    """Known pairs from a two-column file of row numbers, or of row names where there are any.

    Raises:
        DataError: when the file does not have two columns.
        InputError: when a name is not in its table, or occurs there twice.
    """
    file = Path(path)
    if file.suffix.lower() in {".csv", ".tsv"}:
        if not file.is_file():
            raise DataError(f"There is no file {file}. It should have two columns: x, y.")
        try:
            rows = _read_rows(file, "," if file.suffix.lower() == ".csv" else "\t")
        except (OSError, ValueError, csv.Error) as error:
            raise DataError(f"{file} could not be read: {error}. Save it as UTF-8.") from error
        if any(len(row) != 2 for row in rows):
            raise DataError(f"{file} must have two columns in every line: row of x, row of y.")
        lookups = [_lookup(x, "x"), _lookup(y, "y")]
        if rows and not any(
            cell in lookup or _is_number(cell)
            for cell, lookup in zip(rows[0], lookups, strict=True)
        ):
            rows = rows[1:]  # a header
        found = []
        for line, row in enumerate(rows):
            for cell, lookup, side, table in zip(row, lookups, "xy", (x, y), strict=True):
                if cell not in lookup:
                    known = "row numbers from 0" if table.ids is None else "its row names"
                    raise InputError(
                        f'pairs names "{cell}" in pair {line}, which is no row of {side}. '
                        f"Use {known}, e.g. {next(iter(lookup), 0)}."
                    )
            found.append([lookup[cell] for cell, lookup in zip(row, lookups, strict=True)])
        return np.array(found, dtype=np.int64).reshape(-1, 2)
    return np.asarray(read_table(file).values)


def _lookup(table: Table, side: str) -> dict[str, int]:
    """Row name (or row number as text) -> row number."""
    names = table.ids or tuple(str(i) for i in range(len(table.values)))
    lookup = {name: row for row, name in enumerate(names)}
    if len(lookup) < len(names):
        twice = next(name for row, name in enumerate(names) if lookup[name] != row)
        raise InputError(
            f'pairs by name need row names that differ: {side} has several rows "{twice}". '
            "Rename them, or drop the column of names and pair by row number."
        )
    return lookup


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
