"""Known pairs in which a row occurs several times, made pairs in which none does."""

import numpy as np

from unpaired.problem.merging import merged_partners


def test_captions_of_one_image_become_their_mean(rng):
    y = rng.standard_normal((7, 3))
    known = np.array([[4, 5], [4, 1], [2, 3], [4, 0]])
    rows, kept, pairs = merged_partners(y, known)
    assert kept.tolist() == [0, 2, 3, 4, 6]
    assert pairs.tolist() == [[2, 2], [4, 0]]
    np.testing.assert_allclose(rows[0], y[[0, 1, 5]].mean(0))
    np.testing.assert_array_equal(rows[1:], y[[2, 3, 4, 6]])


def test_a_row_of_y_in_two_pairs_is_given_to_one(rng):
    y = rng.standard_normal((4, 2))
    rows, kept, pairs = merged_partners(y, np.array([[0, 1], [3, 1]]))
    np.testing.assert_array_equal(rows, y)
    assert kept.tolist() == [0, 1, 2, 3]
    assert pairs.tolist() == [[0, 1]]


def test_without_known_pairs_nothing_changes_and_the_rows_are_a_copy(rng):
    y = rng.standard_normal((4, 2))
    rows, kept, pairs = merged_partners(y, np.empty((0, 2), dtype=np.int64))
    np.testing.assert_array_equal(rows, y)
    assert rows is not y
    assert len(kept) == 4
    assert pairs.shape == (0, 2)
