from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import torch
from scipy import sparse

from unpaired import _checks
from unpaired._checks import (
    check_choice,
    check_columns,
    check_gram_pair,
    check_number,
    check_one_to_one,
    check_pairs,
    check_permutation,
    check_sizes,
    check_view,
    column_names,
)
from unpaired.errors import InputError, UnpairedError


def message_of(call, *args, **options):
    with pytest.raises(InputError) as error:
        call(*args, **options)
    return str(error.value)


VALUES = np.array([[1.0, -2.0, 0.5], [3.0, 4.0, 0.25], [-5.0, 6.0, 8.0]])  # exact in float16 too

GOOD = {
    "float64": VALUES,
    "float32": VALUES.astype(np.float32),
    "float16": VALUES.astype(np.float16),
    "column order": np.asfortranarray(VALUES),
    "strided": np.repeat(VALUES, 2, axis=1)[:, ::2],
    "read only": np.broadcast_to(VALUES, (3, 3)),
    "list": VALUES.tolist(),
    "list of arrays": list(VALUES),
    "list of tensors": list(torch.tensor(VALUES)),
    "nothing masked": np.ma.masked_array(VALUES, mask=False),
    "torch float64": torch.tensor(VALUES),
    "torch float16": torch.tensor(VALUES).half(),
    "torch bfloat16": torch.tensor(VALUES).bfloat16(),
    "torch with gradient": torch.tensor(VALUES, requires_grad=True),
    "torch transposed": torch.tensor(VALUES.T.copy()).T,
    "torch sparse": torch.tensor(VALUES).to_sparse(),
    "pandas": pd.DataFrame(VALUES, columns=list("abc"), index=[5, 5, 1]),
    "pandas float32": pd.DataFrame(VALUES.astype(np.float32)),
    "pandas nullable": pd.DataFrame(VALUES).astype("Float64"),
    "polars": pl.DataFrame(VALUES, schema=["a", "b", "c"]),
    "csr": sparse.csr_matrix(VALUES),
    "csc array": sparse.csc_array(VALUES),
    "coo float32": sparse.coo_array(VALUES.astype(np.float32)),
}


@pytest.mark.parametrize("kind", GOOD)
def test_every_kind_of_view_becomes_the_same_array(kind):
    array = check_view(GOOD[kind], "x")
    np.testing.assert_array_equal(array, VALUES)
    assert array.dtype == np.float64
    assert array.flags.c_contiguous


WHOLE = np.array([[0, 1], [1, 1], [1, 0]])


@pytest.mark.parametrize(
    "value",
    [
        *[WHOLE.astype(kind) for kind in ("int8", "uint8", "int64", "uint64", "bool")],
        torch.tensor(WHOLE),
        torch.tensor(WHOLE).bool(),
        WHOLE.tolist(),
        pd.DataFrame(WHOLE),
        pd.DataFrame(WHOLE).astype({0: bool, 1: float}),
        pd.DataFrame(WHOLE).astype({0: "Int64", 1: "boolean"}),
        pl.DataFrame({"a": [False, True, True], "b": [1, 1, 0]}),
        sparse.csr_array(WHOLE.astype(bool)),
    ],
    ids=lambda value: f"{type(value).__module__}-{getattr(value, 'dtype', '')}",
)
def test_integers_and_booleans_are_numbers(value):
    np.testing.assert_array_equal(check_view(value, "x"), WHOLE.astype(float))


@pytest.mark.parametrize(
    "value",
    [
        np.array([[1.0, 2.0], [1.0, 3.0]]),  # a constant column
        np.array([[1.0, 1.0], [2.0, 2.0]]),  # two equal columns
        np.array([[1.0, 2.0], [1.0, 2.0], [1.0, 2.5]]),  # equal rows, but not all
        np.array([[1e30, -1e30], [0.0, 0.0]]),
        np.array([[1e-29, 1e-300], [0.0, 0.0]]),
        np.array([[np.finfo(np.float16).max], [1]], dtype=np.float16),
    ],
)
def test_odd_but_usable_values_pass_unchanged(value):
    np.testing.assert_array_equal(check_view(value, "x"), value)


def test_the_view_is_not_changed_and_a_single_row_passes_where_allowed():
    original = VALUES.copy()
    check_view(original, "x")
    np.testing.assert_array_equal(original, VALUES)
    assert check_view(VALUES[:1], "x", min_rows=1).shape == (1, 3)
    assert check_view(VALUES[[0, 0]], "x", min_rows=1).shape == (2, 3)


TWO_DIMENSIONS = "images must have two dimensions (rows, columns): it has shape {}.{}"
NOT_NUMBERS = (
    "images must hold real numbers: its type is {}. "
    "Drop or encode the columns that are not numbers."
)
NOT_FINITE = (
    "images must be finite: {} NaN or infinite, the first at row {}, column {}. "
    "Impute them or drop those rows."
)
ONE_NOT_FINITE = NOT_FINITE.format("1 value is", 1, 0)
TOO_SMALL = "images must have at least 2 rows and 1 column: it has shape {}. {}"
ONE_ROW = "One row has no geometry to match by; pass more rows."
RESHAPE = " Reshape a single column with x[:, None]."
SPOILT = VALUES.copy()
SPOILT[1, 2], SPOILT[2, 0] = np.nan, np.inf


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (VALUES[0], TWO_DIMENSIONS.format("(3,)", RESHAPE)),
        (pd.Series([1.0, 2.0]), TWO_DIMENSIONS.format("(2,)", RESHAPE)),
        (pl.Series([1.0, 2.0]), TWO_DIMENSIONS.format("(2,)", RESHAPE)),
        (sparse.coo_array(np.arange(3.0)), TWO_DIMENSIONS.format("(3,)", RESHAPE)),
        ([], TWO_DIMENSIONS.format("(0,)", RESHAPE)),
        (VALUES[None], TWO_DIMENSIONS.format("(1, 3, 3)", "")),
        (torch.ones(2, 3, 4), TWO_DIMENSIONS.format("(2, 3, 4)", "")),
        (3.0, TWO_DIMENSIONS.format("()", "")),
        (VALUES[:1], TOO_SMALL.format("(1, 3)", ONE_ROW)),
        (VALUES[:0], TOO_SMALL.format("(0, 3)", ONE_ROW)),
        (pd.DataFrame(), TOO_SMALL.format("(0, 0)", ONE_ROW)),
        (VALUES[:, :0], TOO_SMALL.format("(3, 0)", "Pass the columns to match by.")),
        (VALUES.astype(object), NOT_NUMBERS.format("object")),
        (np.array([["a", "b"], ["c", "d"]]), NOT_NUMBERS.format("<U1")),
        ([["1", "2"], ["3", "4"]], NOT_NUMBERS.format("<U1")),
        (VALUES.astype(complex), NOT_NUMBERS.format("complex128")),
        (torch.tensor(VALUES).to(torch.complex64), NOT_NUMBERS.format("complex64")),
        (np.array([["2020"], ["2021"]], "datetime64[Y]"), NOT_NUMBERS.format("datetime64[Y]")),
        (pd.DataFrame({"a": ["x", "y"], "b": [1.0, 2.0]}), NOT_NUMBERS.format("object")),
        (pd.DataFrame({"a": ["1", "2"], "b": ["3", "4"]}), NOT_NUMBERS.format("object")),
        (pl.DataFrame({"a": ["x", "y"], "b": [1.0, 2.0]}), NOT_NUMBERS.format("object")),
        (SPOILT, NOT_FINITE.format("2 values are", 1, 2)),
        (SPOILT.astype(np.float16), NOT_FINITE.format("2 values are", 1, 2)),
        (torch.tensor(SPOILT).bfloat16(), NOT_FINITE.format("2 values are", 1, 2)),
        (sparse.csr_array(SPOILT), NOT_FINITE.format("2 values are", 1, 2)),
        (pd.DataFrame(SPOILT), NOT_FINITE.format("2 values are", 1, 2)),
        (pd.DataFrame({"a": [1, None], "b": [1, 2]}, dtype="Int64"), ONE_NOT_FINITE),
        (pl.DataFrame({"a": [1, None], "b": [1, 2]}), ONE_NOT_FINITE),
        (np.ma.masked_equal(WHOLE, 0), NOT_FINITE.format("2 values are", 0, 0)),
        (
            -1e100 * VALUES,
            "images must stay below 1e+30, so that single precision can hold it: the largest "
            "magnitude is 8e+100. Rescale the columns.",
        ),
        (
            1e-200 * VALUES,
            "images must have a column that varies by more than 1e-30, so that single precision "
            "can tell its rows apart: the largest spread is 8e-200. Rescale the columns.",
        ),
        (
            torch.tensor(VALUES, device="meta"),
            "images must be a tensor whose values can be copied to the CPU: this one is on device "
            "meta, of type torch.float64. Pass a plain tensor or an array.",
        ),
        (
            np.ones((4, 2)),
            "images must have rows that differ: all 4 rows are equal, so there is nothing to match "
            "by. Check how the features were made.",
        ),
    ],
)  # fmt: skip
def test_wrong_views(value, message):
    assert message_of(check_view, value, "images") == message


@pytest.mark.parametrize("value", [[[1, 2], [3]], [[1, 2], 3], [[1, [2]], [3, 4]]])
def test_ragged_lists(value):
    message = message_of(check_view, value, "y")
    assert message.startswith("y must be rectangular, every row equally long: ")
    assert message.endswith("part. Pass a 2-d array.")


def test_too_few_rows_where_one_is_enough():
    message = "x must have at least 1 row and 1 column: it has shape (0, 3). Pass at least one row."
    assert message_of(check_view, VALUES[:0], "x", min_rows=1) == message


def test_sparse_matrix_too_large_to_be_dense(monkeypatch):
    monkeypatch.setattr(_checks, "MAX_DENSE_BYTES", 2**30)
    huge = sparse.csr_array((2**20, 2**10))
    assert message_of(check_view, huge, "x") == (
        "x must fit in memory as a dense array: shape (1048576, 1024) needs 8 GiB. "
        "Reduce it first, e.g. with sklearn.decomposition.TruncatedSVD(256)."
    )


# Pairs

PAIRS = np.array([[2, 0], [0, 3], [0, 1]])


@pytest.mark.parametrize(
    "pairs",
    [
        PAIRS,
        PAIRS.astype(np.uint8),
        PAIRS.astype(np.float32),
        PAIRS.tolist(),
        [(2, 0), (0, 3), (0, 1), (2, 0)],
        torch.tensor(PAIRS),
        torch.tensor(PAIRS, dtype=torch.int16),
        pd.DataFrame(PAIRS, columns=["x", "y"]),
        pd.DataFrame(PAIRS).astype("Int64"),
        pl.DataFrame({"x": [2, 0, 0], "y": [0, 3, 1]}),
        np.repeat(PAIRS, 3, axis=0),
    ],
    ids=lambda pairs: f"{type(pairs).__module__}-{getattr(pairs, 'dtype', '')}",
)
def test_every_kind_of_pairs_keeps_order_and_loses_repetitions(pairs):
    checked = check_pairs(pairs, 3, 4)
    np.testing.assert_array_equal(checked, PAIRS)
    assert checked.dtype == np.int64


@pytest.mark.parametrize("nothing", [None, [], np.empty((0, 2)), torch.empty(0, 2), pd.DataFrame()])
def test_no_pairs(nothing):
    checked = check_pairs(nothing, 3, 4)
    assert checked.shape == (0, 2)
    assert checked.dtype == np.int64


def test_aligned_pairs():
    assert check_pairs("aligned", 3, 3).tolist() == [[0, 0], [1, 1], [2, 2]]


PAIR_SHAPE = (
    "pairs must have shape (k, 2), one (row of x, row of y) each: it has shape {}. "
    "Stack the two index arrays with numpy.column_stack."
)
PAIR_TYPE = (
    "pairs must hold whole row numbers: its type is {}. Translate names to row numbers first."
)
PAIR_RANGE = "pairs must name rows of {} between 0 and {}: pair {} names {}. Rows count from 0."


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        (PAIRS.T, PAIR_SHAPE.format("(2, 3)")),
        ([0, 1], PAIR_SHAPE.format("(2,)")),
        ([[0], [1]], PAIR_SHAPE.format("(2, 1)")),
        ([[[0, 1]]], PAIR_SHAPE.format("(1, 1, 2)")),
        (5, PAIR_SHAPE.format("()")),
        ({0: 1}, PAIR_SHAPE.format("()")),
        ([[0.5, 1.0]], PAIR_TYPE.format("float64")),
        ([[np.nan, 1.0]], PAIR_TYPE.format("float64")),
        ([["a", "b"]], PAIR_TYPE.format("<U1")),
        (np.array([[0, 1]], dtype=object), PAIR_TYPE.format("object")),
        ([[True, False]], PAIR_TYPE.format("bool")),
        (torch.tensor([[True, False]]), PAIR_TYPE.format("bool")),
        ([[0, 0], [3, 0]], PAIR_RANGE.format("x", 2, 1, 3)),
        ([[-1, 0]], PAIR_RANGE.format("x", 2, 0, -1)),
        ([[0, 0], [1, 1], [0, 4]], PAIR_RANGE.format("y", 3, 2, 4)),
        ([[0, -4]], PAIR_RANGE.format("y", 3, 0, -4)),
        ([[np.inf, 0.0]], PAIR_RANGE.format("x", 2, 0, "inf")),
        ([[0.0, 1e300]], PAIR_RANGE.format("y", 3, 0, "1e+300")),
        (np.array([[2**64 - 1, 0]], np.uint64), PAIR_RANGE.format("x", 2, 0, 2**64 - 1)),
        (
            "algned",
            'pairs must be None, "aligned" or a (k, 2) integer array: got "algned". '
            'Write pairs="aligned" when row i of x belongs to row i of y.',
        ),
        (
            "aligned",
            'pairs="aligned" needs equally many rows: x has 3, y has 4. '
            "Pass a (k, 2) array of (row of x, row of y).",
        ),
    ],
)
def test_wrong_pairs(pairs, message):
    assert message_of(check_pairs, pairs, 3, 4) == message


def test_ragged_pairs():
    assert message_of(check_pairs, [[0, 1], [2]], 3, 4).startswith("pairs must be rectangular")


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ([[0, 3], [2, 0], [0, 1]], "row 0 of x is paired with rows [3, 1]"),
        ([[1, 3], [2, 3]], "row 3 of y is paired with rows [1, 2]"),
    ],
)
def test_contradicting_pairs(pairs, message):
    assert message_of(check_one_to_one, np.array(pairs)) == (
        f"pairs must be one to one: {message}. "
        'Keep one of them, or use relation="many-to-one" or DMAE, which takes several.'
    )


def test_one_to_one_pairs_pass():
    for pairs in (np.array([[0, 1], [1, 0], [2, 2]]), np.empty((0, 2), dtype=np.int64)):
        assert check_one_to_one(pairs) is pairs


# Choices and numbers


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("hsci", 'Unknown dependence measure "hsci". Did you mean "hsic"? Known: hsic, smi, ukta.'),
        ("entropy", 'Unknown dependence measure "entropy". Known: hsic, smi, ukta.'),
        (None, 'Unknown dependence measure "None". Known: hsic, smi, ukta.'),
        (
            np.array(["smi", "a"]),
            "Unknown dependence measure \"['smi' 'a']\". Known: hsic, smi, ukta.",
        ),
    ],
)
def test_unknown_choice(value, message):
    assert message_of(check_choice, value, "dependence measure", {"ukta", "smi", "hsic"}) == message


def test_known_choice_comes_back():
    assert check_choice("smi", "dependence", {"ukta": 1, "smi": 2}) == "smi"


@pytest.mark.parametrize(
    ("value", "integer"),
    [
        (2, True),
        (np.int64(2), True),
        (10**400, True),
        (2.5, False),
        (2, False),
        (np.float32(7), False),
    ],
)
def test_good_numbers(value, integer):
    check_number(value, "n_steps", 2, integer=integer)


@pytest.mark.parametrize("value", [1, -3, 2.5, 2.0, True, "3", None, np.nan, [3], 3j])
def test_wrong_whole_numbers(value):
    message = f"n_steps must be a whole number of at least 2: got {value!r}."
    assert message_of(check_number, value, "n_steps", 2, integer=True) == message


@pytest.mark.parametrize(
    "value", [-0.1, np.nan, np.inf, -np.inf, True, "3", None, 1j, np.complex64(1)]
)
def test_wrong_numbers(value):
    message = f"weight must be a number of at least 0.0: got {value!r}."
    assert message_of(check_number, value, "weight", 0.0) == message


# Gram matrices and permutations


@pytest.mark.parametrize(
    ("shape_x", "shape_y", "message"),
    [
        ((3,), (3, 3), "gram_x must be square: it has shape (3,). "
         "Make it with gaussian_gram."),
        ((2, 2), (2, 3), "gram_y must be square: it has shape (2, 3). "
         "Make it with gaussian_gram."),
        ((3, 3), (2, 2), "gram_x and gram_y must have one size: they have 3 and 2 rows. "
         "Index the larger one by the matched rows first."),
    ],
)  # fmt: skip
def test_wrong_gram_matrices(shape_x, shape_y, message):
    assert message_of(check_gram_pair, torch.ones(shape_x), torch.ones(shape_y)) == message


NOT_A_PERMUTATION = (
    "perm is not a permutation of 0..3: {}. "
    "Index the Gram matrix yourself for a many-to-one matching."
)
NOT_AN_INDEX = (
    "perm must be one row number of y for each row of x: it has shape {} and type torch.{}. "
    "Pass a 1-d tensor of type torch.int64."
)


@pytest.mark.parametrize(
    ("perm", "message"),
    [
        ([0, 1, 1, 3], NOT_A_PERMUTATION.format("index 1 occurs twice and index 2 never")),
        ([0, 1, 2], NOT_A_PERMUTATION.format("it has 3 entries and index 3 never")),
        (
            [0, 1, 2, 4],
            NOT_A_PERMUTATION.format("index 4 is out of range and index 3 never"),
        ),
        ([-1, 1, 2, 3], NOT_A_PERMUTATION.format("index -1 is out of range and index 0 never")),
        (
            [0, 1, 2, 3, 3],
            NOT_A_PERMUTATION.format("it has 5 entries and index 3 occurs twice"),
        ),
        ([0.0, 1.0, 2.0, 3.0], NOT_AN_INDEX.format("(4,)", "float32")),
        ([True, False, True, True], NOT_AN_INDEX.format("(4,)", "bool")),
        ([[0, 1, 2, 3]], NOT_AN_INDEX.format("(1, 4)", "int64")),
        (0, NOT_AN_INDEX.format("()", "int64")),
    ],
)
def test_wrong_permutations(perm, message):
    index = torch.tensor(perm)
    assert message_of(check_permutation, index, 4) == message
    assert message_of(check_gram_pair, torch.eye(4), torch.eye(4), index) == message


def test_bytes_are_no_permutation():
    """Torch reads them as a mask."""
    index = torch.tensor([1, 0], dtype=torch.uint8)
    assert message_of(check_permutation, index, 2) == NOT_AN_INDEX.format("(2,)", "uint8")


def test_good_permutations(rng):
    for kind in (torch.int64, torch.int32):
        check_permutation(torch.tensor(rng.permutation(5), dtype=kind), 5)
    check_gram_pair(torch.eye(3), torch.eye(3), None)


def test_input_error_is_a_value_error_and_one_of_ours():
    assert issubclass(InputError, ValueError)
    assert issubclass(InputError, UnpairedError)


def test_pairs_are_called_by_the_argument_they_came_in():
    for wrong in ("everything", [[0, 9]], [[0.5, 1.0]], [1, 2, 3]):
        assert message_of(check_pairs, wrong, 3, 3, "forbidden").startswith("forbidden must ")
        assert message_of(check_pairs, wrong, 3, 3).startswith("pairs must ")
    assert message_of(check_pairs, "aligned", 3, 4, "forbidden").startswith('forbidden="aligned" ')


def test_layer_sizes():
    check_sizes((64, 32), "hidden")
    check_sizes([], "hidden")
    assert message_of(check_sizes, 64, "hidden") == (
        "hidden must be a tuple of sizes, one per layer: got 64. Write hidden=(64,)."
    )
    assert message_of(check_sizes, "64", "hidden").endswith("got '64'.")
    assert message_of(check_sizes, (64, 0), "hidden") == (
        "hidden must be a whole number of at least 1: got 0."
    )


def test_names_of_columns():
    assert column_names(pd.DataFrame(VALUES, columns=list("abc"))) == ("a", "b", "c")
    assert column_names(pl.DataFrame(VALUES, schema=["a", "b", "c"])) == ("a", "b", "c")
    for nameless in (VALUES, VALUES.tolist(), pd.DataFrame(VALUES), torch.tensor(VALUES)):
        assert column_names(nameless) is None
    assert column_names(pd.DataFrame(VALUES, columns=["a", "b", 3])) is None


def test_columns_like_those_of_fit():
    seen = ("a", "b", "c")
    check_columns(seen, 3, "x", 3, seen)
    check_columns(None, 3, "x", 3, seen)
    check_columns(("p", "q", "r"), 3, "x", 3, None)
    assert message_of(check_columns, ("a", "b"), 2, "x", 3, seen) == (
        "x must have the 3 columns seen in fit: it has 2. Use the same features as in training."
    )
    assert message_of(check_columns, ("a", "d", "c"), 3, "x", 3, seen) == (
        'x must have the columns seen in fit: "d" was not there, and "b" is missing. '
        "Use the same features as in training."
    )
    assert message_of(check_columns, ("a", "c", "b"), 3, "y", 3, seen) == (
        'y must have its columns in the order of fit: column 1 is "c" and was "b". '
        "Write y[list(model.feature_names_in_y_)]."
    )
    assert "images[list(model.feature_names_in_)]" in message_of(
        check_columns, ("a", "c", "b"), 3, "images", 3, seen
    )
    assert message_of(check_columns, ("a", "c"), 2, "x", 2, ("a", "a"))


@pytest.mark.parametrize("value", [None, "x.csv", Path("x.csv"), b"x.csv"], ids=repr)
def test_paths_and_nothing_are_no_views(value):
    with pytest.raises(InputError, match=r"x must be an array, a tensor or a frame: it is .*Read"):
        check_view(value, "x")
