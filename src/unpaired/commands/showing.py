"""What the page of a match shows of rows: people's photos and texts, the columns that stand out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np

from unpaired.errors import DataError, InputError
from unpaired.features.sources import PHOTO_KINDS, read_lines, read_photo
from unpaired.files.pairs import read_pairs
from unpaired.files.sheet import Table
from unpaired.report.items import describe_rows
from unpaired.results import Items
from unpaired.types import IntArray

THUMBNAIL = 64
DIGITS = "0123456789"
MOST_COLUMNS = 1000
"""Tables of more columns are vectors of a model, whose columns say nothing to a person."""


def described(table: Table, rows: Iterable[int]) -> Items:
    """The columns that set rows apart; none where names say nothing, as 0, 1, 2 or v0, v1, v2."""
    names = table.names or ()
    if len(names) > MOST_COLUMNS or len({name.strip().rstrip(DIGITS) for name in names}) < 2:
        return Items()
    return Items(describe_rows(table.values, names, rows))


def read_items(source: Path, ids: Sequence[str], rows: Iterable[int], argument: str) -> Items:
    """Photos from a folder, or texts from a file, of the rows that a page shows.

    Raises:
        DataError: when the source cannot be read.
        InputError: when nothing in it belongs to a row.
    """
    if source.is_dir():
        return Items(photos=_photos(source, ids, rows, argument))
    return Items(_texts(source, ids, argument))


def _photos(
    folder: Path, ids: Sequence[str], rows: Iterable[int], argument: str
) -> dict[int, np.ndarray]:
    """Row -> photo, by a file called as the row is, with or without its ending."""
    files: dict[str, Path] = {}
    for file in sorted(folder.rglob("*"), reverse=True):
        if file.suffix.lower() in PHOTO_KINDS:
            inside = file.relative_to(folder)
            files |= {inside.with_suffix("").as_posix(): file, inside.as_posix(): file}
    photos = {}
    for row in rows:
        if ids[row] in files:
            try:
                photos[int(row)] = read_photo(files[ids[row]].read_bytes(), THUMBNAIL)
            except DataError:
                continue  # a photo that cannot be read is not shown
    if not photos:
        raise InputError(
            f'{argument} must hold photos called as the rows are, such as "{ids[0]}" or '
            f'"{ids[0]}.jpg": {folder} has none of those shown. Rename them, or give a text file.'
        )
    return photos


def _texts(file: Path, ids: Sequence[str], argument: str) -> dict[int, str]:
    """Row -> text, from lines id<TAB>text, or from one line for each row in order."""
    lines = read_lines(file)
    if any("\t" in line for _, line in lines):
        row_of = {name: row for row, name in enumerate(ids)}
        parts = [line.partition("\t") for _, line in lines]
        texts = {row_of[name]: text for name, _, text in parts if name in row_of}
        if not texts:
            raise InputError(
                f'{argument} must have lines id<TAB>text for rows such as "{ids[0]}": {file} '
                f'begins with "{parts[0][0]}". Use the ids in match.csv.'
            )
        return texts
    if lines[-1][0] != len(ids):
        raise InputError(
            f"{argument} must have a line for each of the {len(ids):,} rows, or lines id<TAB>text: "
            f"{file} has {lines[-1][0]:,} lines."
        )
    return {number - 1: line for number, line in lines}


def read_truth(
    file: str,
    ids_x: Sequence[str],
    ids_y: Sequence[str],
    tell: Callable[[str], object] = lambda note: None,
) -> IntArray:
    """The true row of y for each row of x, -1 where the file says nothing.

    Raises:
        InputError: when the file names two partners of one row.
    """
    sides = [Table(np.empty((len(ids), 0)), tuple(ids)) for ids in (ids_x, ids_y)]
    truth = np.full(len(ids_x), -1, dtype=np.int64)
    for row, partner in read_pairs(file, sides[0], sides[1], "truth", tell).tolist():
        if truth[row] not in (-1, partner):
            raise InputError(
                f'truth must name one partner a row: "{ids_x[row]}" has several in {file}. '
                "Keep one of them."
            )
        truth[row] = partner
    return truth
