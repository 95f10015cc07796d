"""Naming photos by their class vectors: CIFAR-10 with none, few and all labels.

    python -m benchmarks.naming               all settings, 5 seeds
    python -m benchmarks.naming --settings none one --seeds 3

Fitted on training features, scored on the 10,000 test images. Every seed fits a random 80% of the
training rows, so that the spread is one of fresh fits. Writes naming.csv into --out.
"""

from __future__ import annotations

import argparse
import csv
import time
from pathlib import Path

import numpy as np

from benchmarks.problems import DATA
from unpaired.bench.tables import mean_and_spread
from unpaired.demo import name_by_kmeans
from unpaired.evaluation.classifier import oracle_accuracy
from unpaired.naming.names import group_rows, name_classes

SETTINGS = {"none": 0, "one": 1, "five": 5, "20%": 0.2, "10:1 one": 1, "all": 1.0}
BARS = {"none": 0.5, "one": 0.79, "five": 0.82, "20%": 0.88, "all": 0.895}
BARS["10:1 one"] = 0.65


def load() -> dict[str, np.ndarray]:
    found = {}
    for part in ("train", "test"):
        with np.load(DATA / f"cifar10/{part}.npz") as file:
            found[part] = file["features"].astype(np.float32)
            found[f"{part} label"] = file["label"].astype(np.int64)
    with np.load(DATA / "cifar10/classes.npz") as file:
        found["glove"] = file["glove100"].astype(np.float64)
        found["sentence"] = file["minilm_prompts"].astype(np.float64).mean(1)
    return found


def some_labels(truth: np.ndarray, amount: float, rng: np.random.Generator) -> np.ndarray:
    """Labels with ``amount`` known per class (a share of the class when not a whole number)."""
    labels = np.full(len(truth), -1, dtype=np.int64)
    for cls in range(10):
        rows = np.flatnonzero(truth == cls)
        count = amount if isinstance(amount, int) else round(amount * len(rows))
        labels[rng.choice(rows, size=count, replace=False)] = cls
    return labels


def uneven_rows(truth: np.ndarray, rng: np.random.Generator, ratio: float = 10.0) -> np.ndarray:
    """Rows whose class sizes fall geometrically by ``ratio`` from the largest to the smallest."""
    order = rng.permutation(10)
    largest = min(np.bincount(truth))
    sizes = (largest * ratio ** (-np.arange(10) / 9)).astype(int)
    picked = [
        rng.choice(np.flatnonzero(truth == cls), size=size, replace=False)
        for cls, size in zip(order, sizes, strict=True)
    ]
    return rng.permutation(np.concatenate(picked))


def training_rows(setting: str, seed: int, truth: np.ndarray) -> np.ndarray:
    """The rows a fit sees: the same for all settings of a seed but "10:1" and "all"."""
    rng = np.random.default_rng([seed, 11])
    if setting.startswith("10:1"):
        return uneven_rows(truth, rng)
    return rng.permutation(len(truth))[: len(truth) if setting == "all" else len(truth) * 4 // 5]


def run(setting: str, seed: int, data: dict[str, np.ndarray], groups: dict) -> dict[str, float]:
    rows = training_rows(setting, seed, data["train label"])
    rng = np.random.default_rng([seed, 12])
    x, t = data["train"][rows], data["train label"][rows]
    begin = time.perf_counter()
    key = (seed, setting if setting in ("10:1 one", "all") else "80%")
    if key not in groups:
        groups[key] = group_rows(x, 10, np.random.default_rng([seed, 13]))
    amount = SETTINGS[setting]
    labels = some_labels(t, amount, rng) if amount else None
    named = name_classes(
        x,
        [data["glove"], data["sentence"]],
        labels=labels,
        rng=rng,
        grouping=groups[key],
    )
    seconds = time.perf_counter() - begin
    predicted = named.predict(data["test"])
    found = {
        "accuracy": float((predicted == data["test label"]).mean()),
        "oracle": oracle_accuracy(predicted, data["test label"], 10),
        "seconds": seconds,
    }
    if setting == "none":
        few = rows[:2000]
        names = name_by_kmeans(data["train"][few], data["glove"], seed)[1]
        found["k-means + FAQ, 2,000 rows"] = float((names == data["train label"][few]).mean())
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settings", nargs="+", choices=SETTINGS, default=list(SETTINGS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    options = parser.parse_args()
    data = load()
    rows = []
    for seed in range(options.seeds):
        groups: dict = {}
        for setting in options.settings:
            rows.append({"setting": setting, "seed": seed, **run(setting, seed, data, groups)})
            print(rows[-1], flush=True)
    for setting in options.settings:
        values = [row["accuracy"] for row in rows if row["setting"] == setting]
        print(f"{setting}: {mean_and_spread(values)}, worst {min(values):.3f}, bar {BARS[setting]}")
    options.out.mkdir(parents=True, exist_ok=True)
    with (options.out / "naming.csv").open("w", newline="") as handle:
        writer = csv.DictWriter(handle, list(dict.fromkeys(k for row in rows for k in row)))
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
