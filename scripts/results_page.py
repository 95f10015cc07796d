"""The page of results, written from the cells: docs/results.md and docs/images/rounds.png.

Run: python scripts/results_page.py [--results benchmarks/results] [--page docs/results.md]

Every folder of RESULTS that holds cells.jsonl becomes a section; experiments/NAME.toml of the same
name says in which order rows and methods stand. Nothing on the page is typed by hand but the
sentences of INTRODUCTION.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from unpaired.bench.cells import cells_file, read_cells
from unpaired.bench.config import BenchConfig, read_config
from unpaired.bench.curves import over_iterations
from unpaired.bench.provenance import is_stale
from unpaired.bench.tables import Entry, entry_of, mean_and_spread, read_published

ROOT = Path(__file__).parents[1]
STALE = " †"
NOTHING = "–"
Record = dict[str, Any]
INTRODUCTION = """\
# Results

What we ran ourselves, with the figures of the paper ([Mukherjee et al.
2017](references.md#mukherjee2017)) in square brackets. [Does the paper
hold?](does-the-paper-hold.md) tells what follows from it, [Benchmarks](benchmarks.md) what is
measured and how long it takes, [Data](data.md) where the data come from.

*Published* rows are [`PublishedDMAE`](published.md), the method as published; *DMAE*,
*UnsupervisedClassifier* and *match* are ours; every other row is the method of its name. Rows
that are the same by construction are said once ("= CCA"). A figure with ± is the mean and the
standard deviation of several seeds, one without is a single seed; two single seeds that differ by
less than the spread of such figures differ by nothing. A dagger marks cells run by other code
than that which wrote this page (`--redo-stale` runs them again); a cell is confirmed when another
cell of its method, run again by later code, gave the same figures to the last digit
(`--confirm-stale`). The image network behind the CIFAR-10 and Flickr8k features saw ImageNet
labels, and the sentence network saw captions: "no labels" means none of the task's.

This page is written by `python scripts/results_page.py` from the cells in `benchmarks/results/`,
one line of JSON each with configuration, seed, all measures, sizes, seconds, versions and commit;
`unpaired bench table benchmarks/results/NAME` prints every column.
"""
READING = {
    "ucl": "Share of the test images named right: by a linear SVM on the embedding, trained on the "
    "inferred names, then by the method's own scores.",
    "zero-shot": "Share of the images of unseen classes named right: among the unseen classes, "
    "mean over classes, then (generalised) among all classes, mean over images.",
    "retrieval": "R@1 in percent, image→text \\| text→image, scores corrected for hubs (CSLS) for "
    "all methods alike; the paper's as printed there.",
    "matching": "P@1 in percent among the words whose pair was not told, scores corrected for hubs "
    "(CSLS), then FOSCTTM (0 is perfect, 0.5 is chance).",
}
FIGURES: dict[str, tuple[tuple[str, float, int], ...]] = {
    "ucl": (("svm embedding accuracy", 1, 3), ("nearest accuracy", 1, 3)),
    "zero-shot": (("zero-shot accuracy", 1, 2), ("generalised accuracy", 1, 2)),
    "retrieval": (("csls x->y R@1", 100, 1), ("csls y->x R@1", 100, 1)),
    "matching": (("csls x->y R@1", 100, 1), ("foscttm", 1, 3)),
}
"""Kind of a table -> its measures, each with a factor and digits."""
SEPARATORS = {"ucl": ", ", "zero-shot": ", ", "retrieval": " \\| ", "matching": ", "}
THEIRS = {
    "ucl": ("svm embedding accuracy",),
    "retrieval": ("x->y R@1", "y->x R@1"),
}
PANELS = (
    ("cifar10-lite0", "10-40-10", 1.0),
    ("cifar10-lite0", "0-50-10", 1.0),
    ("awa", "20-20-60", 0.25),
    ("awa", "0-40-60", 0.25),
)
"""Table, row and top of the panels of the paper's Figure 3 with every iterative method."""


def page(results: Path) -> str:
    """The whole page as text."""
    return "\n".join([INTRODUCTION, *(section(folder) for folder in folders(results))])


def folders(results: Path) -> list[Path]:
    """The folders with cells, in order of name."""
    return sorted(path.parent for path in results.glob("*/cells.jsonl"))


def section(folder: Path) -> str:
    """One table with its command, its note and what it took."""
    config = read_config(ROOT / "experiments" / f"{folder.name}.toml")
    records = list(read_cells(cells_file(folder))[0].values())
    seeds = Counter(Counter(map(entry_of, records)).values())
    usual = seeds.most_common(1)[0][0]
    parts = [f"## {config.title}", ""]
    kind = "zero-shot" if config.settings == ("zero-shot",) else config.task
    parts += [f"{READING[kind]} {config.note}".strip(), ""]
    minutes = sum(record["seconds"]["total"] for record in records) / 60
    n_stale = sum(map(is_stale, records))
    n_all = sum(1 for _ in config.cells())
    told = f"{len(records)} of {n_all} cells are run, {usual} seed{'s' if usual > 1 else ''}"
    told += " (another number in round brackets)" if len(seeds) > 1 else ""
    told += f", {minutes:.0f} minutes on one shared core. Commits: {commits(records)}."
    n_confirmed = sum("confirmed" in record for record in records)
    told += f" Confirmed by another cell, not run again: {n_confirmed}." if n_confirmed else ""
    told += f" Stale:{STALE} {n_stale} of them." if n_stale else ""
    parts += [told, "", "```bash"]
    parts += [
        f"unpaired bench {config.task} --config experiments/{folder.name}.toml --data DATA "
        f"--out benchmarks/results/{folder.name}",
        "```",
        "",
    ]
    for setting in config.settings:
        if any(record["key"]["setting"] == setting for record in records):
            parts += [table(config, records, setting, kind, usual), ""]
    if kind == "ucl" and any("precision" in record["metrics"] for record in records):
        parts += [matching_table(config, records, usual), ""]
    return "\n".join(parts)


def commits(records: Sequence[Record]) -> str:
    """The commits the cells were run by, short, in order of the file."""
    return ", ".join(dict.fromkeys(f"`{str(r.get('commit'))[:7]}`" for r in records))


def table(
    config: BenchConfig, records: Sequence[Record], setting: str, kind: str, usual: int
) -> str:
    """Methods downwards, rows of the paper's table across."""
    theirs = published(config)
    own: dict[Entry, list[Record]] = {}
    for record in records:
        own.setdefault(entry_of(record), []).append(record)

    def cell(row: str, label: str) -> str:
        twin = next((m.same.get(setting) for m in config.methods if m.label == label), None)
        found = own.get((row, setting, label), [])
        text = ours(found, kind, usual) if found else NOTHING
        if twin is not None and (row, setting, twin) in own:
            text = f"= {twin}"
        paper = theirs.get((row, setting, label))
        return text if paper is None else f"{text} [{paper}]"

    labels = [method.label for method in config.methods]
    labels += sorted({e[2] for e in theirs if e[1] == setting} - set(labels))
    return grid(setting, labels, config.rows, cell)


def grid(
    corner: str, labels: Sequence[str], rows: Sequence[str], cell: Callable[[str, str], str]
) -> str:
    """A Markdown table; labels and rows with nothing in them are left out."""
    filled = {(row, label): cell(row, label) for row in rows for label in labels}
    rows = [row for row in rows if any(filled[row, label] != NOTHING for label in labels)]
    lines = [f"| {corner} | " + " | ".join(rows) + " |", "|---|" + "---|" * len(rows)]
    for label in labels:
        if any(filled[row, label] != NOTHING for row in rows):
            lines.append(f"| {label} | " + " | ".join(filled[row, label] for row in rows) + " |")
    return "\n".join(lines)


def published(config: BenchConfig) -> dict[Entry, str]:
    """The paper's figures of a table as text."""
    found: dict[Entry, str] = {}
    for name in config.published:
        paper = read_published()[name]
        scale, digits = (100.0, 1) if config.task == "retrieval" else (1.0, 2)
        scale /= 100.0 if paper.percent else 1.0
        for entry, figures in paper.figures.items():
            shown = [figures[m] for m in THEIRS.get(config.task, ()) if m in figures]
            if shown:
                texts = [f"{scale * value:.{digits}f}" for value in shown]
                found[entry] = SEPARATORS[config.task].join(texts)
    return found


def ours(records: Sequence[Record], kind: str, usual: int) -> str:
    """Our figures of one entry as text."""
    texts = []
    for metric, scale, digits in FIGURES[kind]:
        values = [scale * r["metrics"][metric] for r in records if metric in r["metrics"]]
        texts.append(mean_and_spread(values, digits) if values else NOTHING)
    return SEPARATORS[kind].join(texts) + marks(records, usual)


def marks(records: Sequence[Record], usual: int) -> str:
    """The number of seeds where it is not the usual one, and the mark of stale cells."""
    count = "" if len(records) == usual else f" ({len(records)})"
    return count + (STALE if any(map(is_stale, records)) else "")


def matching_table(config: BenchConfig, records: Sequence[Record], usual: int) -> str:
    """Precision and recall of the matching on unlabelled training images, first and last round."""

    def cell(row: str, label: str) -> str:
        found = [r for r in records if entry_of(r) == (row, "inductive", label)]
        found = [r for r in found if "precision" in r["metrics"]]
        if not found:
            return NOTHING
        texts = []
        for measure in ("precision", "recall"):
            text = mean_and_spread([r["metrics"][measure] for r in found], 2)
            first = [r["history"][0][measure] for r in found if r.get("history")]
            begin = mean_and_spread(first, 2) if any(first) else NOTHING  # nothing was matched yet
            texts.append(f"{begin} → {text}" if first else text)
        return ", ".join(texts) + marks(found, usual)

    labels = [method.label for method in config.methods]
    return (
        "Precision, recall of the matching (means over classes, unlabelled training images, "
        "inductive), at the start (– where nothing is matched yet) → at the end where a method has "
        "rounds:\n\n" + grid("", labels, config.rows, cell)
    )


def picture(results: Path, file: Path) -> None:
    """Precision and recall over the rounds, as in the paper's Figure 3, with every alternative."""
    from matplotlib import colormaps
    from matplotlib.figure import Figure

    tables = {name: read_cells(cells_file(results / name))[0].values() for name, _, _ in PANELS}
    traced = [r for records in tables.values() for r in records if r.get("history")]
    labels = list(dict.fromkeys(entry_of(record)[2] for record in traced))
    colours = dict(zip(labels, colormaps["tab20"].colors, strict=False))  # type: ignore[attr-defined]
    figure = Figure(figsize=(13, 5), dpi=120, layout="constrained")
    panels = figure.subplots(2, len(PANELS), sharex=True)
    lines = {}
    for down, measure in enumerate(("precision", "recall")):
        for across, (name, row, top) in enumerate(PANELS):
            axes = panels[down][across]
            for label in labels:
                entry = (row, "inductive", label)
                own = held([record for record in tables[name] if entry_of(record) == entry])
                points = next(iter(over_iterations(own, measure).lines.values()), []) if own else []
                if points:
                    rounds, mean, spread = (list(column) for column in zip(*points, strict=True))
                    style = {"color": colours[label], "marker": "o", "markersize": 3}
                    lines[label] = axes.errorbar(rounds, mean, spread, **style)
            told = {"awa": "AwA", "cifar10-lite0": "CIFAR-10"}[name]
            axes.set(title=f"{told} {row}: {measure}", ylim=(0, top), xlabel="round" * down)
            axes.xaxis.get_major_locator().set_params(integer=True)
            axes.grid(alpha=0.3)
    figure.legend(lines.values(), lines, fontsize=7, loc="outside right center", frameon=False)
    figure.savefig(file, metadata={"Software": None})


def held(records: Sequence[Record]) -> list[Record]:
    """The records with histories of one length: one that has stopped keeps its last matching."""
    longest = max((len(record.get("history", ())) for record in records), default=0)
    found = []
    for record in records:
        history = list(record.get("history", ()))
        if history:
            rest = range(len(history), longest)
            history += [{**history[-1], "step": float(step)} for step in rest]
        found.append({**record, "history": history})
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks" / "results")
    parser.add_argument("--page", type=Path, default=ROOT / "docs" / "results.md")
    args = parser.parse_args()
    args.page.write_text(page(args.results), encoding="utf-8")
    picture(args.results, args.page.parent / "images" / "rounds.png")


if __name__ == "__main__":
    main()
