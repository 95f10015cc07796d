"""Which columns of a file are names of rows and which are features."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray

from unpaired.errors import DataError, InputError
from unpaired.files.sheet import (
    Sheet,
    Table,
    count_whole,
    holds_text,
    labels,
    numbers,
    whole_numbers,
)

ID_WORDS = frozenset(
    ("id", "ids", "idx", "index", "key", "name", "names", "label", "uid", "uuid", "guid", "rowid")
    + ("no", "nr", "number", "barcode")
)
FEWEST_CONSECUTIVE = 10
"""Rows from which on 0, 1, 2, ... in a first column of any name are taken as ids."""


def says_id(name: str) -> bool:
    """Whether the name of a column says that it holds names of rows.

    >>> list(map(says_id, ("ID", "cell_id", "sampleId", "width", "valid", "Unnamed: 0")))
    [True, True, True, False, False, True]
    """
    if name.startswith("Unnamed: 0"):  # what pandas calls an index that was written and read again
        return True
    words = re.sub(r"([a-z0-9])([A-Z])", r"\1 \2", name).lower()
    parts = re.split(r"[^a-z0-9]+", words.strip())
    return bool(parts) and parts[-1] in ID_WORDS


def to_table(sheet: Sheet, id_column: str | None = None, features: str | None = None) -> Table:
    """The features of a sheet as one matrix, and the names of its rows.

    Args:
        sheet: What the file holds.
        id_column: Name or number (from 0) of the column with the names of rows; "none" when there
            is none. By default it is found, and ``Table.notes`` tells.
        features: Names or numbers of the columns to use, such as "1-4,7"; all others by default.

    Raises:
        InputError: when a column is named that is not there.
        DataError: when a cell is not a number.
    """
    chosen = None if features is None else find_columns(sheet, features, "features")
    ids, notes, spent = sheet.ids, list(sheet.notes), []
    if id_column is not None and id_column.lower() != "none":
        spent = find_columns(sheet, id_column, "id-column")
        if len(spent) != 1:
            raise InputError(
                f'id-column must name one column: "{id_column}" names {len(spent)}. Choose one.'
            )
        if chosen and spent[0] in chosen:
            raise InputError(
                f'features must not hold the column of ids: both name "{id_column}". '
                "Drop it from one."
            )
        ids = labels(sheet, spent[0])
    elif id_column is None and not sheet.settled:
        found, told = _find_ids(sheet, chosen)
        notes += told
        if found is not None:
            spent = [found]
            ids = ids if _has_names(ids) else labels(sheet, found)
    kept = chosen if chosen is not None else _without(sheet, spent)
    if not kept:
        raise DataError(f"{sheet.file} must have a column of numbers beside {sheet.title(0)}.")
    blocks = [numbers(sheet, column) for column in kept]
    names: list[str] = []
    for column, block in zip(kept, blocks, strict=True):
        own = sheet.names[column] if sheet.names else str(column)
        names += [own] if block.ndim == 1 else [f"{own}.{k}" for k in range(block.shape[1])]
    values = np.column_stack(blocks)
    return Table(values, ids, tuple(names) if sheet.names else None, tuple(notes))


def find_columns(sheet: Sheet, wanted: str, argument: str) -> list[int]:
    """Numbers of the columns that ``wanted`` names, by name or by number from 0, ranges too.

    Raises:
        InputError: when there is no such column.
    """
    names, n_columns = list(sheet.names or ()), len(sheet.columns)
    if wanted in names:
        return [_only(sheet, wanted, argument)]
    found: list[int] = []
    for part in (p.strip() for p in wanted.split(",")):
        span = re.fullmatch(r"(\d+)-(\d+)", part)
        if part in names:
            found.append(_only(sheet, part, argument))
        elif part.isdecimal() and int(part) < n_columns:
            found.append(int(part))
        elif span and int(span[1]) <= int(span[2]) < n_columns:
            found += range(int(span[1]), int(span[2]) + 1)
        else:
            known = ", ".join(names[:8]) + (", ..." if len(names) > 8 else "")
            raise InputError(
                f'{argument} must name columns of {sheet.file}: there is no "{part}". It has '
                f"{n_columns}, from 0 to {n_columns - 1}" + (f": {known}." if names else ".")
            )
    return list(dict.fromkeys(found))


def _only(sheet: Sheet, name: str, argument: str) -> int:
    """The column that has a name.

    Raises:
        InputError: when several have it.
    """
    found = [column for column, other in enumerate(sheet.names or ()) if other == name]
    if len(found) > 1:
        raise InputError(
            f"{argument} must name columns by names that differ: {sheet.file} has {len(found)} "
            f'called "{name}". Use their numbers, here {", ".join(map(str, found))}.'
        )
    return found[0]


def _find_ids(sheet: Sheet, chosen: list[int] | None) -> tuple[int | None, list[str]]:
    """The column that holds names of rows, None when none does, and what to tell about columns."""
    if len(sheet.columns) < 2:
        return None, []
    taken = set(chosen or ())
    named = [i for i, name in enumerate(sheet.names or ()) if says_id(name) and i not in taken]
    first = [0] if sheet.ids is None and 0 not in taken else []
    override = "--features to override."
    as_what = "left out, as the index names the rows" if _has_names(sheet.ids) else "taken as ids"
    for column in [*first, *named]:
        if holds_text(sheet.columns[column]):
            distinct, n_rows = len(set(labels(sheet, column))), len(sheet.columns[column])
            if column == 0 and distinct == n_rows and sheet.ids is None:
                return column, []
            count = "text" if distinct == n_rows else f"{distinct} distinct texts in {n_rows} rows"
            return column, [f"{sheet.file}, {sheet.title(column)}: {count}, {as_what}; {override}"]
    told: list[str] = []
    for column in dict.fromkeys([*named, *first]):
        if column in named:
            n_distinct, n_rows = count_whole(sheet.columns[column]), len(sheet.columns[column])
            if n_distinct is None:
                continue
            rows = "" if n_distinct == n_rows else f" in {n_rows} rows"
            found = (
                f"{sheet.file}, {sheet.title(column)}: {n_distinct} distinct whole numbers{rows}"
            )
            if 2 * n_distinct > n_rows:
                return column, [*told, f"{found}, {as_what}; {override}"]
            if chosen is None:
                told.append(f"{found}, taken as a feature; --id-column or --features to override.")
        elif (whole := whole_numbers(sheet.columns[column])) is not None and _is_count(
            sheet, column, whole
        ):
            counted = f"{len(whole)} distinct whole numbers, taken as ids"
            return column, [f"{sheet.file}, {sheet.title(column)}: {counted}; {override}"]
    return None, told


def _has_names(ids: tuple[str, ...] | None) -> bool:
    """Whether a file sets names of rows apart that say more than 0, 1, 2, ..."""
    return ids is not None and ids != tuple(map(str, range(len(ids))))


def _is_count(sheet: Sheet, column: int, whole: NDArray[np.int64]) -> bool:
    """Whether a column counts the rows, in any order, and is the only one that does."""

    def counts(numbers: NDArray[np.int64] | None) -> bool:
        return numbers is not None and bool(
            len(numbers) >= FEWEST_CONSECUTIVE
            and len(np.unique(numbers)) == len(numbers)
            and numbers.max() - numbers.min() == len(numbers) - 1
        )

    others = (c for i, c in enumerate(sheet.columns) if i != column)
    return counts(whole) and not any(counts(whole_numbers(other)) for other in others)


def _without(sheet: Sheet, spent: list[int]) -> list[int]:
    return [i for i in range(len(sheet.columns)) if i not in spent]
