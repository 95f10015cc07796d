import numpy as np
import pandas as pd
import pytest

from unpaired.errors import DataError, InputError
from unpaired.files.choice import says_id
from unpaired.files.reading import read_table


def message_of(kind, call, *args, **options):
    with pytest.raises(kind) as error:
        call(*args, **options)
    return str(error.value)


@pytest.fixture
def write(tmp_path, rng):
    """Write columns of 30 rows to a CSV file, by name; a number names a column of noise."""

    def write(**columns):
        filled = {
            name: rng.normal(size=30).round(6).tolist() if cells is None else list(cells)
            for name, cells in columns.items()
        }
        lines = [
            ",".join(filled),
            *(",".join(map(str, row)) for row in zip(*filled.values(), strict=True)),
        ]
        (tmp_path / "x.csv").write_text("\n".join(lines) + "\n")
        return tmp_path / "x.csv"

    return write


@pytest.fixture
def numbers(rng):
    return rng.permutation(30) + 1


def test_numeric_ids_are_taken_out_and_told(write, rng):
    ids = rng.choice(10**6, 30, replace=False)
    path = write(id=ids, a=None, b=None)
    table = read_table(path)
    assert table.ids == tuple(map(str, ids))
    assert table.values.shape == (30, 2)
    assert table.names == ("a", "b")
    assert table.notes == (
        f"{path}, column 0 (id): 30 distinct whole numbers, taken as ids; --features to override.",
    )
    kept = read_table(path, features="id,a,b")
    assert kept.values.shape == (30, 3)
    assert kept.ids is None
    assert kept.notes == ()
    assert read_table(path, id_column="none").values.shape == (30, 3)


@pytest.mark.parametrize("name", ["index", "cell_id", "CustomerID", "sampleId", "row key", "no"])
@pytest.mark.parametrize("last", [False, True])
def test_the_name_of_a_column_says_id_wherever_it_stands(write, numbers, name, last):
    columns = {name: 7 * numbers, "a": None}
    table = read_table(write(**(dict(reversed(columns.items())) if last else columns)))
    assert table.ids == tuple(map(str, 7 * numbers))
    assert table.names == ("a",)


def test_a_first_column_that_counts_the_rows_is_ids_whatever_its_name(write, numbers):
    assert read_table(write(sample=numbers, a=None)).ids == tuple(map(str, numbers))
    assert read_table(write(sample=np.arange(30) + 100, a=None)).ids is not None


def test_leading_zeros_stay(write):
    ids = [f"{i:05d}" for i in range(30)]
    assert read_table(write(id=ids, a=None)).ids == tuple(ids)


@pytest.mark.parametrize(
    "columns",
    [
        {"age": lambda n: n % 7, "a": None},  # repeats
        {"age": lambda n: 2 * n, "a": None},  # differs, does not count
        {"id": lambda n: n + 0.5, "a": None},  # called id, not whole
        {"a": None, "age": lambda n: n},  # counts, not first
        {"rank_a": lambda n: n, "rank_b": lambda n: n[::-1]},  # ranks: both count
        {"id": lambda n: n},  # the only column
        {"width": lambda n: 3 * n, "valid": lambda n: 5 * n},
    ],
)
def test_whole_numbers_that_are_features_stay_features(write, numbers, columns):
    path = write(**{k: None if make is None else make(numbers) for k, make in columns.items()})
    table = read_table(path)
    assert table.ids is None
    assert table.values.shape == (30, len(columns))
    assert table.notes == ()


def test_a_column_called_id_whose_numbers_repeat_much_is_a_feature_and_that_is_told(write, numbers):
    table = read_table(write(id=numbers % 7, a=None))
    assert table.ids is None
    assert table.values.shape == (30, 2)
    (note,) = table.notes
    assert note.endswith(
        "x.csv, column 0 (id): 7 distinct whole numbers in 30 rows, taken as a feature; "
        "--id-column or --features to override."
    )
    assert read_table(write(id=numbers % 7, a=None), features="id").notes == ()


@pytest.mark.parametrize(
    "make",
    [
        lambda i: str(1234567890123456789 + 7 * i),  # as of posts; not every one fits an int64
        lambda i: str(10**25 + 7 * i),
        lambda i: f"{3 * i}.0",  # whole numbers that pandas kept as floats
        lambda i: f"{i + 1}e5",
        lambda i: str(max(i, 1)),  # one of them twice
    ],
)
def test_ids_are_ids_however_they_are_written(write, make):
    ids = [make(i) for i in range(30)]
    table = read_table(write(post_id=ids, a=None))
    assert table.ids == tuple(ids)
    assert table.names == ("a",)
    (note,) = table.notes
    rows = "" if len(set(ids)) == 30 else " in 30 rows"
    assert f"{len(set(ids))} distinct whole numbers{rows}, taken as ids" in note


def test_whole_numbers_kept_as_floats_are_written_as_whole_numbers(tmp_path):
    frame = pd.DataFrame({"id": np.arange(30.0) + 7, "a": np.random.default_rng(0).normal(size=30)})
    frame.to_parquet(tmp_path / "x.parquet")
    assert read_table(tmp_path / "x.parquet").ids[:2] == ("7", "8")


def test_ids_beside_an_index_that_only_counts(tmp_path):
    values = np.random.default_rng(0).normal(size=30)
    frame = pd.DataFrame({"id": 3 * np.arange(30) + 7, "a": values})
    frame.to_csv(tmp_path / "x.csv")  # with an index, as pandas does unless told
    table = read_table(tmp_path / "x.csv")
    assert table.names == ("a",)
    assert table.ids[:2] == ("7", "10")
    frame.index = [f"cell {i}" for i in range(30)]
    frame.to_csv(tmp_path / "x.csv")
    table = read_table(tmp_path / "x.csv")
    assert table.names == ("a",)
    assert table.ids[:2] == ("cell 0", "cell 1")
    assert (
        "column 0 (id): 30 distinct whole numbers, left out, as the index names" in table.notes[0]
    )


def test_names_that_repeat_are_told(write):
    table = read_table(write(colour=["red", "blue"] * 15, a=None))
    assert table.names == ("a",)
    assert "column 0 (colour): 2 distinct texts in 30 rows, taken as ids" in table.notes[0]


def test_a_name_that_two_columns_have_chooses_none(tmp_path):
    (tmp_path / "x.csv").write_text("a,a,b\n1,2,3.5\n4,5,6.5\n")
    assert read_table(tmp_path / "x.csv").values.shape == (2, 3)
    for option in ({"features": "a"}, {"features": "b,a"}, {"id_column": "a"}):
        with pytest.raises(InputError, match='has 2 called "a". Use their numbers, here 0, 1'):
            read_table(tmp_path / "x.csv", **option)


def test_few_rows_that_count_are_features(tmp_path):
    (tmp_path / "x.csv").write_text("a,b\n1,2.5\n2,3.5\n3,1.5\n")
    assert read_table(tmp_path / "x.csv").values.shape == (3, 2)


def test_columns_are_chosen_by_name_and_number(write, numbers):
    path = write(a=None, b=None, who=[f"p{i}" for i in numbers], c=None, d=None)
    assert "column 2 (who) must be a number" in message_of(DataError, read_table, path)
    by_name = read_table(path, id_column="who", features="d,a")
    assert by_name.names == ("d", "a")
    assert by_name.ids == tuple(f"p{i}" for i in numbers)
    by_number = read_table(path, id_column="2", features="4,0")
    np.testing.assert_array_equal(by_number.values, by_name.values)
    assert read_table(path, features="0-1,3").names == ("a", "b", "c")
    assert read_table(path, id_column="who").names == ("a", "b", "c", "d")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"id_column": "nobody"}, 'id-column must name columns of {}: there is no "nobody".'),
        ({"id_column": "9"}, 'id-column must name columns of {}: there is no "9". It has 3,'),
        ({"id_column": "0-1"}, 'id-column must name one column: "0-1" names 2.'),
        ({"features": "a,zz"}, 'features must name columns of {}: there is no "zz".'),
        ({"features": "1-9"}, 'features must name columns of {}: there is no "1-9".'),
        ({"features": ""}, 'features must name columns of {}: there is no "".'),
        ({"id_column": "a", "features": "a,b"}, "features must not hold the column of ids"),
    ],
)  # fmt: skip
def test_columns_that_are_not_there(write, options, message):
    path = write(a=None, b=None, c=None)
    assert message_of(InputError, read_table, path, **options).startswith(
        message.replace("{}", str(path))
    )


def test_an_empty_id_is_named(write):
    path = write(id=["a", "", *[f"n{i}" for i in range(28)]], a=None)
    assert message_of(DataError, read_table, path) == (
        f"{path}, line 3, column 0 (id) is empty, and holds the ids. Give the row a name."
    )


def test_words_that_say_id():
    assert all(map(says_id, ("id", "ID", "user_id", "userId", "Name", "gene name", "Unnamed: 0")))
    assert not any(
        map(says_id, ("", "width", "valid", "grid", "paid", "index_finger", "no_of_legs"))
    )


@pytest.mark.parametrize(
    "cell",
    [
        "\N{MINUS SIGN}{}.5",
        "${}.50",
        "{}%",
        "1\N{NO-BREAK SPACE}{:03d}",
        "1'{:03d}",
        "{} \N{EURO SIGN}",
    ],
)
def test_numbers_for_people_are_no_names_of_rows(write, cell):
    file = write(gain=[cell.format(row) for row in range(30)], size=None)
    said = message_of(DataError, read_table, file)
    assert "line 2, column 0 (gain) must be a plain number, such as -1234.5: it holds" in said
    assert read_table(file, id_column="gain").ids[3] == cell.format(3)
