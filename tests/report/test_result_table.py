import csv
import io

import pytest

from unpaired.errors import InputError
from unpaired.report.curves import draw_curves
from unpaired.report.result_table import FORMATS, format_table
from unpaired.types import Curves, ResultTable

TABLE = ResultTable(
    "Title, 50% & more",
    ("row", "setting", "method", "R@1"),
    (("0%", "semi", "a_b", "1.0 ± 0.1"), ("20%", "sup", "c|d", "–")),
    ("A note.",),
)


def test_text_lines_up():
    lines = format_table(TABLE).splitlines()
    assert lines[2] == "row  setting  method        R@1"
    assert lines[4] == "0%   semi     a_b     1.0 ± 0.1"
    assert lines[-1] == "A note."


def test_markdown_escapes_bars():
    text = format_table(TABLE, "markdown")
    assert "| 20% | sup | c\\|d | – |" in text
    assert "|---|---|---|---:|" in text


def test_csv_is_read_back():
    rows = list(csv.reader(io.StringIO(format_table(TABLE, "csv"))))
    assert rows[0] == ["table", *TABLE.header]
    assert rows[2] == [TABLE.title, *TABLE.rows[1]]


def test_latex_escapes_what_it_must():
    text = format_table(TABLE, "latex")
    assert r"\caption{Title, 50\% \& more. A note.}" in text
    assert r"0\% & semi & a\_b & 1.0 $\pm$ 0.1 \\" in text
    assert r"\begin{tabular}{lllr}" in text


def test_unknown_formats_are_told():
    with pytest.raises(InputError, match='Unknown format "html". Known: csv, latex'):
        format_table(TABLE, "html")
    assert set(FORMATS) == {"text", "markdown", "csv", "latex"}


def test_curves_are_drawn(tmp_path):
    curves = Curves("Costs $5 & more", "share", "R@1", {"a sup": [(0.0, 0.1, 0.01), (1.0, 0.5, 0)]})
    path = draw_curves(curves, tmp_path / "a.png")
    assert path.read_bytes().startswith(b"\x89PNG")
    assert b"<svg" in draw_curves(curves, tmp_path / "a.svg").read_bytes()
    with pytest.raises(InputError, match="must end in png, svg, pdf"):
        draw_curves(curves, tmp_path / "a.gif")
    with pytest.raises(InputError, match="at least one line"):
        draw_curves(Curves("x", "", "", {}), tmp_path / "b.png")
