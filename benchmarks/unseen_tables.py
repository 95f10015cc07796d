"""The file of ``benchmarks.unseen`` as Markdown tables: mean and sample standard deviation."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
from scipy.stats import mannwhitneyu

Row = dict[str, str]
GOOD = 0.2
"""An alignment is called good when its FOSCTTM is below."""


def read(path: Path) -> list[Row]:
    """The rows of a CSV; none when it is not there."""
    if not path.exists():
        return []
    with path.open(newline="") as handle:
        return list(csv.DictReader(handle))


def numbers(rows: list[Row], name: str) -> np.ndarray:
    return np.array([float(row[name]) for row in rows if row[name] != ""])


def cell(values: np.ndarray, digits: int = 3) -> str:
    """Mean and sample standard deviation; the mean alone for one run."""
    if not len(values):
        return "–"
    deviation = values.std(ddof=1) if len(values) > 1 else 0.0
    spread = f" ± {deviation:.{digits}f}" if len(values) > 1 else ""
    return f"{values.mean():.{digits}f}{spread}"


def by_task(rows: list[Row], name: str, digits: int = 3) -> list[str]:
    """Tasks down, methods across."""
    methods = list(dict.fromkeys(row["method"] for row in rows))
    lines = [f"| {name} | n | " + " | ".join(methods) + " |", "|---" * (len(methods) + 2) + "|"]
    for task, size in dict.fromkeys((row["task"], row["n"]) for row in rows):
        same = [row for row in rows if (row["task"], row["n"]) == (task, size)]
        cells = [
            cell(numbers([row for row in same if row["method"] == method], name), digits)
            for method in methods
        ]
        lines.append(f"| {task} | {size} | " + " | ".join(cells) + " |")
    return [*lines, ""]


def _draw(row: Row) -> tuple[str, ...]:
    return row["task"], row["n"], row["seed"]


def overall(rows: list[Row]) -> list[str]:
    """Each method over all its runs, beside ``match`` on the same draws."""
    lines = [
        "| method | tasks | runs | mean FOSCTTM | match on these draws | right | CPU s, sum |",
        "|---|---|---|---|---|---|---|",
    ]
    for method in dict.fromkeys(row["method"] for row in rows):
        own = [row for row in rows if row["method"] == method]
        seen = {_draw(row) for row in own}
        ours = [row for row in rows if row["method"] == "match" and _draw(row) in seen]
        reached = numbers(ours, "foscttm")
        beside = f"{reached.mean():.4f}" if len(reached) else "–"
        right = numbers(own, "right")
        share = f"{right.mean():.3f}" if len(right) else "–"
        n_tasks, mean = len({row["task"] for row in own}), numbers(own, "foscttm").mean()
        lines.append(
            f"| {method} | {n_tasks} | {len(own)} | {mean:.4f} | {beside} | {share} | "
            f"{numbers(own, 'cpu_seconds').sum():.0f} |"
        )
    return [*lines, ""]


def honesty(rows: list[Row]) -> list[str]:
    """Do a method's own words tell good alignments from bad ones, and sure rows from others?"""
    lines = []
    for method in dict.fromkeys(row["method"] for row in rows if row["mean_confidence"]):
        own = [row for row in rows if row["method"] == method]
        sure, sure_right = (int(numbers(own, name).sum()) for name in ("sure", "sure_right"))
        told = f"- {method}: mean confidence {numbers(own, 'mean_confidence').mean():.3f}"
        if len(numbers(own, "right")):
            told += f", rows right {numbers(own, 'right').mean():.3f}"
            told += f"; {sure} rows at 0.9 or more, {sure_right} of them right"
        judged = [row for row in own if row["trusted"] != ""]
        if judged:
            good = numbers(judged, "foscttm") < GOOD
            trusted = numbers(judged, "trusted") > 0
            told += f"; of {len(judged)} runs {trusted.sum()} trusted, {(trusted & ~good).sum()} of"
            told += f" these at FOSCTTM >= {GOOD}; {(good & ~trusted).sum()} good ones not trusted"
            for name in ("trusted", "agreement", "gap"):
                value = numbers(judged, name)
                if good.any() and not good.all():
                    auc = mannwhitneyu(value[good], value[~good]).statistic
                    told += f"; AUC of {name} {auc / (good.sum() * (~good).sum()):.2f}"
        lines.append(told)
    return [*lines, ""]


def summary(rows: list[Row]) -> str:
    """All tables, those of different numbers of known pairs apart."""
    errors = [row for row in rows if row["error"]]
    rows = [row for row in rows if not row["error"]]
    lines: list[str] = []
    for kind, n_pairs in dict.fromkeys(
        (row["kind"] == "translation", row["pairs"]) for row in rows
    ):
        part = [
            row for row in rows if (row["kind"] == "translation", row["pairs"]) == (kind, n_pairs)
        ]
        title = "Translation between encoders" if kind else f"{n_pairs} known pairs"
        lines += [f"### {title}", ""]
        names = ("p_at_1", "median_cosine") if kind else ("right",)
        for name in ("foscttm", *names):
            lines += by_task(part, name)
        lines += by_task(part, "cpu_seconds", 1) + overall(part) + honesty(part)
    lines += [f"- {row['task']}, {row['method']}, {row['seed']}: {row['error']}" for row in errors]
    return "\n".join(lines)


PEERS = {"wasserstein-procrustes": "Wasserstein–Procrustes", "POT GW": "POT Gromov–Wasserstein"}


def page(rows: list[Row]) -> str:
    """What the verdict said and what was so, task by task, best first; runs without pairs."""
    rows = [row for row in rows if not row["error"] and row["pairs"] == "0"]
    ours = [row for row in rows if row["method"] == "match"]
    names = dict.fromkeys(row["task"] for row in ours)
    order = sorted(names, key=lambda t: numbers(_of(ours, t), "foscttm").mean())
    lines = [
        "| task | rows | the verdict said | probability | expected FOSCTTM | **the truth was** | "
        + " | ".join(PEERS.values())
        + " |",
        "|---" * (6 + len(PEERS)) + "|",
    ]
    for task in order:
        own = _of(ours, task)
        said = ", ".join(row["level"] for row in own)
        if len({row["level"] for row in own}) == 1:
            said = f"{own[0]['level']} ({len(own)} of {len(own)})"
        cells = [cell(numbers(own, name), 2) for name in ("probability", "expected_rank")]
        cells.append(f"**{cell(numbers(own, 'foscttm'), 3)}**")
        cells += [
            cell(numbers([row for row in _of(rows, task) if row["method"] == peer], "foscttm"), 3)
            for peer in PEERS
        ]
        lines.append(f"| {task} | {own[0]['n']} | {said} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _of(rows: list[Row], task: str) -> list[Row]:
    return [row for row in rows if row["task"] == task]
