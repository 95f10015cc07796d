"""Cells of single-cell assays: .h5ad files in, and out again with what a match says of each cell.

Only the representation that is asked for is read, and a copy of a file gets new entries: the rest
of it, however large, is never loaded.
"""

from __future__ import annotations

import gzip
import math
import shutil
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unpaired._files import MAX_UNPACKED
from unpaired.errors import DataError, UnpairedError, extra
from unpaired.files.sheet import Sheet
from unpaired.types import FloatArray, IntArray, Match

MATRIX = "X"
"""What the matrix of an assay is called beside its representations in obsm."""
SPACE = "X_unpaired"
PARTNER = "unpaired_partner"
CONFIDENCE = "unpaired_confidence"
RECORD = "unpaired"
_DEEPEST = 4


@dataclass(frozen=True, eq=False)
class CellNotes:
    """What a match says of the cells of one side."""

    space: FloatArray
    """(n, k) cells in the space that both sides share."""
    partner: IntArray
    """(n,) row of the partner on the other side, -1 = left out."""
    partner_name: NDArray[Any]
    """(n,) its name, "" where left out."""
    confidence: FloatArray
    record: dict[str, Any]
    """Verdict, settings, seed: plain values only."""


def note_cells(
    match: Match,
    spaces: tuple[FloatArray, FloatArray],
    names: tuple[Sequence[str], Sequence[str]],
    settings: dict[str, Any],
    seed: int,
) -> tuple[CellNotes, CellNotes]:
    """What a one-to-one match says of the cells of x, and of those of y."""
    from unpaired import __version__

    rows, columns = match.pairs.T
    back, confidence = np.full(match.n_y, -1), np.zeros(match.n_y)
    back[columns], confidence[columns] = rows, match.confidence[rows]
    record: dict[str, Any] = {
        "settings": {name: _plain(value) for name, value in settings.items() if value is not None},
        "seed": seed,
        "version": __version__,
    }
    if match.verdict is not None:
        verdict = asdict(match.verdict) | {"trusted": match.verdict.trusted}
        verdict["interval"] = np.array(match.verdict.interval)
        verdict["reasons"] = np.array(match.verdict.reasons, dtype=object)
        record["verdict"] = verdict
    noted = [
        CellNotes(space, partner, np.array([*others, ""], dtype=object)[partner], sure, record)
        for space, partner, others, sure in (
            (spaces[0], match.partner, names[1], match.confidence),
            (spaces[1], back, names[0], confidence),
        )
    ]
    return noted[0], noted[1]


def _plain(value: Any) -> Any:
    """A setting that every file can hold; arrays are only said to have been given."""
    return value if isinstance(value, str | bool | int | float) else "given"


def read_cells(stored: Path, part: str | None, file: Path) -> Sheet:
    """A representation of the cells in a .h5ad file, its matrix X by default, and their names.

    ``file`` is what it is called in messages: ``stored`` may be an unpacked copy.

    Raises:
        DataError: when anndata is missing, or there is no such representation, or it claims more
            than ``MAX_UNPACKED`` bytes.
    """
    with _opened(stored, "r") as store:
        element = _representation(file, store, part)
        ids = _names(file, store, "obs")
        values = _read(file, element)
        if hasattr(values, "toarray"):
            values.check_format()  # an index out of range would write into strange memory
            values = values.toarray()
        values = np.asarray(values)
        if values.ndim != 2 or len(values) != len(ids) or values.dtype.kind not in "fiub":
            raise DataError(
                f"{file}:{part or MATRIX} must be a matrix of numbers, one row for each of the "
                f"{len(ids)} cells: it has shape {values.shape} of {values.dtype}. Write it again."
            )
        names = _names(file, store, "var") if part in (None, MATRIX) and "var" in store else None
    distinct = len(set(ids))
    notes = () if distinct == len(ids) else (f"{file}: {len(ids)} cells have {distinct} names.",)
    return Sheet(file, list(values.T), names, ids, notes=notes, settled=True)


def write_cells(source: Path, target: Path, notes: CellNotes) -> None:
    """Write ``target``, a copy of the .h5ad file ``source`` with notes on its cells."""
    packed = source.suffix.lower() == ".gz"
    with gzip.open(source) if packed else source.open("rb") as old, target.open("wb") as new:
        shutil.copyfileobj(old, new)
    with _opened(target, "r+") as store:
        from anndata.io import write_elem

        for group, key, value in (("obsm", SPACE, notes.space), ("uns", RECORD, notes.record)):
            if group not in store:
                write_elem(store, group, {})
            write_elem(store[group], key, value)
        cells, columns = store["obs"], {PARTNER: notes.partner_name, CONFIDENCE: notes.confidence}
        for key, column in columns.items():
            write_elem(cells, key, column)
        kept = [str(name) for name in cells.attrs["column-order"] if name not in columns]
        cells.attrs["column-order"] = np.array([*kept, *columns], dtype=object)


@contextmanager
def _opened(file: Path, mode: str) -> Iterator[Any]:
    """The open store; whatever a damaged one makes others raise becomes a ValueError."""
    with extra("anndata"):
        import anndata.io  # noqa: F401 - named first when missing, since it brings the other
        import h5py
    try:
        with h5py.File(file, mode) as store:
            yield store
    except (UnpairedError, OSError):
        raise
    except Exception as error:
        raise ValueError(str(error) or type(error).__name__) from error


def _representation(file: Path, store: Any, part: str | None) -> Any:
    """What the store holds under the name ``part``.

    Raises:
        DataError: naming what there is.
    """
    held = {name: store["obsm"][name] for name in store.get("obsm", ())}
    if MATRIX in store:
        held = {MATRIX: store[MATRIX], **held}
    wanted = MATRIX if part is None else part
    if wanted not in held:
        raise DataError(
            f'{file} has no representation "{wanted}": it has {", ".join(held) or "none"}. '
            f"Say which one, e.g. {file}:{next(iter(held), 'X_pca')}."
        )
    return held[wanted]


def _names(file: Path, store: Any, frame: str) -> tuple[str, ...]:
    """The names of cells (frame obs) or of columns (var)."""
    found = store.get(frame)
    if found is None or "_index" not in found.attrs:
        raise DataError(
            f"{file} must have a table {frame} with an index, as anndata 0.7 and later write it. "
            "Read it with anndata and write it again."
        )
    return tuple(str(name) for name in _read(file, found[found.attrs["_index"]]))


def _read(file: Path, element: Any) -> Any:
    """An entry of a store, unless it claims to be too large."""
    from anndata import OldFormatWarning
    from anndata.io import read_elem

    size = _claimed(element, _DEEPEST)
    if size > MAX_UNPACKED:
        raise DataError(
            f"{file}:{element.name.rpartition('/')[2]} must unpack to at most "
            f"{MAX_UNPACKED / 2**30:.0f} GiB: it claims {size / 2**30:.1f} GiB. Reduce it first, "
            "e.g. to principal components in obsm."
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", OldFormatWarning)  # files of anndata 0.7 are fine
        return read_elem(element)


def _claimed(element: Any, deepest: int) -> int:
    """Bytes that an entry takes as plain numbers, by what it says of itself."""
    if hasattr(element, "dtype"):
        return int(element.dtype.itemsize) * math.prod(element.shape or ())
    shape = element.attrs.get("shape", element.attrs.get("h5sparse_shape", (0,)))
    dense = 8 * math.prod(int(n) for n in shape)
    inside = sum(_claimed(item, deepest - 1) for item in element.values()) if deepest else 0
    return max(dense, inside)
