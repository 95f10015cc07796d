"""Finished cells as curves: metrics against the label share, the matching over iterations."""

from __future__ import annotations

import statistics
from typing import Any

from unpaired.bench.tables import entry_of, group_records, metric_label, row_value
from unpaired.results import Curves

AGAINST_SHARE = {
    "retrieval": ("x->y R@1", "y->x R@1", "csls x->y R@1", "csls y->x R@1"),
    "ucl": ("svm embedding accuracy", "nearest accuracy", "svm accuracy"),
    "matching": ("x->y R@1", "foscttm"),
}
Point = tuple[float, float, float]


def all_curves(records: list[dict[str, Any]]) -> list[Curves]:
    """Every picture that the records can give, benchmark by benchmark."""
    pictures = []
    for group in group_records(records):
        for metric in AGAINST_SHARE[group[0]["heading"]["task"]]:
            pictures.append(against_share(group, metric))
        for measure in ("precision", "recall"):
            pictures.append(over_iterations(group, measure))
    return [picture for picture in pictures if picture.lines]


def against_share(records: list[dict[str, Any]], metric: str) -> Curves:
    """One metric against the label share, a line for each method and setting.

    In task ucl the rows with the most training images count: 0-50-10, 10-40-10 and 50-0-10, not
    10-0-10, which differs in more than its labels.
    """
    task = records[0]["heading"]["task"]
    records = [record for record in records if label_share(record["key"]["row"], task) is not None]
    if task == "ucl":
        most = max((_training_images(record["key"]["row"]) for record in records), default=0.0)
        records = [r for r in records if _training_images(r["key"]["row"]) == most]
    found: dict[str, dict[float, list[float]]] = {}
    with_rest = {label for _, setting, label in map(entry_of, records) if setting == "semi"}
    for record in records:
        row, setting, label = entry_of(record)
        share = label_share(row, task)
        if metric in record["metrics"] and share is not None:
            lines = [f"{label} {setting}"]
            if setting == "sup" and row == "100%" and label in with_rest:
                lines.append(f"{label} semi")  # nothing is unpaired there: one and the same
            for line in lines:
                found.setdefault(line, {}).setdefault(share, []).append(record["metrics"][metric])
    unit = "known pairs" if task == "matching" else "label share"
    return Curves(
        title=records[0]["heading"]["title"] if records else "",
        x_label=unit,
        y_label=metric_label(metric, task),
        lines={name: _points(values) for name, values in sorted(found.items())},
    )


def over_iterations(records: list[dict[str, Any]], measure: str) -> Curves:
    """Precision or recall of the matching after each round, a line for each table entry.

    A start at which nothing was right, or matched at all, is left out.
    """
    found: dict[str, dict[float, list[float]]] = {}
    for record in records:
        row, setting, label = entry_of(record)
        for step in record.get("history", []):
            begun = step["step"] > 0 or step.get("recall") != 0
            if measure in step and begun:
                line = found.setdefault(f"{label} {setting} {row}", {})
                line.setdefault(float(step["step"]), []).append(step[measure])
    return Curves(
        title=records[0]["heading"]["title"],
        x_label="iteration",
        y_label=f"{measure} of the matching",
        lines={name: _points(values) for name, values in sorted(found.items())},
    )


def label_share(row: str, task: str) -> float | None:
    """Where a row lies on the axis: labelled of all training images, or the pairs known.

    >>> label_share("10-40-10", "ucl"), label_share("20%", "retrieval")
    (0.2, 0.2)
    """
    if task == "ucl":
        total = _training_images(row)
        return float(row.split("-")[0]) / total if total else None
    return row_value(row) / (100.0 if row.endswith("%") else 1.0)


def _training_images(row: str) -> float:
    parts = row.split("-")
    if len(parts) != 3:
        return 0.0
    return float(parts[0]) + float(parts[1])


def _points(values: dict[float, list[float]]) -> list[Point]:
    return [
        (x, statistics.mean(ys), statistics.stdev(ys) if len(ys) > 1 else 0.0)
        for x, ys in sorted(values.items())
    ]
