"""A caller's own start: partners or a plan, restricted, made a guess, and refused."""

import numpy as np
import pytest

from unpaired.errors import InputError
from unpaired.problem.given_start import GIVEN, check_start


def test_partners_and_the_plan_that_says_the_same_are_one_start(rng):
    partner = np.array([2, -1, 0, 5, 3])
    plan = np.zeros((5, 6))
    plan[[0, 2, 3, 4], [2, 0, 5, 3]] = 1.0
    x, y = rng.normal(size=(5, 2)), rng.normal(size=(6, 3))
    by_partner, by_plan = check_start(partner, 5, 6), check_start(plan, 5, 6)
    rows_x, rows_y = np.array([0, 2, 2, 4]), np.array([0, 2, 3])
    np.testing.assert_array_equal(by_partner.block(rows_x, rows_y), by_plan.block(rows_x, rows_y))
    np.testing.assert_array_equal(by_plan.block(rows_x, rows_y), plan[rows_x][:, rows_y])
    one, other = by_partner.guess(x, y), by_plan.guess(x, y)
    for name in ("left", "right", "weight"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name))
    np.testing.assert_array_equal(one.right, y[[2, 0, 5, 3]])
    assert one.name == other.name == by_plan.name == GIVEN


def test_restricted_starts_keep_partners_that_are_still_there():
    start = check_start(np.array([2, -1, 0, 5, 3]), 5, 6)
    found = start.restrict(np.array([0, 1, 3, 4]), np.array([2, 3, 4]))
    assert found.partner.tolist() == [0, -1, -1, 1]
    assert found.n_y == 3
    plan = np.arange(1.0, 31.0).reshape(5, 6)
    some = check_start(plan, 5, 6).restrict(np.array([1, 4]), np.array([0, 5]))
    np.testing.assert_array_equal(some.plan, plan[[1, 4]][:, [0, 5]])


def test_rows_of_y_that_a_sample_should_hold():
    start = check_start(np.array([2, -1, 0, 2, 3]), 5, 6)
    assert start.partners_of(np.array([0, 1, 3])).tolist() == [2]
    assert check_start(np.eye(5), 5, 5).partners_of(np.array([0])).tolist() == []


def test_a_plan_is_a_guess_of_mean_partners(rng):
    plan = rng.random((4, 3))
    plan[1] = 0.0
    x, y = rng.normal(size=(4, 2)), rng.normal(size=(3, 2))
    guess = check_start(plan, 4, 3).guess(x, y)
    expected = [sum(plan[i, j] * y[j] for j in range(3)) / plan[i].sum() for i in (0, 2, 3)]
    np.testing.assert_allclose(guess.right, expected)
    np.testing.assert_array_equal(guess.left, x[[0, 2, 3]])
    np.testing.assert_allclose(guess.weight, plan[[0, 2, 3]].sum(1))


def test_a_start_that_a_selection_left_nothing_of_guesses_nothing(rng):
    start = check_start(np.array([2, -1, 0]), 3, 3)
    empty = start.restrict(np.array([1, 2]), np.array([1, 2]))
    assert empty.guess(rng.normal(size=(2, 2)), rng.normal(size=(2, 2))) is None


@pytest.mark.parametrize(
    ("start", "message"),
    [
        (
            np.zeros(9, int),
            "start must hold a row of y, or -1, for each of the 10 rows of x, or be a plan of "
            "shape (10, 8): it has shape (9,).",
        ),
        (
            np.ones((8, 10)),
            "start as a plan must have shape (10, 8), rows of x by rows of y: it has (8, 10). "
            "Transpose it, or pass a partner per row of x.",
        ),
        (
            np.full((10, 8), -2.0),
            "start as a plan must hold weights >= 0, some above 0: the least is -2, the largest "
            "-2. Exponentiate scores first.",
        ),
        (
            np.zeros((10, 8)),
            "start as a plan must hold weights >= 0, some above 0: the least is 0, the largest 0. "
            "Exponentiate scores first.",
        ),
        (
            np.full((10, 8), np.nan),
            "start must be finite: 80 values are NaN or infinite, the first at row 0, column 0. "
            "Impute them or drop those rows.",
        ),
        (
            np.arange(10),
            "start must name rows of y between 0 and 7, or -1: row 8 names 8. Rows count from 0.",
        ),
        (
            np.full(10, -2),
            "start must name rows of y between 0 and 7, or -1: row 0 names -2. Rows count from 0.",
        ),
        (
            np.full(10, 0.5),
            "start must hold whole row numbers: its type is float64. Use -1 where the partner is "
            "unknown.",
        ),
        (
            np.full(10, "a"),
            "start must hold whole row numbers: its type is <U1. Use -1 where the partner is "
            "unknown.",
        ),
        (
            np.full(10, -1),
            "start must name at least one row of y: all are -1. Leave it out.",
        ),
    ],
)
def test_what_cannot_be_used_is_refused_with_a_sentence(start, message):
    with pytest.raises(InputError) as caught:
        check_start(start, 10, 8)
    assert str(caught.value) == message
