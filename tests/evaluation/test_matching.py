import numpy as np
import pytest
from sklearn.metrics import confusion_matrix as sklearn_confusion_matrix

from unpaired.evaluation.matching import (
    class_precision_recall,
    confusion_matrix,
    matching_accuracy,
)


@pytest.fixture
def labelled(rng):
    """Given and true classes of 60 rows; some unknown (-1), class 3 never given, class 4 absent."""
    labels, truth = rng.integers(-1, 3, size=60), rng.integers(-1, 4, size=60)
    agree = rng.random(60) < 0.5
    labels[agree & (truth < 3)] = truth[agree & (truth < 3)]
    return labels, truth, 5


# Oracles


def test_matching_accuracy_by_loops(rng):
    truth = rng.integers(-1, 5, size=40)
    partner = np.where(rng.random(40) < 0.5, truth, rng.integers(-1, 5, size=40))
    right = matched = exists = orphans = orphans_out = 0
    for p, t in zip(partner, truth, strict=True):
        right += p == t and t >= 0
        matched += p >= 0
        exists += t >= 0
        orphans += t < 0
        orphans_out += t < 0 and p < 0
    assert matching_accuracy(partner, truth) == pytest.approx(
        {
            "precision": right / matched,
            "recall": right / exists,
            "coverage": matched / 40,
            "orphans_left_out": orphans_out / orphans,
        }
    )


def test_class_precision_recall_by_loops(labelled):
    labels, truth, n_classes = labelled
    result = class_precision_recall(labels, truth, n_classes)
    for c in range(n_classes):
        right = given = real = 0
        for label, true in zip(labels, truth, strict=True):
            if label >= 0 and true >= 0:
                right += label == c == true
                given += label == c
                real += true == c
        assert result["precision"][c] == pytest.approx(right / given if given else 0.0)
        assert result["recall"][c] == pytest.approx(right / real if real else 0.0)
    assert result["precision"][3] == 0.0
    assert result["recall"][4] == 0.0


def test_confusion_matrix_by_loops(labelled):
    labels, truth, n_classes = labelled
    table = np.zeros((n_classes, n_classes), dtype=int)
    for label, true in zip(labels, truth, strict=True):
        if label >= 0 and true >= 0:
            table[true, label] += 1
    np.testing.assert_array_equal(confusion_matrix(labels, truth, n_classes), table)


# Invariants


def test_order_of_rows_does_not_matter(labelled, rng):
    labels, truth, n_classes = labelled
    order = rng.permutation(60)
    shuffled = class_precision_recall(labels[order], truth[order], n_classes)
    assert shuffled == class_precision_recall(labels, truth, n_classes)
    assert matching_accuracy(labels[order], truth[order]) == matching_accuracy(labels, truth)


def test_swapping_labels_and_truth_swaps_precision_and_recall(labelled):
    labels, truth, n_classes = labelled
    forth = class_precision_recall(labels, truth, n_classes)
    back = class_precision_recall(truth, labels, n_classes)
    assert (forth["precision"], forth["recall"]) == (back["recall"], back["precision"])


@pytest.mark.parametrize(
    ("partner", "truth", "expected"),
    [
        ([0, 1, 2], [0, 1, 2], (1.0, 1.0, 1.0, 1.0)),
        ([-1, -1], [0, 1], (1.0, 0.0, 0.0, 1.0)),  # nothing claimed, so nothing claimed wrongly
        ([-1, 0], [-1, -1], (0.0, 1.0, 0.5, 0.5)),  # no partner exists
        ([1, 0], [0, 1], (0.0, 0.0, 1.0, 1.0)),
    ],
)
def test_matching_accuracy_at_the_edges(partner, truth, expected):
    assert tuple(matching_accuracy(partner, truth).values()) == expected


# Agreement


def test_confusion_matrix_agrees_with_scikit_learn(labelled):
    labels, truth, n_classes = labelled
    known = (labels >= 0) & (truth >= 0)
    expected = sklearn_confusion_matrix(truth[known], labels[known], labels=range(n_classes))
    np.testing.assert_array_equal(confusion_matrix(labels, truth, n_classes), expected)
