"""Spherical k-means and means of groups."""

import numpy as np

from unpaired.naming.clustering import (
    cluster,
    follow_seeds,
    mean_by,
    spherical_k_means,
    sum_by,
)


def groups(rng, sizes):
    """Unit rows around the axes, and the axis of each."""
    truth = np.repeat(np.arange(len(sizes)), sizes)
    rows = np.eye(len(sizes))[truth] + 0.05 * rng.standard_normal((len(truth), len(sizes)))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True), truth


def test_clusters_of_separate_groups_and_held_rows(seed):
    rng = np.random.default_rng(seed)
    rows, truth = groups(rng, [25] * 4)
    found = cluster(rows, 4, rng)
    assert len({(a, b) for a, b in zip(truth.tolist(), found.index.tolist(), strict=True)}) == 4
    own = (rows * found.centres[found.index]).sum(1)
    assert np.isclose(found.fit, own.mean())
    fixed = np.full(100, -1)
    fixed[0] = 3
    held = spherical_k_means(rows, np.eye(4), fixed=fixed)
    assert held.index[0] == 3
    np.testing.assert_array_equal(held.index[1:], truth[1:])


def test_more_starts_are_never_worse(seed):
    rows = np.random.default_rng(seed).standard_normal((80, 5))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    fits = [cluster(rows, 6, np.random.default_rng(3), n_init=n).fit for n in (1, 8)]
    assert fits[1] >= fits[0]


def test_an_empty_cluster_takes_the_loneliest_row():
    rows = np.array([[1.0, 0.0], [1.0, 0.01], [0.0, 1.0]])
    found = spherical_k_means(rows, np.array([[1.0, 0.0], [-1.0, 0.0]]))
    assert found.index.tolist() == [0, 0, 1]


def test_means_and_sums_of_groups():
    rows = np.array([[1.0], [3.0], [10.0], [100.0]])
    index = np.array([0, 0, 2, -1])
    np.testing.assert_allclose(sum_by(rows, index, 3), [[4.0], [0.0], [10.0]])
    np.testing.assert_allclose(mean_by(rows, index, 3), [[2.0], [28.5], [10.0]])


def test_seeds_are_followed_also_to_uneven_groups_and_to_one_without_a_label(seed):
    rows, truth = groups(np.random.default_rng(seed), [90, 20, 8, 5])
    labels = np.full(len(truth), -1)
    for group in (0, 1, 2):  # the fourth has no label: its seed is the farthest row
        labels[np.flatnonzero(truth == group)[0]] = group
    found = follow_seeds(rows, labels, 4)
    np.testing.assert_array_equal(found.index, truth)
