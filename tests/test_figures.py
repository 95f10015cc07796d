"""Figures that people read stand in a result file: a list of them, and the page made of cells."""

import csv
import importlib.util
import json
import re
import statistics
import tomllib
from pathlib import Path

import pytest

from unpaired.bench.cells import identity, read_cells
from unpaired.bench.config import read_config

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "benchmarks" / "results"
FIGURES = tomllib.loads((ROOT / "tests" / "figures.toml").read_text(encoding="utf-8"))["figure"]
STATISTICS = {"mean": statistics.mean, "spread": statistics.stdev, "count": len}


def rows_of(file):
    """The rows of a result file, as dicts."""
    text = (RESULTS / file).read_text(encoding="utf-8")
    if file.endswith(".csv"):
        return list(csv.DictReader(text.splitlines()))
    return [json.loads(line) for line in text.splitlines()]


def field_of(row, name):
    """A field of a row, or a field inside a field; a number is a place in a list."""
    for part in name.split("/"):
        if isinstance(row, list):
            row = row[int(part)] if row else None
        else:
            row = row.get(part) if isinstance(row, dict) else None
    return row


def measured(figure):
    """The figure as its result file gives it, written as the document writes it."""
    wanted = figure["where"].items()
    rows = [r for r in rows_of(figure["file"]) if all(field_of(r, k) == v for k, v in wanted)]
    values = [float(found) for r in rows if (found := field_of(r, figure["field"])) is not None]
    assert values, "no row of the result file has it"
    value = figure.get("scale", 1) * STATISTICS[figure.get("statistic", "mean")](values)
    return re.sub(r"(?<!\d)0\.", ".", figure["shown"].format(value))


@pytest.mark.parametrize("figure", FIGURES, ids=lambda f: f"{f['document']}: {f['shown']}")
def test_a_figure_in_the_documents_is_that_of_its_result_file(figure):
    document = re.sub(r"\s+", " ", (ROOT / figure["document"]).read_text(encoding="utf-8"))
    assert re.sub(r"\s+", " ", figure["text"]) in document
    text = re.sub(r"(?<!\d)0\.", ".", figure["text"])
    assert measured(figure) in text


def test_a_figure_that_is_not_the_files_is_found():
    wrong = {**FIGURES[0], "where": {"problem": "digits 300"}}
    assert measured(wrong) not in wrong["text"]
    with pytest.raises(AssertionError, match="no row"):
        measured({**FIGURES[0], "where": {"problem": "no such"}})


def results_page():
    """The module that writes docs/results.md."""
    place = ROOT / "scripts" / "results_page.py"
    spec = importlib.util.spec_from_file_location("results_page", place)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def without_marks(text):
    """The page without what depends on the code of the day: which cells are stale."""
    return re.sub(r" Stale: † \d+ of them\.| †", "", text)


def test_the_page_of_results_is_written_from_the_cells():
    written = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    assert without_marks(written) == without_marks(results_page().page(RESULTS))


def test_every_committed_cell_is_one_of_its_configuration():
    for folder in results_page().folders(RESULTS):
        config = read_config(ROOT / "experiments" / f"{folder.name}.toml")
        known = {identity(cell.key) for cell in config.cells()}
        records = read_cells(folder / "cells.jsonl")[0]
        assert set(records) <= known, folder.name
        assert {json.dumps(r["heading"]) for r in records.values()} == {json.dumps(config.heading)}
