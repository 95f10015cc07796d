"""Classifiers of rows of which some are labelled and the others guessed."""

import numpy as np
import pytest

from unpaired.naming import classifiers
from unpaired.naming.classifiers import (
    CLUSTER_WORTH,
    RIDGE,
    SHARPNESS,
    WIDTH,
    fit_kernel,
    fit_linear,
    kernel_probabilities,
    kernel_space,
    rows_to_fit,
)
from unpaired.naming.information_head import apply_head


def blobs(rng, size, n_classes):
    centres = 4.0 * rng.standard_normal((n_classes, 10))
    truth = np.repeat(np.arange(n_classes), size)
    return centres[truth] + 0.5 * rng.standard_normal((len(truth), 10)), truth


def test_the_kernel_classifier_learns_what_no_line_separates(seed):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((400, 2))
    truth = (rows[:, 0] * rows[:, 1] > 0).astype(int)
    labels = np.where(np.arange(400) < 200, truth, -1)
    space, weights = fit_kernel(rows, labels, np.zeros(400, dtype=int), 2, rng)
    found = kernel_probabilities(space, weights, rows[200:])
    np.testing.assert_allclose(found.sum(1), 1.0)
    assert (found.argmax(1) == truth[200:]).mean() >= 0.85
    assert not space.rooted
    assert kernel_space(np.abs(rows), np.arange(5)).rooted


def test_the_kernel_classifier_is_a_weighted_ridge_regression(rng):
    """Solved in full: (G W G + ridge G) a = G W t, with logits a times the sharpness."""
    rows, truth = blobs(rng, 8, 3)
    labels = np.where(np.arange(24) % 2 == 0, truth, -1)
    space, weights = fit_kernel(rows, labels, truth, 3, rng)
    order = np.r_[np.flatnonzero(labels >= 0), np.flatnonzero(labels < 0)]
    centred = rows - rows.mean(0)
    units = centred / np.linalg.norm(centred, axis=1, keepdims=True)
    marks = units[np.sort(order)]
    gram = np.exp(WIDTH * (units @ marks.T - 1.0))
    weight = np.ones(24)
    for cls in range(3):
        guessed = (labels < 0) & (truth == cls)
        weight[guessed] = min(1.0, CLUSTER_WORTH / guessed.sum())
    target = np.eye(3)[truth] - 1 / 3
    left = gram.T @ (weight[:, None] * gram) + RIDGE * gram
    values = np.linalg.solve(
        left + 1e-9 * np.trace(left) * np.eye(24), gram.T @ (weight[:, None] * target)
    )
    logits = SHARPNESS * gram @ values
    expected = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    np.testing.assert_allclose(kernel_probabilities(space, weights, rows), expected, atol=1e-3)


def test_guesses_of_each_class_weigh_five_labels_together_and_one_at_most():
    labels = np.array([0, 1, 2] + [-1] * 112)
    guesses = np.repeat([0, 1, 2], [3 + 100, 10, 2])
    rows, target, weight = rows_to_fit(labels, guesses, 3, np.random.default_rng(0))
    np.testing.assert_array_equal(rows, np.arange(115))
    np.testing.assert_array_equal(target[3:], guesses[3:])
    np.testing.assert_allclose(np.bincount(target[3:], weight[3:]), [5.0, 5.0, 2.0])
    np.testing.assert_allclose(weight[:3], 1.0)


def test_without_a_label_all_guesses_count_alike():
    labels, guesses = np.full(9, -1), np.repeat([0, 1, 2], 3)
    rows, target, weight = rows_to_fit(labels, guesses, 3, np.random.default_rng(0))
    np.testing.assert_array_equal(rows, np.arange(9))
    np.testing.assert_array_equal(target, guesses)
    np.testing.assert_array_equal(weight, 1.0)


def test_landmarks_stand_in_for_many_rows(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    rows, truth = blobs(rng, 100, 3)
    monkeypatch.setattr(classifiers, "N_LANDMARKS", 40)
    space, weights = fit_kernel(rows, truth, truth, 4, rng)
    assert len(space.landmarks) == 40
    found = kernel_probabilities(space, weights, rows)
    assert (found.argmax(1) == truth).mean() >= 0.95
    assert found[:, 3].max() == pytest.approx(0.0)  # no row of the fourth class was seen


@pytest.mark.parametrize("kind", ["logistic", "svm"])
@pytest.mark.parametrize("n_classes", [2, 4])
def test_linear_classifiers_of_labels_and_guesses(kind, n_classes, rng):
    rows, truth = blobs(rng, 30, n_classes)
    labels = np.where(np.arange(len(truth)) % 3 == 0, truth, -1)
    weights = fit_linear(rows, labels, truth, n_classes + 1, rng, kind)
    found = apply_head(rows, weights)
    assert (found.argmax(1) == truth).all()
    assert found[:, n_classes].max() == pytest.approx(0.0)  # a class that nobody has


def test_both_linear_classifiers_are_told_apart(rng):
    rows, truth = blobs(rng, 30, 3)
    labels = np.full(90, -1)
    fits = [fit_linear(rows, labels, truth, 3, rng, kind) for kind in ("logistic", "svm")]
    assert np.abs(fits[0] - fits[1]).max() > 1e-3


def test_one_class_alone_is_certain(rng):
    rows = rng.standard_normal((6, 2))
    weights = fit_linear(rows, np.full(6, -1), np.ones(6, dtype=int), 3, rng)
    assert (apply_head(rows, weights)[:, 1] > 0.99).all()
