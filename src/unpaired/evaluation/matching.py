"""Matching metrics: how much of a matching is right."""

from __future__ import annotations

import numpy as np

from unpaired.types import IntArray


def matching_accuracy(partner: IntArray, truth: IntArray) -> dict[str, float]:
    """Precision over the matched rows, recall over the rows that have a partner, and coverage.

    Notation: both (n,), -1 = left out (partner) or no partner exists (truth). ``orphans_left_out``
    is the share of rows without a partner that were left out (1 when there are none).

    >>> matching_accuracy(np.array([0, 2, -1]), np.array([0, 1, 2]))["precision"]
    0.5
    """
    partner, truth = np.asarray(partner), np.asarray(truth)
    right = (partner == truth) & (truth >= 0)
    matched, exists = partner >= 0, truth >= 0
    return {
        "precision": _share(right, matched),
        "recall": _share(right, exists),
        "coverage": float(matched.mean()),
        "orphans_left_out": _share(~matched, ~exists),
    }


def _share(part: np.ndarray, whole: np.ndarray) -> float:
    """Share of ``whole`` that is in ``part``; 1 when ``whole`` is empty."""
    return float(part[whole].mean()) if whole.any() else 1.0


def class_precision_recall(
    labels: IntArray, truth: IntArray, n_classes: int
) -> dict[str, list[float]]:
    """Precision and recall of each class of an inferred labelling; 0 where a class got no row.

    >>> class_precision_recall(np.array([0, 0, 1]), np.array([0, 1, 1]), 2)
    {'precision': [0.5, 1.0], 'recall': [1.0, 0.5]}
    """
    table = confusion_matrix(labels, truth, n_classes)
    right = np.diag(table)
    given, real = table.sum(0), table.sum(1)
    return {
        "precision": (right / np.maximum(given, 1)).tolist(),
        "recall": (right / np.maximum(real, 1)).tolist(),
    }


def confusion_matrix(labels: IntArray, truth: IntArray, n_classes: int) -> IntArray:
    """Counts (n_classes, n_classes): row = true class, column = class given; -1 is not counted.

    >>> confusion_matrix(np.array([0, 1]), np.array([0, 0]), 2).tolist()
    [[1, 1], [0, 0]]
    """
    known = (np.asarray(labels) >= 0) & (np.asarray(truth) >= 0)
    table = np.zeros((n_classes, n_classes), dtype=np.int64)
    np.add.at(table, (np.asarray(truth)[known], np.asarray(labels)[known]), 1)
    return table
