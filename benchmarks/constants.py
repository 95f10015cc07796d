"""What each constant of the search without pairs buys: it is halved and doubled.

    python -m benchmarks.constants --out constants.csv          one draw of each task
    python -m benchmarks.constants --out constants.csv --table  the file as a Markdown table

Every numeric field of the configurations below is halved and doubled, one at a time (shares that
would pass one become 0.95), on tasks of ``benchmarks.unseen`` and on older sets of features, cut to
--rows. What is told is the mean difference of FOSCTTM to the default on the same rows, with its
standard error over tasks, and the ratio of CPU seconds. A run that is in the file is not repeated.
"""

from __future__ import annotations

import argparse
import csv
import sys
import time
from collections import defaultdict
from dataclasses import fields, replace
from pathlib import Path
from types import ModuleType

import numpy as np

from benchmarks import unseen
from benchmarks.problems import Array, _read
from unpaired.alignment import components, profiles, refinement, search
from unpaired.evaluation.retrieval import foscttm
from unpaired.matching import align
from unpaired.trust import flips

CONFIGS: dict[str, tuple[ModuleType, str]] = {
    "search": (search, "SEARCH"),
    "refinement": (refinement, "REFINEMENT"),
    "components": (components, "COMPONENTS"),
}
BOUND = {"n_near"}
"""Fields that a function has taken as its default when it was made."""
SINGLE: dict[str, tuple[ModuleType, str]] = {
    name: (profiles, name) for name in ("N_SCALES", "N_SMOOTHINGS")
} | {"HUB_SHARE": (search, "HUB_SHARE"), "flips TEMPERATURE": (flips, "TEMPERATURE")}
SHARES = {"unsteady", "nearly", "first_share", "settled", "near_signs", "later_signs", "came_back"}
TASKS = ("cub_image_text", "landuse21", "proteinfold", "scene15_phog_lbp", "tcga_mrna_mirna")
TASKS += ("wikipedia", "words_en_ja", "glosses use-gte", "glosses minilm-wordllama")
TASKS += ("older en_fr", "older snare", "older handwritten 0-4")


def views(task: str) -> tuple[Array, Array]:
    """Both sides of a task, row i of both the same item."""
    kind, _, name = task.partition(" ")
    if kind != "older":
        return unseen.views(task)
    if name in ("snare", "en_fr"):
        return _read(name)["x"], _read(name)["y"]
    return _read("handwritten")["view0"], _read("handwritten")["view4"]


def measure(task: str, n_rows: int) -> tuple[float, float]:
    """FOSCTTM and CPU seconds of the engine as it is set now."""
    x, y = views(task)
    rng = np.random.default_rng([3, 91])
    rows, order = rng.permutation(len(x))[:n_rows], rng.permutation(min(n_rows, len(x)))
    begin = time.process_time()
    found = align(x[rows], y[rows[order]], random_state=0)
    spent = time.process_time() - begin
    scores = found.score_matrix(x[rows], y[rows[order]])[:, np.argsort(order)]
    return foscttm(np.asarray(scores, dtype=float)), spent


def changes() -> dict[str, tuple[ModuleType, str, object]]:
    """By name, where a changed configuration belongs and what it is."""
    found: dict[str, tuple[ModuleType, str, object]] = {}
    for label, (module, name) in CONFIGS.items():
        config = getattr(module, name)
        for field in fields(config):
            if field.name in BOUND:
                continue
            value = getattr(config, field.name)
            for word, factor in (("half", 0.5), ("double", 2.0)):
                new = _scaled(value, factor, field.name in SHARES)
                found[f"{label}.{field.name} {word}"] = (
                    *(module, name),
                    replace(config, **{field.name: new}),
                )
    for label, (module, name) in SINGLE.items():
        for word, factor in (("half", 0.5), ("double", 2.0)):
            found[f"{label} {word}"] = module, name, _scaled(getattr(module, name), factor, False)
    return found


def _scaled(value, factor, is_share):
    if isinstance(value, tuple):
        return tuple(_scaled(part, factor, is_share) for part in value)
    new = value * factor
    if is_share:
        new = min(new, 0.95)
    return max(1, round(new)) if isinstance(value, int) else new


def table(file: Path) -> str:
    """One line a constant: mean difference when halved and doubled, and seconds."""
    runs = {(row["change"], row["task"]): row for row in finished(file)}
    told: dict[str, dict[str, str]] = defaultdict(dict)
    for change in dict.fromkeys(name for name, _ in runs if name != "default"):
        differences, ratios = [], []
        for task in TASKS:
            if (change, task) in runs and ("default", task) in runs:
                one, other = runs[change, task], runs["default", task]
                differences.append(float(one["foscttm"]) - float(other["foscttm"]))
                ratios.append(float(one["seconds"]) / float(other["seconds"]))
        error = np.std(differences, ddof=1) / len(differences) ** 0.5
        name, word = change.rsplit(" ", 1)
        told[name][word] = f"{np.mean(differences):+.4f} ± {error:.4f}, {np.median(ratios):.2f}"
    lines = [f"| {n} | {w.get('half', '')} | {w.get('double', '')} |" for n, w in told.items()]
    return "\n".join(["| constant | halved | doubled |", "|---|---|---|", *lines])


def finished(file: Path) -> list[dict[str, str]]:
    """The runs that are done."""
    if not file.exists():
        return []
    with file.open(newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=300)
    parser.add_argument("--out", type=Path, required=True, help="CSV to add to")
    parser.add_argument("--table", action="store_true", help="print the table, run nothing")
    options = parser.parse_args()
    if options.table:
        print(table(options.out))
        return
    done = {(row["change"], row["task"]) for row in finished(options.out)}
    new = not options.out.exists()
    with options.out.open("a", newline="", encoding="utf-8") as handle:
        writer = csv.DictWriter(handle, ["change", "task", "rows", "foscttm", "seconds", "commit"])
        if new:
            writer.writeheader()
        code, default = unseen.commit(), {"default": (search, "SEARCH", search.SEARCH)}
        for change, (module, name, value) in (default | changes()).items():
            before = getattr(module, name)
            holders = [m for m in modules() if getattr(m, name, None) is before]
            for holder in holders:
                setattr(holder, name, value)
            for task in TASKS:
                if (change, task) not in done:
                    error, spent = measure(task, options.rows)
                    row = {"change": change, "task": task, "rows": options.rows, "commit": code}
                    writer.writerow(row | {"foscttm": round(error, 5), "seconds": round(spent, 3)})
                    handle.flush()
            for holder in holders:
                setattr(holder, name, before)


def modules() -> list[ModuleType]:
    """The package's modules that are loaded."""
    return [module for name, module in sys.modules.items() if name.startswith("unpaired")]


if __name__ == "__main__":
    main()
