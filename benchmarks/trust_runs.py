"""Matching runs with a known end, for the calibration of the verdict: real, unrelated and noise.

Each run is named by source, what it is, rows, seed and known pairs; ``draw`` makes its rows. Real
features are looked for in the folder named by UNPAIRED_DATA (see ``problems.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np

from benchmarks import trust_hold_out as hold_out
from benchmarks.problems import DATA, _read

Array = np.ndarray
SOURCE_OF = {
    "bdgp_image_text": "bdgp",
    "cub_image_text": "cub",
    "imagenet_lite0_lite2": "imagenet",
    "imagenet_lite0_names": "imagenet",
    "landuse21": "landuse",
    "leaves_margin_texture": "leaves",
    "leaves_shape_margin": "leaves",
    "nci60_abc_drugs": "nci60",
    "proteinfold": "proteinfold",
    "scene15_gist": "scene15",
    "scene15_phog_lbp": "scene15",
    "tcga_mrna_mirna": "tcga",
    "tcga_mrna_protein": "tcga",
    "webkb_text_links": "webkb",
    "wikipedia": "wikipedia",
    "words_en_ja": "words",
}
GLOSSES = ("minilm-mpnet", "gte-minilm", "use-gte", "mpnet-gte", "minilm-wordllama")
GLOSSES += ("wink-mpnet", "minilm-wink")
HANDWRITTEN = ("2-4", "0-4", "1-5", "3-5")


@dataclass(frozen=True)
class Run:
    """One matching: where its rows come from, and how many."""

    kind: str
    """"related", "unrelated" or "noise"."""
    source: str
    name: str
    n: int
    seed: int
    n_pairs: int = 0
    disjoint: bool = False
    """Whether the rows of y are other items than those of x."""

    @property
    def key(self) -> str:
        """A name that no other run has."""
        return f"{self.kind}|{self.source}|{self.name}|{self.n}|{self.seed}|{self.n_pairs}" + (
            "|disjoint" if self.disjoint else ""
        )


@dataclass(frozen=True)
class Drawn:
    """Rows of both sides; row i of both test sides belong together (None: nothing does).

    Where pairs are known, they are the first of the test rows.
    """

    x: Array
    y: Array
    truth: Array
    pairs: Array | None = None
    test: tuple[Array, Array] | None = None


@cache
def views(name: str) -> tuple[Array, Array]:
    """Both views of a related task, row by row."""
    if name in hold_out.TASKS:
        return hold_out.hold_out_views(name)
    if name in SOURCE_OF:
        with np.load(DATA / f"collection/{name}.npz") as file:
            return file["x"].astype(float), file["y"].astype(float)
    if name.startswith("glosses "):
        a, b = name.split()[1].split("-")
        with np.load(DATA / "glosses/part0.npz") as file:
            return file[a].astype(float), file[b].astype(float)
    if name.startswith("handwritten "):
        a, b = name.split()[1].split("-")
        data = _read("handwritten")
        return data[f"view{a}"], data[f"view{b}"]
    if name == "digits":
        x = _read("digits")["x"]
        weights = np.random.default_rng(5).standard_normal((64, 64)) / 8
        return x, np.tanh(2 * (x - x.mean(0)) @ weights)
    if name.startswith("gaussian"):
        rng = np.random.default_rng(6)
        x = rng.standard_normal((1000, 20))
        y = x @ np.linalg.qr(rng.standard_normal((20, 20)))[0]
        return x, y + float(name.split()[1]) * rng.standard_normal(y.shape)
    data = _read(name)
    return data["x"][:6000], data["y"][:6000]


def _clusters(rng: np.random.Generator, n: int, d: int, share: Array) -> Array:
    centres = 4 * rng.standard_normal((len(share), d))
    return centres[rng.choice(len(share), n, p=share)] + rng.standard_normal((n, d))


def _ring(rng: np.random.Generator, n: int) -> Array:
    angle = rng.uniform(0, 2 * np.pi, n)
    ring = np.column_stack([np.cos(angle), np.sin(angle)])
    return ring @ rng.standard_normal((2, 8)) + 0.05 * rng.standard_normal((n, 8))


def _duplicates(rng: np.random.Generator, n: int) -> Array:
    return rng.standard_normal((max(n // 4, 12), 20))[rng.integers(max(n // 4, 12), size=n)]


NOISE: dict[str, Callable[[np.random.Generator, int], Array]] = {
    "gaussian few columns": lambda rng, n: rng.standard_normal((n, 8)),
    "gaussian many columns": lambda rng, n: rng.standard_normal((n, 500)),
    "lognormal": lambda rng, n: np.exp(1.5 * rng.standard_normal((n, 20))),
    "student": lambda rng, n: rng.standard_t(2, (n, 20)),
    "even clusters": lambda rng, n: _clusters(rng, n, 20, np.full(8, 1 / 8)),
    "uneven clusters": lambda rng, n: _clusters(rng, n, 20, 0.5 ** np.arange(6) / 1.96875),
    "sparse counts": lambda rng, n: rng.poisson(0.1, (n, 200)).astype(float),
    "binary": lambda rng, n: (rng.random((n, 60)) < rng.random(60)).astype(float),
    "duplicates": _duplicates,
    "one column": lambda rng, n: rng.standard_normal((n, 1)),
    "two columns": lambda rng, n: rng.standard_normal((n, 2)),
    "three columns": lambda rng, n: rng.gamma(2.0, size=(n, 3)),
    "rings": _ring,
    "correlated": lambda rng, n: rng.standard_normal((n, 60)) * 0.85 ** np.arange(60),
    "unequal": lambda rng, n: rng.standard_normal((n, 30)),
}


def runs() -> list[Run]:
    """All runs, in a mixed order, so that any beginning of the list is a fair sample."""
    found = []
    for name, source in SOURCE_OF.items():
        found += [Run("related", source, name, 200, seed) for seed in (0, 1)]
        found += [Run("related", source, name, 150, 0, k) for k in (10, 50)]
    for name in GLOSSES:
        found += [Run("related", "glosses", f"glosses {name}", n, 0) for n in (100, 300)]
    for name in GLOSSES[:4]:
        found.append(Run("related", "glosses", f"glosses {name}", 500, 0))
        found.append(Run("related", "glosses", f"glosses {name}", 400, 0, disjoint=True))
        found += [Run("related", "glosses", f"glosses {name}", 200, 0, k) for k in (10, 50)]
    for name in HANDWRITTEN:
        found += [Run("related", "handwritten", f"handwritten {name}", 200, s) for s in (0, 1)]
    for name in ("digits", "gaussian 0.1", "gaussian 0.5"):
        found += [Run("related", name.split()[0], name, n, 0) for n in (60, 120, 300)]
    for name in ("snare", "en_fr", "flickr8k"):
        found += [Run("related", name, name, n, 0) for n in (150, 300)]
        found += [Run("related", name, name, 200, 0, k) for k in (10, 50)]
    for name in GLOSSES[:4]:
        found.append(Run("related", "glosses", f"glosses {name}", 1000, 0, disjoint=True))
    for name in ("imagenet_lite0_lite2", "flickr8k", "cub_image_text"):
        found.append(Run("related", SOURCE_OF.get(name, name), name, 1000, 0))
    for name in ("lognormal", "student", "even clusters", "sparse counts", "correlated", "binary"):
        found.append(Run("noise", name, name, 1000, 0))
    for name in NOISE:
        found += [Run("noise", name, name, n, s) for n, s in ((60, 0), (60, 1), (120, 0), (200, 0))]
        found.append(Run("noise", name, name, 120, 2, 10))
        more = (50, 3), (80, 4), (100, 5), (150, 6), (250, 7), (300, 8), (400, 9), (500, 10)
        found += [Run("noise", name, name, n, s) for n, s in more]
    tasks = [*SOURCE_OF, "glosses minilm-mpnet", "handwritten 0-4", "snare", "en_fr", "flickr8k"]
    for number, name in enumerate(tasks):
        for step, n in (
            *((1, 150), (5, 80), (8, 200)),
            *((2, 100), (3, 250), (4, 120), (7, 300), (9, 180)),
        ):
            other = tasks[(number + step) % len(tasks)]
            source = SOURCE_OF.get(name, name.split()[0])
            if source != SOURCE_OF.get(other, other.split()[0]):
                found.append(Run("unrelated", source, f"{name} + {other}", n, step))
    order = np.random.default_rng(0).permutation(len(found))
    return [found[i] for i in order]


def hold_out_runs() -> list[Run]:
    """Runs on sources that had no part in the calibration, in a mixed order."""
    found = []
    names = list(hold_out.TASKS)
    for name in names:
        source = name.split()[0]
        found += [Run("related", source, name, n, s) for n, s in ((120, 0), (300, 1), (500, 2))]
        found += [Run("related", source, name, 200, 3, k) for k in (10, 50)]
    for name in ("texts minilm-use", "words glove-wink", "awa sift-rgsift", "mnist bent"):
        found.append(Run("related", name.split()[0], name, 2000, 4))
    for name in ("texts minilm-use", "words glove-wink", "mnist bent", "pines bands", "moods bent"):
        found.append(Run("related", name.split()[0], name, 1000, 5, disjoint=True))
    for name in ("movies halves", "mnist halves", "awa sift-surf", "captions minilm-words"):
        found.append(Run("related", name.split()[0], name, 500, 6, disjoint=True))
        found.append(Run("related", name.split()[0], name, 1000, 7))
    for number, name in enumerate(names):
        for step, n in ((1, 60), (5, 120), (11, 250), (17, 500)):
            other = names[(number + step) % len(names)]
            if name.split()[0] != other.split()[0]:
                found.append(Run("unrelated", name.split()[0], f"{name} + {other}", n, step))
    sizes = (50, 0), (60, 1), (80, 2), (120, 3), (200, 4), (400, 5), (700, 6)
    for name in hold_out.NOISE:
        found += [Run("noise", name, name, n, seed) for n, seed in sizes]
        found.append(Run("noise", name, name, 150, 7, 10))
        found.append(Run("noise", name, name, 150, 8, 50))
    for name in ("cells", "topics", "fields", "tree"):
        found.append(Run("noise", name, name, 2000, 9))
    order = np.random.default_rng(1).permutation(len(found))
    return [found[i] for i in order]


def draw(run: Run) -> Drawn:
    """The rows of a run, both sides shuffled."""
    rng = np.random.default_rng([run.seed, run.n, sum(map(ord, run.name))])
    if run.kind != "related":
        x, y = _unrelated(run, rng)
        n = min(len(x), len(y))
        pairs = None
        if run.n_pairs:
            chosen = (rng.permutation(n)[: run.n_pairs] for _ in range(2))
            pairs = np.column_stack(list(chosen))
        return Drawn(x, y, np.full(len(x), -1), pairs)
    x, y = views(run.name)
    rows = rng.permutation(len(x))
    n = min(run.n, len(x) // 2 if run.disjoint else len(x))
    left, right = rows[:n], rows[n : 2 * n] if run.disjoint else rows[:n]
    right = right[rng.permutation(n)]
    place = {row: position for position, row in enumerate(right)}
    truth = np.array([place.get(row, -1) for row in left])
    pairs = np.column_stack([np.arange(n), truth])[: run.n_pairs] if run.n_pairs else None
    test = rows[2 * n : 2 * n + 500] if run.disjoint else left[:500]
    return Drawn(x[left], y[right], truth, pairs, (x[test], y[test]))


def _unrelated(run: Run, rng: np.random.Generator) -> tuple[Array, Array]:
    if run.kind == "noise":
        more = run.n + run.n // 2 if run.name.startswith("unequal") else run.n
        rows = (NOISE | hold_out.NOISE)[run.name]
        return rows(rng, run.n), rows(rng, more).astype(float)
    names = run.name.split(" + ")
    sides = [views(name)[number] for number, name in enumerate(names)]
    n = min(run.n, *(len(side) for side in sides))
    first, second = (side[rng.permutation(len(side))[:n]] for side in sides)
    return first, second
