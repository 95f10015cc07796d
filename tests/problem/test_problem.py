"""The one gate: what it lets through, every sentence it refuses with, and problems of some rows."""

import numpy as np
import pytest
import torch

from unpaired.errors import InputError
from unpaired.problem.problem import MANY_TO_ONE, ONE_TO_ONE, Problem, check_problem, within

ROWS = np.random.default_rng(0).random((10, 3))
MANY = {"relation": MANY_TO_ONE, "y": ROWS[:4]}


def check(**change):
    given = {"x": ROWS, "y": ROWS, **change}
    return check_problem(given.pop("x"), given.pop("y"), given.pop("pairs", None), **given)


def test_the_plainest_problem():
    found = check()
    assert isinstance(found, Problem)
    np.testing.assert_array_equal(found.x, ROWS)
    assert found.known.shape == found.forbidden.shape == (0, 2)
    assert found.relation == ONE_TO_ONE
    assert found.leave_out is False
    assert found.side is found.start is found.class_sizes is None
    assert found.weights == (None, None)
    assert found.guesses() == []


def test_everything_that_may_come_with_a_problem():
    found = check(
        y=torch.tensor(ROWS[:8]),
        pairs=[[0, 1], [0, 1], [3, 2]],
        forbidden=[[5, 5]],
        similarity=np.arange(80).reshape(10, 8),
        shared=(ROWS[:, :1], ROWS[:8, :1]),
        weights=(np.arange(10), None),
        start=np.full(10, 3),
        leave_out="auto",
    )
    assert found.known.tolist() == [[0, 1], [3, 2]]
    assert found.forbidden.tolist() == [[5, 5]]
    assert found.leave_out is True
    assert found.side.matrix.shape == (10, 8)
    assert found.start.partner.tolist() == [3] * 10
    assert [rows.tolist() for rows in found.counted] == [list(range(1, 10)), list(range(8))]
    assert [guess.name for guess in found.guesses()] == ["given start", "side information"]


@pytest.mark.parametrize(("given", "meant"), [("auto", True), (True, True), (False, False)])
def test_rows_may_be_left_out_when_it_is_said(given, meant):
    assert check(leave_out=given).leave_out is meant


def test_many_to_one_takes_sizes_and_pairs_of_one_class_with_many_rows():
    found = check(**MANY, pairs=[[0, 1], [2, 1], [0, 1]], class_sizes=[3, 3, 2, 2])
    assert found.known.tolist() == [[0, 1], [2, 1]]
    assert found.class_sizes.tolist() == [3, 3, 2, 2]


ONE_OR_MANY = (
    "must be left out for many-to-one: every row of x gets one of the few rows of y, and all "
    "namings are tried. Pass what is known as pairs, or what is likely as similarity."
)
AUTO = ' "auto" leaves out the rows whose match is more probably wrong than right.'


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"relation": "many2one"},
            'Unknown relation "many2one". Did you mean "many-to-one"? Known: many-to-one, '
            "one-to-one.",
        ),
        ({"relation": 1}, 'Unknown relation "1". Known: many-to-one, one-to-one.'),
        (
            {"class_sizes": [1] * 10},
            "class_sizes must be None for one-to-one, where each row of y takes one row of x: got "
            'a value. Leave it out, or pass relation="many-to-one".',
        ),
        (
            {**MANY, "class_sizes": [3, 3, 3]},
            "class_sizes must hold 4 whole numbers, one for each row of y: got an array of shape "
            "(3,) and type int64. Say how many rows of x each may take.",
        ),
        (
            {**MANY, "class_sizes": [1.5, 3, 3, 3]},
            "class_sizes must hold 4 whole numbers, one for each row of y: got an array of shape "
            "(4,) and type float64. Say how many rows of x each may take.",
        ),
        (
            {**MANY, "class_sizes": [3, 1, 3, 3], "pairs": [[0, 1], [2, 1]]},
            "class_sizes must leave room for the known pairs: row 1 of y may take 1 rows and has "
            "more known pairs. Raise it.",
        ),
        ({**MANY, "start": np.zeros(10, int)}, f"start {ONE_OR_MANY}"),
        ({**MANY, "leave_out": True}, f"leave_out {ONE_OR_MANY}"),
        ({**MANY, "leave_out": "auto"}, f"leave_out {ONE_OR_MANY}"),
        (
            {"relation": MANY_TO_ONE, "x": ROWS[:4]},
            "many-to-one needs at least as many rows in x as in y: x has 4, y has 10. Swap them, "
            "or use one-to-one.",
        ),
        (
            {**MANY, "weights": (None, np.arange(4.0))},
            "weights of y must be None for many-to-one: each row of y is one class, and how many "
            "rows it takes is class_sizes.",
        ),
        ({"leave_out": 0.3}, 'leave_out must be "auto", True or False: got 0.3.' + AUTO),
        ({"leave_out": 1}, 'leave_out must be "auto", True or False: got 1.' + AUTO),
        ({"leave_out": None}, 'leave_out must be "auto", True or False: got None.' + AUTO),
        ({"leave_out": "yes"}, "leave_out must be \"auto\", True or False: got 'yes'." + AUTO),
        (
            {**MANY, "pairs": [[3, 1], [3, 2], [5, 0]]},
            "pairs must give each row of x one row of y in many-to-one: row 3 of x has [1, 2]. "
            "Keep one of them.",
        ),
        (
            {"pairs": [[0, 1], [0, 2]]},
            "pairs must be one to one: row 0 of x is paired with rows [1, 2]. Keep one of them, "
            'or use relation="many-to-one" or DMAE, which takes several.',
        ),
        (
            {"pairs": [[0, 1], [5, 1]]},
            "pairs must be one to one: row 1 of y is paired with rows [0, 5]. Keep one of them, "
            'or use relation="many-to-one" or DMAE, which takes several.',
        ),
        (
            {"pairs": [[0, 99]]},
            "pairs must name rows of y between 0 and 9: pair 0 names 99. Rows count from 0.",
        ),
        (
            {"pairs": np.arange(11)[:, None].repeat(2, 1)},
            "pairs must name rows of x between 0 and 9: pair 10 names 10. Rows count from 0.",
        ),
        (
            {"forbidden": "aligned"},
            'forbidden must be a (k, 2) integer array: got "aligned". List the pairs.',
        ),
        (
            {"forbidden": [[0, 99]]},
            "forbidden must name rows of y between 0 and 9: pair 0 names 99. Rows count from 0.",
        ),
        (
            {"forbidden": [1, 2]},
            "forbidden must have shape (k, 2), one (row of x, row of y) each: it has shape (2,). "
            "Stack the two index arrays with numpy.column_stack.",
        ),
        (
            {"pairs": [[4, 4], [0, 1]], "forbidden": [[3, 3], [0, 1], [4, 4]]},
            "pairs and forbidden must not share a pair: both name (0, 1). Drop it from one.",
        ),
        (
            {"x": np.ones((10, 3))},
            "x must have rows that differ: all 10 rows are equal, so there is nothing to match "
            "by. Check how the features were made.",
        ),
        (
            {"y": np.ones((1, 3))},
            "y must have at least 2 rows and 1 column: it has shape (1, 3). One row has no "
            "geometry to match by; pass more rows.",
        ),
    ],
)
def test_what_cannot_be_used_is_refused_with_a_sentence(change, message):
    with pytest.raises(InputError) as caught:
        check(**change)
    assert str(caught.value) == message


def test_a_restricted_problem_is_the_problem_of_those_rows(rng):
    x, y = rng.normal(size=(9, 3)), rng.normal(size=(8, 2))
    similarity = rng.normal(size=(9, 8))
    start = np.array([0, 1, 2, 3, 4, 5, 6, 7, -1])
    full = check_problem(
        x,
        y,
        [[1, 2], [4, 7], [8, 0]],
        forbidden=[[1, 4], [2, 2], [6, 4]],
        similarity=similarity,
        shared=(x[:, :1], y[:, :1]),
        weights=(rng.random(9), np.array([1, 1, 2, 2, 3, 2, 2, 1.0])),
        start=start,
        leave_out=True,
    )
    rows_x, rows_y = np.array([1, 3, 6, 8]), np.array([2, 3, 4, 6])
    found = full.restrict(rows_x, rows_y)
    np.testing.assert_array_equal(found.x, x[rows_x])
    np.testing.assert_array_equal(found.y, y[rows_y])
    assert found.known.tolist() == [[0, 0]]
    assert found.forbidden.tolist() == [[0, 2], [2, 2]]
    block = full.side.block(rows_x, rows_y)
    np.testing.assert_allclose(found.side.block(np.arange(4), np.arange(4)), block)
    np.testing.assert_array_equal(found.weights[0], full.weights[0][rows_x])
    np.testing.assert_array_equal(found.weights[1], full.weights[1][rows_y])
    assert found.start.partner.tolist() == [-1, 1, 3, -1]  # rows 1, 3, 6 -> 1, 3, 6 of y
    assert found.leave_out
    assert found.relation == full.relation


def test_weights_that_became_alike_are_none(rng):
    full = check(weights=(np.array([0, 2, 2, 2, 0, 2, 2, 2, 2, 2.0]), None))
    assert full.restrict(*full.counted).weights == (None, None)


def test_pairs_within_a_selection_are_counted_within_it():
    pairs = np.array([[5, 1], [2, 9], [7, 3], [2, 4]])
    found = within(pairs, np.array([2, 5, 7]), np.array([1, 4, 9]))
    assert found.tolist() == [[1, 0], [0, 2], [0, 1]]
    assert within(pairs[:0], np.array([0]), np.array([0])).shape == (0, 2)
