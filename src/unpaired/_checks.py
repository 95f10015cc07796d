"""The gate: array-likes in, validated arrays out. Every message says what to do next."""

from __future__ import annotations

import math
import os
import sys
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from unpaired._names import check_choice as check_choice
from unpaired.errors import InputError
from unpaired.types import IntArray

if TYPE_CHECKING:
    import torch

MAX_DENSE_BYTES = 8 * 2**30
LARGEST = 1e30
"""Magnitude of values that single precision holds with room for sums; 1 / LARGEST is the least."""


def check_view(value: Any, name: str, *, min_rows: int = 2) -> NDArray[np.float64]:
    """Return ``value`` as a finite float64 array of shape (rows, columns).

    Takes NumPy arrays, torch tensors, pandas and polars frames, SciPy sparse matrices and nested
    lists; float16 to float64, integers and booleans. Constant columns are allowed, a view whose
    rows are all equal is not.

    Raises:
        InputError: when the values cannot be used, naming ``name`` and the rule it breaks.
    """
    if value is None or isinstance(value, str | bytes | os.PathLike):
        raise InputError(
            f"{name} must be an array, a tensor or a frame: it is {value!r}. Read a file "
            "first; the command unpaired match takes files."
        )
    array = _to_numpy(value, name)
    if array.ndim != 2:
        hint = " Reshape a single column with x[:, None]." if array.ndim == 1 else ""
        raise InputError(
            f"{name} must have two dimensions (rows, columns): it has shape {array.shape}.{hint}"
        )
    if array.shape[0] < min_rows or array.shape[1] < 1:
        raise InputError(
            f"{name} must have at least {min_rows} row{'s'[: min_rows > 1]} and 1 column: it has "
            f"shape {array.shape}. "
            + (
                "Pass the columns to match by."
                if array.shape[0] >= min_rows
                else "One row has no geometry to match by; pass more rows."
                if min_rows > 1
                else "Pass at least one row."
            )
        )
    if array.dtype.kind not in "fiub":
        raise InputError(
            f"{name} must hold real numbers: its type is {array.dtype}. "
            "Drop or encode the columns that are not numbers."
        )
    array = np.ascontiguousarray(array, dtype=np.float64)
    finite = np.isfinite(array)
    if not finite.all():
        row, column = np.argwhere(~finite)[0]
        count = int((~finite).sum())
        are = "value is" if count == 1 else "values are"
        raise InputError(
            f"{name} must be finite: {count} {are} NaN or infinite, the first "
            f"at row {row}, column {column}. Impute them or drop those rows."
        )
    largest = np.abs(array).max()
    if largest > LARGEST:
        raise InputError(
            f"{name} must stay below {LARGEST:.0e}, so that single precision can hold it: the "
            f"largest magnitude is {largest:.3g}. Rescale the columns."
        )
    if min_rows > 1 and (array == array[0]).all():
        raise InputError(
            f"{name} must have rows that differ: all {len(array)} rows are equal, so there is "
            "nothing to match by. Check how the features were made."
        )
    spread = np.ptp(array, axis=0).max() if min_rows > 1 else LARGEST
    if spread < 1.0 / LARGEST:
        raise InputError(
            f"{name} must have a column that varies by more than {1.0 / LARGEST:.0e}, so that "
            f"single precision can tell its rows apart: the largest spread is {spread:.3g}. "
            "Rescale the columns."
        )
    return array


def column_names(value: Any) -> tuple[str, ...] | None:
    """The names of a frame's columns, or None for what has none.

    Like scikit-learn, only names that are all text count: pandas' default 0, 1, 2 are no names.
    """
    columns = getattr(value, "columns", None)
    if columns is None or callable(columns):
        return None
    names = tuple(columns)
    return names if names and all(isinstance(name, str) for name in names) else None


def check_columns(
    names: tuple[str, ...] | None,
    width: int,
    name: str,
    fit_width: int,
    fit_names: tuple[str, ...] | None,
) -> None:
    """Accept columns that are those of ``fit``, by number and, where both have names, by name.

    Raises:
        InputError: when there are more or fewer, others, or the same in another order.
    """
    if width != fit_width:
        raise InputError(
            f"{name} must have the {fit_width} columns seen in fit: it has {width}. "
            "Use the same features as in training."
        )
    if names is None or fit_names is None or names == fit_names:
        return
    unknown = [column for column in names if column not in fit_names]
    if unknown:
        missing = next((column for column in fit_names if column not in names), "another")
        raise InputError(
            f'{name} must have the columns seen in fit: "{unknown[0]}" was not there, and '
            f'"{missing}" is missing. Use the same features as in training.'
        )
    place = next(i for i, column in enumerate(names) if column != fit_names[i])
    raise InputError(
        f'{name} must have its columns in the order of fit: column {place} is "{names[place]}" and '
        f'was "{fit_names[place]}". Write '
        f"{name}[list(model.feature_names_in_{'y_' if name == 'y' else ''})]."
    )


def _to_numpy(value: Any, name: str) -> NDArray[Any]:
    """Return ``value`` as an array, without importing libraries the caller has not imported."""
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, torch.Tensor):
        try:
            tensor = value.detach().to("cpu")
            tensor = tensor.to_dense() if tensor.layout != torch.strided else tensor
            if tensor.is_floating_point():  # NumPy has no bfloat16
                tensor = tensor.to(torch.float64)
            return np.asarray(tensor.numpy())
        except (RuntimeError, TypeError) as error:  # meta, nested and quantised tensors
            raise InputError(
                f"{name} must be a tensor whose values can be copied to the CPU: this one is on "
                f"device {value.device}, of type {value.dtype}. Pass a plain tensor or an array."
            ) from error
    sparse = sys.modules.get("scipy.sparse")
    if sparse is not None and sparse.issparse(value):
        n_bytes = 8 * math.prod(value.shape)
        if n_bytes > MAX_DENSE_BYTES:
            raise InputError(
                f"{name} must fit in memory as a dense array: shape {value.shape} needs "
                f"{n_bytes / 2**30:.0f} GiB. Reduce it first, e.g. with "
                "sklearn.decomposition.TruncatedSVD(256)."
            )
        return np.asarray(value.toarray())
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        value = np.ma.filled(np.ma.asarray(value, dtype=np.float64), np.nan)
    if hasattr(value, "to_numpy"):  # pandas, polars
        value = _frame_to_numpy(value)
    try:
        return np.asarray(value)
    except (ValueError, TypeError) as error:
        raise InputError(
            f"{name} must be rectangular, every row equally long: {str(error).rstrip('.')}. "
            "Pass a 2-d array."
        ) from error


def _frame_to_numpy(frame: Any) -> NDArray[Any]:
    """Return the values of a frame; missing numbers become NaN."""
    values = np.asarray(frame.to_numpy())
    if values.dtype != object or not hasattr(frame, "columns"):
        return values
    # pandas gives objects for numbers and booleans side by side, and for its nullable types.
    if any(getattr(kind, "kind", "O") not in "fiub" for kind in frame.dtypes):
        return values
    return np.asarray(frame.to_numpy(dtype=np.float64, na_value=np.nan))


def check_pairs(pairs: Any, n_x: int, n_y: int, name: str = "pairs") -> IntArray:
    """Return known pairs as a (k, 2) int64 array without repetitions; None gives k = 0.

    ``"aligned"`` means that row i of x belongs to row i of y. ``name`` is the argument's, for
    messages.

    Raises:
        InputError: when the shape, the type or an index is wrong.
    """
    if pairs is None:
        return np.empty((0, 2), dtype=np.int64)
    if isinstance(pairs, str):
        if pairs != "aligned":
            raise InputError(
                f'{name} must be None, "aligned" or a (k, 2) integer array: got "{pairs}". '
                f'Write {name}="aligned" when row i of x belongs to row i of y.'
            )
        if n_x != n_y:
            raise InputError(
                f'{name}="aligned" needs equally many rows: x has {n_x}, y has {n_y}. '
                "Pass a (k, 2) array of (row of x, row of y)."
            )
        return np.column_stack([np.arange(n_x), np.arange(n_x)]).astype(np.int64)
    array = _to_numpy(pairs, name)
    if array.size == 0:
        return np.empty((0, 2), dtype=np.int64)
    if array.ndim != 2 or array.shape[1] != 2:
        raise InputError(
            f"{name} must have shape (k, 2), one (row of x, row of y) each: it has shape "
            f"{array.shape}. Stack the two index arrays with numpy.column_stack."
        )
    if array.dtype.kind not in "iu" and not (
        array.dtype.kind == "f" and np.array_equal(array, np.round(array))
    ):
        raise InputError(
            f"{name} must hold whole row numbers: its type is {array.dtype}. "
            "Translate names to row numbers first."
        )
    for column, (side, size) in enumerate((("x", n_x), ("y", n_y))):
        wrong = np.flatnonzero((array[:, column] < 0) | (array[:, column] >= size))
        if len(wrong):
            raise InputError(
                f"{name} must name rows of {side} between 0 and {size - 1}: pair {wrong[0]} names "
                f"{array[wrong[0], column]}. Rows count from 0."
            )
    array = array.astype(np.int64)
    _, first = np.unique(array, axis=0, return_index=True)
    return array[np.sort(first)]


def check_partners(start: Any, n_x: int, n_y: int) -> IntArray:
    """``start`` as (n_x,) rows of y, -1 = none.

    Raises:
        InputError: when its shape or an entry is wrong.
    """
    partner = np.asarray(start, dtype=np.int64)
    if partner.shape != (n_x,) or partner.max() >= n_y or partner.min() < -1:
        raise InputError(
            f"start must hold a row of y, or -1, for each of the {n_x} rows of x: it has shape "
            f"{partner.shape} and entries from {partner.min()} to {partner.max()}."
        )
    return partner


def check_one_to_one(pairs: IntArray) -> IntArray:
    """Return ``pairs`` when no row occurs twice.

    Raises:
        InputError: when two pairs contradict each other.
    """
    for column, side in enumerate("xy"):
        rows, counts = np.unique(pairs[:, column], return_counts=True)
        if (counts > 1).any():
            row = rows[counts > 1][0]
            partners = pairs[pairs[:, column] == row, 1 - column].tolist()
            raise InputError(
                f"pairs must be one to one: row {row} of {side} is paired with rows {partners}. "
                'Keep one of them, or use relation="many-to-one" or DMAE, which takes several.'
            )
    return pairs


def check_one_class(known: IntArray) -> IntArray:
    """Known pairs of many-to-one, without repeats: a row of x has one class.

    Raises:
        InputError: when a row of x is given two.
    """
    pairs = np.unique(known, axis=0)
    rows, counts = np.unique(pairs[:, 0], return_counts=True)
    if (counts > 1).any():
        row = int(rows[counts > 1][0])
        named = pairs[pairs[:, 0] == row, 1].tolist()
        raise InputError(
            "pairs must give each row of x one row of y in many-to-one: row "
            f"{row} of x has {named}. Keep one of them."
        )
    return pairs


def check_number(value: Any, name: str, low: float, *, integer: bool = False) -> None:
    """Accept a finite number of at least ``low``.

    Raises:
        InputError: otherwise.
    """
    kind = "a whole number" if integer else "a number"
    kinds = (int, np.integer) if integer else (int, float, np.integer, np.floating)
    if not isinstance(value, kinds) or isinstance(value, bool) or not low <= value < math.inf:
        raise InputError(f"{name} must be {kind} of at least {low}: got {value!r}.")


def check_sizes(value: Any, name: str) -> None:
    """Accept a sequence of whole numbers from 1 on, one per layer.

    Raises:
        InputError: otherwise.
    """
    if not isinstance(value, list | tuple):
        near = f" Write {name}=({value},)." if isinstance(value, int) else ""
        raise InputError(f"{name} must be a tuple of sizes, one per layer: got {value!r}.{near}")
    for size in value:
        check_number(size, name, 1, integer=True)


def check_jobs(value: Any, name: str = "n_jobs") -> None:
    """Refuse a number of jobs that is neither None, -1 nor a whole number from 1 on.

    Raises:
        InputError: when it is another.
    """
    if value is None or value == -1:
        return
    try:
        check_number(value, name, 1, integer=True)
    except InputError as error:
        raise InputError(f"{error} Pass -1 for as many as there are cores.") from None


def check_gram_pair(
    gram_x: torch.Tensor, gram_y: torch.Tensor, perm: torch.Tensor | None = None
) -> None:
    """Accept two square matrices of one size and, if given, a permutation of their rows.

    Raises:
        InputError: otherwise.
    """
    for name, gram in (("gram_x", gram_x), ("gram_y", gram_y)):
        if gram.ndim != 2 or gram.shape[0] != gram.shape[1]:
            raise InputError(
                f"{name} must be square: it has shape {tuple(gram.shape)}. "
                "Make it with gaussian_gram."
            )
    if gram_x.shape != gram_y.shape:
        raise InputError(
            f"gram_x and gram_y must have one size: they have {gram_x.shape[0]} and "
            f"{gram_y.shape[0]} rows. Index the larger one by the matched rows first."
        )
    if perm is not None:
        check_permutation(perm, gram_x.shape[0])


def check_permutation(perm: torch.Tensor, size: int) -> None:
    """Accept a permutation of 0..size-1.

    Raises:
        InputError: otherwise, naming a repeated and a missing index.
    """
    if perm.ndim != 1 or str(perm.dtype) not in {"torch.int64", "torch.int32"}:
        raise InputError(
            f"perm must be one row number of y for each row of x: it has shape "
            f"{tuple(perm.shape)} and type {perm.dtype}. Pass a 1-d tensor of type torch.int64."
        )
    indices = perm.tolist()
    if sorted(indices) == list(range(size)):
        return
    counts: dict[int, int] = {}
    for index in indices:
        counts[index] = counts.get(index, 0) + 1
    twice = next((i for i, count in counts.items() if count > 1), None)
    never = next((i for i in range(size) if i not in counts), None)
    outside = next((i for i in counts if not 0 <= i < size), None)
    faults = [
        text
        for condition, text in (
            (len(indices) != size, f"it has {len(indices)} entries"),
            (outside is not None, f"index {outside} is out of range"),
            (twice is not None, f"index {twice} occurs twice"),
            (never is not None, f"index {never} never"),
        )
        if condition
    ]
    raise InputError(
        f"perm is not a permutation of 0..{size - 1}: {' and '.join(faults)}. "
        "Index the Gram matrix yourself for a many-to-one matching."
    )
