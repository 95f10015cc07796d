"""Side information: one meaning for matrices and shared columns, in every form it is asked for."""

import numpy as np
import pytest

from unpaired.errors import InputError
from unpaired.problem.side_information import IN_FAVOUR, check_side_information


@pytest.fixture
def given(rng):
    shared = rng.standard_normal((9, 3)), rng.standard_normal((7, 3)) * 2.0 + 1.0
    return rng.standard_normal((9, 7)), shared


def everything(side):
    n_x, n_y = side.matrix.shape if side.matrix is not None else map(len, side.vectors)
    return side.block(np.arange(n_x), np.arange(n_y))


def test_a_matrix_is_standardised(given):
    matrix, _ = given
    side = check_side_information(5.0 * matrix - 2.0, None, 9, 7)
    np.testing.assert_allclose(everything(side), (matrix - matrix.mean()) / matrix.std())


def test_shared_columns_are_standardised_minus_squared_distances(given):
    _, (left, right) = given
    side = check_side_information(None, (left, right), 9, 7)
    deviation = np.concatenate([left, right]).std(0)
    expected = np.array([[-(((a - b) / deviation) ** 2).sum() for b in right] for a in left])
    expected = (expected - expected.mean()) / expected.std()
    np.testing.assert_allclose(everything(side), expected, atol=1e-12)


def test_units_of_shared_columns_and_columns_that_do_not_vary_say_nothing(given):
    _, (left, right) = given
    before = everything(check_side_information(None, (left, right), 9, 7))
    scaled = [
        np.c_[side * [1e3, 1e-3, 7.0] + 4.0, np.full(len(side), 5.0)] for side in (left, right)
    ]
    np.testing.assert_allclose(
        everything(check_side_information(None, scaled, 9, 7)), before, atol=1e-8
    )


def test_it_is_the_same_for_blocks_pairs_and_restricted_rows(given):
    matrix, shared = given
    side = check_side_information(matrix, shared, 9, 7)
    full = everything(side)
    alone = [check_side_information(*one, 9, 7) for one in ((matrix, None), (None, shared))]
    np.testing.assert_allclose(full, everything(alone[0]) + everything(alone[1]))
    rows_x, rows_y = np.array([2, 5]), np.array([1, 3, 6])
    np.testing.assert_allclose(side.block(rows_x, rows_y), full[rows_x][:, rows_y])
    np.testing.assert_allclose(side.at(rows_x[:, None], rows_y), full[rows_x][:, rows_y])
    np.testing.assert_allclose(side.at(np.array([0, 8]), np.array([6, 0])), full[[0, 8], [6, 0]])
    for each in (side, *alone):
        part = each.restrict(rows_x, rows_y)
        np.testing.assert_allclose(
            part.block(np.arange(2), np.arange(3)), each.block(rows_x, rows_y)
        )


def test_what_tells_no_pairs_apart_is_none():
    assert check_side_information(None, None, 9, 7) is None
    assert check_side_information(None, (np.ones((9, 2)), np.ones((7, 2))), 9, 7) is None
    assert check_side_information(np.full((9, 7), 3.0), None, 9, 7) is None


def test_a_guess_gives_rows_the_mean_of_the_partners_it_names(rng):
    x, y = rng.normal(size=(12, 2)), rng.normal(size=(12, 3))
    order = rng.permutation(12)
    similarity = np.zeros((12, 12))
    similarity[np.arange(12), order] = 1.0
    guess = check_side_information(similarity, None, 12, 12).guess(x, y)
    np.testing.assert_array_equal(guess.left, x)
    np.testing.assert_allclose(guess.right, y[order], atol=1e-3)
    assert guess.weight.sum() == pytest.approx(1.0)


def test_a_matching_is_favoured_from_four_standard_errors_on(rng):
    order = rng.permutation(200)
    similarity = rng.standard_normal((200, 200))
    truth = similarity.copy()
    truth[np.arange(200), order] += 1.0
    side = check_side_information(truth, None, 200, 200)
    assert side.favours(order)
    assert not side.favours(rng.permutation(200))
    assert not side.favours(np.full(200, -1))
    for count in (1, 5, 10, 20, 40, 80):  # the same mean is clear only over enough rows
        some = np.where(np.arange(200) < count, order, -1)
        clear = side.at(np.arange(count), order[:count]).mean() * count**0.5 > IN_FAVOUR
        assert side.favours(some) == clear
    assert not side.favours(np.where(np.arange(200) < 5, order, -1))


@pytest.mark.parametrize(
    ("similarity", "shared", "message"),
    [
        (
            np.eye(7),
            None,
            "similarity must have shape (9, 7), rows of x by rows of y: it has (7, 7). Transpose "
            "it, or compute it for all pairs.",
        ),
        (
            None,
            np.ones((9, 2)),
            "shared must be a pair (columns of x, columns of y) that mean the same on both sides: "
            "got ndarray. Write shared=(x_columns, y_columns).",
        ),
        (
            None,
            (np.ones((9, 2)),),
            "shared must be a pair (columns of x, columns of y) that mean the same on both sides: "
            "got tuple. Write shared=(x_columns, y_columns).",
        ),
        (
            None,
            (np.ones((8, 2)), np.ones((7, 2))),
            "shared columns of x must have one row per row of x: x has 9 rows, the columns 8. "
            "Keep both in the same order.",
        ),
        (
            None,
            (np.ones((9, 2)), np.ones((8, 2))),
            "shared columns of y must have one row per row of y: y has 7 rows, the columns 8. "
            "Keep both in the same order.",
        ),
        (
            None,
            (np.eye(9), np.ones((7, 2))),
            "shared must have the same columns on both sides: 9 for x, 2 for y. Column k must "
            "mean the same.",
        ),
        (
            None,
            (np.full((9, 1), np.inf), np.ones((7, 1))),
            "shared columns of x must be finite: 9 values are NaN or infinite, the first at row "
            "0, column 0. Impute them or drop those rows.",
        ),
    ],
)
def test_what_cannot_be_used_is_refused_with_a_sentence(similarity, shared, message):
    with pytest.raises(InputError) as caught:
        check_side_information(similarity, shared, 9, 7)
    assert str(caught.value) == message
