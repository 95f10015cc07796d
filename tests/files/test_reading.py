import gzip
import zipfile

import numpy as np
import pandas as pd
import pytest

from unpaired.errors import DataError, InputError, UnpairedError
from unpaired.files.reading import KINDS, read_table

VALUES = np.array([[1.5, -2.0], [3.0, 4e-3], [5.0, 6.0]])
NAMES = ("ant", "bee", "cat")


@pytest.fixture
def write(tmp_path):
    """Write text or bytes under a name; returns the path."""

    def write(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def message_of(kind, call, *args, **options):
    with pytest.raises(kind) as error:
        call(*args, **options)
    return str(error.value)


def same(table, values=VALUES, ids=None):
    np.testing.assert_array_equal(table.values, values)
    assert table.ids == ids
    return True


@pytest.mark.parametrize(
    "kind", ["float16", "float32", "float64", "int8", "uint64", "bool", "complex64", "U3"]
)
def test_npy_comes_back_as_it_is(tmp_path, kind):
    values = VALUES.astype(int).clip(0).astype(kind)
    np.save(tmp_path / "x.npy", values)
    table = read_table(tmp_path / "x.npy")
    assert same(table, values)
    assert table.values.dtype == values.dtype


def test_npz_with_one_and_with_several_arrays(tmp_path):
    np.savez(tmp_path / "one.npz", only=VALUES)
    np.savez_compressed(tmp_path / "two.npz", a=VALUES, b=2 * VALUES)
    assert same(read_table(tmp_path / "one.npz"))
    assert same(read_table(f"{tmp_path}/one.npz:only"))
    assert same(read_table(f"{tmp_path}/two.npz:b"), 2 * VALUES)
    two = tmp_path / "two.npz"
    expected = f"{two} holds the arrays a, b. Say which one, e.g. {two}:a."
    assert message_of(DataError, read_table, two) == expected
    assert message_of(DataError, read_table, f"{two}:c") == expected
    assert message_of(DataError, read_table, f"{tmp_path}/one.npz:two").endswith("one.npz:only.")


def test_pickled_arrays_are_refused(tmp_path):
    class Bomb:
        def __reduce__(self):
            return (list, (["boom"],))

    np.save(tmp_path / "x.npy", np.array([Bomb()], dtype=object), allow_pickle=True)
    np.savez(tmp_path / "x.npz", a=np.array([Bomb()], dtype=object))
    for path, name in ((tmp_path / "x.npy", ""), (tmp_path / "x.npz", ":a")):
        assert message_of(DataError, read_table, path) == (
            f"{path}{name} must hold plain numbers: it holds pickled objects, which are never "
            "read. Write it again with astype(float)."
        )


def npy_bytes(shape, kind="<f8", data=b""):
    header = f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    header += b" " * (63 - (10 + len(header)) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + data


@pytest.mark.parametrize(
    ("shape", "kind", "message"),
    [
        ((2**30, 2**20), "<f8", "takes 9007199254740992 bytes, and 48 follow"),
        ((3, 3), "<f8", "takes 72 bytes, and 48 follow"),
        ((10**30, 2), "<f8", "bytes, and 48 follow"),
        ((-3, -2), "<f8", "that is no array of numbers"),
        ((10**12,), "<U0", "that is no array of numbers"),
    ],
)
def test_headers_that_claim_too_much_are_refused_unread(tmp_path, shape, kind, message):
    content = npy_bytes(shape, kind, VALUES.tobytes())
    (tmp_path / "x.npy").write_bytes(content)
    assert message in message_of(DataError, read_table, tmp_path / "x.npy")
    with zipfile.ZipFile(tmp_path / "x.npz", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.npy", content)
    assert message in message_of(DataError, read_table, tmp_path / "x.npz")


def test_archives_that_unpack_to_too_much_are_refused_unread(tmp_path, monkeypatch):
    np.savez_compressed(tmp_path / "x.npz", a=np.zeros((1000, 100)))
    monkeypatch.setattr("unpaired._files.MAX_UNPACKED", 700_000)
    assert "it claims 0.0 GiB. Save the arrays one by one as .npy." in message_of(
        DataError, read_table, tmp_path / "x.npz"
    )


def test_an_archive_that_lies_about_its_size(tmp_path):
    path = tmp_path / "x.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.npy", npy_bytes((100, 100), data=VALUES.tobytes()))
    held = len(npy_bytes((100, 100), data=VALUES.tobytes()))
    claimed = held - 48 + 80_000
    content = path.read_bytes().replace(held.to_bytes(4, "little"), claimed.to_bytes(4, "little"))
    path.write_bytes(content)
    assert message_of(DataError, read_table, path).startswith(str(path))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3), (2, 3, 4), (0, 5)])
def test_arrays_of_all_shapes_are_read_as_numpy_reads_them(tmp_path, rng, shape, order):
    values = np.asarray(rng.normal(size=shape), order=order)
    np.save(tmp_path / "x.npy", values)
    np.savez_compressed(tmp_path / "x.npz", values)
    for name in ("x.npy", "x.npz"):
        read = read_table(tmp_path / name).values
        np.testing.assert_array_equal(read, values)
        assert read.flags.writeable


def test_packed_files(tmp_path):
    np.save(tmp_path / "x.npy", VALUES)
    pd.DataFrame(VALUES, columns=["a", "b"]).to_parquet(tmp_path / "x.parquet")
    (tmp_path / "x.csv").write_text("a,b\n1.5,-2\n3,4e-3\n5,6\n")
    (tmp_path / "x.jsonl").write_text("[1.5, -2]\n[3, 4e-3]\n[5, 6]\n")
    for kind in ("npy", "parquet", "csv", "jsonl"):
        path = tmp_path / f"x.{kind}.gz"
        path.write_bytes(gzip.compress((tmp_path / f"x.{kind}").read_bytes()))
        assert same(read_table(path))
        path.write_bytes(path.read_bytes()[:-12])
        assert message_of(DataError, read_table, path).startswith(f"{path} could not be read as")


def test_packed_file_that_goes_on_and_on(tmp_path, monkeypatch):
    path = tmp_path / "x.npy.gz"
    path.write_bytes(gzip.compress(bytes(3 * 2**20)))
    monkeypatch.setattr("unpaired.files.reading.MAX_UNPACKED", 2**20)
    assert "it goes on" in message_of(DataError, read_table, path)


def test_columns_of_an_array_can_be_chosen(tmp_path):
    np.save(tmp_path / "x.npy", np.column_stack([[7, 8, 9], VALUES]))
    assert same(read_table(tmp_path / "x.npy", features="1-2"))
    assert same(read_table(tmp_path / "x.npy", id_column="0"), ids=("7", "8", "9"))
    np.save(tmp_path / "flat.npy", VALUES[0])
    assert message_of(InputError, read_table, tmp_path / "flat.npy", features="0").startswith(
        "id-column and features choose columns of a matrix"
    )


@pytest.mark.parametrize(
    "kind", ["npy", "npz", "csv", "tsv", "parquet", "feather", "xlsx", "jsonl"]
)
@pytest.mark.parametrize("fault", ["garbage", "cut short", "another kind", "empty"])
def test_file_that_is_not_what_its_name_says(tmp_path, kind, fault):
    np.save(tmp_path / "good.npy", VALUES)
    np.savez(tmp_path / "good.npz", VALUES)
    pd.DataFrame(VALUES, columns=["a", "b"]).to_parquet(tmp_path / "good.parquet")
    pd.DataFrame(VALUES, columns=["a", "b"]).to_feather(tmp_path / "good.feather")
    pd.DataFrame(VALUES, columns=["a", "b"]).to_excel(tmp_path / "good.xlsx")
    path = tmp_path / f"bad.{kind}"
    text = kind in {"csv", "tsv", "jsonl"}
    other = {"npy": "good.npz", "npz": "good.npy"}.get(kind, "good.npy")
    if fault == "cut short" and not text:
        whole = (tmp_path / f"good.{kind}").read_bytes()
        path.write_bytes(whole[: len(whole) // 2])
    else:
        path.write_bytes(
            {
                "garbage": b"\xff\xfe\x00\x81garbage",
                "cut short": b"1,2\n3,4\n5".replace(b",", b"\t" if kind == "tsv" else b","),
                "another kind": (tmp_path / other).read_bytes(),
                "empty": b"",
            }[fault]
        )
    assert message_of(DataError, read_table, path).startswith(str(path))


def test_missing_and_unknown_files(tmp_path, write):
    missing = tmp_path / "nothing.npy"
    assert message_of(DataError, read_table, missing) == (
        f"There is no file {missing}: it is not there. Check the path; known kinds: {KINDS}."
    )
    assert f"{tmp_path}: it is a folder" in message_of(DataError, read_table, tmp_path)
    assert "cannot be a file" in message_of(DataError, read_table, "x" * 5000 + ".npy")
    sheet = write("x.ods", "")
    assert message_of(DataError, read_table, sheet) == (
        f"{sheet} is not of a known kind ({KINDS}). Convert it to one of these."
    )
    assert issubclass(DataError, OSError)
    assert issubclass(DataError, UnpairedError)
