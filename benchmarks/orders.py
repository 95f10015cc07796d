"""Do the order of the rows and the seed decide? The same rows in ten orders, each with its seed.

    python -m benchmarks.orders --out benchmarks/results/orders.csv

One line for each order: the verdict, FOSCTTM, the share of right partners, seconds of CPU. Runs
that are in the file are not repeated. Features are looked for in the folder UNPAIRED_DATA.
"""

from __future__ import annotations

import argparse
import csv
import time
from pathlib import Path

import numpy as np

import unpaired
from benchmarks.problems import Array
from benchmarks.unseen import commit, draw_halves, views
from unpaired.evaluation.retrieval import foscttm

N_ORDERS = 10
SAME = {
    "glosses use-gte": (500, 12_000),
    "glosses minilm-wordllama": (500,),
    "imagenet_lite0_lite2": (500,),
}
"""Tasks with the same items on both sides, and how many of them."""
OTHER = {"gte-minilm": 1000}
"""Pairs of text encoders with other texts on each side, and how many."""
COLUMNS = ("task", "n", "order", "foscttm", "right", "level", "probability", "cpu_seconds")


def one_draw(task: str, n: int) -> tuple[Array, Array, Array, Array]:
    """The rows of both sides, always the same ones, and rows of both on which ranks are counted."""
    if task in OTHER:
        problem = draw_halves(task, n, 0)
        return problem.x, problem.y, problem.test_x, problem.test_y
    x, y = views(task)
    rows = np.random.default_rng(91).permutation(len(x))[:n]
    return x[rows], y[rows], x[rows], y[rows]


def measure(task: str, n: int, order: int) -> dict[str, object]:
    """What is found and said in one order, both sides shuffled."""
    x, y, test_x, test_y = one_draw(task, n)
    rng = np.random.default_rng([order, 92])
    left, right = rng.permutation(len(x)), rng.permutation(len(y))
    begin = time.process_time()
    found = unpaired.align(x[left], y[right], random_state=order)
    seconds = time.process_time() - begin
    verdict = found.match.verdict
    return {
        "task": task,
        "n": n,
        "order": order,
        "foscttm": foscttm(found.score_matrix(test_x[:2000], test_y[:2000])),
        "right": "" if task in OTHER else float((right[found.match.partner] == left).mean()),
        "level": verdict.level,
        "probability": verdict.probability,
        "cpu_seconds": round(seconds, 2),
    }


def main() -> None:
    """Run what is not in the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    file = parser.parse_args().out
    code = commit()
    done = set()
    if file.exists():
        with file.open(newline="", encoding="utf-8") as handle:
            done = {(r["task"], int(r["n"]), int(r["order"])) for r in csv.DictReader(handle)}
    wanted = [(task, n) for task, sizes in SAME.items() for n in sizes] + list(OTHER.items())
    for task, n in sorted(wanted, key=lambda one: one[1]):
        for order in range(N_ORDERS):
            if (task, n, order) in done:
                continue
            row = measure(task, n, order) | {"commit": code}
            new = not file.exists()
            with file.open("a", newline="", encoding="utf-8") as handle:
                writer = csv.DictWriter(handle, [*COLUMNS, "commit"])
                if new:
                    writer.writeheader()
                writer.writerow(row)


if __name__ == "__main__":
    main()
