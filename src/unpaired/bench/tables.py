"""Finished cells as tables: the paper's figure and ours in neighbouring columns."""

from __future__ import annotations

import json
import re
import statistics
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

from unpaired._checks import check_choice
from unpaired.bench.config import TASKS
from unpaired.bench.provenance import is_stale
from unpaired.results import ResultTable

Entry = tuple[str, str, str]
"""Row, setting, method."""
NOTHING = "–"
WHOLE_SCALE = {"foscttm"}
AS_PUBLISHED = ("DMAE-SMI", "DMAE-uKTA", "Deep-SMI", "Deep-uKTA")
"""The paper's own methods. Its figures stand beside our runs of them, "Published DMAE-SMI" ..."""


@dataclass(frozen=True)
class Published:
    """One published table."""

    data: str
    metrics: tuple[str, ...]
    percent: bool
    figures: dict[Entry, dict[str, float]]


def read_published() -> dict[str, Published]:
    """The paper's figures, table name -> table."""
    text = (resources.files("unpaired.bench") / "published.toml").read_text(encoding="utf-8")
    tables = {}
    for name, values in tomllib.loads(text).items():
        metrics = tuple(values["metrics"])
        figures = {
            (row, setting, f"Published {method}" if method in AS_PUBLISHED else method): dict(
                zip(metrics, numbers, strict=True)
            )
            for method, setting, row, *numbers in values["figures"]
        }
        tables[name] = Published(values["data"], metrics, values["percent"], figures)
    return tables


def result_tables(records: list[dict[str, Any]]) -> list[ResultTable]:
    """One table for each benchmark among the records, in order of title."""
    return [_table(group) for group in group_records(records)]


def group_records(records: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """Records of one title, task, data set and options together.

    Of several cells of one row, setting, label and seed, as when a parameter was changed, the last
    counts.
    """
    groups: dict[str, dict[tuple[Entry, int], dict[str, Any]]] = {}
    for record in records:
        key = record["key"]
        name = json.dumps(
            [record["heading"]["title"], key["task"], key["data"], key["options"]], sort_keys=True
        )
        groups.setdefault(name, {})[entry_of(record), key["seed"]] = record
    return [list(groups[name].values()) for name in sorted(groups)]


def entry_of(record: dict[str, Any]) -> Entry:
    """Row, setting and method of a record."""
    return record["key"]["row"], record["key"]["setting"], record["label"]


def _table(records: list[dict[str, Any]]) -> ResultTable:
    heading = records[0]["heading"]
    task = heading["task"]
    known = read_published()
    papers = [known[check_choice(name, "published table", known)] for name in heading["published"]]
    theirs: dict[Entry, dict[str, float]] = {}
    for paper in papers:
        for entry, figures in paper.figures.items():
            scale = 100.0 if paper.percent else 1.0
            found = {metric: value / scale for metric, value in figures.items()}
            theirs.setdefault(entry, {}).update(found)
    ours: dict[Entry, list[dict[str, Any]]] = {}
    for record in records:
        ours.setdefault(entry_of(record), []).append(record)
    twins = _twins(heading, ours)
    measured = {metric for record in records for metric in record["metrics"]}
    beside = {name for paper in papers for name in paper.metrics}
    metrics = [name for name in heading["columns"] if name in measured | beside]
    header = ["row", "setting", "method", "seeds"]
    for metric in metrics:
        label = metric_label(metric, task)
        header += [f"{label} paper", f"{label} ours"] if metric in beside else [label]
    header.append("fit s")
    entries = sorted({*theirs, *ours, *twins}, key=lambda e: _order(e, task, list(theirs)))
    rows = []
    for entry in entries:
        own = ours.get(twins.get(entry, entry), [])
        row = _row(entry, own, theirs.get(entry, {}), metrics, beside, task)
        rows.append((*row[:3], f"= {twins[entry][2]}", *row[4:]) if entry in twins else row)
    notes = [f"Paper: {paper.data}." for paper in papers]
    notes.append("Ours: mean ± sample standard deviation over seeds.")
    notes += [heading["note"]] if heading["note"] else []
    if any(map(is_stale, records)):
        notes.append("Stale: run by other code than today's, or nobody knows by which.")
    if twins:
        notes.append('"= NAME": the same as that method by construction, and not run again.')
    return ResultTable(heading["title"], tuple(header), tuple(rows), tuple(dict.fromkeys(notes)))


def _twins(heading: dict[str, Any], ours: dict[Entry, list[dict[str, Any]]]) -> dict[Entry, Entry]:
    """Entries that are the same as another by construction -> that other one."""
    return {
        (row, setting, label): (row, setting, twin)
        for row, setting, method in ours
        for where, label, twin in heading.get("same", [])
        if (where, twin) == (setting, method) and (row, setting, label) not in ours
    }


def _row(
    entry: Entry,
    records: list[dict[str, Any]],
    published: dict[str, float],
    metrics: list[str],
    beside: set[str],
    task: str,
) -> tuple[str, ...]:
    n_stale = sum(map(is_stale, records))
    seeds = f"{len(records)} ({n_stale} stale)" if n_stale else str(len(records))
    cells = [*entry, seeds if records else NOTHING]
    for metric in metrics:
        if metric in beside:
            value = published.get(metric)
            cells.append(NOTHING if value is None else show([value], metric, task))
        values = [r["metrics"][metric] for r in records if metric in r["metrics"]]
        cells.append(show(values, metric, task))
    seconds = [r["seconds"]["fit"] for r in records if "fit" in r.get("seconds", {})]
    cells.append(f"{statistics.mean(seconds):.1f}" if seconds else NOTHING)
    return tuple(cells)


def show(values: list[float], metric: str, task: str) -> str:
    """Mean and, for several values, standard deviation, as people read this metric.

    >>> show([0.25, 0.27], "x->y R@1", "retrieval"), show([0.7], "precision", "ucl")
    ('26.0 ± 1.4', '0.70')
    """
    if not values:
        return NOTHING
    scale, digits = (1.0, 3) if metric in WHOLE_SCALE else (1.0, 2) if task == "ucl" else (100.0, 1)
    return mean_and_spread([scale * value for value in values], digits)


def mean_and_spread(values: Sequence[float], digits: int = 3) -> str:
    """Mean ± sample standard deviation (n - 1 below) as text; of one value the value alone.

    >>> mean_and_spread([0.1, 0.2, 0.3])
    '0.200 ± 0.100'
    """
    mean = f"{statistics.mean(values):.{digits}f}"
    return mean if len(values) == 1 else f"{mean} ± {statistics.stdev(values):.{digits}f}"


def metric_label(metric: str, task: str) -> str:
    """A metric as a column head: i and t for image and text in retrieval."""
    if task == "retrieval":
        return metric.replace("x->y", "i→t").replace("y->x", "t→i").replace("csls", "CSLS")
    if task == "matching":
        return (
            metric.replace("x->y R@1", "P@1").replace("csls", "CSLS").replace("foscttm", "FOSCTTM")
        )
    return metric


def row_value(row: str) -> float:
    """A number that orders rows: the share, the number of pairs, or the first of L-U-T."""
    found = re.match(r"\d+(?:\.\d+)?", row)
    return float(found[0]) if found else -1.0


def _order(entry: Entry, task: str, published: list[Entry]) -> tuple[Any, ...]:
    row, setting, method = entry
    settings = TASKS[task]
    place = settings.index(setting) if setting in settings else len(settings)
    names = list(dict.fromkeys(e[2] for e in published))
    rank = names.index(method) if method in names else len(names)
    rows = list(dict.fromkeys(e[0] for e in published))
    row_rank = rows.index(row) if row in rows and task == "ucl" else 0
    return (row_rank, row_value(row), row, place, rank, method)
