"""Rows of y of which each is known to belong to one row of x, and pairs among free rows."""

import itertools

import numpy as np
import pytest
import torch
from unpaired.models.placing import (
    describe_partners,
    free_pairs,
    match_free,
    one_to_one,
    place_rows,
)

from unpaired.types import Objective


def test_captions_of_one_image_become_their_mean(rng):
    y = rng.standard_normal((7, 3))
    known = np.array([[4, 5], [4, 1], [2, 3], [4, 0]])
    rows, kept, pairs = one_to_one(y, known)
    assert kept.tolist() == [0, 2, 3, 4, 6]
    assert pairs.tolist() == [[2, 2], [4, 0]]
    np.testing.assert_allclose(rows[0], y[[0, 1, 5]].mean(0))
    np.testing.assert_array_equal(rows[1:], y[[2, 3, 4, 6]])


def test_a_row_of_y_in_two_pairs_is_given_to_one(rng):
    y = rng.standard_normal((4, 2))
    rows, kept, pairs = one_to_one(y, np.array([[0, 1], [3, 1]]))
    np.testing.assert_array_equal(rows, y)
    assert kept.tolist() == [0, 1, 2, 3]
    assert pairs.tolist() == [[0, 1]]


def test_without_known_pairs_nothing_changes(rng):
    y = rng.standard_normal((4, 2))
    rows, kept, pairs = one_to_one(y, np.empty((0, 2), dtype=np.int64))
    np.testing.assert_array_equal(rows, y)
    assert len(kept) == 4
    assert pairs.shape == (0, 2)


def test_partners_among_free_rows_are_pairs_of_row_numbers():
    free = np.array([3, 5, 8]), np.array([2, 7])
    assert free_pairs(np.array([1, -1, 0]), free).tolist() == [[3, 7], [8, 2]]


class Identity:
    """A space in which rows are where they are."""

    def placed(self, rows, view):
        return rows


def test_free_rows_are_described_among_free_rows_and_known_pairs_as_given(rng):
    views = tuple(torch.tensor(rng.standard_normal((n, 4))) for n in (9, 8))
    pairs = np.array([[2, 5], [2, 1], [7, 0]])
    free = np.setdiff1d(np.arange(9), pairs[:, 0]), np.setdiff1d(np.arange(8), pairs[:, 1])
    placed = place_rows(Identity(), views, free)
    scores = (views[0] @ views[1].T).numpy()
    chosen = match_free(placed, "one-to-one")
    found = describe_partners(
        placed, chosen, free, pairs, views, Objective(1.0), relation="one-to-one"
    )

    best = max(
        itertools.permutations(range(7), 5),
        key=lambda rows: scores[free[0][list(rows)], free[1]].sum(),
    )
    partner = np.full(9, -1)
    partner[free[0][list(best)]] = free[1]
    partner[[2, 7]] = 5, 0
    np.testing.assert_array_equal(found.partner, partner)
    assert found.runner_up[[2, 7]].tolist() == [-1, -1]
    np.testing.assert_array_equal(found.confidence[[2, 7]], 1.0)
    for row in free[0]:
        others = [c for c in free[1] if c != partner[row]]
        assert found.runner_up[row] == max(others, key=lambda c: scores[row, c])
        if partner[row] >= 0:
            gap = scores[row, partner[row]] - scores[row, found.runner_up[row]]
            assert found.margin[row] == pytest.approx(gap)


def test_nothing_free_leaves_the_known_pairs(rng):
    views = tuple(torch.tensor(rng.standard_normal((3, 2))) for _ in range(2))
    free = np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)
    pairs = np.array([[0, 2], [1, 0], [2, 1]])
    placed = place_rows(Identity(), views, free)
    found = describe_partners(
        placed,
        match_free(placed, "one-to-one"),
        free,
        pairs,
        views,
        Objective(0.0),
        relation="one-to-one",
    )
    assert found.partner.tolist() == [2, 0, 1]
    assert found.confidence.tolist() == [1.0, 1.0, 1.0]
