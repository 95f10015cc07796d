"""Naming clusters: exact search over all assignments, few labels, uneven classes."""

from itertools import permutations

import numpy as np
import pytest
from unpaired.matching.pools import consult, pool_evidence

from unpaired.evaluation.classifier import oracle_accuracy
from unpaired.matching import row_classifiers
from unpaired.naming.classifiers import (
    fit_kernel,
    kernel_probabilities,
    kernel_space,
    rows_to_fit,
)
from unpaired.naming.clustering import cluster, mean_by, spherical_k_means
from unpaired.naming.information_head import (
    apply_head,
    find_head,
    mutual_information,
    train_heads,
)
from unpaired.naming.names import name_classes, off_diagonal_kernel
from unpaired.naming.smooth_space import nearest_neighbours, smooth_features
from unpaired.solvers.exhaustive_qap import best_assignments


def kernels(rng, size, n_pairs=2):
    out = []
    for _ in range(2 * n_pairs):
        rows = rng.standard_normal((size, 3))
        out.append(rows @ rows.T)
    return list(zip(out[::2], out[1::2], strict=True))


def total(pairs, linear, order):
    order = np.asarray(order)
    quadratic = sum((k * l[np.ix_(order, order)]).sum() for k, l in pairs)
    return quadratic + linear[np.arange(len(order)), order].sum()


@pytest.mark.parametrize("size", [1, 2, 3, 5, 6])
def test_every_assignment_is_scored(size, seed):
    rng = np.random.default_rng([seed, size])
    pairs, linear = kernels(rng, size), rng.standard_normal((size, size))
    found = best_assignments(pairs, linear, temperature=0.7)
    orders = [np.array(p) for p in permutations(range(size))]
    scores = np.array([total(pairs, linear, order) for order in orders])
    assert found.exact
    assert found.score == pytest.approx(scores.max())
    np.testing.assert_array_equal(found.best, orders[int(scores.argmax())])
    assert found.spread == pytest.approx(scores.std(), abs=1e-9)
    weights = np.exp((scores - scores.max()) / max(0.7 * scores.std(), 1e-300))
    marginals = np.zeros((size, size))
    for order, weight in zip(orders, weights / weights.sum(), strict=True):
        marginals[np.arange(size), order] += weight
    np.testing.assert_allclose(found.marginals, marginals, atol=1e-9)


def test_the_search_above_ten_names_finds_a_planted_optimum(seed):
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((13, 5))
    order = rng.permutation(13)
    found = best_assignments([(rows @ rows.T, rows[order] @ rows[order].T)], rng=rng)
    np.testing.assert_array_equal(found.best, np.argsort(order))
    assert not found.exact


def blobs(rng, sizes, spread=0.5):
    centres = rng.standard_normal((len(sizes), 10)) * np.linspace(4.0, 2.0, len(sizes))[:, None]
    truth = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    rows = centres[truth] + spread * rng.standard_normal((len(truth), 10))
    rotation = np.linalg.qr(rng.standard_normal((10, 10)))[0]
    return rows, centres @ rotation, truth


def test_names_without_labels_and_their_certainty(seed):
    rng = np.random.default_rng(seed)
    rows, vectors, truth = blobs(rng, [50] * 5)
    named = name_classes(rows[:200], vectors, rng=rng)
    assert (named.labels == truth[:200]).mean() >= 0.95
    assert (named.predict(rows[200:]) == truth[200:]).mean() >= 0.95
    np.testing.assert_allclose(named.probabilities.sum(1), 1.0)
    assert ((named.name_certainty > 0) & (named.name_certainty <= 1 + 1e-12)).all()
    useless = name_classes(rows[:200], np.eye(5), rng=rng)  # every naming scores the same
    assert (useless.name_certainty < 0.5).all()


def test_labels_overrule_misleading_vectors_also_when_classes_are_uneven(seed):
    rng = np.random.default_rng([seed, 1])
    rows, vectors, truth = blobs(rng, [200, 100, 50, 20])
    labels = np.full(len(truth), -1)
    for cls in range(4):
        labels[np.flatnonzero(truth == cls)[:2]] = cls
    named = name_classes(rows, vectors[::-1].copy(), labels=labels, rng=rng)
    assert (named.labels == truth).mean() >= 0.9
    np.testing.assert_array_equal(named.labels[labels >= 0], labels[labels >= 0])


@pytest.mark.parametrize("shape", [(50, 1), (60, 3000), (200, 4)])
def test_odd_shapes_stay_finite(shape):
    rows = np.random.default_rng(0).standard_normal(shape)
    named = name_classes(rows, np.eye(3), rng=np.random.default_rng(0))
    assert np.isfinite(named.probabilities).all()
    assert set(named.labels.tolist()) <= {0, 1, 2}


def test_training_heads_raises_the_information_that_neighbours_share(seed):
    rng = np.random.default_rng(seed)
    rows, _, truth = blobs(rng, [60] * 4, spread=1.0)
    space = smooth_features(rows.astype(np.float32), n_neighbours=8)
    head = find_head(space, 4, rng)
    assert len(head.trace) == len(head.informations) + 1 == 6
    assert max(head.starts) <= head.information + 0.05 <= np.log(4) + 0.05
    group = apply_head(space.wide, head.weights).argmax(1)
    assert oracle_accuracy(group, truth, 4) >= 0.9
    held = np.eye(4)[truth]
    assert mutual_information(held, np.arange(240)[:, None]) == pytest.approx(np.log(4))
    assert mutual_information(np.full((240, 4), 0.25), space.neighbours) == pytest.approx(0.0)


def test_steps_of_a_head_raise_the_information():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((30, 3)).astype(np.float32)
    head = rng.standard_normal((1, 3, 3)).astype(np.float32)
    near = np.arange(30)[:, None]
    before = mutual_information(apply_head(rows[:, :2], head[0]), near)
    rows[:, 2] = 1.0
    after = train_heads(rows, near, head, rng, n_steps=200)[0]
    assert mutual_information(apply_head(rows[:, :2], after), near) > before + 0.2


def test_off_diagonal_kernels_have_no_row_sums(seed):
    kernel = off_diagonal_kernel(np.random.default_rng(seed).standard_normal((6, 4)))
    np.testing.assert_allclose(kernel.sum(0), 0.0, atol=1e-12)
    np.testing.assert_allclose(np.diag(kernel), 0.0, atol=1e-12)
    assert np.linalg.norm(kernel) == pytest.approx(1.0)


def test_pools_speak_for_the_group_that_lies_at_the_class():
    group = np.repeat(np.arange(3), 5)
    placed = [(np.eye(3)[[2, 0, 1]][group], np.eye(3))]
    assert pool_evidence(placed, group, 3)[0].argmax(1).tolist() == [2, 0, 1]


def by_evidence_alone(evidence):
    return best_assignments([(np.zeros((3, 3)), np.zeros((3, 3)))], evidence, spread=1.0)


def test_pools_count_when_all_their_parts_give_the_same_names():
    shifted = np.eye(3)[[1, 2, 0]]
    geometry = 0.5 * np.eye(3)
    found, note = consult(by_evidence_alone, geometry, np.stack([shifted, 2 * shifted]))
    assert found.best.tolist() == [1, 2, 0]
    assert "used" in note
    assert "3 of 3 other" in note


def test_pools_whose_parts_disagree_change_nothing_and_say_so():
    geometry = 0.5 * np.eye(3)
    parts = np.stack([3 * np.eye(3)[[1, 2, 0]], np.eye(3)[[0, 2, 1]]])
    found, note = consult(by_evidence_alone, geometry, parts)
    np.testing.assert_array_equal(found.best, by_evidence_alone(geometry).best)
    assert "ignored" in note
    assert "1 of 3 names" in note


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


def test_guesses_of_each_class_weigh_five_labels_together_and_one_at_most():
    labels = np.array([0, 1, 2] + [-1] * 112)
    guesses = np.repeat([0, 1, 2], [3 + 100, 10, 2])
    rows, target, weight = rows_to_fit(labels, guesses, 3, np.random.default_rng(0))
    np.testing.assert_array_equal(rows, np.arange(115))
    np.testing.assert_array_equal(target[3:], guesses[3:])
    np.testing.assert_allclose(np.bincount(target[3:], weight[3:]), [5.0, 5.0, 2.0])
    np.testing.assert_allclose(weight[:3], 1.0)


def test_landmarks_stand_in_for_many_rows(seed, monkeypatch):
    rng = np.random.default_rng(seed)
    rows, _, truth = blobs(rng, [100] * 3)
    monkeypatch.setattr(row_classifiers, "N_LANDMARKS", 40)
    space, weights = fit_kernel(rows, truth, truth, 4, rng)
    assert len(space.landmarks) == 40
    found = kernel_probabilities(space, weights, rows)
    assert (found.argmax(1) == truth).mean() >= 0.95
    assert found[:, 3].max() == pytest.approx(0.0)  # no row of the fourth class was seen


def test_neighbours_are_the_largest_inner_products(seed):
    rng = np.random.default_rng(seed)
    queries, base = rng.standard_normal((7, 4)), rng.standard_normal((30, 4))
    expected = np.sort(np.argsort(-queries @ base.T, axis=1)[:, :5], axis=1)
    np.testing.assert_array_equal(nearest_neighbours(queries, base, 5), expected)


def test_smoothing_by_hand():
    rows = np.random.default_rng(0).standard_normal((40, 5)).astype(np.float32)
    space = smooth_features(rows, n_neighbours=4, n_rounds=1)
    index = nearest_neighbours(space.whitened, space.whitened, 4)
    means = np.stack([space.whitened[i].mean(0) for i in index])
    expected = means / np.linalg.norm(means, axis=1, keepdims=True)
    np.testing.assert_allclose(space.smoothed, expected, atol=1e-5)
    np.testing.assert_allclose(space.transform(rows[:6]), space.smoothed[:6], atol=1e-5)


def test_clusters_of_separate_groups_and_held_rows(seed):
    rng = np.random.default_rng(seed)
    centres = np.eye(4)
    truth = np.repeat(np.arange(4), 25)
    rows = centres[truth] + 0.05 * rng.standard_normal((100, 4))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    found = cluster(rows, 4, rng)
    assert len({(a, b) for a, b in zip(truth.tolist(), found.index.tolist(), strict=True)}) == 4
    fixed = np.full(100, -1)
    fixed[0] = 3
    held = spherical_k_means(rows, centres, fixed=fixed)
    assert held.index[0] == 3
    np.testing.assert_array_equal(held.index[1:], truth[1:])


def test_means_of_groups():
    rows = np.array([[1.0], [3.0], [10.0]])
    np.testing.assert_allclose(mean_by(rows, np.array([0, 0, 2]), 3)[[0, 2]], [[2.0], [10.0]])
