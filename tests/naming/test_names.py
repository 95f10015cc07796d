"""Naming groups: geometry, few labels, uneven classes, and what each of them counts."""

import numpy as np
import pytest

from unpaired.naming.classifiers import CLASSIFIERS
from unpaired.naming.names import (
    LABEL_TRUST,
    centred_kernel,
    group_rows,
    kernel_mix,
    label_votes,
    name_classes,
    name_clusters,
    off_diagonal_kernel,
    sizes_are_uneven,
)


def blobs(rng, sizes, spread=0.5):
    """Rows around centres, the centres turned, and the class of every row."""
    centres = rng.standard_normal((len(sizes), 10)) * np.linspace(4.0, 2.0, len(sizes))[:, None]
    truth = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    rows = centres[truth] + spread * rng.standard_normal((len(truth), 10))
    rotation = np.linalg.qr(rng.standard_normal((10, 10)))[0]
    return rows, centres @ rotation, truth


def some_labels(truth, n_classes, per_class):
    labels = np.full(len(truth), -1)
    for cls in range(n_classes):
        labels[np.flatnonzero(truth == cls)[:per_class]] = cls
    return labels


def test_names_without_labels_and_how_sure_they_are(seed):
    rng = np.random.default_rng(seed)
    rows, vectors, truth = blobs(rng, [50] * 5)
    named = name_classes(rows[:200], vectors, rng=rng)
    assert (named.labels == truth[:200]).mean() >= 0.95
    assert (named.predict(rows[200:]) == truth[200:]).mean() >= 0.95
    np.testing.assert_allclose(named.probabilities.sum(1), 1.0)
    useless = name_classes(rows[:200], np.eye(5), rng=rng)  # nearly every naming scores the same
    assert useless.assignments.marginals.max() < 0.5


@pytest.mark.parametrize("classifier", CLASSIFIERS)
def test_labels_overrule_misleading_vectors_also_when_classes_are_uneven(classifier, seed):
    rng = np.random.default_rng([seed, 1])
    rows, vectors, truth = blobs(rng, [200, 100, 50, 20])
    labels = some_labels(truth, 4, 2)
    named = name_classes(rows, vectors[::-1].copy(), labels=labels, rng=rng, classifier=classifier)
    assert (named.labels == truth).mean() >= 0.9
    np.testing.assert_array_equal(named.labels[labels >= 0], labels[labels >= 0])
    assert any("uneven" in note for note in named.notes)


def test_the_trace_is_the_grouping_under_the_names_found(seed):
    rng = np.random.default_rng(seed)
    rows, vectors, _ = blobs(rng, [40] * 4)
    named = name_classes(rows, vectors, rng=rng, n_rounds=3)
    assert len(named.trace) == 4
    np.testing.assert_array_equal(named.trace[-1], named.labels)
    for index, labels in zip(named.head.trace, named.trace, strict=True):
        np.testing.assert_array_equal(labels, named.assignments.best[index])


def test_a_grouping_at_hand_is_taken(seed):
    rows, vectors, _ = blobs(np.random.default_rng(seed), [40] * 4)
    grouping = group_rows(np.asarray(rows, np.float32), 4, np.random.default_rng(5))
    first, again = (
        name_classes(rows, vectors, rng=np.random.default_rng(s), grouping=grouping) for s in (1, 2)
    )
    assert first.head is again.head is grouping[1]
    np.testing.assert_array_equal(first.labels, again.labels)


@pytest.mark.parametrize("shape", [(50, 1), (60, 800), (200, 4)])
def test_odd_shapes_stay_finite(shape):
    rows = np.random.default_rng(0).standard_normal(shape)
    named = name_classes(rows, np.eye(3), rng=np.random.default_rng(0))
    assert np.isfinite(named.probabilities).all()
    assert set(named.labels.tolist()) <= {0, 1, 2}


def test_kernels_are_centred_and_of_norm_one(seed):
    rows = np.random.default_rng(seed).standard_normal((6, 4))
    for kernel in (centred_kernel(rows), off_diagonal_kernel(rows)):
        np.testing.assert_allclose(kernel.sum(0), 0.0, atol=1e-12)
        assert np.linalg.norm(kernel) == pytest.approx(1.0)
    np.testing.assert_allclose(np.diag(off_diagonal_kernel(rows)), 0.0, atol=1e-12)
    centred = rows - rows.mean(0)
    gram = centred @ centred.T
    np.testing.assert_allclose(centred_kernel(rows), gram / np.linalg.norm(gram))
    small = centred_kernel(rows[:2])
    np.testing.assert_array_equal(off_diagonal_kernel(rows[:2]), small)


def test_every_view_of_things_meets_every_view_of_names_twice(rng):
    things, names = [rng.standard_normal((4, 3)) for _ in "ab"], [rng.standard_normal((4, 2))]
    mix = kernel_mix(things, names)
    assert len(mix) == 4
    np.testing.assert_array_equal(mix[1][0], centred_kernel(things[1]))
    np.testing.assert_array_equal(mix[2][0], off_diagonal_kernel(things[0]))
    np.testing.assert_array_equal(mix[3][1], off_diagonal_kernel(names[0]))


def test_votes_are_the_log_likelihood_of_the_labels(rng):
    probabilities = rng.dirichlet(np.ones(3), size=8)
    labels = np.array([0, 2, -1, 0, 1, -1, 2, 2])
    votes = label_votes(probabilities, labels)
    for group in range(3):
        for cls in range(3):
            own = probabilities[labels == cls, group]
            expected = np.log(LABEL_TRUST * own + (1 - LABEL_TRUST) / 3).sum()
            assert votes[group, cls] == pytest.approx(expected)


def test_evidence_decides_where_geometry_is_silent_and_not_where_it_is_loud(rng):
    means = rng.standard_normal((4, 5))
    shift = np.array([1, 2, 3, 0])
    silent = name_clusters([np.eye(4)], [np.eye(4)], 3.0 * np.eye(4)[shift], rng=rng)
    assert silent.best.tolist() == shift.tolist()
    turned = means @ np.linalg.qr(rng.standard_normal((5, 5)))[0]
    loud = name_clusters([means], [turned], 1e-3 * np.eye(4)[shift], rng=rng)
    assert loud.best.tolist() == [0, 1, 2, 3]
    without = name_clusters([means], [turned], np.zeros((4, 4)), rng=rng)
    assert without.score == name_clusters([means], [turned], rng=rng).score


def test_sizes_are_judged_around_the_labels(seed):
    rng = np.random.default_rng(seed)
    for sizes, uneven in (([60] * 4, False), ([200, 30, 20, 10], True)):
        rows, _, truth = blobs(rng, sizes, spread=0.3)
        units = rows / np.linalg.norm(rows, axis=1, keepdims=True)
        assert sizes_are_uneven(units, some_labels(truth, 4, 2), 4) is uneven
    assert sizes_are_uneven(units, np.full(len(truth), -1), 4) is False
