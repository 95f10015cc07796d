"""A file's columns as they are, and their cells as numbers or names."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unpaired.errors import DataError

MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "#n/a"})
BOOLEANS = {"true": 1.0, "false": 0.0}
"""What pandas writes for yes and no; other kinds of file hold them as 1 and 0."""
_NUMBERS = (int, float, np.number)
_NUMBER = re.compile(
    r"\s*[+-]?(\d+\.?\d*([eE][+-]?\d+)?|\.\d+([eE][+-]?\d+)?|inf(inity)?|nan)\s*",
    re.IGNORECASE | re.ASCII,
)
_WHOLE = re.compile(r"\s*[+-]?\d{1,18}\s*", re.ASCII)
_WHOLE_ANYHOW = re.compile(r"\s*[+-]?\d+(\.0*)?([eE]\+?\d+)?\s*", re.ASCII)
_DECIMAL_COMMA = re.compile(r"\s*[+-]?\d+,\d+([eE][+-]?\d+)?\s*")
_DRESSED = re.compile(
    r"[+\-\u2212]?[$\u20ac\u00a3\u00a5]?[+\-\u2212]?"  # either may come first
    r"(\d{1,3}([,.'\u2019\u00a0\u2009\u202f]\d{3})+|\d+)([.,\u066b]\d*)?"
    r"\s?[%\u2030$\u20ac\u00a3\u00a5]?"
)
"""Numbers for people: signs of money and percent, thousands set apart, a true minus."""


@dataclass(frozen=True)
class Table:
    """Numbers from a file, and the names of its rows and columns when the file has them."""

    values: NDArray[Any]
    ids: tuple[str, ...] | None = None
    names: tuple[str, ...] | None = None
    notes: tuple[str, ...] = ()
    """What was decided about the file, in sentences for the person who gave it."""

    @property
    def columns(self) -> tuple[str, ...] | None:
        """The names of the columns, so that estimators take a table as they take a frame."""
        return self.names

    def to_numpy(self) -> NDArray[Any]:
        """The numbers alone."""
        return self.values


@dataclass(frozen=True)
class Sheet:
    """Columns as the file holds them: text, numbers, or vectors (a matrix) each."""

    file: Path
    columns: list[Sequence[Any] | NDArray[Any]]
    names: tuple[str, ...] | None = None
    ids: tuple[str, ...] | None = None
    """Names of rows that the file itself sets apart, as pandas' index is."""
    lines: Sequence[int] | None = None
    """Line of each row in a text file."""
    notes: tuple[str, ...] = ()
    settled: bool = False
    """Whether the file itself says that its columns are features, whatever they are called."""

    def title(self, column: int) -> str:
        """What a column is called in a message: its number from 0, and its name."""
        name = self.names[column] if self.names else ""
        return f"column {column}" + (f" ({name})" if name else "")

    def place(self, row: int, column: int) -> str:
        """Where a cell is: by line in a text file, by row elsewhere."""
        where = f"row {row}" if self.lines is None else f"line {self.lines[row]}"
        return f"{self.file}, {where}, {self.title(column)}"


def is_number(cell: str) -> bool:
    """Whether a cell is a number as people write them; 1_000 is not."""
    return _NUMBER.fullmatch(cell) is not None


def is_missing(cell: str) -> bool:
    """Whether a cell stands for a missing number."""
    return cell.strip().lower() in MISSING


def looks_like_number(cell: str) -> bool:
    """Whether a cell is a number, also with a decimal comma."""
    return is_number(cell) or _DECIMAL_COMMA.fullmatch(cell) is not None


def holds_text(column: Sequence[Any] | NDArray[Any]) -> bool:
    """Whether more than half of the cells are words."""
    if isinstance(column, np.ndarray) and column.dtype.kind in "fiub":
        return False
    words = [isinstance(c, str) and not is_missing(c) and not _is_cell(c) for c in column]
    return 2 * sum(words) > len(words)


def _is_cell(cell: str) -> bool:
    """Whether a text cell holds features: a number, yes or no, or a list."""
    return (
        looks_like_number(cell)
        or is_boolean(cell)
        or cell.lstrip().startswith("[")
        or _DRESSED.fullmatch(cell.strip()) is not None
    )


def is_boolean(cell: str) -> bool:
    """Whether a text cell is True or False."""
    return cell.strip().lower() in BOOLEANS


def whole_numbers(column: Sequence[Any] | NDArray[Any]) -> NDArray[np.int64] | None:
    """The column as whole numbers, or None when it holds anything else."""
    if isinstance(column, np.ndarray):
        return column.astype(np.int64) if column.dtype.kind in "iu" and column.ndim == 1 else None
    for cell in column:
        if isinstance(cell, bool) or not (
            isinstance(cell, int) or (isinstance(cell, str) and _WHOLE.fullmatch(cell))
        ):
            return None
    try:
        return np.array([int(cell) for cell in column], dtype=np.int64)
    except OverflowError:
        return None


def count_whole(column: Sequence[Any] | NDArray[Any]) -> int | None:
    """How many distinct whole numbers a column holds, however written; None when any is none.

    >>> count_whole(["5", "5.0", "12345678901234567890", "1e5"]), count_whole(["5", "0.5"])
    (3, None)
    """
    if isinstance(column, np.ndarray):
        if column.ndim != 1 or column.dtype.kind not in "iuf" or (column % 1 != 0).any():
            return None
        return len(np.unique(column))
    seen = set()
    for cell in column:
        if isinstance(cell, str) and _WHOLE_ANYHOW.fullmatch(cell):
            seen.add(Decimal(cell.strip()))
        elif isinstance(cell, int | float) and not isinstance(cell, bool) and cell % 1 == 0:
            seen.add(Decimal(cell))
        else:
            return None
    return len(seen)


def labels(sheet: Sheet, column: int) -> tuple[str, ...]:
    """The cells of a column as names of rows.

    Raises:
        DataError: when one is empty.
    """
    cells = sheet.columns[column]
    if isinstance(cells, np.ndarray) and cells.dtype.kind == "f" and count_whole(cells) is not None:
        cells = [f"{cell:.0f}" for cell in cells]  # whole numbers that were kept as 7.0
    names = tuple("" if cell is None else str(cell).strip() for cell in cells)
    if "" in names:
        raise DataError(
            f"{sheet.place(names.index(''), column)} is empty, and holds the ids. "
            "Give the row a name."
        )
    return names


def numbers(sheet: Sheet, column: int) -> NDArray[Any]:
    """A column as finite numbers, (n,) or (n, k) for vectors.

    Raises:
        DataError: naming the first cell that is not a number, or not finite.
    """
    found = _numbers(sheet, column)
    if found.dtype.kind == "f" and not np.isfinite(found).all():
        wrong = np.argwhere(~np.isfinite(found))
        value = found[tuple(wrong[0])]
        more = f", as are {len(wrong) - 1} more in this column" if len(wrong) > 1 else ""
        raise DataError(
            f"{sheet.place(int(wrong[0][0]), column)} must be a finite number: it is "
            f"{'missing (nan)' if np.isnan(value) else f'infinite ({value})'}{more}. Impute it, or "
            "drop the row or the column."
        )
    return found


def _numbers(sheet: Sheet, column: int) -> NDArray[Any]:
    """A column as numbers, finite or not."""
    cells = sheet.columns[column]
    if isinstance(cells, np.ndarray) and cells.dtype.kind in "fiub":
        return cells
    cells = list(cells)
    if cells and all(isinstance(cell, str) and is_boolean(cell) for cell in cells):
        return np.array([BOOLEANS[cell.strip().lower()] for cell in cells])
    if cells and isinstance(cells[0], str) and cells[0].lstrip().startswith("["):
        cells = [_vector(sheet, row, column, cell) for row, cell in enumerate(cells)]
    if cells and isinstance(cells[0], list | tuple | np.ndarray):
        return _matrix(sheet, column, cells)
    try:
        converted = np.array(cells, dtype=object).astype(np.float64)
    except (OverflowError, ValueError, TypeError):
        converted = None
    if converted is None or converted.shape != (len(cells),) or _is_odd(cells):
        for row, cell in enumerate(cells):
            if not (is_number(cell) if isinstance(cell, str) else isinstance(cell, _NUMBERS)):
                raise DataError(_bad_cell(sheet, row, column, cells))
    if converted is None:
        raise DataError(
            f"{sheet.file}, {sheet.title(column)} holds numbers too large to compute with. "
            "Rescale the column."
        )
    return converted


def _is_odd(cells: list[Any]) -> bool:
    """Whether cells hold what float() takes and people do not mean: None, 1_000, other numerals."""
    try:
        text = "".join(cells)  # far faster than cell by cell
    except TypeError:
        text = "".join(cell for cell in cells if isinstance(cell, str))
        if any(cell is None for cell in cells):
            return True
    return "_" in text or not text.isascii()


def _bad_cell(sheet: Sheet, row: int, column: int, cells: list[Any]) -> str:
    """What is wrong with a cell, and what to do about it."""
    cell, place = cells[row], sheet.place(row, column)
    if cell is None or (isinstance(cell, str) and is_missing(cell)):
        n_empty = sum(c is None or (isinstance(c, str) and is_missing(c)) for c in cells)
        more = f", as are {n_empty - 1} more in this column" if n_empty > 1 else ""
        return f"{place} is empty{more}. Impute the number, or drop the row or the column."
    if isinstance(cell, str) and _DECIMAL_COMMA.fullmatch(cell):
        return f'{place} must be a number: "{cell}" has a comma. Write decimals with a point.'
    if isinstance(cell, str) and _DRESSED.fullmatch(cell.strip()):
        return (
            f'{place} must be a plain number, such as -1234.5: it holds "{cell}". Write it so, or '
            "name the column of ids with --id-column, or the columns to use with --features."
        )
    shown = str(cell) if len(str(cell)) <= 60 else str(cell)[:60] + "..."
    return (
        f'{place} must be a number: it holds "{shown}". Mend it, name the column of ids with '
        "--id-column, or the columns to use with --features."
    )


def _vector(sheet: Sheet, row: int, column: int, cell: Any) -> Any:
    """A list written as text."""
    try:
        return json.loads(cell)
    except (ValueError, RecursionError, TypeError) as error:
        raise DataError(
            f"{sheet.place(row, column)} must be a list of numbers, such as [0.5, 1.0]: {error}. "
            "Write each number into a column of its own."
        ) from error


def _matrix(sheet: Sheet, column: int, cells: list[Any]) -> NDArray[Any]:
    """Vectors of one length as a matrix."""
    length = len(cells[0])
    for row, cell in enumerate(cells):
        fits = isinstance(cell, list | tuple | np.ndarray) and len(cell) == length
        odd = [str(c)[:60] for c in cell if not isinstance(c, _NUMBERS)] if fits else []
        if not fits or odd:
            got = f"{len(cell)} values" if isinstance(cell, list | tuple | np.ndarray) else "none"
            got = f'"{odd[0]}", which is no number' if odd else got
            raise DataError(
                f"{sheet.place(row, column)} must be a list of {length} numbers, like the first "
                f"row: it has {got}. Drop the row, or embed it again."
            )
    return np.array(cells, dtype=np.float64)
