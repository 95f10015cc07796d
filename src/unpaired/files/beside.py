"""What stands beside the rows of two tables: weights, side information; by name where named."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from numpy.typing import NDArray

from unpaired.errors import InputError
from unpaired.files.reading import read_table
from unpaired.files.sheet import Table

Tell = Callable[[str], object]


def read_weights(path: str, table: Table, side: str, tell: Tell) -> NDArray[Any]:
    """How often each row of a table counts, in its order.

    Raises:
        InputError: when the rows are named, and some of the table are missing.
    """
    read = read_table(path)
    order = _order(read.ids, table.ids, f"weights-{side}", path, ("rows", side), tell)
    return read.values if order is None else read.values[order]


def read_side_info(path: str, x: Table, y: Table, tell: Tell) -> NDArray[Any]:
    """Side information, a row for each row of x and a column for each row of y, in their order.

    Raises:
        InputError: when its rows or columns are named, and some of x or y are missing.
    """
    read = read_table(path)
    for note in read.notes:
        tell(note)
    values = read.values
    rows = _order(read.ids, x.ids, "side-info", path, ("rows", "x"), tell)
    values = values if rows is None else values[rows]
    columns = _order(read.names, y.ids, "side-info", path, ("columns", "y"), tell)
    return values if columns is None else values[:, columns]


def _order(
    own: Sequence[str] | None,
    wanted: Sequence[str] | None,
    argument: str,
    file: str,
    what: tuple[str, str],
    tell: Tell,
) -> list[int] | None:
    """The row, or column, of the file for each row of a side; None where they are taken in order.

    Raises:
        InputError: when some are called as rows of the side are, but not all.
    """
    if own is None or wanted is None or tuple(own) == tuple(wanted):
        return None
    things, side = what
    if not set(own) & set(wanted):
        tell(f"{file}: {things} are not called as the rows of {side} are; taken in their order.")
        return None
    counts = Counter(own)
    for name in wanted:
        if counts[name] != 1:
            found = "several" if counts[name] else "none"
            raise InputError(
                f"{argument} must name each row of {side} once, or none: {file} has {found} of its "
                f'{things} called "{name}". Mend the names, or write the numbers alone.'
            )
    place = {name: number for number, name in enumerate(own)}
    tell(f"{file}: {things} put in the order of the rows of {side}, by name.")
    return [place[name] for name in wanted]
