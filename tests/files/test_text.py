import numpy as np
import pandas as pd
import pytest

from unpaired.errors import DataError
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


BODY = "1.5,-2\n3,4e-3\n5,6\n"
NAMED = "ant,1.5,-2\nbee,3,4e-3\ncat,5,6\n"


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        (BODY, None),
        ("a,b\n" + BODY, None),
        ("0,1\n" + BODY, None),  # what pandas writes over columns without names
        ("2019,2020\n" + BODY, None),
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


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            "a,b\n1,2\n3,nan\n",
            "line 3, column 1 (b) must be a finite number: it is missing (nan). ",
        ),
        ("a,b\n1,2\n\n-inf,2\n", "line 4, column 0 (a) must be a finite number: it is infinite (-"),
        ("a\n1e999\ninf\n", "infinite (inf), as are 1 more in this column. Impute it, or drop the"),
    ],
)
def test_what_is_not_finite_is_named_by_line_and_column(write, text, message):
    assert message in message_of(DataError, read_table, write("x.csv", text))


def test_yes_and_no_are_numbers_and_never_ids(write):
    table = read_table(write("x.csv", "flag,a\nTrue,1.5\nFalse,2\n"))
    assert same(table, [[1, 1.5], [0, 2]])
    assert same(read_table(write("x.csv", "true,1.5\nFALSE,2\n")), [[1, 1.5], [0, 2]])
    message = message_of(DataError, read_table, write("x.csv", "a,b\n1,True\n2,maybe\n"))
    assert 'line 2, column 1 (b) must be a number: it holds "True"' in message


@pytest.mark.parametrize(
    ("encoding", "words"),
    [
        ("shift-jis", "It is in another encoding; save it as UTF-8."),
        ("latin-1", "It looks like Latin-1 (Windows-1252); save it as UTF-8, or run: iconv"),
        ("utf-16-le", "it looks like UTF-16 without its mark"),
        ("utf-32-le", "it looks like UTF-32 without its mark"),
    ],
)
def test_encodings_are_named_when_they_can_be(write, encoding, words):
    text = "größe,b\n1,2\n" if encoding == "latin-1" else "名前,b\nあ,1\nい,2\n"
    assert words in message_of(DataError, read_table, write("x.csv", text.encode(encoding)))


NOT = "must be a number: it holds"
EMPTY = "is empty. Impute the number, or drop the row or the column."
MEND = "Mend it, name the column of ids with --id-column, or the columns to use with --features."
WIDTHS = (
    "{} must have equally many columns in every line: line 1 has {} and line 2 has {}. Check "
    "that line's delimiters and quotes."
)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "{} is empty. It needs one line per row."),
        ("\n\n", "{} is empty. It needs one line per row."),
        ("a,b\n", "{} has a header and no rows. It needs one line per row."),
        ("1,2\n3\n", WIDTHS.format("{}", 2, 1)),
        ("a,b,c\n1,2\n", WIDTHS.format("{}", 3, 2)),
        ("1,2\n3,red\n", f'{{}}, line 2, column 1 must be a number: it holds "red". {MEND}'),
        ("a,b\n1,2\n\n3,\n", f"{{}}, line 4, column 1 (b) {EMPTY}"),
        ("1,\n3,4\n", f"{{}}, line 1, column 1 {EMPTY}"),  # a gap in line 1 is no header
        ("1,NA\n3,4\n", f"{{}}, line 1, column 1 {EMPTY}"),
        ("ant,1,\nbee,2,3\n", f"{{}}, line 1, column 2 {EMPTY}"),
        ("a,b\n1,\n3,\n", f"{{}}, line 2, column 1 (b) {EMPTY}".replace(
            "is empty.", "is empty, as are 1 more in this column.")),
        # half names, half numbers
        ("a,b\nant,1\n7,2\n", f'{{}}, line 2, column 0 (a) {NOT} "ant". {MEND}'),
        ("a;b\n1,5;2\n3;4\n", '{}, line 2, column 0 (a) must be a number: "1,5" has a comma. '
         "Write decimals with a point."),
        ("a,b\n1_000,2\n3,4\n", f'{{}}, line 2, column 0 (a) {NOT} "1_000". {MEND}'),
    ],
)  # fmt: skip
def test_wrong_text(write, text, message):
    path = write("x.csv", text)
    assert message_of(DataError, read_table, path) == message.replace("{}", str(path))


@pytest.mark.parametrize(
    ("text", "column", "cell", "other", "number"),
    [
        ("1.5,oops\n3,4e-3\n5,6\n", 1, "oops", 0, "1.5"),
        ("a,2\n1.5,-2\n3,4\n", 0, "a", 1, "2"),
        ("ant,1.5,1.2.3\nbee,3,4\ncat,5,6\n", 2, "1.2.3", 1, "1.5"),
    ],
)
def test_a_bad_cell_in_line_one_is_not_a_header(write, text, column, cell, other, number):
    path = write("x.csv", text)
    assert message_of(DataError, read_table, path) == (
        f'{path}, line 1 is neither a header nor a row: column {column} holds "{cell}", and column '
        f"{other} the number {number}. Mend that cell, or say --header or --no-header."
    )
    assert f"{path}, line 1, column {column}" in message_of(
        DataError, read_table, path, header=False
    )
    assert len(read_table(path, header=True).values) == text.count("\n") - 1


def test_header_of_numbers_is_told_and_can_be_overruled(write):
    path = write("x.csv", "0,1,2\n1,1,0\n0,1,0\n")
    table = read_table(path)
    assert table.values.tolist() == [[1, 1, 0], [0, 1, 0]]
    assert table.names == ("0", "1", "2")
    assert table.notes == (
        f"{path}, line 1: 0, 1, ... taken as a header; --no-header to override.",
    )
    assert len(read_table(path, header=False).values) == 3


@pytest.mark.parametrize(
    "text",
    [
        "0,1\n1,0\n",
        "3,4,5\n1,0,2\n",
        "0,1,3\n1.5,2,3\n",
        "1,0\n0.5,1\n",
        "0\n1.5\n",
        "2,3.0\n1,5\n",
    ],
)
def test_a_row_of_numbers_that_may_be_features_stays_a_row(write, text):
    assert len(read_table(write("x.csv", text)).values) == 2


def test_pandas_frame_without_names_comes_back(tmp_path, rng):
    values = rng.normal(size=(40, 5))
    pd.DataFrame(values).to_csv(tmp_path / "x.csv", index=False)
    np.testing.assert_array_equal(read_table(tmp_path / "x.csv").values, values)
    pd.DataFrame(values).to_csv(tmp_path / "y.csv")
    np.testing.assert_array_equal(read_table(tmp_path / "y.csv").values, values)
    assert read_table(tmp_path / "y.csv").ids == tuple(map(str, range(40)))


@pytest.mark.parametrize("delimiter", [";", "\t", "|", " ", ","])
@pytest.mark.parametrize("name", ["x.csv", "x.tsv", "x.txt"])
def test_the_delimiter_is_found(write, delimiter, name):
    text = ("name,a,b\n" + NAMED).replace(",", delimiter)
    assert same(read_table(write(name, text)), ids=NAMES)
    assert same(read_table(write(name, BODY.replace(",", delimiter))))


def test_a_delimiter_inside_names_is_not_taken(write):
    text = "".join(
        f"{name};big,{a!r},{b!r}\n" for name, (a, b) in zip(NAMES, VALUES.tolist(), strict=True)
    )
    assert same(read_table(write("x.csv", text)), ids=tuple(f"{name};big" for name in NAMES))


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-32"])
def test_unicode_encodings(write, encoding):
    path = write("x.csv", "Käfer,1.5,-2\nбук,3,4e-3\n猫,5,6\n".encode(encoding))
    assert same(read_table(path), ids=("Käfer", "бук", "猫"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (
            "a,b\nKäfer,1\n".encode("latin-1"),
            "{} must be text in UTF-8: byte 0xe4 in line 2 is not. It looks like Latin-1 "
            "(Windows-1252); save it as UTF-8, or run: iconv -f latin1 -t utf8 x.csv",
        ),
        (
            BODY.encode("utf-16-le"),
            "{} must be text: it looks like UTF-16 without its mark. Save it as UTF-8.",
        ),
        (b"1,2\n3,\0\n", "{} must be text: it looks like a binary file. Save it as UTF-8."),
    ],
)
def test_other_encodings_are_named(write, content, message):
    path = write("x.csv", content)
    assert message_of(DataError, read_table, path) == message.replace("{}", str(path))


def test_vectors_written_as_lists(write):
    text = 'id,embedding\nant,"[1.5, -2]"\nbee,"[3, 4e-3]"\ncat,"[5, 6]"\n'
    table = read_table(write("x.csv", text))
    assert same(table, ids=NAMES)
    assert table.names == ("embedding.0", "embedding.1")
    short = write("y.csv", text.replace("[5, 6]", "[5]"))
    assert message_of(DataError, read_table, short) == (
        f"{short}, line 4, column 1 (embedding) must be a list of 2 numbers, like the first row: "
        "it has 1 values. Drop the row, or embed it again."
    )


def test_a_quote_that_is_never_closed(write):
    assert "could not be read as csv" in message_of(
        DataError, read_table, write("x.csv", 'ant,1,2\n"bee,3,4\ncat,5,6\n')
    )


def test_a_long_file_is_refused_by_size(write, monkeypatch):
    monkeypatch.setattr("unpaired.files.text.MAX_TEXT", 10)
    path = write("x.csv", BODY)
    assert "GiB of text: it holds more." in message_of(DataError, read_table, path)
