"""Unsupervised classifier learning: name the classes of a pile of images without a label."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from sklearn.base import TransformerMixin

from unpaired._checks import check_choice, check_number, check_view
from unpaired._random import RandomState, derive_rng, resolve_seed
from unpaired.errors import InputError
from unpaired.evaluation.matching import class_precision_recall
from unpaired.models.base import SavedEstimator
from unpaired.naming.classifiers import CLASSIFIERS, KernelSpace, kernel_probabilities
from unpaired.naming.information_head import apply_head
from unpaired.naming.names import UNKNOWN, name_classes
from unpaired.naming.smooth_space import SmoothSpace
from unpaired.problem.problem import MANY_TO_ONE
from unpaired.spaces.readout import read_dense, to_match
from unpaired.spaces.solution import Evidence
from unpaired.types import FloatArray, IntArray

SPACE = ("mean", "axes", "wide", "whitened", "before_last", "smoothed", "neighbours")


class UnsupervisedClassifier(TransformerMixin, SavedEstimator):  # type: ignore[misc]
    """Learn a classifier from image vectors and one vector per class, with no or few labels.

    The images are grouped so that neighbours share a group: a linear head is trained to maximise
    the mutual information between the groups of neighbours. The groups take the names whose
    vectors have the same geometry; labels, where given, are evidence for the names.

    Args:
        classifier: What is fitted on labels and named groups: "kernel" (ridge regression with a
            Gaussian kernel), "logistic" or "svm" (both linear). Without labels "kernel" and
            "logistic" leave the groups as they are.
        n_rounds: Rounds in which the best grouping is improved and recorded in ``history_``.
        random_state: Seed; the same seed on the same machine gives the same bits.

    After ``fit``: ``labels_`` (n,), ``confidence_`` (n,), ``match_``, ``history_``, ``trace_``
    (labels after the start and after each round), ``notes_`` (sentences on what was done).
    Confidence is the probability of the group times that of the group's name.
    """

    def __init__(
        self,
        *,
        classifier: str = "kernel",
        n_rounds: int = 5,
        random_state: RandomState = None,
    ) -> None:
        self.classifier = classifier
        self.n_rounds = n_rounds
        self.random_state = random_state

    def fit(
        self,
        images: Any,
        class_vectors: Any,
        labels: Any = None,
        *,
        on_step: Callable[[dict[str, float]], None] = lambda step: None,
    ) -> Self:
        """Name every row of ``images`` by one of the classes.

        Args:
            images: Feature vectors, (n, d). More images of the same classes help.
            class_vectors: One row per class, (m, d_y); or a list of such matrices, several
                descriptions of the same classes in the same order.
            labels: (n,) class of each image, -1 = unknown; None when nothing is known.
            on_step: Called after each round with its entry of ``history_``.
        """
        check_choice(self.classifier, "classifier", CLASSIFIERS)
        check_number(self.n_rounds, "n_rounds", 0, integer=True)
        (rows,) = self._rows_of_fit(images=images)
        descriptions = check_descriptions(class_vectors)
        known = check_labels(labels, len(rows), len(descriptions[0]))
        self.seed_ = resolve_seed(self.random_state)
        found = name_classes(
            rows,
            descriptions,
            labels=known,
            rng=derive_rng(self.seed_, "naming"),
            classifier=self.classifier,
            n_rounds=self.n_rounds,
        )
        self._space, self._kernel, self._weights = found.space, found.kernel, found.classifier
        self.n_classes_ = len(descriptions[0])
        labelled = np.flatnonzero(known != UNKNOWN)
        self.labels_ = np.asarray(found.labels, dtype=np.int64)
        every = np.arange(len(rows))
        certain = found.probabilities[every, self.labels_] * found.name_certainty[self.labels_]
        self.match_ = to_match(
            read_dense(np.log(np.maximum(found.probabilities, 1e-12)), self.labels_, certain),
            Evidence({"groups": found.assignments.score}),
            len(descriptions[0]),
            known=np.column_stack([labelled, known[labelled]]),
            relation=MANY_TO_ONE,
        )
        self.trace_ = [np.asarray(labels, dtype=np.int64) for labels in found.trace]
        self.notes_ = list(found.notes)
        self.history_ = []
        for i, information in enumerate(found.head.informations):
            changed = float((self.trace_[i + 1] != self.trace_[i]).mean())
            self.history_.append({"round": i + 1, "dependence": information, "changed": changed})
            on_step(self.history_[-1])
        self._unpack()
        return self

    def _unpack(self) -> None:
        self.labels_ = self.match_.partner
        self.confidence_ = self.match_.confidence

    def transform(self, images: Any) -> FloatArray:
        """The rows that the classifier sees.

        Kernels to landmarks for a kernel classifier, else half-whitened images beside the mean of
        their neighbours.
        """
        rows = self._rows_like_fit(images, "images")
        if self._kernel is not None:
            return self._kernel.transform(rows)
        return self._space.with_surroundings(rows)

    def predict_proba(self, images: Any) -> FloatArray:
        """Probability of each class for new images, (n, m)."""
        self._check_fitted()
        if self._kernel is not None:
            rows = self._rows_like_fit(images, "images")
            return kernel_probabilities(self._kernel, self._weights, rows)
        return apply_head(self.transform(images), self._weights)

    def predict(self, images: Any) -> IntArray:
        """Class of new images, (n,)."""
        return np.asarray(self.predict_proba(images).argmax(1), dtype=np.int64)

    def score_classes(self, images: Any, truth: Any) -> dict[str, list[float]]:
        """Precision and recall of each class on images of known class, m numbers each."""
        return class_precision_recall(self.predict(images), np.asarray(truth), self.n_classes_)

    def _state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        arrays = {f"space.{name}": getattr(self._space, name) for name in SPACE}
        if self._kernel is not None:
            arrays["kernel.mean"] = self._kernel.mean
            arrays["kernel.landmarks"] = self._kernel.landmarks
        arrays["weights"] = self._weights
        arrays["trace"] = np.stack(self.trace_)
        rooted = None if self._kernel is None else self._kernel.rooted
        values = {"seed": self.seed_, "history": self.history_, "notes": self.notes_}
        return arrays, {**values, "rooted": rooted}

    def _restore(self, arrays: dict[str, np.ndarray], values: dict[str, Any]) -> None:
        self.seed_, self.history_ = values["seed"], values["history"]
        self.notes_ = values["notes"]
        self._space = SmoothSpace(**{name: arrays[f"space.{name}"] for name in SPACE})
        self._kernel = None
        if "kernel.mean" in arrays:
            parts = arrays["kernel.mean"], arrays["kernel.landmarks"]
            self._kernel = KernelSpace(*parts, rooted=values["rooted"])
        self._weights = arrays["weights"]
        self.n_classes_ = self._weights.shape[1]
        self.trace_ = list(arrays["trace"])
        self._unpack()


def check_descriptions(class_vectors: Any) -> list[FloatArray]:
    """The class vectors as a list of matrices with equally many rows.

    Raises:
        InputError: when a matrix is unusable or the numbers of classes differ.
    """
    several = isinstance(class_vectors, Sequence) and np.ndim(class_vectors[0]) == 2
    matrices = list(class_vectors) if several else [class_vectors]
    checked: list[FloatArray] = [check_view(matrix, "class_vectors") for matrix in matrices]
    sizes = [len(matrix) for matrix in checked]
    if len(set(sizes)) > 1:
        raise InputError(
            f"class_vectors must describe the same classes in every matrix: they have {sizes} "
            "rows. Give each matrix one row per class, in one order."
        )
    return checked


def check_labels(labels: Any, n_rows: int, n_classes: int) -> IntArray:
    """Labels as (n,) int64 with -1 for unknown.

    Raises:
        InputError: when the length or a class number is wrong.
    """
    if labels is None:
        return np.full(n_rows, UNKNOWN, dtype=np.int64)
    array = np.asarray(labels)
    if array.shape != (n_rows,) or array.dtype.kind not in "iu":
        raise InputError(
            f"labels must be {n_rows} whole numbers, one per image, -1 = unknown: got shape "
            f"{array.shape} of type {array.dtype}."
        )
    if array.min() < UNKNOWN or array.max() >= n_classes:
        raise InputError(
            f"labels must lie between -1 (unknown) and {n_classes - 1}: they go from "
            f"{array.min()} to {array.max()}. Number the classes as the rows of class_vectors."
        )
    return array.astype(np.int64)
