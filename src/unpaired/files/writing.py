"""Vectors into a file, a block of rows at a time; the file appears only when it is whole."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unpaired._files import atomic_writer
from unpaired.files.pairs import plain_cell


def write_vectors(
    path: Path,
    blocks: Iterable[NDArray[Any]],
    shape: tuple[int, int],
    names: Sequence[str] | None = None,
    kind: Any = np.float32,
) -> None:
    """Write blocks of rows, ``shape`` in all: of ``kind`` in a .npy file, with names in a .csv."""
    if names is None:
        descr = np.lib.format.dtype_to_descr(np.dtype(kind))
        header = {"descr": descr, "fortran_order": False, "shape": shape}
        with atomic_writer(path, binary=True) as handle:
            np.lib.format.write_array_header_1_0(handle, header)
            for block in blocks:
                handle.write(np.ascontiguousarray(block, dtype=kind).tobytes())
        return
    row = 0
    with atomic_writer(path) as handle:
        writer = csv.writer(handle)
        writer.writerow(["id", *(f"z{k}" for k in range(shape[1]))])
        for block in blocks:
            for values in block.tolist():
                writer.writerow([plain_cell(names[row]), *values])
                row += 1
