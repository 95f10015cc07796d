"""Equal rows, against comparing all of them."""

import numpy as np

from unpaired.math.copies import copies_of, first_copies


def test_groups_and_counts_by_comparing_all_rows(rng):
    rows = rng.integers(0, 2, size=(40, 3)).astype(float)
    rows[3] = -0.0 * rows[3]  # zeros of either sign are equal
    group, counts = copies_of(rows)
    same = (rows[:, None] == rows[None]).all(2)
    np.testing.assert_array_equal(group[:, None] == group[None], same)
    np.testing.assert_array_equal(counts, same.sum(1))
    expected = [i for i in range(40) if not same[i, :i].any()]
    assert first_copies(rows).tolist() == expected


def test_rows_that_all_differ_are_their_own_copies(rng):
    rows = rng.standard_normal((30, 2)).astype(np.float32)
    assert (copies_of(rows)[1] == 1).all()
    assert first_copies(rows).tolist() == list(range(30))
    every_other = copies_of(rows[::2, ::-1])  # also of rows that do not lie side by side
    assert (every_other[1] == 1).all()
