import csv
import io
import re
from dataclasses import replace

import pytest

from unpaired.errors import InputError
from unpaired.report.curves import draw_curves
from unpaired.report.result_table import FORMATS, escape_latex, format_table
from unpaired.results import Curves, ResultTable

TABLE = ResultTable(
    "Title, 50% & more",
    ("row", "setting", "method", "R@1"),
    (("0%", "semi", "a_b", "1.0 ± 0.1"), ("20%", "sup", "c|d", "–")),
    ("A note.",),
)


def test_text_lines_up():
    lines = format_table(TABLE).splitlines()
    assert lines[2].split() == ["row", "setting", "method", "R@1"]
    assert lines[4].split(maxsplit=3) == ["0%", "semi", "a_b", "1.0 ± 0.1"]
    assert len({len(line) for line in lines[2:6]}) == 1
    assert lines[2].index("setting") == lines[4].index("semi")
    assert lines[-1] == "A note."


def cells_of(line):
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def test_markdown_escapes_bars_and_keeps_figures_as_they_are():
    table = replace(TABLE, rows=(*TABLE.rows, ("1e3", "05", "x", "0.50")))
    lines = format_table(table, "markdown").splitlines()
    assert lines[0] == "### Title, 50% & more"
    assert cells_of(lines[5]) == ["20%", "sup", "c\\|d", "–"]
    assert cells_of(lines[6]) == ["1e3", "05", "x", "0.50"]
    assert [cell[-1] == ":" for cell in cells_of(lines[3])] == [False, False, False, True]
    assert lines[-1] == "A note."


def test_csv_is_read_back():
    rows = list(csv.reader(io.StringIO(format_table(TABLE, "csv"))))
    assert rows[0] == ["table", *TABLE.header]
    assert rows[2] == [TABLE.title, *TABLE.rows[1]]


def test_latex_escapes_what_it_must():
    text = format_table(TABLE, "latex")
    assert r"\caption{Title, 50\% \& more. A note.}" in text
    squeezed = re.sub(r" +", " ", text)
    assert r"0\% & semi & a\_b & 1.0 $\pm$ 0.1 \\" in squeezed
    assert r"20\% & sup & c|d & -- \\" in squeezed
    assert r"\begin{tabular}{lllr}" in text
    assert escape_latex("a\\b{c}~^$#→") == (
        r"a\textbackslash{}b\{c\}\textasciitilde{}\^{}\$\#$\to$"
    )


def test_a_table_without_rows():
    empty = replace(TABLE, rows=())
    for kind in FORMATS:
        assert "setting" in format_table(empty, kind)


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
