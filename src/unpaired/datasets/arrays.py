"""Feature matrices from the files in which people share them: npy, npz, mat and text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unpaired._files import read_npy, read_npz
from unpaired.errors import DataError

SUFFIXES = (".npy", ".npz", ".mat", ".txt")


def read_matrix(path: Path, key: str = "features", *, n_rows: int | None = None) -> NDArray[Any]:
    """The matrix in one file, one row per item; ``n_rows`` turns a transposed one round.

    Archives (npz, mat) are asked for ``key``, or give their only array. Half and single precision
    are kept, everything else becomes float32.

    Raises:
        DataError: when the file is absent, unreadable or of another shape.
    """
    try:
        matrix = _read(path, key)
    except DataError:
        raise
    except Exception as error:  # scipy, zip and NumPy each raise their own kinds
        raise DataError(
            f"{path} must hold a matrix ({', '.join(SUFFIXES)}): {error}. Check the file."
        ) from error
    if matrix.ndim != 2 or matrix.dtype.kind not in "fiub":
        raise DataError(
            f"{path} must hold a matrix of numbers: its shape is {matrix.shape} and its type "
            f"{matrix.dtype}. Save it with numpy.save."
        )
    if n_rows is not None and len(matrix) != n_rows and matrix.shape[1] == n_rows:
        matrix = matrix.T  # MATLAB files often hold one column per item
    if n_rows is not None and len(matrix) != n_rows:
        raise DataError(
            f"{path} must have {n_rows} rows or columns, one per item: its shape is "
            f"{matrix.shape}. Use the features made for this list of items."
        )
    kept = matrix.dtype in (np.float16, np.float32)
    return np.ascontiguousarray(matrix if kept else matrix.astype(np.float32))


def _read(path: Path, key: str) -> NDArray[Any]:
    kind = path.suffix.lower()
    if kind == ".npy":
        return read_npy(path)
    if kind == ".npz":
        return read_npz(path, lambda names: _pick(path, key, names))
    if kind == ".mat":
        values = read_mat(path)
        return np.asarray(values[_pick(path, key, list(values))])
    if kind == ".txt":
        return np.loadtxt(path, dtype=np.float32, ndmin=2)
    raise DataError(f"{path} is not of a known kind ({', '.join(SUFFIXES)}). Convert it.")


def _pick(path: Path, key: str, names: list[str]) -> str:
    if key in names or len(names) == 1:
        return key if key in names else names[0]
    raise DataError(f"{path} must hold an array called {key}: it has {', '.join(names)}.")


def read_mat(path: Path) -> dict[str, Any]:
    """The variables of a MATLAB file (up to version 7.2), without its header entries."""
    from scipy.io import loadmat

    try:
        values = loadmat(path)
    except Exception as error:  # scipy raises many kinds, also for MATLAB 7.3 files
        raise DataError(
            f"{path} must be a MATLAB file up to version 7.2: {error}. Save it with -v7."
        ) from error
    return {name: value for name, value in values.items() if not name.startswith("__")}


def existing(folder: Path, names: list[str]) -> Path | None:
    """The first of ``names`` that is a file in ``folder``; None when there is none."""
    return next((folder / name for name in names if (folder / name).is_file()), None)
