import csv
import sys

import numpy as np
import pandas as pd
import pytest

from unpaired.errors import DataError, InputError, UnpairedError
from unpaired.tables import Table, read_pairs, read_table, write_match
from unpaired.types import Match, Objective

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


def message_of(kind, call, *args):
    with pytest.raises(kind) as error:
        call(*args)
    return str(error.value)


def same(table, values=VALUES, ids=None):
    np.testing.assert_array_equal(table.values, values)
    assert table.ids == ids
    return True


# Text

BODY = "1.5,-2\n3,4e-3\n5,6\n"
NAMED = "ant,1.5,-2\nbee,3,4e-3\ncat,5,6\n"


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        (BODY, None),
        ("a,b\n" + BODY, None),
        ("a,2\n" + BODY, None),  # a header with a number in it
        (NAMED, NAMES),
        ("name,a,b\n" + NAMED, NAMES),
        (",a,b\n" + NAMED, NAMES),
        (",0,1\n" + NAMED, NAMES),
        (",0,1\n7,1.5,-2\n8,3,4e-3\n9,5,6\n", ("7", "8", "9")),  # the index pandas writes
        ("\ufeffa,b\n" + BODY, None),  # a byte order mark
        ("\ufeff" + BODY, None),
        (BODY.replace("\n", "\r\n"), None),
        ("\n" + BODY.replace("\n", "\n\n"), None),
        (BODY.rstrip("\n"), None),
        ('"a","b"\n"1.5","-2"\n"3","4e-3"\n"5","6"\n', None),
        ("a, b\n1.5, -2\n3, 4e-3\n5, 6\n", None),
    ],
)
def test_text_with_and_without_header_and_names(write, text, ids):
    assert same(read_table(write("x.csv", text)), ids=ids)
    assert same(read_table(write("x.CSV", text)), ids=ids)
    assert same(read_table(write("x.tsv", text.replace(",", "\t"))), ids=ids)
    assert same(read_table(str(write("x.csv", text))), ids=ids)


def test_names_may_hold_commas_and_letters_of_all_kinds(write):
    path = write("x.csv", '"Zürich, CH",1.5,-2\n北京,3,4e-3\n<b>,5,6\n')
    assert same(read_table(path), ids=("Zürich, CH", "北京", "<b>"))


def test_what_pandas_writes_comes_back(tmp_path):
    frame = pd.DataFrame(VALUES, columns=["a", "b"])
    frame.to_csv(tmp_path / "index.csv")
    frame.to_csv(tmp_path / "plain.csv", index=False)
    frame.set_axis(list(NAMES)).to_csv(tmp_path / "named.csv", index_label="insect")
    assert same(read_table(tmp_path / "index.csv"), ids=("0", "1", "2"))
    assert same(read_table(tmp_path / "plain.csv"))
    assert same(read_table(tmp_path / "named.csv"), ids=NAMES)


@pytest.mark.parametrize(
    ("text", "shape"), [("1\n2\n", (2, 1)), ("1,2,3\n", (1, 3)), ("a\n7\n", (1, 1))]
)
def test_one_column_or_one_row(write, text, shape):
    table = read_table(write("x.csv", text))
    assert table.values.shape == shape
    assert table.ids is None


def test_written_nan_is_passed_on_to_the_gate(write):
    values = read_table(write("x.csv", "1,nan\ninf,2\n")).values
    np.testing.assert_array_equal(values, [[1, np.nan], [np.inf, 2]])


NOT_NUMBERS = (
    "{} must hold numbers, apart from a header line and a first column of names: "
    "could not convert string to float: {!r}. Drop or encode the other columns."
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "{} is empty. It needs one line per row."),
        ("\n\n", "{} is empty. It needs one line per row."),
        ("a,b\n", "{} has a header and no rows. It needs one line per row."),
        ("1,2\n3\n", "{} must have equally many columns in every line: it has [1, 2]."),
        ("a,b,c\n1,2\n", "{} must have equally many columns in every line: it has [2, 3]."),
        ("1,2\n3,red\n", NOT_NUMBERS.format("{}", "red")),
        ("a,b\n1,2\n3,\n", NOT_NUMBERS.format("{}", "")),
        ("1,\n3,4\n", NOT_NUMBERS.format("{}", "")),  # a gap in the first line is no header
        ("1,NA\n3,4\n", NOT_NUMBERS.format("{}", "NA")),
        ("ant,1,\nbee,2,3\n", NOT_NUMBERS.format("{}", "")),
        ("a,b\nant,1\n7,2\n", NOT_NUMBERS.format("{}", "ant")),  # half names, half numbers
    ],
)
def test_wrong_text(write, text, message):
    path = write("x.csv", text)
    assert message_of(DataError, read_table, path) == message.replace("{}", str(path))


# Arrays


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
    for path in (tmp_path / "x.npy", tmp_path / "x.npz"):
        assert message_of(DataError, read_table, path) == (
            f"{path} could not be read as {path.suffix[1:]}: Object arrays cannot be loaded when "
            "allow_pickle=False. Check that it is what its name says, or write it again as plain "
            "numbers."
        )


@pytest.mark.parametrize("kind", ["npy", "npz", "csv", "tsv", "parquet"])
@pytest.mark.parametrize("fault", ["garbage", "cut short", "another kind", "empty"])
def test_file_that_is_not_what_its_name_says(tmp_path, kind, fault):
    np.save(tmp_path / "good.npy", VALUES)
    np.savez(tmp_path / "good.npz", VALUES)
    pd.DataFrame(VALUES, columns=["a", "b"]).to_parquet(tmp_path / "good.parquet")
    path = tmp_path / f"bad.{kind}"
    text = kind in {"csv", "tsv"}
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
    assert message_of(DataError, read_table, path).startswith(f"{path} ")


def test_missing_and_unknown_files(tmp_path, write):
    missing = tmp_path / "nothing.npy"
    known = ".npy, .npz, .csv, .tsv, .parquet"
    for path in (missing, tmp_path):
        assert message_of(DataError, read_table, path) == (
            f"There is no file {path}. Check the path; known kinds: {known}."
        )
    sheet = write("x.xlsx", "")
    assert message_of(DataError, read_table, sheet) == (
        f"{sheet} is not of a known kind ({known}). Convert it to one of these."
    )
    assert issubclass(DataError, OSError)
    assert issubclass(DataError, UnpairedError)


# Parquet


@pytest.mark.parametrize(
    ("frame", "ids"),
    [
        (pd.DataFrame(VALUES, columns=["a", "b"]), None),
        (pd.DataFrame({"name": NAMES, "a": VALUES[:, 0], "b": VALUES[:, 1]}), NAMES),
        (pd.DataFrame({"name": pd.Categorical(NAMES), "a": VALUES.T[0], "b": VALUES.T[1]}), NAMES),
        (pd.DataFrame(VALUES, columns=["a", "b"], index=list(NAMES)), NAMES),
        (pd.DataFrame(VALUES, columns=["a", "b"], index=[7, 9, 8]), ("7", "9", "8")),
    ],
)  # fmt: skip
def test_parquet(tmp_path, frame, ids):
    frame.to_parquet(tmp_path / "x.parquet")
    assert same(read_table(tmp_path / "x.parquet"), ids=ids)


def test_parquet_of_whole_numbers_and_gaps(tmp_path):
    frame = pd.DataFrame({"a": [1, 2], "b": [True, False], "c": pd.array([3, None], "Int64")})
    frame.to_parquet(tmp_path / "x.parquet")
    assert same(read_table(tmp_path / "x.parquet"), [[1, 1, 3], [2, 0, np.nan]])


@pytest.mark.parametrize(
    ("frame", "column"),
    [
        (pd.DataFrame({"a": [1.0, 2.0], "colour": ["red", "blue"]}), "colour"),
        (pd.DataFrame({"name": ["x"], "a": [1], "day": pd.to_datetime(["2020"])}), "day"),
        (pd.DataFrame({"name": ["x", "y"]}), "name"),
    ],
)  # fmt: skip
def test_parquet_with_a_column_of_text_or_dates(tmp_path, frame, column):
    path = tmp_path / "x.parquet"
    frame.to_parquet(path)
    assert message_of(DataError, read_table, path) == (
        f"{path} must hold numbers: column {column} does not. Drop or encode it."
    )


def test_parquet_without_pyarrow(tmp_path, monkeypatch):
    path = tmp_path / "x.parquet"
    path.write_bytes(b"")
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    assert message_of(DataError, read_table, path) == (
        f"Reading {path} needs PyArrow: pip install 'unpaired[frames]'."
    )


# Pairs

PLAIN = Table(np.zeros((12, 2)))
WITH_NAMES = Table(np.zeros((3, 2)), NAMES)


@pytest.mark.parametrize(
    ("text", "x", "y", "expected"),
    [
        ("0,1\n2,11\n", PLAIN, PLAIN, [[0, 1], [2, 11]]),
        ("x,y\n0,1\n2,11\n", PLAIN, PLAIN, [[0, 1], [2, 11]]),
        ("0, 1\n2, 11\n", PLAIN, PLAIN, [[0, 1], [2, 11]]),
        ("\ufeffx,y\n0,1\n", PLAIN, PLAIN, [[0, 1]]),
        ("cat,ant\nant,bee\n", WITH_NAMES, WITH_NAMES, [[2, 0], [0, 1]]),
        ("x,y\ncat,ant\n", WITH_NAMES, WITH_NAMES, [[2, 0]]),
        ("bee,11\n", WITH_NAMES, PLAIN, [[1, 11]]),
        ("number,insect\n11,bee\n", PLAIN, WITH_NAMES, [[11, 1]]),
        ("", PLAIN, PLAIN, []),
        ("x,y\n", PLAIN, PLAIN, []),
    ],
)
def test_pairs_by_names_and_numbers(write, text, x, y, expected):
    for name, delimiter in (("p.csv", ","), ("p.tsv", "\t"), ("p.CSV", ",")):
        pairs = read_pairs(write(name, text.replace(",", delimiter)), x, y)
        np.testing.assert_array_equal(pairs, np.array(expected, dtype=np.int64).reshape(-1, 2))
        assert pairs.dtype == np.int64


def test_pairs_from_arrays(tmp_path):
    pairs = np.array([[0, 1], [2, 11]])
    np.save(tmp_path / "p.npy", pairs)
    np.savez(tmp_path / "p.npz", pairs=pairs)
    pd.DataFrame(pairs, columns=["x", "y"]).to_parquet(tmp_path / "p.parquet")
    for kind in ("npy", "npz", "parquet"):
        np.testing.assert_array_equal(read_pairs(tmp_path / f"p.{kind}", PLAIN, PLAIN), pairs)


@pytest.mark.parametrize(
    ("text", "x", "y", "message"),
    [
        (
            "0,1\n2,12\n", PLAIN, PLAIN,
            'pairs names "12" in pair 1, which is no row of y. Use row numbers from 0, e.g. 0.',
        ),
        (
            "0,12\n2,1\n", PLAIN, PLAIN,  # not taken for a header
            'pairs names "12" in pair 0, which is no row of y. Use row numbers from 0, e.g. 0.',
        ),
        (
            "99,-1\n", PLAIN, PLAIN,
            'pairs names "99" in pair 0, which is no row of x. Use row numbers from 0, e.g. 0.',
        ),
        (
            "x,y\ncat,dog\n", WITH_NAMES, WITH_NAMES,
            'pairs names "dog" in pair 0, which is no row of y. Use its row names, e.g. ant.',
        ),
        (
            "dog,cat\n", WITH_NAMES, WITH_NAMES,
            'pairs names "dog" in pair 0, which is no row of x. Use its row names, e.g. ant.',
        ),
        (
            "x,y\n0,1\n", WITH_NAMES, WITH_NAMES,
            'pairs names "0" in pair 0, which is no row of x. Use its row names, e.g. ant.',
        ),
        (
            "ant,0\n", Table(np.zeros((3, 1)), ("ant", "bee", "ant")), PLAIN,
            'pairs by name need row names that differ: x has several rows "ant". '
            "Rename them, or drop the column of names and pair by row number.",
        ),
    ],
)  # fmt: skip
def test_pairs_that_name_no_row(write, text, x, y, message):
    assert message_of(InputError, read_pairs, write("p.csv", text), x, y) == message


def test_wrong_pair_files(write, tmp_path):
    for text in ("1,2,3\n", "1\n", "1,2\n3\n"):
        path = write("p.csv", text)
        assert message_of(DataError, read_pairs, path, PLAIN, PLAIN) == (
            f"{path} must have two columns in every line: row of x, row of y."
        )
    missing = tmp_path / "none.csv"
    assert message_of(DataError, read_pairs, missing, PLAIN, PLAIN) == (
        f"There is no file {missing}. It should have two columns: x, y."
    )
    latin = write("p.csv", b"\xe4,1\n")
    message = message_of(DataError, read_pairs, latin, PLAIN, PLAIN)
    assert message.startswith(f"{latin} could not be read: 'utf-8' codec")
    assert message.endswith("Save it as UTF-8.")


# Matches


@pytest.fixture
def match():
    return Match(
        partner=np.array([2, -1, 0]),
        confidence=np.array([0.5, 0.0, 1.0]),
        objective=Objective(1.0),
        runner_up=np.array([1, -1, 2]),
        margin=np.array([0.25, -1.0, 2.0]),
        n_y=3,
    )


@pytest.mark.parametrize(
    ("x", "y", "shown_x", "shown_y"),
    [
        (WITH_NAMES, WITH_NAMES, list(NAMES), ["cat", "", "ant"]),
        (WITH_NAMES, Table(VALUES), list(NAMES), ["2", "", "0"]),
        (Table(VALUES), WITH_NAMES, ["0", "1", "2"], ["cat", "", "ant"]),
    ],
)
def test_written_match_shows_names(match, tmp_path, x, y, shown_x, shown_y):
    path = tmp_path / "match.csv"
    write_match(match, path, x, y)
    with path.open(newline="") as handle:
        rows = list(csv.DictReader(handle))
    assert [row["x"] for row in rows] == shown_x
    assert [row["y"] for row in rows] == shown_y
    assert [int(row["row"]) for row in rows] == [0, 1, 2]
    assert [int(row["partner"]) for row in rows] == [2, -1, 0]
    assert [int(row["runner_up"]) for row in rows] == [1, -1, 2]
    assert [float(row["confidence"]) for row in rows] == [0.5, 0.0, 1.0]
    assert [float(row["margin"]) for row in rows] == [0.25, -1.0, 2.0]


def test_written_match_without_names_is_its_csv(match, tmp_path):
    write_match(match, tmp_path / "a.csv", Table(VALUES), Table(VALUES))
    match.to_csv(tmp_path / "b.csv")
    assert (tmp_path / "a.csv").read_bytes() == (tmp_path / "b.csv").read_bytes()
