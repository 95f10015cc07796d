"""Unsupervised classifier learning: name the classes of a pile of images without a label."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np

from unpaired._checks import check_view
from unpaired._random import RandomState, derive_rng, derive_seed, resolve_seed
from unpaired.errors import InputError
from unpaired.matching.describing import softmax_rows
from unpaired.matching.naming import UNKNOWN, name_classes
from unpaired.models.base import SavedEstimator
from unpaired.models.dmae import DMAE
from unpaired.types import FloatArray, IntArray

COSINE_SHARPNESS = 10.0
"""How much a cosine counts in a probability over classes."""


class UnsupervisedClassifier(SavedEstimator):
    """Learn a classifier from image vectors and one vector per class, with no or few labels.

    The images are clustered, the clusters are matched to the classes by their geometry (the
    start), and a many-to-one DMAE learns both networks and the labels together from there.

    Args:
        dependence: What the DMAE maximises: "smi", "ukta", "hsic" or "cka".
        n_rounds: Rounds of network update and re-labelling, at most; 0 keeps the start.
        device: "auto" takes CUDA or MPS when there is one.
        random_state: Seed; the same seed on the same machine gives the same bits.

    After ``fit``: ``labels_`` (n,), ``confidence_`` (n,), ``match_``, ``history_``, ``trace_``
    (labels after the start and after each round). Confidence is the probability of the group times
    that of the group's name.
    """

    def __init__(
        self,
        *,
        dependence: str = "smi",
        n_rounds: int = 8,
        device: str = "auto",
        random_state: RandomState = None,
    ) -> None:
        self.dependence = dependence
        self.n_rounds = n_rounds
        self.device = device
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
            images: Feature vectors, (n, d).
            class_vectors: One row per class, (m, d_y); or a list of such matrices, several
                descriptions of the same classes in the same order.
            labels: (n,) class of each image, -1 = unknown; None when nothing is known.
            on_step: Called after each step with its entry of ``history_``.
        """
        rows = check_view(images, "images")
        descriptions = check_descriptions(class_vectors)
        known = check_labels(labels, len(rows), len(descriptions[0]))
        self.seed_ = resolve_seed(self.random_state)
        start = name_classes(rows, descriptions, labels=known, rng=derive_rng(self.seed_, "naming"))
        self.n_classes_ = len(descriptions[0])
        self._dmae = DMAE(
            self.dependence,
            relation="many-to-one",
            n_rounds=self.n_rounds,
            device=self.device,
            random_state=derive_seed(self.seed_, "dmae"),
        )
        labelled = np.flatnonzero(known != UNKNOWN)
        self._class_vectors = np.hstack([_unit_block(d) for d in descriptions])
        self._dmae.fit(
            rows,
            self._class_vectors,
            pairs=np.column_stack([labelled, known[labelled]]),
            start=np.asarray(start.labels, dtype=np.int64),
            on_step=on_step,
        )
        found = self._dmae.match_
        certainty = start.name_certainty[found.partner]
        confidence = np.where(known != UNKNOWN, 1.0, certainty * found.confidence)
        self.match_ = replace(found, confidence=confidence)
        self._unpack()
        return self

    def _unpack(self) -> None:
        self.labels_ = self.match_.partner
        self.confidence_ = self.match_.confidence
        self.history_ = self._dmae.history_
        self.trace_ = [pairs[np.argsort(pairs[:, 0]), 1] for pairs in self._dmae.trace_]

    def transform(self, images: Any) -> FloatArray:
        """Embed new images, (n, d) -> (n, n_embedding), unit length."""
        self._check_fitted()
        return self._dmae.transform_x(images)

    def predict_proba(self, images: Any) -> FloatArray:
        """Probability of each class for new images, (n, m)."""
        self._check_fitted()
        scores = self._dmae.score_matrix(images, self._class_vectors)
        return softmax_rows(scores, COSINE_SHARPNESS)

    def predict(self, images: Any) -> IntArray:
        """Class of new images, (n,)."""
        return np.asarray(self.predict_proba(images).argmax(1), dtype=np.int64)

    def _state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        arrays, values = self._dmae._state()
        arrays["class_vectors"] = self._class_vectors
        params = self._dmae.get_params()
        return arrays, {**values, "classifier_seed": self.seed_, "dmae": params}

    def _restore(self, arrays: dict[str, np.ndarray], values: dict[str, Any]) -> None:
        self.seed_ = values["classifier_seed"]
        self._class_vectors = arrays.pop("class_vectors")
        self.n_classes_ = len(self._class_vectors)
        self._dmae = DMAE(**values["dmae"])
        self._dmae.match_ = self.match_
        self._dmae._restore(arrays, values)
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


def _unit_block(matrix: FloatArray) -> FloatArray:
    """Centred class vectors of mean square length 1, so that descriptions weigh the same."""
    centred = matrix - matrix.mean(0)
    return np.asarray(centred / np.sqrt((centred**2).sum(1).mean()))
