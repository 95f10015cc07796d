"""``read_table``: the one door for every kind of file."""

from __future__ import annotations

import csv
import gzip
import re
import tempfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from xml.etree.ElementTree import ParseError

from numpy.typing import NDArray

from unpaired._files import MAX_UNPACKED, read_npy
from unpaired.errors import DataError, InputError, UnpairedError
from unpaired.files.archives import read_archive
from unpaired.files.cells import read_cells
from unpaired.files.choice import to_table
from unpaired.files.frames import from_array, read_feather, read_jsonl, read_parquet, read_xlsx
from unpaired.files.sheet import Sheet, Table
from unpaired.files.text import read_sheet

KINDS = (
    ".npy, .npz, .csv, .tsv, .txt, .parquet, .feather, .xlsx, .jsonl, .h5ad; "
    ".csv.gz and the like too"
)
_PACKED_WHOLE = frozenset({".npy", ".npz", ".parquet", ".feather", ".h5ad"})
_PART = re.compile(r"(.*\.(?:npz|xlsx|h5ad|h5ad\.gz)):([^/\\]+)", re.IGNORECASE)
_CLOSED = "{file} must be a file that you may read: you may not. Change its permissions."
# What the readers of other packages raise on a file that is not what its name says.
_TROUBLE = (
    OSError,
    ValueError,
    KeyError,
    EOFError,
    TypeError,
    MemoryError,
    RecursionError,
    csv.Error,
    zlib.error,
    zipfile.BadZipFile,
    RuntimeError,  # zip files that are encrypted, or packed in a way that Python does not know
    ParseError,
)


def read_table(
    path: str | Path,
    *,
    header: bool | None = None,
    id_column: str | None = None,
    features: str | None = None,
) -> Table:
    """The numbers in a file, (rows, columns), and the names of its rows where it has them.

    ``file.npz:key``, ``file.xlsx:sheet`` and ``file.h5ad:X_pca`` pick one of several. Text in the
    first column, or in one whose name says id, names the rows, and so does the index that pandas
    writes. Whole numbers that all differ do when the column's name says id, or when it is the first
    and counts the rows; ``Table.notes`` tells that. ``unpaired.files.text`` tells how headers are
    found.

    Args:
        path: The file.
        header: Whether line 1 of a text file names the columns; None finds out.
        id_column: Name or number (from 0) of the column with names of rows, "none" for none.
        features: Names or numbers of the columns to use, such as "1-4,7".

    Raises:
        DataError: when the file is missing, of another kind, or not what its name says.
        InputError: when a column is named that is not there.
    """
    read = read_columns(path, header)
    if isinstance(read, Sheet):
        return to_table(read, id_column, features)
    if id_column in (None, "none") and features is None:
        return Table(read)
    file, _ = split_part(path)
    if read.ndim != 2:
        raise InputError(
            f"id-column and features choose columns of a matrix: {file} has shape {read.shape}. "
            "Leave them out."
        )
    return to_table(from_array(file, read), id_column or "none", features)


def read_columns(path: str | Path, header: bool | None = None) -> Sheet | NDArray[Any]:
    """What a file holds, as it is: columns, or an array where it has no more than that.

    Raises:
        DataError: when the file is missing, of another kind, or not what its name says.
    """
    file, part = split_part(path)
    check_exists(file)
    kind = kind_of(file)
    readers: dict[str, Callable[[Path], Any]] = {
        ".npy": read_npy,
        ".npz": lambda f: read_archive(f, part, file),
        ".csv": lambda f: read_sheet(f, header),
        ".tsv": lambda f: read_sheet(f, header),
        ".txt": lambda f: read_sheet(f, header),
        ".parquet": read_parquet,
        ".feather": read_feather,
        ".xlsx": lambda f: read_xlsx(f, part, header),
        ".jsonl": read_jsonl,
        ".h5ad": lambda f: read_cells(f, part, file),
    }
    if kind not in readers:
        raise DataError(f"{file} is not of a known kind ({KINDS}). Convert it to one of these.")
    unpack = file.suffix.lower() == ".gz" and kind in _PACKED_WHOLE
    with told(file):
        return _unpacked(file, readers[kind]) if unpack else readers[kind](file)


@contextmanager
def told(file: Path) -> Iterator[None]:
    """Have whatever readers raise on a file that is not what its name says told in a sentence.

    Raises:
        DataError: when the block fails to read.
    """
    try:
        yield
    except UnpairedError:
        raise
    except PermissionError as error:
        raise DataError(_CLOSED.format(file=file)) from error
    except _TROUBLE as error:
        reason = " ".join(str(error).split())[:200].rstrip(".") or type(error).__name__
        raise DataError(
            f"{file} could not be read as {kind_of(file)[1:]}: {reason}. Check that it is what its "
            "name says, or write it again as plain numbers."
        ) from error


def split_part(path: str | Path) -> tuple[Path, str | None]:
    """The file, and which array, sheet or representation of it: "x.npz:a" -> (x.npz, "a")."""
    parted = _PART.fullmatch(str(path))
    return (Path(parted[1]), parted[2]) if parted else (Path(path), None)


def kind_of(file: Path) -> str:
    """The ending of a file's name in small letters, that before .gz where it is packed."""
    endings = [ending.lower() for ending in file.suffixes]
    if endings[-1:] == [".gz"]:
        endings.pop()
    return endings[-1] if endings else ""


def check_exists(file: Path) -> None:
    """Accept a path of a file.

    Raises:
        DataError: when there is none.
    """
    try:
        if file.is_file():
            return
        what = "is a folder, not a file" if file.is_dir() else "is not there"
        if file.exists() and not file.is_dir():
            what = "is not a plain file"
    except PermissionError as error:
        raise DataError(_CLOSED.format(file=file)) from error
    except (OSError, ValueError) as error:
        what = f"cannot be a file ({error})"
    raise DataError(f"There is no file {file}: it {what}. Check the path; known kinds: {KINDS}.")


def _unpacked(file: Path, read: Callable[[Path], Any]) -> Any:
    """What ``read`` makes of a packed file."""
    with gzip.open(file) as packed, tempfile.NamedTemporaryFile() as whole:
        size = 0
        while block := packed.read(2**20):
            size += len(block)
            if size > MAX_UNPACKED:
                raise DataError(
                    f"{file} must unpack to at most {MAX_UNPACKED / 2**30:.0f} GiB: it goes on. "
                    "Unpack it yourself and read it in parts."
                )
            whole.write(block)
        whole.flush()
        return read(Path(whole.name))
