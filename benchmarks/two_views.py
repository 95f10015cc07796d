"""The learner beside its simple rivals on two views of many kinds, none of which it was tuned on.

Run: python -m benchmarks.two_views [--data "digits halves" ...] [--shares 0.1 1] [--seeds 3]

A share of the training pairs is known (12 pairs at least); a quarter of the rows, 1,000 at most, is
scored. Every method sees the same rows: DMAE all of them, or the known ones alone as its rivals
do. Mean of both directions, hubs corrected among the scored rows alike for all. Fashion-MNIST is
read where Debian's dataset-fashion-mnist is installed.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import json
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import unpaired
from benchmarks.problems import Array, _read
from unpaired import registry
from unpaired.bench.tables import mean_and_spread
from unpaired.evaluation.hubness import csls_scores
from unpaired.evaluation.retrieval import foscttm

FASHION = Path("/usr/share/datasets/fashion-mnist/t10k-images-idx3-ubyte.gz")
RIVALS = ("cca", "kcca", "ridge", "infonce")
LEAST_PAIRS = 12


def halves(images: Array, axis: int) -> tuple[Array, Array]:
    """Both halves of images (n, rows, columns), as vectors."""
    first, second = np.split(images, 2, axis)
    return first.reshape(len(images), -1), second.reshape(len(images), -1)


def digits() -> tuple[Array, Array]:
    """Left and right halves of 1,797 digits of 8 x 8 pixels."""
    return halves(_read("digits")["x"].reshape(-1, 8, 8), 2)


def fashion() -> tuple[Array, Array]:
    """Upper and lower halves of 4,000 pictures of clothes, 28 x 28 pixels."""
    with gzip.open(FASHION) as file:
        pixels = np.frombuffer(file.read(), np.uint8, offset=16)
    return halves(pixels.reshape(-1, 28, 28)[:4000] / 255.0, 1)


def handwritten(a: int, b: int) -> tuple[Array, Array]:
    """Two of the six feature sets of 2,000 handwritten digits."""
    data = _read("handwritten")
    return data[f"view{a}"], data[f"view{b}"]


def both(name: str) -> tuple[Array, Array]:
    """Both views of a problem that has two."""
    return _read(name)["x"], _read(name)["y"]


DATA: dict[str, Callable[[], tuple[Array, Array]]] = {
    "digits halves": digits,
    "fashion halves": fashion,
    "handwritten 0-1": lambda: handwritten(0, 1),
    "handwritten 0-5": lambda: handwritten(0, 5),
    "handwritten 1-4": lambda: handwritten(1, 4),
    "handwritten 2-3": lambda: handwritten(2, 3),
    "handwritten 3-5": lambda: handwritten(3, 5),
    "snare": lambda: both("snare"),
    "en-fr": lambda: both("en_fr"),
}


def run(name: str, share: float, seed: int, methods: list[str]) -> list[dict[str, object]]:
    """What each method reaches on one draw."""
    x, y = DATA[name]()
    rng = np.random.default_rng([seed, 9])
    order = rng.permutation(len(x))
    n_test = min(1000, len(x) // 4)
    test, train = order[:n_test], order[n_test:]
    n = len(train)
    rows_x, rows_y = rng.permutation(n), rng.permutation(n)
    train_x, train_y = x[train[rows_x]], y[train[rows_y]]
    known = rng.permutation(n)[: max(LEAST_PAIRS, round(share * n))]
    pairs = np.column_stack([known, np.argsort(rows_y)[rows_x[known]]])
    alone = train_x[pairs[:, 0]], train_y[pairs[:, 1]], np.column_stack([np.arange(len(known))] * 2)
    records: list[dict[str, object]] = []
    for method in methods:
        begin = time.perf_counter()
        if method == "DMAE":
            model = unpaired.DMAE(random_state=seed).fit(train_x, train_y, pairs)
        elif method == "DMAE, known rows":
            model = unpaired.DMAE(random_state=seed).fit(*alone)
        else:
            model = registry.methods[method](random_state=seed).fit(*alone)
        scores = csls_scores(np.asarray(model.score_matrix(x[test], y[test]), dtype=float))
        own = np.arange(n_test)
        first = (scores.argmax(0) == own).mean() + (scores.argmax(1) == own).mean()
        found = {"FOSCTTM": foscttm(scores), "R@1": first / 2}
        seconds = round(time.perf_counter() - begin, 1)
        records.append({"data": name, "share": share, "seed": seed, "method": method})
        records[-1] |= {**found, "s": seconds}
        print(json.dumps(records[-1]), flush=True)
    return records


def summarise(records: list[dict[str, object]], key: str) -> str:
    """A Markdown table: data and shares down, methods across, mean over seeds."""
    methods = list(dict.fromkeys(str(r["method"]) for r in records))
    lines = [f"| {key} | pairs | " + " | ".join(methods) + " |", "|---" * (len(methods) + 2) + "|"]
    for data, share in dict.fromkeys((r["data"], r["share"]) for r in records):
        cells = []
        for method in methods:
            of = (data, share, method)
            same = [r for r in records if (r["data"], r["share"], r["method"]) == of]
            values = [float(str(r[key])) for r in same]
            cells.append(mean_and_spread(values) if values else "–")
        lines.append(f"| {data} | {float(str(share)):.0%} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    at_hand = [name for name in DATA if name != "fashion halves" or FASHION.exists()]
    parser.add_argument("--data", nargs="*", default=at_hand, choices=DATA)
    parser.add_argument("--shares", nargs="*", type=float, default=[0.1, 1.0])
    parser.add_argument("--methods", nargs="*", default=["DMAE", "DMAE, known rows", *RIVALS])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    records: list[dict[str, object]] = []
    for seed in range(options.seeds):
        for name in options.data:
            for share in options.shares:
                skipped = "DMAE, known rows" if share == 1.0 else None
                methods = [method for method in options.methods if method != skipped]
                records += run(name, share, seed, methods)
    for key in ("FOSCTTM", "R@1", "s"):
        print(summarise(records, key))
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        with (options.out / "two_views.csv").open("w", newline="") as handle:
            writer = csv.DictWriter(handle, list(records[0]))
            writer.writeheader()
            writer.writerows(records)


if __name__ == "__main__":
    main()
