"""Matching problems with a known answer: toy ones, and real ones where their features are at hand.

Real features are looked for in the folder named by UNPAIRED_DATA (default: ``shared/data`` beside
the repository) and never copied into the project. Every draw shuffles the rows of both sides.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
ROOT = Path(__file__).parents[1]
DATA = Path(os.environ.get("UNPAIRED_DATA", ROOT.parent / "shared" / "data"))


@dataclass
class Problem:
    """One draw: ``truth[i]`` is the row of y that belongs to x[i], -1 where none is there."""

    name: str
    x: Array
    y: Array
    truth: NDArray[np.int64]
    test_x: Array
    test_y: Array
    """Row i of test_x and of test_y belong together: what FOSCTTM is measured on."""
    label_x: NDArray[np.int64] | None = None
    label_y: NDArray[np.int64] | None = None
    pairs: NDArray[np.int64] | None = None


@cache
def _read(name: str) -> dict[str, np.ndarray]:
    if name == "digits":
        from sklearn.datasets import load_digits

        return {"x": load_digits().data / 16.0}
    if name == "snare":
        types = np.loadtxt(DATA / "snare/cell_type.txt", dtype=str)
        return {
            "x": np.load(DATA / "snare/atac.npy"),
            "y": np.load(DATA / "snare/rna.npy"),
            "label": np.unique(types, return_inverse=True)[1],
        }
    if name == "en_fr":
        with np.load(DATA / "en_fr/words.npz") as file:
            return {
                "x": file["english_vectors"].astype(float),
                "y": file["french_vectors"].astype(float),
            }
    if name == "handwritten":
        with np.load(DATA / "handwritten/views.npz") as file:
            return {key: file[key].astype(float) for key in file.files}
    with np.load(DATA / "flickr8k/images.npz") as file:
        images, split = file["features"].astype(float), file["split"].astype(str)
    with np.load(DATA / "flickr8k/captions.npz") as file:
        captions, owner = file["features"].astype(float), file["image"]
    mean_caption = np.zeros((len(images), captions.shape[1]))
    np.add.at(mean_caption, owner, captions)
    mean_caption /= np.maximum(np.bincount(owner, minlength=len(images)), 1)[:, None]
    return {"x": images, "y": mean_caption, "split": split, "captions": captions, "owner": owner}


def _same_items(name, x, y, rng, label=None) -> Problem:
    order_x, order_y = rng.permutation(len(x)), rng.permutation(len(x))
    labels = (None, None) if label is None else (label[order_x], label[order_y])
    return Problem(name, x[order_x], y[order_y], np.argsort(order_y)[order_x], x, y, *labels)


def _disjoint_halves(name, x, y, rng) -> Problem:
    order, half = rng.permutation(len(x)), len(x) // 2
    none = np.full(half, -1)
    return Problem(name, x[order[:half]], y[order[half : 2 * half]], none, x, y)


def digits(n, rng) -> Problem:
    """Digit images against a random tanh projection of them."""
    x = _read("digits")["x"]
    x = x[rng.permutation(len(x))[:n]]
    weights = rng.standard_normal((64, 64)) / 8
    return _same_items(f"digits {n}", x, np.tanh(2 * (x - x.mean(0)) @ weights), rng)


def digits_with_orphans(n, rng, share=0.2) -> Problem:
    """Digits projection in which a share of the rows of each side has no partner; n_x != n_y."""
    x = _read("digits")["x"]
    n_orphans = int(share * n)
    rows = rng.permutation(len(x))[: n + n_orphans]
    weights = rng.standard_normal((64, 64)) / 8
    y = np.tanh(2 * (x - x.mean(0)) @ weights)
    side_x = rng.permutation(rows[:n])
    side_y = rng.permutation(rows[n_orphans : n_orphans + n - n // 20])
    place = {row: i for i, row in enumerate(side_y)}
    truth = np.array([place.get(row, -1) for row in side_x])
    return Problem(f"digits {n} orphans", x[side_x], y[side_y], truth, x[rows], y[rows])


def rotated_gaussian(n, rng, noise=0.1, d=20) -> Problem:
    """A Gaussian cloud against a rotated, noisy copy."""
    x = rng.standard_normal((n, d))
    rotation = np.linalg.qr(rng.standard_normal((d, d)))[0]
    return _same_items(f"gaussian {n}", x, x @ rotation + noise * rng.standard_normal((n, d)), rng)


def rotated_clusters(n, rng, noise=0.1, d=64, n_clusters=50) -> Problem:
    """Clustered data in 64 dimensions against a rotated, noisy copy."""
    centres = 3.0 * rng.standard_normal((n_clusters, d))
    spread = np.exp(0.5 * rng.standard_normal((n_clusters, d)))
    member = rng.integers(n_clusters, size=n)
    x = centres[member] + spread[member] * rng.standard_normal((n, d))
    rotation = np.linalg.qr(rng.standard_normal((d, d)))[0]
    y = x @ rotation + noise * rng.standard_normal((n, d))
    order_x, order_y = rng.permutation(n), rng.permutation(n)
    truth = np.argsort(order_y)[order_x]
    return Problem(f"clusters {n}", x[order_x], y[order_y], truth, x[:1000], y[:1000])


def handwritten(a, b, rng) -> Problem:
    """Two views of the same 2,000 handwritten digits."""
    data = _read("handwritten")
    label = data["label"].astype(np.int64)
    return _same_items(f"handwritten {a}-{b}", data[f"view{a}"], data[f"view{b}"], rng, label)


def snare(rng) -> Problem:
    """Chromatin accessibility against gene expression of 1,047 cells."""
    data = _read("snare")
    return _same_items("snare", data["x"], data["y"], rng, data["label"])


def en_fr(rng, halves=False) -> Problem:
    """English against French word vectors, the same 1,927 words or disjoint halves."""
    data = _read("en_fr")
    if halves:
        return _disjoint_halves("en-fr halves", data["x"], data["y"], rng)
    return _same_items("en-fr", data["x"], data["y"], rng)


def flickr8k(rng, n_pairs=0, n=3000, split="test") -> Problem:
    """Images against the mean captions of other images; tested on 1,000 unseen pairs."""
    data = _read("flickr8k")
    x, y = data["x"], data["y"]
    train = rng.permutation(np.flatnonzero(data["split"] == "train"))
    test = np.flatnonzero(data["split"] == split)
    rows_x, rows_y = train[:n], train[n : 2 * n].copy()
    pairs = None
    if n_pairs:  # the first rows of x get their own captions
        rows_y[:n_pairs] = rows_x[:n_pairs]
        order = rng.permutation(n)
        rows_y = rows_y[order]
        pairs = np.column_stack([np.arange(n_pairs), np.argsort(order)[:n_pairs]])
    truth = np.full(n, -1)
    name = "flickr8k" if not n_pairs else f"flickr8k {n_pairs} pairs"
    return Problem(name, x[rows_x], y[rows_y], truth, x[test], y[test], pairs=pairs)


@dataclass
class Retrieval:
    """Flickr8k with a share of the pairs known, and unseen images with all their captions."""

    x: Array
    y: Array
    pairs: NDArray[np.int64]
    test_x: Array
    test_y: Array
    owner: NDArray[np.int64]
    """(5,000,) row of test_x that each row of test_y describes."""

    def known_only(self) -> tuple[Array, Array, NDArray[np.int64]]:
        """The rows that a supervised learner may see."""
        rows_x, places_x = np.unique(self.pairs[:, 0], return_inverse=True)
        rows_y, places_y = np.unique(self.pairs[:, 1], return_inverse=True)
        return self.x[rows_x], self.y[rows_y], np.column_stack([places_x, places_y])


def flickr8k_retrieval(share, seed, *, split="test", single=False) -> Retrieval:
    """All 6,000 training images, ``share`` of them with their captions.

    A known pair brings all five captions of its image. An unpaired text item is the mean of the
    five captions of one image (``single``: each caption by itself). Rows are shuffled.
    """
    data = _read("flickr8k")
    rng = np.random.default_rng([seed, 78])
    train = rng.permutation(np.flatnonzero(data["split"] == "train"))
    n_known = round(share * len(train))
    known, rest = train[:n_known], rng.permutation(train[n_known:])
    if single:
        texts = data["captions"][rng.permutation(np.flatnonzero(np.isin(data["owner"], rest)))]
    else:
        texts = data["y"][rest]
    place = {image: row for row, image in enumerate(train)}
    captions = np.flatnonzero(np.isin(data["owner"], known))
    rows = np.array([place[image] for image in data["owner"][captions]], dtype=np.int64)
    y = np.concatenate([data["captions"][captions], texts])
    order = rng.permutation(len(y))
    pairs = np.column_stack([rows, np.argsort(order)[: len(captions)]])
    test = np.flatnonzero(data["split"] == split)
    shown = np.flatnonzero(np.isin(data["owner"], test))
    owner = np.searchsorted(test, data["owner"][shown])
    return Retrieval(
        data["x"][train], y[order], pairs, data["x"][test], data["captions"][shown], owner
    )


PROBLEMS = {
    "digits 300": lambda rng: digits(300, rng),
    "digits 1000": lambda rng: digits(1000, rng),
    "digits 1000 orphans": lambda rng: digits_with_orphans(1000, rng),
    "gaussian 1000": lambda rng: rotated_gaussian(1000, rng),
    "handwritten 2-4": lambda rng: handwritten(2, 4, rng),
    "handwritten 0-4": lambda rng: handwritten(0, 4, rng),
    "handwritten 1-5": lambda rng: handwritten(1, 5, rng),
    "snare": snare,
    "en-fr": en_fr,
    "en-fr halves": lambda rng: en_fr(rng, halves=True),
    "flickr8k": flickr8k,
    "flickr8k 10 pairs": lambda rng: flickr8k(rng, 10),
    "flickr8k 20 pairs": lambda rng: flickr8k(rng, 20),
    "flickr8k 50 pairs": lambda rng: flickr8k(rng, 50),
}


def available() -> list[str]:
    """Names of the problems whose data are at hand."""
    folders = {
        "handwritten": "handwritten",
        "snare": "snare",
        "en-fr": "en_fr",
        "flickr8k": "flickr8k",
    }
    return [
        name
        for name in PROBLEMS
        if all(
            (DATA / folder).is_dir() for word, folder in folders.items() if name.startswith(word)
        )
    ]


def draw(name: str, seed: int) -> Problem:
    """The problem ``name`` drawn with ``seed``."""
    return PROBLEMS[name](np.random.default_rng([seed, 77]))
