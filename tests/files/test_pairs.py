import csv
import gzip

import numpy as np
import pandas as pd
import pytest

from unpaired.errors import DataError, InputError
from unpaired.files.pairs import read_pairs, write_match
from unpaired.files.sheet import Table
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


def message_of(kind, call, *args, **options):
    with pytest.raises(kind) as error:
        call(*args, **options)
    return str(error.value)


def same(table, values=VALUES, ids=None):
    np.testing.assert_array_equal(table.values, values)
    assert table.ids == ids
    return True


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
            'pairs names "12" in line 2, which is no row of y. Use row numbers from 0, e.g. 0.',
        ),
        (
            "0,12\n2,1\n", PLAIN, PLAIN,  # not taken for a header
            'pairs names "12" in line 1, which is no row of y. Use row numbers from 0, e.g. 0.',
        ),
        (
            "99,-1\n", PLAIN, PLAIN,
            'pairs names "99" in line 1, which is no row of x. Use row numbers from 0, e.g. 0.',
        ),
        (
            "x,y\ncat,dog\n", WITH_NAMES, WITH_NAMES,
            'pairs names "dog" in line 2, which is no row of y. Use its row names, e.g. ant.',
        ),
        (
            "dog,cat\n", WITH_NAMES, WITH_NAMES,
            'pairs names "dog" in line 1, which is no row of x. Use its row names, e.g. ant.',
        ),
        (
            "x,y\n0,1\n", WITH_NAMES, WITH_NAMES,
            'pairs names "0" in line 2, which is no row of x. Use its row names, e.g. ant.',
        ),
        (
            "ant,0\n", Table(np.zeros((3, 1)), ("ant", "bee", "ant")), PLAIN,
            'pairs by name need row names that differ: x has several rows "ant". '
            "Rename them, or pair by row number with --id-column none.",
        ),
    ],
)  # fmt: skip
def test_pairs_that_name_no_row(write, text, x, y, message):
    assert message_of(InputError, read_pairs, write("p.csv", text), x, y) == message


def test_wrong_pair_files(write, tmp_path):
    for text, n_columns in (("1,2,3\n", 3), ("1\n", 1)):
        path = write("p.csv", text)
        assert message_of(DataError, read_pairs, path, PLAIN, PLAIN) == (
            f"{path} must have two columns in every line, row of x and row of y: line 1 has "
            f"{n_columns}."
        )
    path = write("p.csv", "1,2\n3\n")
    assert "line 1 has 2 and line 2 has 1" in message_of(DataError, read_pairs, path, PLAIN, PLAIN)
    path = write("p.csv", '1,"2\n3,4\n')
    assert "could not be read" in message_of(DataError, read_pairs, path, PLAIN, PLAIN)
    missing = tmp_path / "none.csv"
    assert f"There is no file {missing}" in message_of(DataError, read_pairs, missing, PLAIN, PLAIN)
    latin = write("p.csv", b"\xe4,1\n")
    assert "looks like Latin-1" in message_of(DataError, read_pairs, latin, PLAIN, PLAIN)
    barred = write("p.csv", "0,99\n")
    message = message_of(InputError, read_pairs, barred, PLAIN, PLAIN, "forbidden")
    assert message.startswith('forbidden names "99"')


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


HOSTILE = ("=1+1", "+x", "-x", "@sum", "\tx", "-2.5", "'quoted", "plain")


def test_no_written_name_is_run_by_a_spreadsheet(tmp_path):
    n = len(HOSTILE)
    table = Table(np.zeros((n, 1)), HOSTILE)
    found = Match(np.arange(n), np.ones(n), Objective(1.0), np.full(n, -1), np.ones(n), n)
    write_match(found, tmp_path / "match.csv", table, table)
    with (tmp_path / "match.csv").open(newline="") as handle:
        rows = list(csv.DictReader(handle))
    for row, name in zip(rows, HOSTILE, strict=True):
        for cell in (row["x"], row["y"]):
            assert cell.lstrip("'") == name.lstrip("'")
            assert not cell.startswith(("=", "+", "@", "\t"))
            assert not cell.startswith("-") or float(cell) == -2.5
    (tmp_path / "pairs.csv").write_text(
        "\n".join(f"{r['x']},{r['y']}" for r in rows if "\t" not in r["x"])
    )
    pairs = read_pairs(tmp_path / "pairs.csv", table, table)
    assert pairs.tolist() == [[i, i] for i in range(n) if HOSTILE[i] != "\tx"]


def test_pairs_by_name_in_every_kind_of_table(write, tmp_path):
    named = [("cat", "ant"), ("ant", "bee")]
    frame = pd.DataFrame(named, columns=["x", "y"])
    frame.to_parquet(tmp_path / "p.parquet")
    frame.to_feather(tmp_path / "p.feather")
    frame.to_excel(tmp_path / "p.xlsx", index=False)
    frame.to_excel(tmp_path / "bare.xlsx", index=False, header=False)
    frame.to_json(tmp_path / "p.jsonl", orient="records", lines=True)
    write("lists.jsonl", "".join(f'["{x}", "{y}"]\n' for x, y in named))
    files = ("p.parquet", "p.feather", "p.xlsx", "bare.xlsx", "p.jsonl", "lists.jsonl")
    for name in files:
        pairs = read_pairs(tmp_path / name, WITH_NAMES, WITH_NAMES)
        assert pairs.tolist() == [[2, 0], [0, 1]], name
        assert pairs.dtype == np.int64
    frame["y"] = ["ant", "dog"]
    frame.to_parquet(tmp_path / "p.parquet")
    message = message_of(InputError, read_pairs, tmp_path / "p.parquet", WITH_NAMES, WITH_NAMES)
    assert message.startswith('pairs names "dog" in row 1, which is no row of y.')
    frame["z"] = 1
    frame.to_parquet(tmp_path / "p.parquet")
    message = message_of(DataError, read_pairs, tmp_path / "p.parquet", WITH_NAMES, WITH_NAMES)
    assert message.endswith("must have two columns, row of x and row of y: it has 3.")


def test_numbers_in_tables_are_names_where_rows_have_names(tmp_path):
    named = Table(np.zeros((3, 2)), ("2", "0", "1"))
    pd.DataFrame({"x": [0, 1], "y": [1, 2]}).to_parquet(tmp_path / "p.parquet")
    assert read_pairs(tmp_path / "p.parquet", named, named).tolist() == [[1, 2], [2, 0]]
    np.save(tmp_path / "p.npy", [[0, 1], [1, 2]])  # an array holds numbers of rows
    assert read_pairs(tmp_path / "p.npy", named, named).tolist() == [[0, 1], [1, 2]]


def test_what_is_taken_as_a_header_is_told(write):
    told = []
    pairs = read_pairs(
        write("p.csv", "ent,bae\ncat,ant\n"), WITH_NAMES, WITH_NAMES, tell=told.append
    )
    assert pairs.tolist() == [[2, 0]]
    (note,) = told
    assert note.endswith("p.csv, line 1: ent, bae taken as a header.")
    read_pairs(write("p.csv", ""), PLAIN, PLAIN, "forbidden", tell=told.append)
    assert told[1].endswith("p.csv holds no forbidden.")


def test_swapped_columns_are_no_header(write):
    x, y = Table(np.zeros((3, 1)), NAMES), Table(np.zeros((2, 1)), ("p", "q"))
    told = []
    said = message_of(InputError, read_pairs, write("p.csv", "p,ant\n"), x, y, tell=told.append)
    assert 'pairs names "p" in line 1, which is no row of x but one of the other side: swap' in said
    assert told == []


def test_the_index_of_a_spreadsheet_is_a_third_column(tmp_path):
    pd.DataFrame({"x": ["ant"], "y": ["bee"]}).to_excel(tmp_path / "p.xlsx")
    names = Table(np.zeros((3, 1)), NAMES)
    said = message_of(DataError, read_pairs, tmp_path / "p.xlsx", names, names)
    assert "must have two columns, row of x and row of y: it has 3" in said


@pytest.mark.parametrize("kind", ["plain", "cut", "header"])
def test_a_packed_file_that_is_none_is_one_sentence(write, kind):
    packed = gzip.compress(b"0,0\n" * 99)
    content = {"plain": b"0,0\n", "cut": packed[:-9], "header": packed[:4]}[kind]
    said = message_of(DataError, read_pairs, write("p.csv.gz", content), PLAIN, PLAIN)
    assert "p.csv.gz could not be read as csv" in said
