"""Classifier metrics, and the best that naming clusters could do."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment

from unpaired.evaluation.matching import class_precision_recall, confusion_matrix
from unpaired.types import IntArray


def classifier_scores(labels: IntArray, truth: IntArray, n_classes: int) -> dict[str, float]:
    """Accuracy, and precision and recall averaged over classes.

    Rows of unknown truth (-1) are not counted; a row left without a label (-1) counts as wrong.

    >>> classifier_scores(np.array([0, 1]), np.array([0, 0]), 2)["accuracy"]
    0.5
    """
    by_class = class_precision_recall(labels, truth, n_classes)
    return {
        "accuracy": _share_of_known(confusion_matrix(labels, truth, n_classes).trace(), truth),
        "precision": float(np.mean(by_class["precision"])),
        "recall": float(np.mean(by_class["recall"])),
    }


def oracle_accuracy(clusters: IntArray, truth: IntArray, n_classes: int) -> float:
    """Accuracy of clusters that an oracle names one to one: the ceiling of naming clusters.

    >>> oracle_accuracy(np.array([1, 1, 0]), np.array([0, 0, 1]), 2)
    1.0
    """
    table = confusion_matrix(clusters, truth, n_classes)
    rows, columns = linear_sum_assignment(table, maximize=True)
    return _share_of_known(table[rows, columns].sum(), truth)


def _share_of_known(n_right: int, truth: IntArray) -> float:
    """``n_right`` over the number of rows whose truth is known."""
    return float(n_right / max(int((np.asarray(truth) >= 0).sum()), 1))
