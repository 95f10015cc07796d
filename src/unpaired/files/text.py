"""Tables in text files: encoding, delimiter, header, cells.

What is decided, in this order, when the caller says nothing:

1. Encoding: UTF-8, or UTF-16 and UTF-32 with a byte order mark. Anything else is refused by name.
2. Delimiter: comma, semicolon, tab, bar or blanks, whichever gives equally many columns in every
   line and the most numbers; on a tie what the ending of the file's name says.
3. Header: line 1 is a header when its first cell is empty (the index that pandas writes), when
   none of its cells over features is a number, or when they count on by one in whole numbers (0,
   1, 2, ... is what pandas writes over columns without names). When some are numbers and some are
   words it is neither, and that is an error.
"""

from __future__ import annotations

import csv
import gzip
import io
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from unpaired._text import decode_text
from unpaired.errors import DataError
from unpaired.files.choice import says_id
from unpaired.files.sheet import (
    Sheet,
    holds_text,
    is_boolean,
    is_missing,
    is_number,
    looks_like_number,
)

MAX_TEXT = 2 * 2**30
"""Bytes of text that are read."""
DELIMITERS = {".csv": ",", ".tsv": "\t", ".txt": "\t"}
_SAMPLE_LINES = 200


def read_text(file: Path) -> str:
    """The text in a file, unpacked when its name ends in .gz.

    Raises:
        DataError: when it is too large, or not text in an encoding that can be told.
    """
    with file.open("rb") as raw:
        packed = file.suffix.lower() == ".gz"
        data = (gzip.GzipFile(fileobj=raw) if packed else raw).read(MAX_TEXT + 1)
    if len(data) > MAX_TEXT:
        raise DataError(
            f"{file} must hold at most {MAX_TEXT / 2**30:.0f} GiB of text: it holds more. "
            "Save the numbers as .npy or .parquet."
        )
    return decode_text(data, file)


def read_rows(file: Path) -> tuple[list[list[str]], list[int]]:
    """The cells of each line that is not empty, and the numbers of those lines from 1.

    Raises:
        DataError: when the lines do not have equally many cells.
    """
    text = read_text(file)
    rows, lines = _split(text, _delimiter(text, file))
    for row, line in zip(rows, lines, strict=True):
        if len(row) != len(rows[0]):
            raise DataError(
                f"{file} must have equally many columns in every line: line {lines[0]} has "
                f"{len(rows[0])} and line {line} has {len(row)}. Check that line's delimiters "
                "and quotes."
            )
    return rows, lines


def read_sheet(file: Path, header: bool | None = None) -> Sheet:
    """The columns of a text file; ``header`` says whether line 1 names them, None finds out.

    Raises:
        DataError: when there are no rows, or line 1 is neither a header nor a row.
    """
    return sheet_of(file, *read_rows(file), header)


def sheet_of(file: Path, rows: list[list[str]], lines: Sequence[int], header: bool | None) -> Sheet:
    """The columns of rows of cells, with the names in row 0 where that is a header.

    Raises:
        DataError: when there are no rows, or row 0 is neither a header nor a row.
    """
    if not rows:
        raise DataError(f"{file} is empty. It needs one line per row.")
    notes: tuple[str, ...] = ()
    indexed = len(rows) > 1 and len(rows[0]) > 1 and not rows[0][0].strip()
    indexed = indexed and all(row[0].strip() for row in rows[1:])
    if header is None:
        header, told = _has_header(rows, file, lines[0], indexed)
        notes = (f"{file}, {told}",) if told else ()
    names = tuple(cell.strip() for cell in rows[0]) if header else None
    if header:
        rows, lines = rows[1:], lines[1:]
    if not rows:
        raise DataError(f"{file} has a header and no rows. It needs one line per row.")
    columns: list[Sequence[str]] = list(zip(*rows, strict=True))
    if header and indexed:  # pandas' index
        ids = tuple(cell.strip() for cell in columns[0])
        return Sheet(file, list(columns[1:]), names[1:] if names else None, ids, lines, notes)
    return Sheet(file, list(columns), names, None, lines, notes)


def _has_header(rows: list[list[str]], file: Path, line: int, indexed: bool) -> tuple[bool, str]:
    """Whether line 1 is a header, and what to tell about it."""
    first, body = rows[0], rows[1:]
    named = bool(body) and len(first) > 1 and holds_text([row[0] for row in body])
    cells = first[1:] if named or indexed else first
    words = [cell for cell in cells if not _is_value(cell) and not is_missing(cell)]
    values = [cell for cell in cells if looks_like_number(cell)]
    if indexed or (words and not values):
        return True, ""
    if not words and named and says_id(first[0]):
        return True, ""
    if not words and body and _counts_on(cells, body, 1 if named else 0):
        told = (
            f"line {line}: {cells[0]}, {cells[1]}, ... taken as a header; --no-header to override."
        )
        return True, told
    if not words:
        return False, ""
    below = [row[first.index(words[0])] for row in body]
    if holds_text(below):  # a column of words, which is told when its cells are read
        return False, ""
    raise DataError(
        f"{file}, line {line} is neither a header nor a row: column {first.index(words[0])} holds "
        f'"{words[0]}", and column {first.index(values[0])} the number {values[0]}. Mend that '
        "cell, or say --header or --no-header."
    )


def _is_value(cell: str) -> bool:
    return looks_like_number(cell) or is_boolean(cell) or cell.lstrip().startswith("[")


def _counts_on(cells: list[str], body: list[list[str]], begin: int) -> bool:
    """Whether cells count on by one, as no row of features does."""
    if len(cells) < 2 or not all(cell.strip().isdecimal() for cell in cells):
        return False
    whole = [int(cell) for cell in cells]
    if whole != list(range(whole[0], whole[0] + len(whole))):
        return False
    if len(cells) > 2 and whole[0] == 0:
        return True
    # 0,1 and 3,4,5 may well be a row of whole numbers: only over fractions they are a header.
    sample = body[:_SAMPLE_LINES]
    return any(
        is_number(cell) and not cell.strip().lstrip("+-").isdecimal()
        for row in sample
        for cell in row[begin:]
    )


def _delimiter(text: str, file: Path) -> str:
    """What separates the cells."""
    kind = file.suffixes[-2] if file.suffix.lower() == ".gz" else file.suffix
    own = DELIMITERS.get(kind.lower(), ",")
    sample = "".join(islice(io.StringIO(text), _SAMPLE_LINES))
    best, best_share = own, -1.0
    for candidate in dict.fromkeys([own, ",", ";", "\t", "|", " "]):
        try:
            rows, _ = _split(sample, candidate)
        except csv.Error:
            continue
        if not rows or len(rows[0]) < 2 or any(len(row) != len(rows[0]) for row in rows):
            continue
        body = rows[1:] or rows
        cells = [cell for row in body for cell in row]
        share = sum(map(looks_like_number, cells)) / len(cells)
        if share > best_share:
            best, best_share = candidate, share
    return best


def _split(text: str, delimiter: str) -> tuple[list[list[str]], list[int]]:
    """The cells of each line that is not empty, and the line numbers."""
    # strict, so that a quote that is never closed is an error and not one long cell
    reader = csv.reader(
        io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True, strict=True
    )
    rows, lines = [], []
    for row in reader:
        kept = [cell for cell in row if cell] if delimiter == " " else row
        if kept:
            rows.append(kept)
            lines.append(reader.line_num)
    blank = [len(row) == 1 and not row[0].strip() for row in rows]
    if any(blank) and max(map(len, rows)) > 1:  # in one column a blank is a missing number
        rows = [row for row, is_blank in zip(rows, blank, strict=True) if not is_blank]
        lines = [line for line, is_blank in zip(lines, blank, strict=True) if not is_blank]
    return rows, lines
