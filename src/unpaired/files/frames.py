"""Tables in files that know their columns: parquet, feather, spreadsheets and JSON lines."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unpaired._files import MAX_UNPACKED, check_unpacked
from unpaired._text import lines_of
from unpaired.errors import DataError
from unpaired.files.sheet import Sheet
from unpaired.files.text import read_text, sheet_of


def read_parquet(file: Path) -> Sheet:
    """The columns of a parquet file.

    Raises:
        DataError: when PyArrow is missing, or the file claims more than ``MAX_UNPACKED`` bytes.
    """
    try:
        import pyarrow.parquet as parquet
    except ImportError as error:
        raise DataError(f"Reading {file} needs PyArrow: pip install 'unpaired[frames]'.") from error
    stored = parquet.ParquetFile(file)
    groups = stored.metadata
    size = sum(groups.row_group(i).total_byte_size for i in range(groups.num_row_groups))
    if max(size, groups.num_rows) > MAX_UNPACKED:
        raise DataError(
            f"{file} must unpack to at most {MAX_UNPACKED / 2**30:.0f} GiB: it claims "
            f"{size / 2**30:.1f} GiB in {groups.num_rows} rows. Read it in parts."
        )
    return _from_arrow(file, stored.read())


def read_feather(file: Path) -> Sheet:
    """The columns of a feather (Arrow IPC) file.

    Raises:
        DataError: when PyArrow is missing.
    """
    try:
        from pyarrow import feather
    except ImportError as error:
        raise DataError(f"Reading {file} needs PyArrow: pip install 'unpaired[frames]'.") from error
    return _from_arrow(file, feather.read_table(file))


def _from_arrow(file: Path, table: Any) -> Sheet:
    """The columns of an Arrow table; an index that pandas wrote names the rows."""
    known = (table.schema.pandas_metadata or {}).get("index_columns", [])
    index = [name for name in known if isinstance(name, str) and name in table.column_names]
    rest = [i for i, name in enumerate(table.column_names) if name not in index]
    ids = None
    if index and rest:
        places = [table.column_names.index(name) for name in index]
        parts = [[str(value) for value in table.column(place).to_pylist()] for place in places]
        ids = tuple("/".join(levels) for levels in zip(*parts, strict=True))
    else:
        rest = list(range(table.num_columns))
    names = tuple(table.column_names[i] for i in rest)
    columns = [_arrow_column(file, names[k], table.column(i)) for k, i in enumerate(rest)]
    return Sheet(file, columns, names, ids)


def _arrow_column(file: Path, name: str, column: Any) -> Any:
    """Numbers (n,), vectors (n, k), or the values one by one for what is neither."""
    import pyarrow as pa
    import pyarrow.compute as compute

    kind = column.type
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind):
        return column.to_numpy(zero_copy_only=False).astype(_number_type(kind, column.null_count))
    if pa.types.is_decimal(kind):
        return column.cast(pa.float64()).to_numpy(zero_copy_only=False)
    if not (pa.types.is_list(kind) or pa.types.is_large_list(kind) or _is_fixed(kind)):
        return column.to_pylist()
    value = kind.value_type
    if not (pa.types.is_integer(value) or pa.types.is_floating(value)):
        raise DataError(f"{file}, column {name} must hold lists of numbers: they hold {value}.")
    lengths = compute.list_value_length(column).to_numpy(zero_copy_only=False)
    wrong = np.flatnonzero(~(lengths == lengths[:1]))
    if len(wrong) or column.null_count or not len(lengths):
        row = int(wrong[0]) if len(wrong) else 0
        raise DataError(
            f"{file}, row {row}, column {name} must be a list as long as the first row's: lists "
            "that are missing or shorter cannot be matched. Drop those rows, or embed them again."
        )
    flat = compute.list_flatten(column).to_numpy(zero_copy_only=False)
    return flat.astype(np.float64).reshape(len(lengths), -1)


def _is_fixed(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_fixed_size_list(kind))


def _number_type(kind: Any, n_missing: int) -> Any:
    """float64 where numbers are missing, else what the column has."""
    return np.float64 if n_missing else np.dtype(kind.to_pandas_dtype())


def read_xlsx(file: Path, sheet_name: str | None, header: bool | None) -> Sheet:
    """The columns of one sheet of a spreadsheet; ``header`` as for text files.

    Raises:
        DataError: when openpyxl is missing, or there are several sheets and none is chosen.
    """
    try:
        from openpyxl import load_workbook
    except ImportError as error:
        raise DataError(
            f"Reading {file} needs openpyxl: pip install 'unpaired[frames]'."
        ) from error
    with zipfile.ZipFile(file) as archive:
        check_unpacked(archive, file)
    book = load_workbook(file, read_only=True, data_only=True)
    try:
        sheets = {sheet.title: sheet for sheet in book.worksheets}
        chosen = sheet_name if sheet_name is not None else next(iter(sheets), "")
        if chosen not in sheets or (sheet_name is None and len(sheets) > 1):
            raise DataError(
                f"{file} holds the sheets {', '.join(sheets)}. Say which one, e.g. "
                f"{file}:{next(iter(sheets), 'Sheet1')}."
            )
        rows = [[_cell_text(cell) for cell in row] for row in sheets[chosen].iter_rows()]
    finally:
        book.close()
    while rows and not any(rows[-1]):
        rows.pop()
    width = max((i + 1 for row in rows for i, cell in enumerate(row) if cell), default=0)
    rows = [(row + [""] * width)[:width] for row in rows]
    return sheet_of(file, rows, range(1, len(rows) + 1), header)


def _cell_text(cell: Any) -> str:
    """A cell of a spreadsheet as it would stand in a text file."""
    value = int(cell.value) if isinstance(cell.value, bool) else cell.value
    return "" if value is None else str(value)


def read_jsonl(file: Path) -> Sheet:
    """The columns of a file with one JSON object, or one list of numbers, per line.

    Raises:
        DataError: naming the line that is something else, or has other keys than the first.
    """
    records, lines = [], []
    for line, text in enumerate(lines_of(read_text(file)), 1):
        if not text.strip():
            continue
        try:
            records.append(json.loads(text, object_pairs_hook=_object))
        except (ValueError, RecursionError) as error:
            raise DataError(f"{file}, line {line} must be JSON: {error}. Mend the line.") from error
        lines.append(line)
    if not records:
        raise DataError(f"{file} is empty. It needs one JSON object per line.")
    if isinstance(records[0], list):
        return Sheet(file, [records], None, None, lines)
    if not isinstance(records[0], dict) or not records[0]:
        raise DataError(
            f"{file}, line {lines[0]} must be a JSON object or a list of numbers: it is "
            f"{str(records[0])[:60]}. Write one per row."
        )
    names = tuple(records[0])
    for record, line in zip(records, lines, strict=True):
        if not isinstance(record, dict) or set(record) != set(names):
            raise DataError(
                f"{file}, line {line} must have the keys of the first, {', '.join(names)}: it has "
                f"{', '.join(record) if isinstance(record, dict) else 'none'}."
            )
    columns: list[Any] = [[record[name] for record in records] for name in names]
    return Sheet(file, columns, names, None, lines)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A JSON object, whose keys must differ."""
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(
            f'the key "{next(key for key in keys if keys.count(key) > 1)}" comes twice'
        )
    return found


def from_array(file: Path, values: NDArray[Any]) -> Sheet:
    """The columns of a matrix."""
    return Sheet(file, list(values.T))
