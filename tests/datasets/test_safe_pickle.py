"""Pickles from strangers: plain arrays come out, everything else is refused and nothing is run."""

import copyreg
import os
import pickle
import struct

import numpy as np
import pytest

from unpaired.datasets.safe_pickle import read_plain_pickle
from unpaired.errors import DataError


def python2_batch(data: np.ndarray, labels: list[int]) -> bytes:
    """A CIFAR batch as Python 2 wrote it: protocol 2, str as BINSTRING, numpy.core.multiarray."""

    def text(value: bytes) -> bytes:
        if len(value) < 256:
            return b"U" + bytes([len(value)]) + value
        return b"T" + struct.pack("<i", len(value)) + value

    def number(value: int) -> bytes:
        return b"J" + struct.pack("<i", value)

    array = (
        b"cnumpy.core.multiarray\n_reconstruct\n"
        b"cnumpy\nndarray\n" + b"K\x00\x85" + text(b"b") + b"\x87R"  # (ndarray, (0,), 'b')
        b"(K\x01" + number(data.shape[0]) + number(data.shape[1]) + b"\x86"
        b"cnumpy\ndtype\n" + text(b"u1") + b"K\x00K\x01\x87R"
        b"(K\x03" + text(b"|") + b"NNN" + number(-1) + number(-1) + b"K\x00tb"
        b"\x89" + text(data.tobytes()) + b"tb"
    )
    listed = b"](" + b"".join(b"K" + bytes([label]) for label in labels) + b"e"
    return (
        b"\x80\x02}(" + text(b"batch_label") + text(b"training batch 1 of 5")
        + text(b"labels") + listed + text(b"data") + array + b"u."
    )  # fmt: skip


def test_a_batch_of_python_2_is_read():
    data = np.arange(2 * 3072, dtype=np.uint64).astype(np.uint8).reshape(2, 3072)
    content = python2_batch(data, [6, 9])
    reference = pickle.loads(content, encoding="bytes")  # noqa: S301 - our own bytes
    np.testing.assert_array_equal(reference[b"data"], data)
    found = read_plain_pickle(content)
    assert found[b"labels"] == [6, 9]
    np.testing.assert_array_equal(found[b"data"], data)
    assert found[b"data"].dtype == np.uint8


@pytest.mark.parametrize("protocol", range(5))
@pytest.mark.parametrize("dtype", ["u1", "i8", "f4", ">i2", "?"])
def test_arrays_of_every_protocol_are_read(protocol, dtype):
    array = np.arange(6).reshape(2, 3).astype(dtype)
    value = {"data": array, "fortran": np.asfortranarray(array), "labels": [1, 2], "name": "x"}
    found = read_plain_pickle(pickle.dumps(value, protocol=protocol))
    np.testing.assert_array_equal(found["data"], array)
    np.testing.assert_array_equal(found["fortran"], array)
    assert found["labels"] == [1, 2]


class Evil:
    def __init__(self, *reduction):
        self.reduction = reduction

    def __reduce__(self):
        return self.reduction


@pytest.mark.parametrize("protocol", [0, 2, 4])
@pytest.mark.parametrize(
    "reduction",
    [
        (os.system, ("touch was-run",)),
        (eval, ("open('was-run', 'w')",)),
        (getattr, (np.ndarray, "dump")),
        (np.load, ("was-run",)),
        (np.fromfile, ("was-run",)),
        (copyreg._reconstructor, (Evil, object, None)),
        (bytearray, (10**9,)),
    ],
    ids=lambda r: r[0].__name__,
)
def test_functions_are_refused_and_not_run(tmp_path, monkeypatch, protocol, reduction):
    monkeypatch.chdir(tmp_path)
    content = pickle.dumps({"data": [Evil(*reduction)]}, protocol=protocol)
    with pytest.raises(DataError, match="nothing in it was run"):
        read_plain_pickle(content)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (b"cnumpy\nload\n.", "asks for numpy.load"),
        (b"cos\nsystem\n(S'true'\ntR.", "asks for os.system"),
        (b"cnumpy\nndarray.__class__\n.", "asks for numpy.ndarray.__class__"),
        (b"\x80\x04\x8c\x05numpy\x8c\x0cndarray.dump\x93.", "asks for numpy.ndarray.dump"),
        (b"(S'true'\nios\nsystem\n.", "instruction INST"),
        (b"\x80\x02\x82\x01.", "instruction EXT1"),
        (b"\x80\x02cnumpy\nndarray\n)\x81.", "instruction NEWOBJ"),
        (b"Pperson\n.", "instruction PERSID"),
        (b"\x80\x02Nr\xff\xff\xff\x7f.", "keeps note number"),
        (b"cnumpy\ndtype\n.", "outside an array"),
        (b"cnumpy.core.multiarray\n_reconstruct\n.", "outside an array"),
        (b"cnumpy\ndtype\n(S'u1'\ntR.", "holds a type outside an array"),
        (b"cnumpy.core.multiarray\n_reconstruct\n(tR.", "no contents"),
        (b"c_codecs\nencode\n(Vabc\nVrot13\ntR.", "encoding"),
        (b"", ""),
        (b"not a pickle", ""),
        (b"\x80\x02}q", ""),
        (b"(lp0\ng0\na.", "nested too deep"),
    ],
)
def test_crafted_files_are_refused(content, reason):
    with pytest.raises(DataError, match=r"must be a pickle of plain arrays") as caught:
        read_plain_pickle(content, "data_batch_1")
    assert reason in str(caught.value)


def array_pickle(code: bytes, shape: bytes, raw: bytes, order: bytes = b"|") -> bytes:
    """A protocol 0 pickle of an array with anything in its state."""
    return (
        b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\n(I0\ntS'b'\ntR(I1\n" + shape
        + b"cnumpy\ndtype\n(S'" + code + b"'\nI0\nI1\ntR(I3\nS'" + order
        + b"'\nNNNI-1\nI-1\nI0\ntbI00\nS'" + raw + b"'\ntb."
    )  # fmt: skip


def test_an_honest_array_state_passes():
    found = read_plain_pickle(array_pickle(b"u1", b"(I3\nt", b"abc"))
    np.testing.assert_array_equal(found, np.frombuffer(b"abc", np.uint8))


@pytest.mark.parametrize(
    ("code", "shape", "raw", "order", "reason"),
    [
        (b"O8", b"(I1\nt", b"12345678", b"|", 'type "O8"'),  # pointers from the file
        (b"V8", b"(I1\nt", b"12345678", b"|", 'type "V8"'),
        (b"O", b"(I1\nt", b"12345678", b"|", 'type "O"'),
        (b"u1", b"(I1000000000\nt", b"abc", b"|", "has 3 bytes"),
        (b"u1", b"(I-3\nt", b"abc", b"|", "shape that is not one"),
        (b"u1", b"I3\n", b"abc", b"|", "shape that is not one"),
        (b"u1", b"(I3\nt", b"abc", b"x", "byte order"),
    ],
)
def test_arrays_that_lie_about_memory_are_refused(code, shape, raw, order, reason):
    with pytest.raises(DataError, match="plain arrays") as caught:
        read_plain_pickle(array_pickle(code, shape, raw, order))
    assert reason in str(caught.value)


def test_a_small_file_cannot_unfold_into_a_huge_value():
    nested = [0] * 100
    for _ in range(8):
        nested = [nested] * 100  # shared by memo: 900 references, 100 ** 9 values
    with pytest.raises(DataError, match="too many values"):
        read_plain_pickle(pickle.dumps(nested, protocol=2))
