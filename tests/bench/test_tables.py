"""Tables and curves of a results folder made by hand."""

import re
from pathlib import Path

import numpy as np
import pytest

from unpaired.bench.cells import append_cell, cells_file, read_folder
from unpaired.bench.curves import against_share, all_curves, label_share, over_iterations
from unpaired.bench.provenance import cell_digest
from unpaired.bench.tables import mean_and_spread, read_published, result_tables, show
from unpaired.report.result_table import format_table

ROOT = Path(__file__).parents[2]


def cell(label, setting, row, seed, metrics, heading, history=()):
    method = {"name": "cca", "params": {"as": label}}
    key = {"task": heading["task"], "data": {"source": "x"}, "options": {}, "method": method,
           "setting": setting, "row": row, "seed": seed}  # fmt: skip
    return {
        "digest": cell_digest(heading["task"], {"name": "cca"}),
        "key": key,
        "heading": heading,
        "label": label,
        "metrics": metrics,
        "history": list(history),
        "seconds": {"fit": 2.0 + seed},
    }


RETRIEVAL = {
    "title": "Flickr30K, two rows",
    "task": "retrieval",
    "published": ["flickr30k-supervised"],
    "columns": ["x->y R@1", "x->y R@5", "y->x R@1", "y->x R@5", "csls x->y R@1"],
    "note": "By hand.",
}
GOLDEN = """\
Flickr30K, two rows

row   setting  method        seeds  i→t R@1 paper  i→t R@1 ours  i→t R@5 paper  i→t R@5 ours  \
t→i R@1 paper  t→i R@1 ours  t→i R@5 paper  t→i R@5 ours  CSLS i→t R@1  fit s
----  -------  ------------  -----  -------------  ------------  -------------  ------------  \
-------------  ------------  -------------  ------------  ------------  -----
100%  sup      DeepCCA           –           29.3             –           57.4             –  \
         28.2             –           54.7             –             –      –
100%  sup      HSIC-DeepCCA      –           34.2             –           64.4             –  \
         28.7             –           56.8             –             –      –
100%  sup      Two-way nets      –           49.8             –           67.5             –  \
         36.0             –           55.6             –             –      –
100%  sup      ReViSE-b          –           34.7             –           63.2             –  \
         29.2             –           58.0             –             –      –
100%  sup      MCCA              –           17.3             –           35.2             –  \
         18.3             –           30.3             –             –      –
100%  sup      Deep-MCCA         –           27.8             –           37.7             –  \
         24.0             –           28.4             –             –      –
100%  sup      Published Deep-uKTA  –           28.7             –           52.6             –  \
         26.0             –           50.1             –             –      –
100%  sup      Published Deep-SMI  –           34.2             –           65.3             –  \
         29.6             –           57.8             –             –      –
100%  sup      Published DMAE-uKTA  –           47.4             –           63.7             –  \
         32.7             –           51.4             –             –      –
100%  sup      Published DMAE-SMI  2           50.1    26.0 ± 1.4           70.4          50.0  \
         37.2             –           59.8             –          33.0    2.5
100%  sup      Mine              1              –          90.0              –             –  \
            –             –              –             –             –    2.0

Paper: Flickr30K, VGG-19 image features, means of word2vec vectors.
Ours: mean ± sample standard deviation over seeds.
By hand.
"""


def cells(line):
    """A line cut where two or more blanks are; rules are all alike."""
    return [re.sub("-{3,}", "---", part) for part in re.split(r"\s{2,}", line.strip())]


@pytest.fixture
def retrieval_cells(tmp_path):
    records = [
        cell(
            "Published DMAE-SMI", "sup", "100%", 0, {"x->y R@1": 0.25, "x->y R@5": 0.5}, RETRIEVAL
        ),
        cell(
            "Published DMAE-SMI",
            "sup",
            "100%",
            1,
            {"x->y R@1": 0.27, "csls x->y R@1": 0.33},
            RETRIEVAL,
        ),
        cell("Mine", "sup", "100%", 0, {"x->y R@1": 0.9}, RETRIEVAL),
    ]
    for record in records:
        append_cell(cells_file(tmp_path), record)
    return tmp_path


def test_the_table_is_the_one_made_by_hand(retrieval_cells):
    (table,) = result_tables(read_folder(retrieval_cells)[0])
    shown = format_table(table, "text")
    # The layout is tabulate's: what counts is that cells and lines are those made by hand.
    assert [cells(line) for line in shown.splitlines()] == [
        cells(line) for line in GOLDEN.splitlines()
    ]


def test_stale_cells_are_marked(retrieval_cells):
    records = read_folder(retrieval_cells)[0]
    records[1]["digest"] = "of another day"
    (table,) = result_tables(records)
    rows = {row[2]: row for row in table.rows}
    assert rows["Published DMAE-SMI"][3] == "2 (1 stale)"
    assert rows["Mine"][3] == "1"
    assert table.notes[-1].startswith("Stale: run by other code")


def test_a_row_that_is_another_by_construction_says_so_once():
    heading = {**RETRIEVAL, "published": [], "same": [["sup", "MCCA", "CCA"]]}
    records = [
        cell("CCA", "sup", row, 0, {"x->y R@1": value}, heading)
        for row, value in (("20%", 0.2), ("100%", 0.5))
    ] + [cell("MCCA", "semi", "20%", 0, {"x->y R@1": 0.3}, heading)]
    (table,) = result_tables(records)
    rows = {row[:3]: row[3:] for row in table.rows}
    assert rows["20%", "sup", "MCCA"] == ("= CCA", *rows["20%", "sup", "CCA"][1:])
    assert rows["100%", "sup", "MCCA"][1] == "50.0"
    assert rows["20%", "semi", "MCCA"][:2] == ("1", "30.0")
    assert len(rows) == 5
    assert sum("by construction" in note for note in table.notes) == 1


def test_the_last_of_two_cells_of_one_seed_counts():
    heading = {**RETRIEVAL, "published": []}
    records = [cell("A", "sup", "20%", 0, {"x->y R@1": value}, heading) for value in (0.2, 0.6)]
    records[0]["key"]["method"]["params"]["n_latent"] = 3
    (table,) = result_tables(records)
    assert table.rows[0][3:5] == ("1", "60.0")


def test_paper_and_ours_are_neighbours_in_every_format(retrieval_cells):
    (table,) = result_tables(read_folder(retrieval_cells)[0])
    markdown = re.sub(" +", " ", format_table(table, "markdown"))
    assert "| 100% | sup | Published DMAE-SMI | 2 | 50.1 | 26.0 ± 1.4 | 70.4 | 50.0 |" in markdown
    assert 'two rows",100%,sup,Published DMAE-SMI,2,50.1,26.0 ± 1.4,70.4,50.0,' in format_table(
        table, "csv"
    )
    latex = re.sub(" +", " ", format_table(table, "latex"))
    assert r"100\% & sup & Published DMAE-SMI & 2 & 50.1 & 26.0 $\pm$ 1.4 & 70.4 & 50.0 &" in latex
    assert r"i$\to$t R@1 paper" in latex


def test_every_published_figure_is_there():
    tables = read_published()
    sizes = {name: len(table.figures) for name, table in tables.items()}
    assert sizes == {
        "flickr30k-supervised": 10,
        "coco-supervised": 10,
        "flickr30k-semi": 24,
        "coco-semi": 24,
        "cifar10-ucl": 32,
        "awa-ucl": 32,
        "awa-matching": 1,
    }
    figures = tables["flickr30k-semi"].figures
    assert figures["20%", "semi", "Published DMAE-SMI"] == {"x->y R@1": 25.2, "y->x R@1": 23.3}
    cifar = tables["cifar10-ucl"].figures
    assert cifar["10-40-10", "transductive", "Published DMAE-SMI"] == {
        "svm embedding accuracy": 0.89
    }
    assert tables["coco-supervised"].figures["100%", "sup", "Two-way nets"]["y->x R@5"] == 63.3


UCL = {
    "title": "AwA",
    "task": "ucl",
    "published": ["awa-ucl", "awa-matching"],
    "columns": ["svm embedding accuracy", "precision", "recall"],
    "note": "",
}


def test_two_published_tables_are_joined_and_rows_keep_the_papers_order():
    steps = [{"step": 0.0, "precision": 0.2}, {"step": 1.0, "precision": 0.4}]
    records = [
        cell("Published DMAE-SMI", "inductive", "0-40-60", seed, {"precision": 0.5}, UCL, steps)
        for seed in (0, 1)
    ]
    (table,) = result_tables(records)
    rows = {row[:3]: row[3:] for row in table.rows}
    ours = rows["0-40-60", "inductive", "Published DMAE-SMI"]
    assert ours[:5] == ("2", "0.32", "–", "0.90", "0.50 ± 0.00")
    order = list(dict.fromkeys(row[0] for row in table.rows))
    assert order == ["0-40-60", "20-0-60", "20-20-60", "40-0-60"]
    curve = over_iterations(records, "precision")
    assert curve.lines == {
        "Published DMAE-SMI inductive 0-40-60": [(0.0, 0.2, 0.0), (1.0, 0.4, 0.0)]
    }
    empty = {"step": 0.0, "precision": 1.0, "recall": 0.0}  # nothing is matched yet
    begins_later = [{**record, "history": [empty, *record["history"][1:]]} for record in records]
    curve = over_iterations(begins_later, "precision")
    assert list(curve.lines.values()) == [[(1.0, 0.4, 0.0)]]


def test_the_spread_is_the_sample_standard_deviation_everywhere():
    values = [0.2, 0.5, 0.9]
    expected = np.std(values, ddof=1)
    assert mean_and_spread(values, 6) == f"{np.mean(values):.6f} ± {expected:.6f}"
    assert show(values, "foscttm", "matching") == f"{np.mean(values):.3f} ± {expected:.3f}"
    records = [
        cell("A", "sup", "20%", seed, {"x->y R@1": value}, {**RETRIEVAL, "published": []})
        for seed, value in enumerate(values)
    ]
    ((_, _, spread),) = against_share(records, "x->y R@1").lines["A sup"]
    assert spread == pytest.approx(expected)
    scripts = [path.read_text() for path in (ROOT / "benchmarks").glob("*.py")]
    assert scripts
    assert not [text for text in scripts if re.search(r"±[^\n]*(std|stdev)\(", text)]


def test_figures_are_shown_as_people_read_them():
    assert show([], "foscttm", "matching") == "–"
    assert show([0.0391], "foscttm", "matching") == "0.039"
    assert show([0.5, 0.7], "x->y R@1", "matching") == "60.0 ± 14.1"


def test_curves_against_the_share():
    heading = {**RETRIEVAL, "published": []}
    records = [
        cell("A", setting, row, 0, {"x->y R@1": value}, heading)
        for setting, row, value in (
            ("semi", "0%", 0.1), ("semi", "20%", 0.3), ("sup", "20%", 0.2), ("sup", "100%", 0.5),
        )
    ]  # fmt: skip
    curve = against_share(records, "x->y R@1")
    assert curve.lines["A sup"] == [(0.2, 0.2, 0.0), (1.0, 0.5, 0.0)]
    assert [point[0] for point in curve.lines["A semi"]] == [0.0, 0.2, 1.0]
    assert [picture.y_label for picture in all_curves(records)] == ["i→t R@1"]


def test_only_rows_of_equal_size_make_a_curve_of_naming():
    records = [
        cell("A", "inductive", row, 0, {"nearest accuracy": value}, {**UCL, "published": []})
        for row, value in (("0-50-10", 0.1), ("10-40-10", 0.2), ("10-0-10", 0.9), ("50-0-10", 0.3))
    ]
    curve = against_share(records, "nearest accuracy")
    assert curve.lines == {"A inductive": [(0.0, 0.1, 0.0), (0.2, 0.2, 0.0), (1.0, 0.3, 0.0)]}
    assert label_share("official", "ucl") is None
    assert label_share("25 pairs", "matching") == 25.0
