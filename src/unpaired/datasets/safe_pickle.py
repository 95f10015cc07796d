"""Old pickled batches read without trust: plain values and plain arrays, nothing else.

CIFAR-10's python batches are pickles, and a pickle is a program. This module is the only place of
the package that reads one. It never runs what the file names: every instruction is checked
against a list first, the four names that a pickled array needs are answered by stand-ins which
merely note their arguments, and arrays are then built here from bytes whose type, shape and length
were checked. NumPy's own unpickling is not called either: it believes the file about memory.
"""

from __future__ import annotations

import io
import math
import pickle
import pickletools
from typing import Any

import numpy as np

from unpaired.errors import DataError

MAX_OPERATIONS = 2_000_000
MAX_DEPTH = 20
ELEMENT_TYPES = {"b1", "u1", "u2", "u4", "u8", "i1", "i2", "i4", "i8", "f4", "f8"}
PLAIN_OPERATIONS = """
    PROTO FRAME STOP MARK NONE NEWTRUE NEWFALSE INT LONG LONG1 BININT BININT1 BININT2 FLOAT BINFLOAT
    STRING BINSTRING SHORT_BINSTRING UNICODE BINUNICODE SHORT_BINUNICODE BINUNICODE8
    BINBYTES SHORT_BINBYTES BINBYTES8 EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3
    EMPTY_LIST LIST APPEND APPENDS EMPTY_DICT DICT SETITEM SETITEMS
    PUT BINPUT LONG_BINPUT MEMOIZE GET BINGET LONG_BINGET GLOBAL STACK_GLOBAL REDUCE BUILD
"""
OPERATIONS = frozenset(PLAIN_OPERATIONS.split())
MEMO = {"PUT", "BINPUT", "LONG_BINPUT"}


class _Type:
    """Stand-in for numpy.dtype: notes the element type, believes nothing else."""

    def __init__(self, code: Any = None, *flags: Any) -> None:
        self.code, self.order = _text(code), "|"

    def __setstate__(self, state: Any) -> None:
        order = state[1] if isinstance(state, tuple) and len(state) > 2 else None
        if _text(order) not in {"|", "<", ">", "="}:
            raise DataError("an array names a byte order that does not exist")
        self.order = _text(order)

    def build(self) -> np.dtype[Any]:
        """The NumPy type, when it is one of plain numbers."""
        if self.code not in ELEMENT_TYPES:
            raise DataError(f'an array holds elements of type "{self.code}", not plain numbers')
        return np.dtype(self.order + self.code)


class _Array:
    """Stand-in for a pickled numpy.ndarray: notes shape, type and bytes."""

    state: Any = None

    def __setstate__(self, state: Any) -> None:
        self.state = state

    def build(self) -> np.ndarray[Any, Any]:
        """The array, built from bytes whose number fits its shape."""
        if not isinstance(self.state, tuple) or len(self.state) != 5:
            raise DataError("an array has no contents")
        _, shape, kind, fortran, raw = self.state
        if not isinstance(kind, _Type) or not isinstance(raw, bytes):
            raise DataError("an array does not hold plain bytes")
        if not isinstance(shape, tuple) or not all(
            isinstance(size, int) and size >= 0 for size in shape
        ):
            raise DataError("an array has a shape that is not one")
        dtype = kind.build()
        if math.prod(shape) * dtype.itemsize != len(raw):
            raise DataError(f"an array of shape {shape} has {len(raw)} bytes")
        flat = np.frombuffer(raw, dtype=dtype)
        return flat.reshape(shape, order="F" if fortran is True else "C").copy()


def _reconstruct(*arguments: Any) -> _Array:
    """Stand-in for numpy's maker of empty arrays."""
    return _Array()


def _encode(value: Any, encoding: Any = "latin1") -> bytes:
    """Stand-in for _codecs.encode, by which Python 3 writes bytes in old protocols."""
    if not isinstance(value, str) or _text(encoding) not in {"latin1", "latin-1"}:
        raise DataError("bytes are written in an encoding that arrays do not use")
    return value.encode("latin1")


STAND_INS: dict[tuple[str, str], Any] = {
    ("numpy.core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy._core.multiarray", "_reconstruct"): _reconstruct,
    ("numpy", "ndarray"): _Array,
    ("numpy", "dtype"): _Type,
    ("_codecs", "encode"): _encode,
}


class _Reader(pickle.Unpickler):
    """An unpickler that knows four names."""

    def find_class(self, module: str, name: str) -> Any:
        """The stand-in for a name of the list; no import ever happens."""
        try:
            return STAND_INS[module, name]
        except KeyError:
            raise DataError(f"it asks for {module}.{name}") from None


def read_plain_pickle(content: bytes, name: str = "file") -> Any:
    r"""Values of an old pickle: dicts, lists, tuples, text, bytes, numbers and plain arrays.

    Text that Python 2 wrote comes back as bytes. Nothing in the file is imported or run.

    Raises:
        DataError: when the file is damaged or holds anything beyond plain values.

    >>> read_plain_pickle(b"(dp0\nS'label'\np1\nI3\ns.")
    {b'label': 3}
    """
    try:
        _check_operations(content)
        return _Plain().convert(_Reader(io.BytesIO(content), encoding="bytes").load(), 0)
    except Exception as error:  # a malformed pickle raises nearly anything
        raise DataError(
            f"{name} must be a pickle of plain arrays, and nothing in it was run: {error}. "
            "Take the file from its official archive."
        ) from error


def _check_operations(content: bytes) -> None:
    """Refuse instructions that plain values do not need, before a single one is carried out."""
    for count, (operation, argument, _) in enumerate(pickletools.genops(content)):
        if operation.name not in OPERATIONS:
            raise DataError(f"it uses the instruction {operation.name}")
        if operation.name in MEMO and not 0 <= int(argument or 0) <= MAX_OPERATIONS:
            raise DataError(f"it keeps note number {argument}, more than a batch has")
        if count >= MAX_OPERATIONS:
            raise DataError(f"it has more than {MAX_OPERATIONS} instructions")


class _Plain:
    """Turns stand-ins into arrays; counts, so that a small file cannot unfold into a huge value."""

    count = 0

    def convert(self, value: Any, depth: int) -> Any:
        """``value`` with arrays in it; refuses what is not plain."""
        self.count += 1
        if depth > MAX_DEPTH or self.count > MAX_OPERATIONS:
            raise DataError("it is nested too deep or unfolds into too many values")
        if isinstance(value, _Array):
            return value.build()
        if isinstance(value, dict):
            below = depth + 1
            return {self.convert(k, below): self.convert(v, below) for k, v in value.items()}
        if isinstance(value, (list, tuple)):
            return type(value)(self.convert(item, depth + 1) for item in value)
        if value is None or isinstance(value, (str, bytes, bool, int, float)):
            return value
        raise DataError(f"it holds a {type(value).__name__.strip('_').lower()} outside an array")


def _text(value: Any) -> str:
    """Text that may have come as bytes."""
    return value.decode("latin1") if isinstance(value, bytes) else str(value)
