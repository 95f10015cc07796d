"""Unsupervised classifier learning: name the classes of a pile of images without a label."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin, TransformerMixin

from unpaired._checks import check_choice, check_number, check_view
from unpaired._random import RandomState, derive_rng, resolve_seed
from unpaired.errors import InputError
from unpaired.evaluation.classifier import classifier_scores
from unpaired.evaluation.matching import class_precision_recall
from unpaired.models.base import SavedEstimator
from unpaired.models.class_arguments import (
    check_answers,
    check_classes,
    check_descriptions,
    check_labels,
)
from unpaired.naming.classifiers import CLASSIFIERS, KernelSpace, kernel_probabilities
from unpaired.naming.evidence import naming_evidence
from unpaired.naming.information_head import Head, apply_head, mutual_information
from unpaired.naming.names import UNKNOWN, Naming, group_rows, name_classes
from unpaired.naming.questions import Question, least_certain
from unpaired.naming.smooth_space import SmoothSpace, nearest_neighbours
from unpaired.problem.problem import MANY_TO_ONE
from unpaired.spaces.readout import read_dense, to_match
from unpaired.spaces.solution import Evidence
from unpaired.trust.names import covered_share, judge_names, name_certainty
from unpaired.types import FloatArray, IntArray

SPACE = ("mean", "axes", "wide", "whitened", "before_last", "smoothed", "neighbours")


class UnsupervisedClassifier(ClassifierMixin, TransformerMixin, SavedEstimator):  # type: ignore[misc]
    """Learn a classifier from image vectors and one vector per class, with no or few labels.

    The images are grouped so that neighbours share a group: a linear head is trained to maximise
    the mutual information between the groups of neighbours. The groups take the names whose
    vectors have the same geometry; labels, where given, are evidence for the names. ``suggest``
    tells which groups' names are least certain, and ``fit(..., names=)`` takes the answers.

    Args:
        classifier: What is fitted on labels and named groups: "kernel" (ridge regression with a
            Gaussian kernel), "logistic" or "svm" (both linear). Without labels "kernel" and
            "logistic" leave the groups as they are.
        n_rounds: Rounds in which the best grouping is improved and recorded in ``history_``.
        random_state: Seed; the same seed on the same machine gives the same bits.

    After ``fit``: ``classes_`` (m,), ``labels_`` (n,), ``confidence_`` (n,), ``groups_`` (n,),
    ``name_certainty_`` (m,) of each class, ``match_``, ``history_``, ``trace_`` (class numbers
    after the start and after each round), ``notes_`` (sentences on what was done), ``verdict_``
    (what may be claimed of the names). Confidence is the probability of the group times that of the
    group's name: 1 where it was answered, else as far as the verdict goes.
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
        names: Mapping[int, Any] | None = None,
        classes: Sequence[str] | None = None,
        on_step: Callable[[dict[str, float]], None] = lambda step: None,
    ) -> Self:
        """Name every row of ``images`` by one of the classes.

        Args:
            images: Feature vectors, (n, d). More images of the same classes help.
            class_vectors: One row per class, (m, d_y); or a list of such matrices, several
                descriptions of the same classes in the same order.
            labels: (n,) class of each image, -1 (or "" where classes have names) = unknown; None
                when nothing is known.
            names: Group -> class, the answers to ``suggest``. The groups are those of the last fit,
                which must have been of these images, or of the seed in ``random_state``.
            classes: What the classes are called, in the order of ``class_vectors``; by default
                they are numbered.
            on_step: Called after each round with its entry of ``history_``.
        """
        check_choice(self.classifier, "classifier", CLASSIFIERS)
        check_number(self.n_rounds, "n_rounds", 0, integer=True)
        rows = check_view(images, "images")
        descriptions = check_descriptions(class_vectors)
        size = len(descriptions[0])
        called = check_classes(classes, size)
        known = check_labels(labels, len(rows), called)
        answers = check_answers(names, called)
        # what a group number means: the same for the same rows, settings and seed
        made_of = hashlib.sha256(rows.tobytes() + f"{size} {self.n_rounds}".encode()).hexdigest()
        if answers:
            seed, grouping = self._groups_asked_about(made_of)
        else:
            seed, grouping = resolve_seed(self.random_state), None
        self._rows_of_fit(images=images)
        if grouping is None:
            grouping = group_rows(
                np.asarray(rows, dtype=np.float32), size, derive_rng(seed, "naming"), self.n_rounds
            )
        found = name_classes(
            rows,
            descriptions,
            labels=known,
            answers=answers,
            rng=derive_rng(seed, "names"),
            classifier=self.classifier,
            grouping=grouping,
        )
        self.seed_, self._made_of = seed, made_of
        self._grouping: tuple[SmoothSpace, Head] | None = grouping
        self.classes_, self._answered = called, sorted(answers)
        self._space, self._kernel, self._weights = found.space, found.kernel, found.classifier
        self.groups_, self._marginals = found.groups, found.assignments.marginals
        evidence = self._evidence_for(rows, descriptions, found, known)
        covered = covered_share(found.labels, known[known != UNKNOWN])
        verdict = judge_names(evidence, len(rows), size, covered=covered)
        certainty = name_certainty(evidence, verdict, size, covered=covered)
        self.name_certainty_ = np.full(size, certainty)
        self.name_certainty_[list(answers.values())] = 1.0
        self.encoder_: str | None = None  # set by those who know what made the images' vectors
        self.n_classes_ = size
        labelled = np.flatnonzero(known != UNKNOWN)
        every = np.arange(len(rows))
        certain = found.probabilities[every, found.labels] * self.name_certainty_[found.labels]
        self.match_ = to_match(
            read_dense(
                np.log(np.maximum(found.probabilities, 1e-12)),
                np.asarray(found.labels, dtype=np.int64),
                certain,
            ),
            evidence,
            size,
            known=np.column_stack([labelled, known[labelled]]),
            relation=MANY_TO_ONE,
            verdict=verdict,
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

    def _evidence_for(
        self, rows: FloatArray, descriptions: list[FloatArray], found: Naming, known: IntArray
    ) -> Evidence:
        """What speaks for the names; answers tell nothing new of the others, so it is kept."""
        told = f"{self._made_of} {self.seed_} {self.classifier}".encode()
        made_of = hashlib.sha256(b"".join([told, *(a.tobytes() for a in (*descriptions, known))]))
        if getattr(self, "_evidence", (None,))[0] != made_of.digest():
            rng = derive_rng(self.seed_, "evidence")
            self._evidence = (
                made_of.digest(),
                naming_evidence(
                    rows, descriptions, found, rng, labels=known, classifier=self.classifier
                ),
            )
        return self._evidence[1]

    def _groups_asked_about(self, made_of: str) -> tuple[int, tuple[SmoothSpace, Head] | None]:
        """The seed of the groups that answers speak of, and the groups where they are at hand.

        Raises:
            InputError: when nobody can know which groups those are.
        """
        if not hasattr(self, "history_"):
            if self.random_state is None:
                raise InputError(
                    "names must speak of groups that exist: this estimator has none yet and no "
                    "seed. Call fit without names and then suggest, or set random_state."
                )
            return resolve_seed(self.random_state), None
        if made_of != self._made_of:
            raise InputError(
                "names must speak of the groups of the last fit: that was of other images, another "
                "number of classes or of rounds. Call fit without names first, then suggest."
            )
        return self.seed_, self._grouping

    def _unpack(self) -> None:
        self.labels_ = self.classes_[self.match_.partner]
        self.confidence_ = self.match_.confidence

    def suggest(self, k: int = 1, *, n_examples: int = 8) -> list[Question]:
        """The ``k`` groups whose names are least certain, most uncertain first.

        Uncertain by the entropy of the group's name over all namings. One answer changes what is
        uncertain elsewhere, so asking one at a time tells more than asking several at once.

        >>> rng = np.random.default_rng(0)
        >>> centres = 4 * rng.standard_normal((3, 5))
        >>> images = np.repeat(centres, 20, axis=0) + rng.standard_normal((60, 5))
        >>> model = UnsupervisedClassifier(random_state=0)
        >>> names = ["cat", "dog", "ship"]
        >>> model = model.fit(images, centres, classes=names)
        >>> question = model.suggest()[0]  # look at images[question.rows], then answer
        >>> model = model.fit(images, centres, classes=names, names={question.group: "dog"})
        >>> str(model.labels_[question.rows[0]])
        'dog'
        """
        self._check_fitted()
        check_number(k, "k", 1, integer=True)
        check_number(n_examples, "n_examples", 0, integer=True)
        return least_certain(
            self._marginals,
            self.groups_,
            self.confidence_,
            self.classes_,
            k=k,
            n_examples=n_examples,
            answered=self._answered,
        )

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

    def predict(self, images: Any) -> NDArray[Any]:
        """Class of new images, (n,), by its entry in ``classes_``."""
        numbers = self.predict_proba(images).argmax(1)
        return self.classes_[numbers]

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the columns of ``transform``; with it scikit-learn offers ``set_output``."""
        self._check_fitted()
        width = (
            2 * self._space.axes.shape[1] if self._kernel is None else len(self._kernel.landmarks)
        )
        names = [f"{type(self).__name__.lower()}{column}" for column in range(width)]
        return np.asarray(names, dtype=object)

    def score(self, images: Any, truth: Any = None) -> float:
        """Share of images of known class that ``predict`` names right, 0 to 1.

        Without ``truth``: how much the class of an image tells of the class of its nearest images,
        0 to 1 (mutual information in units of its largest value). No label is needed, so that
        ``GridSearchCV(...).fit(images, class_vectors=...)`` can use it; names do not enter.
        """
        if truth is None:
            rows = np.asarray(self._rows_like_fit(images, "images"), dtype=np.float32)
            leading = self._space.whiten(rows)[1]
            near = nearest_neighbours(leading, leading, self._space.neighbours.shape[1])
            shared = mutual_information(self.predict_proba(images), near)
            return shared / float(np.log(self.n_classes_))
        numbers = self.predict_proba(images).argmax(1)
        known = check_labels(truth, len(numbers), self.classes_, "truth")
        return classifier_scores(numbers, known, self.n_classes_)["accuracy"]

    def score_classes(self, images: Any, truth: Any) -> dict[str, list[float]]:
        """Precision and recall of each class on images of known class, m numbers each."""
        numbers = self.predict_proba(images).argmax(1)
        known = check_labels(truth, len(numbers), self.classes_, "truth")
        return class_precision_recall(numbers, known, self.n_classes_)

    def _state(self) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        arrays = {f"space.{name}": getattr(self._space, name) for name in SPACE}
        if self._kernel is not None:
            arrays["kernel.mean"] = self._kernel.mean
            arrays["kernel.landmarks"] = self._kernel.landmarks
        arrays["weights"] = self._weights
        arrays["trace"] = np.stack(self.trace_)
        arrays["groups"], arrays["marginals"] = self.groups_, self._marginals
        arrays["name_certainty"] = self.name_certainty_
        return arrays, {
            "seed": self.seed_,
            "history": self.history_,
            "notes": self.notes_,
            "rooted": None if self._kernel is None else self._kernel.rooted,
            "classes": self.classes_.tolist(),
            "answered": self._answered,
            "made_of": self._made_of,
            "encoder": self.encoder_,
        }

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
        self.groups_, self._marginals = arrays["groups"], arrays["marginals"]
        self.classes_, self._answered = np.asarray(values["classes"]), values["answered"]
        self._made_of, self._grouping = values["made_of"], None
        self.name_certainty_, self.encoder_ = arrays["name_certainty"], values["encoder"]
        self._unpack()
