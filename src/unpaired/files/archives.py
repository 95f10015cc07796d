"""Archives of arrays, .npz: one array of several, vectors with names, a sparse matrix."""

from __future__ import annotations

import zipfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unpaired._files import MAX_UNPACKED, read_npz
from unpaired.errors import DataError
from unpaired.files.frames import from_array
from unpaired.files.sheet import Sheet

VECTORS, NAMES = "features", "id"
"""Arrays of what ``unpaired encode`` writes."""
SPARSE = {"data", "indices", "indptr", "shape", "format"}
"""Arrays of what ``scipy.sparse.save_npz`` writes."""


def read_archive(archive: Path, key: str | None, file: Path) -> Sheet | NDArray[Any]:
    """The array called ``key``, or what the archive as a whole is; errors speak of ``file``.

    Raises:
        DataError: when there is no such array, or several and no key.
    """
    with zipfile.ZipFile(archive) as held:
        names = {name.removesuffix(".npy") for name in held.namelist()}
    if key is None and names == {VECTORS, NAMES}:
        vectors, ids = (_array(archive, name, file) for name in (VECTORS, NAMES))
        if vectors.ndim == 2 and ids.shape == vectors.shape[:1]:
            return replace(
                from_array(file, vectors), ids=tuple(map(str, ids.tolist())), settled=True
            )
    if key is None and names - {"_is_array"} == SPARSE:
        return _sparse(archive, file)
    return _array(archive, key, file)


def _array(archive: Path, key: str | None, file: Path) -> NDArray[Any]:
    return read_npz(archive, lambda names: _pick(file, names, key))


def _pick(file: Path, names: list[str], key: str | None) -> str:
    """The name of the array to read."""
    if not names:
        raise DataError(f"{file} must hold an array: it is an empty archive. Write it again.")
    if key is None and len(names) == 1:
        return names[0]
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None and key in (None, twice):
        raise DataError(
            f'{file} must hold arrays of names that differ: it has several called "{twice}". '
            "Write it again with numpy.savez."
        )
    if key not in names:
        raise DataError(
            f"{file} holds the arrays {', '.join(names)}. "
            f"Say which one, e.g. {file}:{names[0] if names else 'name'}."
        )
    return key


def _sparse(archive: Path, file: Path) -> NDArray[Any]:
    """A sparse matrix by rows or by columns, all of it written out."""
    from scipy import sparse

    parts = {name: _array(archive, name, file) for name in SPARSE}
    kind = bytes(parts["format"].tobytes()).replace(b"\0", b"").decode("ascii", "replace")
    makers = {"csr": sparse.csr_array, "csc": sparse.csc_array}
    if kind not in makers:
        raise DataError(
            f"{file} must hold a sparse matrix by rows or columns (csr, csc): it says {kind!r}. "
            "Save matrix.tocsr()."
        )
    shape = tuple(int(size) for size in parts["shape"].ravel())
    made = makers[kind]((parts["data"], parts["indices"], parts["indptr"]), shape=shape)
    made.check_format(full_check=True)  # indices may point outside
    size = float(np.prod(shape, dtype=float)) * made.dtype.itemsize
    if size > MAX_UNPACKED:
        raise DataError(
            f"{file} must take at most {MAX_UNPACKED / 2**30:.0f} GiB without its zeros left out: "
            f"{shape} takes {size / 2**30:.1f} GiB. Reduce its columns first."
        )
    return np.asarray(made.toarray())
