"""Task "ucl": name images by class vectors with no, some or all labels; an SVM on the names.

A row "10-40-10" means: 10 labelled, 40 unlabelled and 10 test images, in thousands of the official
splits (``unit = "thousand"``) or in percent of all images, drawn at random (``unit = "percent"``).
``scale = 0.4`` takes 0.4 times as many labelled and unlabelled ones, ``max_test = 2000`` the first
test images. "transductive" lets the test images, without labels, join the unlabelled ones. The
names that a method infers for its pile are the labels of a linear SVM, once on the method's
embedding and once on the features.

"zero-shot" trains on the images of some classes and tests on those of others: the row "official"
takes the data set's own unseen classes, "2 unseen" draws two.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from unpaired.bench.config import MethodSpec
from unpaired.bench.methods import knows_relation, make_method
from unpaired.bench.namers import MANY, ClassNamer, linear_svm, make_namer
from unpaired.bench.outcome import Outcome
from unpaired.datasets.two_views import TwoViews
from unpaired.errors import InputError
from unpaired.evaluation.classifier import classifier_scores
from unpaired.experiment import timed
from unpaired.types import FloatArray, IntArray

UNITS = ("thousand", "percent")


@dataclass(frozen=True, eq=False)
class Piles:
    """Rows of the data by their part in a fit."""

    labelled: IntArray
    unlabelled: IntArray
    test: IntArray


def run_ucl(
    data: TwoViews,
    method: MethodSpec,
    setting: str,
    row: str,
    seed: int,
    options: dict[str, Any],
) -> Outcome:
    """Fit one method on a pile of images and measure the names it gives."""
    if setting == "zero-shot":
        return run_zero_shot(data, method, row, seed, options)
    rng = np.random.default_rng([seed, 6])
    piles = draw_piles(data, row, rng, options)
    parts = [piles.labelled, piles.unlabelled]
    if setting == "transductive":
        parts.append(piles.test)
    pile = rng.permutation(np.concatenate(parts))
    labels = np.where(np.isin(pile, piles.labelled), data.truth[pile], -1).astype(np.int64)
    seconds: dict[str, float] = {}
    namer = make_namer(method, seed)
    with timed(seconds, "fit"):
        namer.fit(data.x[pile], data.y, labels)
    n_classes = len(data.y)
    with timed(seconds, "score"):
        metrics = _test_metrics(namer, data, pile, piles.test, options, seconds)
    # Precision and recall of the matching on the training images nobody labelled.
    judged = np.isin(pile, piles.unlabelled)
    truth = data.truth[pile]
    history = []
    if judged.any():
        scores = classifier_scores(namer.labels[judged], truth[judged], n_classes)
        metrics |= {"precision": scores["precision"], "recall": scores["recall"]}
        metrics["matching accuracy"] = scores["accuracy"]
        for step, named in enumerate(namer.trace):
            scores = classifier_scores(named[judged], truth[judged], n_classes)
            history.append({"step": float(step), **scores})
    sizes = {
        "labelled": len(piles.labelled),
        "unlabelled": len(piles.unlabelled),
        "test": len(piles.test),
        "pile": len(pile),
        "classes": n_classes,
    }
    return Outcome(type(namer.model).__name__, metrics, sizes, seconds, history)


def _test_metrics(
    namer: ClassNamer,
    data: TwoViews,
    pile: IntArray,
    test: IntArray,
    options: dict[str, Any],
    seconds: dict[str, float],
) -> dict[str, float]:
    """Accuracy on the test images: nearest class, and SVMs trained on the inferred names."""
    truth, strength = data.truth[test], float(options.get("svm_c", 0.01))
    metrics = {"nearest accuracy": float((namer.predict(data.x[test]) == truth).mean())}
    for kind in options.get("svm", ["embedding", "features"]):
        rows = namer.embed if kind == "embedding" else np.asarray
        name = "svm embedding accuracy" if kind == "embedding" else "svm accuracy"
        with timed(seconds, f"svm {kind}"):
            predicted = linear_svm(
                rows(data.x[pile]), namer.labels, rows(data.x[test]), strength=strength
            )
        metrics[name] = float((predicted == truth).mean())
    return metrics


def draw_piles(
    data: TwoViews, row: str, rng: np.random.Generator, options: dict[str, Any]
) -> Piles:
    """Labelled, unlabelled and test images of an L-U-T row, drawn at random.

    Raises:
        InputError: when the row cannot be read or asks for more images than there are.
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)-(\d+(?:\.\d+)?)-(\d+(?:\.\d+)?)", row)
    if found is None:
        raise InputError(f'A row of task ucl must be L-U-T, such as "10-40-10": got "{row}".')
    amounts = [float(part) for part in found.groups()]
    unit, scale = options.get("unit", "thousand"), float(options.get("scale", 1.0))
    most = options.get("max_test", len(data.x))
    if unit not in UNITS:
        raise InputError(f'options.unit must be "thousand" or "percent": got "{unit}".')
    if unit == "percent":
        order = rng.permutation(len(data.x))
        n_test = round(amounts[2] / 100 * len(order))
        test, train = order[:n_test][:most], order[n_test:]
        counts = [round(scale * share / 100 * len(order)) for share in amounts[:2]]
    else:
        if data.split is None:
            raise InputError('options.unit "thousand" needs data with a split. Use "percent".')
        train = rng.permutation(np.flatnonzero(data.split == "train"))
        test = np.flatnonzero(data.split == "test")
        test = test[: round(1000 * amounts[2])][:most]
        counts = [round(1000 * scale * thousands) for thousands in amounts[:2]]
    if sum(counts) > len(train) + 2 * (unit == "percent"):
        raise InputError(
            f'Row "{row}" at scale {scale} asks for {sum(counts)} training images: there are '
            f"{len(train)}. Set scale in [options]."
        )
    return Piles(train[: counts[0]], train[counts[0] : sum(counts)], test)


def run_zero_shot(
    data: TwoViews,
    method: MethodSpec,
    row: str,
    seed: int,
    options: dict[str, Any],
) -> Outcome:
    """Fit on labelled images of seen classes, name images of unseen ones by their vectors.

    Every method gets the vectors of the seen classes once each, and many images to each of them.
    Option ``max_train`` draws so many training images, at most.
    """
    rng = np.random.default_rng([seed, 8])
    unseen = unseen_classes(data, row, rng)
    seen = np.setdiff1d(np.arange(len(data.y)), unseen)
    split = data.split if data.split is not None else np.full(len(data.x), "train")
    of_unseen = np.isin(data.truth, unseen)
    by_class = row == "official"
    train = rng.permutation(np.flatnonzero(~of_unseen & (split == "train")))
    train = train[: options.get("max_train", len(train))]
    test = np.flatnonzero(of_unseen if by_class else of_unseen & (split == "test"))
    if not len(train) or not len(test):
        raise InputError(
            f'Row "{row}" leaves {len(train)} images to train on, {len(test)} to test.'
        )
    seconds: dict[str, float] = {}
    pairs = np.column_stack([np.arange(len(train)), np.searchsorted(seen, data.truth[train])])
    many = {"relation": MANY} if knows_relation(method.name) else {}
    model = make_method(method, seed, **many)
    with timed(seconds, "fit"):
        model.fit(data.x[train], data.y[seen], pairs=pairs, **method.fit)
    with timed(seconds, "score"):
        scores: FloatArray = np.asarray(model.score_matrix(data.x[test], data.y))
    truth = data.truth[test]
    among = unseen[scores[:, unseen].argmax(1)]
    rates = [float((among[truth == c] == c).mean()) for c in unseen if (truth == c).any()]
    metrics = {
        "zero-shot accuracy": float(np.mean(rates)),
        "generalised accuracy": float((scores.argmax(1) == truth).mean()),
        "chance": 1.0 / len(unseen),
    }
    sizes = {"train": len(train), "test": len(test), "seen": len(seen), "unseen": len(unseen)}
    return Outcome(type(model).__name__, metrics, sizes, seconds)


def unseen_classes(data: TwoViews, row: str, rng: np.random.Generator) -> IntArray:
    """The classes that a row of setting zero-shot keeps out of training, ascending."""
    n_classes = len(data.y)
    if row == "official":
        if data.split is None:
            raise InputError('Row "official" needs the data set\'s list of unseen classes.')
        return np.unique(data.truth[data.split == "test"])
    found = re.fullmatch(r"(\d+) unseen", row)
    if found is None or not 1 <= int(found[1]) < n_classes:
        raise InputError(
            f'A row of setting zero-shot must be "official" or "K unseen", K below {n_classes}: '
            f'got "{row}".'
        )
    return np.sort(rng.choice(n_classes, int(found[1]), replace=False)).astype(np.int64)
