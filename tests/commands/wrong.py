"""Files that are wrong, and how a command answers them."""

import io
import os
import zipfile

import numpy as np
import openpyxl
import pyarrow as pa
from pyarrow import parquet

GOOD = np.random.default_rng(0).normal(size=(30, 4))


def npy(array, **options):
    buffer = io.BytesIO()
    np.save(buffer, array, **options)
    return buffer.getvalue()


def npz(**arrays):
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays)
    return buffer.getvalue()


def claims(shape, kind="<f8"):
    """A .npy file that claims more than it holds."""
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (63 - (10 + len(header)) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header


def packed(name, content):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr(name, content)
    return buffer.getvalue()


def frame(**columns):
    buffer = io.BytesIO()
    parquet.write_table(pa.table(columns), buffer)
    return buffer.getvalue()


def sheet(*rows):
    buffer = io.BytesIO()
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.save(buffer)
    return buffer.getvalue()


def text(values=GOOD, header="a,b,c,d"):
    rows = [header, *(",".join(map(repr, row)) for row in values.tolist())]
    return "\n".join(rows) + "\n"


def refused(run, *arguments):
    """The one sentence that a command ends with; asserts that it left nothing behind."""
    before = sorted(os.listdir())
    code, out, err = run(*arguments)
    assert code == 2, (out, err)
    assert "Traceback" not in err
    assert sorted(os.listdir()) == before
    lines = [line for line in err.splitlines() if not line.startswith("note: ")]
    assert len(lines) == 1, err
    assert lines[0].startswith("unpaired: ")
    assert lines[0].endswith((".", ")")) or "iconv" in lines[0]
    assert out == ""
    return lines[0]
