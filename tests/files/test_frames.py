import datetime as dt
import sys
from decimal import Decimal

import numpy as np
import openpyxl
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from pyarrow import feather, parquet

from unpaired.errors import DataError, InputError
from unpaired.files.reading import read_table

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
    frame = pd.DataFrame({"a": [1, 2], "b": [True, False], "c": pd.array([3, 4], "Int64")})
    frame.to_parquet(tmp_path / "x.parquet")
    assert same(read_table(tmp_path / "x.parquet"), [[1, 1, 3], [2, 0, 4]])
    frame["c"] = pd.array([3, None], "Int64")
    frame.to_parquet(tmp_path / "x.parquet")
    with pytest.raises(
        DataError, match=r"row 1, column 2 \(c\) must be a finite number: it is mis"
    ):
        read_table(tmp_path / "x.parquet")


def test_columns_of_one_name_are_read_and_not_confused(tmp_path):
    table = pa.Table.from_arrays([pa.array([1.0, 2.0]), pa.array([3.0, 5.0])], names=["a", "a"])
    parquet.write_table(table, tmp_path / "x.parquet")
    assert same(read_table(tmp_path / "x.parquet"), [[1, 3], [2, 5]])
    with pytest.raises(InputError, match='has 2 called "a". Use their numbers, here 0, 1'):
        read_table(tmp_path / "x.parquet", features="a")
    assert same(read_table(tmp_path / "x.parquet", features="1"), [[3], [5]])


def test_a_line_ends_where_other_programs_end_it(tmp_path):
    (tmp_path / "x.jsonl").write_text('{"id": "a\u2028b", "v": 1}\n{"id": "c", "v": 2}\n')
    assert read_table(tmp_path / "x.jsonl").ids == ("a\u2028b", "c")


@pytest.mark.parametrize(
    ("frame", "place"),
    [
        (pd.DataFrame({"a": [1.0, 2.0], "colour": ["red", "blue"]}), "row 0, column 1 (colour)"),
        (pd.DataFrame({"a": [1], "day": pd.to_datetime(["2020"])}), "row 0, column 1 (day)"),
        (pd.DataFrame({"name": ["x", "y"]}), "row 0, column 0 (name)"),
        (pd.DataFrame({"a": [1, 2], "b": [{"k": 1}, {"k": 2}]}), "row 0, column 1 (b)"),
    ],
)  # fmt: skip
def test_parquet_with_a_column_that_is_not_numbers(tmp_path, frame, place):
    path = tmp_path / "x.parquet"
    frame.to_parquet(path)
    message = message_of(DataError, read_table, path)
    assert message.startswith(f"{path}, {place} must be a number: it holds ")
    assert message.endswith("--id-column, or the columns to use with --features.")


@pytest.mark.parametrize("kind", ["parquet", "feather"])
@pytest.mark.parametrize("stored", ["list", "large_list", "fixed"])
def test_vectors_in_one_column(tmp_path, kind, stored):
    value = pa.float32()
    types = {
        "list": pa.list_(value),
        "large_list": pa.large_list(value),
        "fixed": pa.list_(value, 2),
    }
    column = pa.array(VALUES.astype(np.float32).tolist(), types[stored])
    table = pa.table({"name": list(NAMES), "vector": column})
    path = tmp_path / f"x.{kind}"
    (parquet.write_table if kind == "parquet" else feather.write_feather)(table, path)
    read = read_table(path)
    assert same(read, VALUES.astype(np.float32), NAMES)
    assert read.names == ("vector.0", "vector.1")


@pytest.mark.parametrize("vectors", [[[1.0, 2.0], [3.0]], [[1.0, 2.0], None], [None, [1.0, 2.0]]])
def test_vectors_of_different_lengths(tmp_path, vectors):
    path = tmp_path / "x.parquet"
    parquet.write_table(pa.table({"v": pa.array(vectors, pa.list_(pa.float64()))}), path)
    message = message_of(DataError, read_table, path)
    assert message.startswith(f"{path}, row ")
    assert "column v must be a list as long as the first row's" in message


def test_lists_of_words_are_no_vectors(tmp_path):
    path = tmp_path / "x.parquet"
    parquet.write_table(pa.table({"v": [["a"], ["b"]]}), path)
    assert "column v must hold lists of numbers" in message_of(DataError, read_table, path)


@pytest.mark.parametrize("kind", ["parquet", "feather"])
def test_an_index_that_pandas_named(tmp_path, kind):
    frame = pd.DataFrame(VALUES, columns=["a", "b"], index=pd.Index(NAMES, name="insect"))
    (frame.to_parquet if kind == "parquet" else lambda p: feather.write_feather(frame, p))(
        tmp_path / f"x.{kind}"
    )
    assert same(read_table(tmp_path / f"x.{kind}"), ids=NAMES)


def test_an_index_of_two_levels(tmp_path):
    index = pd.MultiIndex.from_tuples([("a", 1), ("a", 2), ("b", 1)], names=["donor", "cell"])
    pd.DataFrame(VALUES, columns=["u", "v"], index=index).to_parquet(tmp_path / "x.parquet")
    assert same(read_table(tmp_path / "x.parquet"), ids=("a/1", "a/2", "b/1"))


def test_polars_files(tmp_path):
    frame = pl.DataFrame({"name": NAMES, "a": VALUES[:, 0], "b": VALUES[:, 1]})
    frame.write_parquet(tmp_path / "x.parquet")
    frame.write_ipc(tmp_path / "x.feather")
    for kind in ("parquet", "feather"):
        assert same(read_table(tmp_path / f"x.{kind}"), ids=NAMES)


def test_decimals_are_numbers(tmp_path):
    cells = [Decimal("1.50"), Decimal("2.25")]
    parquet.write_table(pa.table({"a": [1, 2], "b": cells}), tmp_path / "x.parquet")
    assert same(read_table(tmp_path / "x.parquet"), [[1, 1.5], [2, 2.25]])


def test_parquet_that_claims_too_much(tmp_path, monkeypatch):
    path = tmp_path / "x.parquet"
    pd.DataFrame({"a": np.zeros(1000)}).to_parquet(path)
    monkeypatch.setattr("unpaired.files.frames.MAX_UNPACKED", 500)
    assert "in 1000 rows. Read it in parts." in message_of(DataError, read_table, path)


@pytest.mark.parametrize(
    ("kind", "module", "name"),
    [
        ("parquet", "pyarrow.parquet", "PyArrow"),
        ("feather", "pyarrow.feather", "PyArrow"),
        ("xlsx", "openpyxl", "openpyxl"),
    ],
)
def test_a_missing_package_is_named_with_its_extra(tmp_path, monkeypatch, kind, module, name):
    path = tmp_path / f"x.{kind}"
    path.write_bytes(b"")
    monkeypatch.delattr(pa, "feather", raising=False)
    monkeypatch.setitem(sys.modules, module, None)
    assert message_of(DataError, read_table, path) == (
        f"Reading {path} needs {name}: pip install 'unpaired[frames]'."
    )


# Spreadsheets


def test_spreadsheet_that_pandas_wrote(tmp_path):
    frame = pd.DataFrame(VALUES, columns=["a", "b"], index=list(NAMES))
    frame.to_excel(tmp_path / "index.xlsx")
    frame.to_excel(tmp_path / "plain.xlsx", index=False)
    frame.reset_index(names="name").to_excel(tmp_path / "named.xlsx", index=False)
    assert same(read_table(tmp_path / "index.xlsx"), ids=NAMES)
    assert same(read_table(tmp_path / "named.xlsx"), ids=NAMES)
    assert same(read_table(tmp_path / "plain.xlsx"))


def test_spreadsheet_with_several_sheets(tmp_path):
    path = tmp_path / "x.xlsx"
    with pd.ExcelWriter(path) as writer:
        pd.DataFrame(VALUES, columns=["a", "b"]).to_excel(writer, sheet_name="one", index=False)
        pd.DataFrame(2 * VALUES, columns=["a", "b"]).to_excel(writer, sheet_name="two", index=False)
    assert same(read_table(f"{path}:two"), 2 * VALUES)
    expected = f"{path} holds the sheets one, two. Say which one, e.g. {path}:one."
    assert message_of(DataError, read_table, path) == expected
    assert message_of(DataError, read_table, f"{path}:three") == expected


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "{} is empty. It needs one line per row."),
        ([["a", "b"]], "{} has a header and no rows. It needs one line per row."),
        ([["a", "b"], [1, None]], "{}, line 2, column 1 (b) is empty."),
        ([[1, "oops"], [2, 3]], "{}, line 1 is neither a header nor a row: column 1 holds"),
        ([["a"], [dt.date(2020, 1, 2)]], '{}, line 2, column 0 (a) must be a number: it holds "20'),
        ([["a", "b"], [1, "=1+1"]], "{}, line 2, column 1 (b) is empty."),  # never calculated
    ],
)
def test_wrong_spreadsheets(tmp_path, rows, message):
    book = openpyxl.Workbook()
    for row in rows:
        book.active.append(row)
    book.save(tmp_path / "x.xlsx")
    assert message_of(DataError, read_table, tmp_path / "x.xlsx").startswith(
        message.replace("{}", str(tmp_path / "x.xlsx"))
    )


# JSON lines


@pytest.mark.parametrize(
    ("lines", "ids"),
    [
        (['{"id": "ant", "v": [1.5, -2]}', '{"v": [3, 4e-3], "id": "bee"}',
          '{"id": "cat", "v": [5, 6]}'], NAMES),
        (['{"a": 1.5, "b": -2}', "", '{"a": 3, "b": 4e-3}', '{"a": 5, "b": 6}'], None),
        (['{"a": 1.5, "id": 9, "b": -2}', '{"a": 3, "id": 4, "b": 4e-3}',
          '{"a": 5, "id": 7, "b": 6}'], ("9", "4", "7")),
        (["[1.5, -2]", "[3, 4e-3]", "[5, 6]"], None),
    ],
)  # fmt: skip
def test_json_lines(tmp_path, lines, ids):
    (tmp_path / "x.jsonl").write_text("\n".join(lines))
    assert same(read_table(tmp_path / "x.jsonl"), ids=ids)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "{} is empty. It needs one JSON object per line."),
        ("{}\n", "{}, line 1 must be a JSON object or a list of numbers: it is {{}}."),
        ("7\n", "{}, line 1 must be a JSON object or a list of numbers: it is 7."),
        ('{"a": 1}\n{"a": 2\n', "{}, line 2 must be JSON: "),
        ('{"a": 1}\n{"b": 2}\n', "{}, line 2 must have the keys of the first, a: it has b."),
        ('{"a": 1}\n[2]\n', "{}, line 2 must have the keys of the first, a: it has none."),
        ('{"a": 1}\n{"a": null}\n', "{}, line 2, column 0 (a) is empty."),
        ('{"a": 1}\n\n{"a": "red"}\n', "{}, line 3, column 0 (a) must be a number: it holds"),
        ('{"a": [1, 2]}\n{"a": [1]}\n', "{}, line 2, column 0 (a) must be a list of 2 numbers"),
        ('{"a": [1, 2]}\n{"a": [1, "x"]}\n', "{}, line 2, column 0 (a) must be a list of 2 numb"),
        ('{"a": ' + "9" * 400 + "}\n", "{}, column 0 (a) holds numbers too large"),
        ("[" * 100_000 + "\n", "{}, line 1 must be JSON: "),
    ],
)
def test_wrong_json_lines(tmp_path, text, message):
    path = tmp_path / "x.jsonl"
    path.write_text(text)
    wanted = message.replace("{}", str(path), 1).replace("{{}}", "{}")
    assert message_of(DataError, read_table, path).startswith(wanted)
