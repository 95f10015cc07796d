"""Archives of arrays: vectors with their names, sparse matrices."""

import io
import warnings
import zipfile

import numpy as np
import pytest
from scipy import sparse

from unpaired.errors import DataError
from unpaired.files import archives
from unpaired.files.reading import read_table

VALUES = np.array([[0.0, 1.5, 0.0], [2.0, 0.0, 0.0], [0.0, 0.0, -3.0]])


def test_encoded_vectors_bring_their_names(tmp_path):
    file = tmp_path / "x.npz"
    np.savez(file, features=VALUES, id=np.array(["a.png", "b.png", "7"]))
    table = read_table(file)
    assert table.ids == ("a.png", "b.png", "7")
    np.testing.assert_array_equal(table.values, VALUES)
    chosen = read_table(file, features="0,2")
    assert chosen.ids == table.ids
    np.testing.assert_array_equal(chosen.values, VALUES[:, [0, 2]])
    assert read_table(f"{file}:features").ids is None
    np.savez(file, features=VALUES, id=np.array(["a", "b"]))  # names of other rows
    with pytest.raises(DataError, match="holds the arrays features, id. Say which one"):
        read_table(file)


@pytest.mark.parametrize("kind", ["csr", "csc"])
@pytest.mark.parametrize("make", [sparse.csr_array, sparse.csr_matrix])
def test_sparse_matrices_are_written_out(tmp_path, kind, make):
    sparse.save_npz(tmp_path / "x.npz", make(VALUES).asformat(kind))
    np.testing.assert_array_equal(read_table(tmp_path / "x.npz").values, VALUES)


def test_sparse_matrices_that_cannot_be_are_refused(tmp_path, monkeypatch):
    file = tmp_path / "x.npz"
    made = sparse.csr_array(VALUES)
    parts = {"data": made.data, "indptr": made.indptr, "shape": np.array(made.shape)}
    parts |= {"indices": made.indices, "format": np.array(b"csr")}
    np.savez(file, **parts | {"indices": made.indices + 99})
    with pytest.raises(DataError, match="could not be read as npz"):
        read_table(file)
    np.savez(file, **parts | {"format": np.array(b"bsr")})
    with pytest.raises(DataError, match=r"by rows or columns \(csr, csc\): it says 'bsr'"):
        read_table(file)
    np.savez(file, **parts)
    monkeypatch.setattr(archives, "MAX_UNPACKED", 10)
    with pytest.raises(DataError, match="must take at most"):
        read_table(file)


def test_names_that_two_arrays_have(tmp_path):
    buffer = io.BytesIO()
    np.save(buffer, np.eye(3))
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in ("a.npy", "a.npy", "b.npy"):
            archive.writestr(name, buffer.getvalue())
    for part in ("", ":a"):
        with pytest.raises(DataError, match='it has several called "a"'):
            read_table(f"{tmp_path / 'x.npz'}{part}")
    np.testing.assert_array_equal(read_table(f"{tmp_path / 'x.npz'}:b").values, np.eye(3))
