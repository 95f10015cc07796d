"""Methods as namers of classes: one face over classifiers and methods of two views."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from unpaired.bench.config import MethodSpec
from unpaired.bench.methods import is_classifier, knows_relation, make_method
from unpaired.errors import InputError
from unpaired.types import FloatArray, IntArray

MANY = "many-to-one"
MANY_COLUMNS = 200
"""Columns above which an SVM is solved in its dual: three times as fast on CIFAR-10 features."""


class ClassNamer(Protocol):
    """What the task ucl asks of a method."""

    model: Any
    """The estimator behind it."""
    labels: IntArray
    """(n,) class of each row given to fit."""
    trace: list[IntArray]
    """Labels after each round, where the method tells."""

    def fit(self, x: FloatArray, class_vectors: FloatArray, labels: IntArray) -> None:
        """Name the rows of x; labels are -1 where unknown."""

    def predict(self, x: FloatArray) -> IntArray:
        """Class of new rows."""

    def embed(self, x: FloatArray) -> FloatArray:
        """What the method makes of rows: where an SVM on its names is trained."""


def make_namer(method: MethodSpec, seed: int) -> ClassNamer:
    """The namer of a method: a classifier where it is one, else two views."""
    if is_classifier(method.name):
        return _Classifier(make_method(method, seed), method.fit)
    many = {"relation": MANY} if knows_relation(method.name) else {}
    return _TwoViewNamer(make_method(method, seed, **many), method.fit, seed)


class _Classifier:
    """A classifier with the face of UnsupervisedClassifier."""

    def __init__(self, model: Any, options: dict[str, Any]) -> None:
        self.model, self.options = model, options
        self.trace: list[IntArray] = []

    def fit(self, x: FloatArray, class_vectors: FloatArray, labels: IntArray) -> None:
        """Name the rows of x."""
        known = labels if (labels >= 0).any() else None
        self.model.fit(x, class_vectors, known, **self.options)
        self.labels = np.where(labels >= 0, labels, self.model.labels_).astype(np.int64)
        rounds = getattr(self.model, "trace_", ())
        self.trace = [np.asarray(named, dtype=np.int64) for named in rounds]

    def predict(self, x: FloatArray) -> IntArray:
        """Class of new rows."""
        return np.asarray(self.model.predict(x), dtype=np.int64)

    def embed(self, x: FloatArray) -> FloatArray:
        """How near rows are to each class, as in an embedding of two views; else the rows."""
        probabilities = getattr(self.model, "predict_proba", None)
        if probabilities is None:
            return np.asarray(x)
        return np.asarray(np.log(np.maximum(probabilities(x), 1e-12)))


class _TwoViewNamer:
    """A method of two views: fit on images and class vectors, then the nearest class.

    The class vectors are given once each, and many labelled images to each of them. A method that
    knows the relation "many-to-one" matches the unlabelled images with these. For any other, copies
    of the class vectors to match with are added, equally many of each class, in random order: it
    is told that classes are about equally frequent.
    """

    def __init__(self, model: Any, options: dict[str, Any], seed: int) -> None:
        self.model, self.options, self.seed = model, options, seed
        self.trace: list[IntArray] = []

    def fit(self, x: FloatArray, class_vectors: FloatArray, labels: IntArray) -> None:
        """Name the rows of x."""
        rng = np.random.default_rng([self.seed, 9])
        self._vectors = class_vectors
        known, free = np.flatnonzero(labels >= 0), np.flatnonzero(labels < 0)
        y_class = np.arange(len(class_vectors))
        if getattr(self.model, "relation", None) != MANY:
            copies = rng.permutation(np.arange(len(free)) % len(class_vectors))
            y_class = np.concatenate([y_class, copies])
        pairs = np.column_stack([known, labels[known]]).astype(np.int64) if len(known) else None
        self.model.fit(x, class_vectors[y_class], pairs=pairs, **self.options)
        named = self.predict(x)
        partner = getattr(getattr(self.model, "match_", None), "partner", None)
        if partner is not None and len(partner) == len(x):
            matched = np.asarray(partner) >= 0
            named[matched] = y_class[np.asarray(partner)[matched]]
        self.labels = np.where(labels >= 0, labels, named).astype(np.int64)
        for matched_pairs in getattr(self.model, "trace_", ()):
            step = np.full(len(x), -1, dtype=np.int64)
            step[matched_pairs[:, 0]] = y_class[matched_pairs[:, 1]]
            self.trace.append(step)

    def predict(self, x: FloatArray) -> IntArray:
        """Class of new rows: the class vector with the largest score."""
        scores = np.asarray(self.model.score_matrix(x, self._vectors))
        return np.asarray(scores.argmax(1), dtype=np.int64)

    def embed(self, x: FloatArray) -> FloatArray:
        """The method's embedding; a method without one is read by its scores."""
        transform = getattr(self.model, "transform_x", None)
        if transform is not None:
            return np.asarray(transform(x))
        return np.asarray(self.model.score_matrix(x, self._vectors))


def linear_svm(
    rows: FloatArray, labels: IntArray, new_rows: FloatArray, *, strength: float = 0.01
) -> IntArray:
    """Classes of ``new_rows`` by a linear SVM trained on ``rows`` with inferred ``labels``.

    Columns are standardised on ``rows``. When only one class was inferred, all get that one.

    Raises:
        InputError: when there is nothing to train on.
    """
    from sklearn.svm import LinearSVC

    if len(rows) == 0:
        raise InputError("An SVM needs at least one named row to train on: there is none.")
    kept = labels >= 0
    classes = np.unique(labels[kept])
    if len(classes) < 2:
        return np.full(len(new_rows), classes[0] if len(classes) else -1, dtype=np.int64)
    mean, spread = rows[kept].mean(0), np.maximum(rows[kept].std(0), 1e-6)
    dual = True if rows.shape[1] > MANY_COLUMNS else "auto"
    model = LinearSVC(C=strength, dual=dual, tol=0.01, random_state=0, max_iter=2000)
    model.fit((rows[kept] - mean) / spread, labels[kept])
    return np.asarray(model.predict((new_rows - mean) / spread), dtype=np.int64)
