"""Task "retrieval": images and captions, some pairs known, recall on unseen ones.

A known pair brings all captions of its image, so the image's row occurs in several pairs. An
unpaired text is the mean of the captions of one image. "sup" fits the known pairs only, "semi" adds
the unpaired rest of both sides; at 0% "semi" is unsupervised. All rows are shuffled before fitting.
Options: ``disjoint = true`` takes unpaired images and unpaired texts from different halves;
``max_train = 1500`` draws so many training images, of which the row's share is known;
``test_captions = 1`` keeps only the first caption of each test image.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from unpaired.bench.config import MethodSpec
from unpaired.bench.methods import make_method
from unpaired.bench.outcome import Outcome, amount, matching_shares, read_outs
from unpaired.datasets.two_views import TwoViews
from unpaired.errors import InputError
from unpaired.experiment import timed
from unpaired.types import FloatArray, IntArray


def run_retrieval(
    data: TwoViews,
    method: MethodSpec,
    setting: str,
    row: str,
    seed: int,
    options: dict[str, Any],
) -> Outcome:
    """Fit one method on the train split and measure recall on the test split."""
    if data.split is None or data.owner is None:
        raise InputError("Task retrieval needs data with splits and captions. Use another source.")
    rng = np.random.default_rng([seed, 5])
    train = rng.permutation(np.flatnonzero(data.split == "train"))
    train = train[: options.get("max_train", len(train))]
    n_known = amount(row, len(train))
    known, rest = train[:n_known], train[n_known:]
    rest_x, rest_y = (rest, rest) if setting == "semi" else (rest[:0], rest[:0])
    if options.get("disjoint", False):
        rest_x, rest_y = np.array_split(rest_x, 2)
    x_rows, texts, pairs, truth = build_training(data, known, rest_x, rest_y, rng)
    seconds: dict[str, float] = {}
    model = make_method(method, seed)
    with timed(seconds, "fit"):
        model.fit(data.x[x_rows], texts, pairs=pairs, **method.fit)
    test = np.flatnonzero(data.split == "test")
    captions = first_captions(data.owner, test, options.get("test_captions"))
    with timed(seconds, "score"):
        scores = np.asarray(model.score_matrix(data.x[test], data.y[captions]))
        metrics = read_outs(scores, np.searchsorted(test, data.owner[captions]))
    free = np.setdiff1d(np.flatnonzero(truth >= 0), pairs[:, 0])
    shares, history = matching_shares(model, len(x_rows), free, truth)
    sizes = {
        "known images": len(known),
        "pairs": len(pairs),
        "unpaired images": len(rest_x),
        "unpaired texts": len(rest_y),
        "test images": len(test),
        "test captions": len(captions),
    }
    return Outcome(type(model).__name__, metrics | shares, sizes, seconds, history)


def build_training(
    data: TwoViews, known: IntArray, rest_x: IntArray, rest_y: IntArray, rng: np.random.Generator
) -> tuple[IntArray, FloatArray, IntArray, IntArray]:
    """Image rows, text rows, known pairs and (for evaluation) the true partner of each image row.

    The first is (n,) rows of ``data.x``, the second the texts themselves; both are shuffled.
    """
    owner = np.asarray(data.owner)
    x_rows = rng.permutation(np.concatenate([known, rest_x]))
    place = np.full(len(data.x), -1, dtype=np.int64)
    place[x_rows] = np.arange(len(x_rows))
    single = np.flatnonzero(np.isin(owner, known))
    means = mean_captions(data.y, owner, rest_y)
    order = rng.permutation(len(single) + len(rest_y))
    texts = np.concatenate([data.y[single], means])[order]
    text_owner = np.concatenate([owner[single], rest_y])[order]
    is_known = (order < len(single)) & (place[text_owner] >= 0)
    columns = np.flatnonzero(is_known)
    pairs = np.column_stack([place[text_owner[columns]], columns]).astype(np.int64)
    truth = np.full(len(x_rows), -1, dtype=np.int64)
    inside = np.flatnonzero(place[text_owner] >= 0)
    truth[place[text_owner[inside]]] = inside
    return x_rows, texts, pairs, truth


def first_captions(owner: IntArray, images: IntArray, limit: int | None) -> IntArray:
    """Captions of ``images``, at most the first ``limit`` of each; None keeps all."""
    captions = np.flatnonzero(np.isin(owner, images))
    if limit is None:
        return captions
    order = np.argsort(owner[captions], kind="stable")
    sorted_owner = owner[captions[order]]
    starts = np.searchsorted(sorted_owner, sorted_owner)
    return np.sort(captions[order[np.arange(len(order)) - starts < limit]])


def mean_captions(captions: FloatArray, owner: IntArray, images: IntArray) -> FloatArray:
    """Mean of the captions of each of ``images``, (n, d)."""
    row = np.full(int(max(owner.max(initial=0), images.max(initial=0))) + 1, -1, dtype=np.int64)
    row[images] = np.arange(len(images))
    chosen = np.flatnonzero(row[owner] >= 0)
    total = np.zeros((len(images), captions.shape[1]), dtype=np.float64)
    np.add.at(total, row[owner[chosen]], captions[chosen])
    count = np.bincount(row[owner[chosen]], minlength=len(images))
    return (total / np.maximum(count, 1)[:, None]).astype(captions.dtype)
