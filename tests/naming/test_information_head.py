"""Heads that maximise what neighbours share."""

import numpy as np
import pytest

from unpaired.evaluation.classifier import oracle_accuracy
from unpaired.naming.information_head import (
    apply_head,
    find_head,
    mutual_information,
    share_groups,
    train_heads,
)
from unpaired.naming.smooth_space import smooth_features


def blobs(rng, size, n_classes=4, spread=1.0):
    centres = 3.0 * rng.standard_normal((n_classes, 10))
    truth = rng.permutation(np.repeat(np.arange(n_classes), size))
    rows = centres[truth] + spread * rng.standard_normal((len(truth), 10))
    return rows.astype(np.float32), truth


def test_mutual_information_by_loops(rng):
    probabilities = rng.dirichlet(np.ones(3), size=20)
    neighbours = rng.integers(20, size=(20, 4))
    joint = np.zeros((3, 3))
    for row in range(20):
        for other in neighbours[row]:
            joint += np.outer(probabilities[row], probabilities[other]) / (20 * 4)
    joint = (joint + joint.T) / 2
    margin = joint.sum(0)
    expected = sum(
        joint[i, j] * np.log(joint[i, j] / margin[i] / margin[j])
        for i in range(3)
        for j in range(3)
    )
    assert mutual_information(probabilities, neighbours) == pytest.approx(expected, abs=1e-9)


def test_information_is_full_for_sure_groups_and_none_for_even_shares():
    held = np.eye(4)[np.repeat(np.arange(4), 60)]
    near = np.arange(240)[:, None]
    assert mutual_information(held, near) == pytest.approx(np.log(4))
    assert mutual_information(np.full((240, 4), 0.25), near) == pytest.approx(0.0)


def test_training_heads_raises_the_information_that_neighbours_share(seed):
    rng = np.random.default_rng(seed)
    rows, truth = blobs(rng, 60)
    space = smooth_features(rows, n_neighbours=8)
    head = find_head(space, 4, rng)
    assert len(head.trace) == len(head.informations) + 1 == 6
    assert max(head.starts) <= head.information + 0.05
    assert head.information <= np.log(4) + 1e-6  # in single precision
    group = apply_head(space.wide, head.weights).argmax(1)
    assert oracle_accuracy(group, truth, 4) >= 0.9
    np.testing.assert_array_equal(group, head.trace[-1])


@pytest.mark.parametrize("n_rounds", [0, 2])
def test_rounds_are_recorded(n_rounds, seed):
    rng = np.random.default_rng(seed)
    space = smooth_features(blobs(rng, 20)[0], n_neighbours=5)
    head = find_head(space, 4, rng, n_rounds=n_rounds)
    assert len(head.informations) == len(head.trace) - 1 == n_rounds
    assert head.information == (head.informations[-1] if n_rounds else max(head.starts))


def test_steps_of_a_head_raise_the_information():
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((30, 3)).astype(np.float32)
    head = rng.standard_normal((1, 3, 3)).astype(np.float32)
    near = np.arange(30)[:, None]
    before = mutual_information(apply_head(rows[:, :2], head[0]), near)
    rows[:, 2] = 1.0
    after = train_heads(rows, near, head, rng, n_steps=200)[0]
    assert mutual_information(apply_head(rows[:, :2], after), near) > before + 0.2


def test_probabilities_are_a_softmax_with_intercepts_last(rng):
    inputs, weights = rng.standard_normal((5, 3)), rng.standard_normal((4, 2))
    logits = inputs @ weights[:3] + weights[3]
    expected = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    np.testing.assert_allclose(apply_head(inputs, weights), expected)


def test_groups_that_are_partly_wrong_are_mended_by_their_neighbours(seed):
    rng = np.random.default_rng(seed)
    rows, truth = blobs(rng, 60, spread=0.7)
    space = smooth_features(rows, n_neighbours=8)
    index = truth.copy()
    wrong = rng.permutation(240)[:50]
    index[wrong] = rng.integers(4, size=50)
    mended = share_groups(space, index, 4, rng)
    assert (mended == truth).mean() > max(0.9, (index == truth).mean())
