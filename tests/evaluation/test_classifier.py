import itertools

import numpy as np
import pytest

from unpaired.evaluation.classifier import classifier_scores, oracle_accuracy


def test_scores_by_loops(rng):
    labels, truth = rng.integers(-1, 3, size=50), rng.integers(-1, 3, size=50)
    right = known = 0
    precision, recall = [], []
    for label, true in zip(labels, truth, strict=True):
        known += true >= 0
        right += true >= 0 and label == true
    for c in range(3):
        hits = sum(bool(a == c == b) for a, b in zip(labels, truth, strict=True))
        given = sum(bool(a == c and b >= 0) for a, b in zip(labels, truth, strict=True))
        real = sum(bool(b == c and a >= 0) for a, b in zip(labels, truth, strict=True))
        precision.append(hits / given)
        recall.append(hits / real)
    assert classifier_scores(labels, truth, 3) == pytest.approx(
        {"accuracy": right / known, "precision": np.mean(precision), "recall": np.mean(recall)}
    )


@pytest.mark.parametrize("n_classes", [2, 4, 5])
def test_oracle_accuracy_among_all_namings(rng, n_classes):
    clusters, truth = rng.integers(n_classes, size=30), rng.integers(n_classes, size=30)
    best = max(
        np.mean(np.array(names)[clusters] == truth)
        for names in itertools.permutations(range(n_classes))
    )
    assert oracle_accuracy(clusters, truth, n_classes) == pytest.approx(best)


def test_oracle_does_not_care_what_clusters_are_called(rng):
    clusters, truth = rng.integers(4, size=30), rng.integers(4, size=30)
    renamed = rng.permutation(4)[clusters]
    assert oracle_accuracy(renamed, truth, 4) == oracle_accuracy(clusters, truth, 4)
    assert oracle_accuracy(rng.permutation(4)[truth], truth, 4) == 1.0
    assert oracle_accuracy(clusters, truth, 4) >= classifier_scores(clusters, truth, 4)["accuracy"]


def test_unknown_truth_is_not_counted_and_a_missing_label_is_wrong():
    labels, truth = np.array([0, 1, -1, -1]), np.array([0, 1, 1, -1])
    assert classifier_scores(labels, truth, 2)["accuracy"] == pytest.approx(2 / 3)
    assert oracle_accuracy(labels, truth, 2) == pytest.approx(2 / 3)
