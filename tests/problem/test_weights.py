"""Row weights: how they are checked, and rows that stand as often as they weigh."""

import numpy as np
import pytest

from unpaired.errors import InputError
from unpaired.problem.weights import check_weights, repeated


def test_weights_have_mean_one_over_rows_that_count_and_none_when_alike():
    assert check_weights(None, 3, 4) == (None, None)
    assert check_weights((np.full(3, 7.0), None), 3, 4) == (None, None)
    weight, other = check_weights((np.array([0.0, 2.0, 4.0]), [1, 1, 2, 4]), 3, 4)
    np.testing.assert_allclose(weight, [0.0, 2 / 3, 4 / 3])
    np.testing.assert_allclose(other, [0.5, 0.5, 1.0, 2.0])


def test_whole_weights_are_met_exactly(rng):
    assert repeated(np.array([0.5, 1.5, 0.0, 1.0]), 4, rng).tolist() == [0, 1, 1, 1, 3, 3]
    assert repeated(None, 4, rng) == slice(None)


def test_other_weights_are_met_on_average(rng):
    weight = rng.random(50)
    counts = np.bincount(repeated(weight, 1000, rng), minlength=50)
    assert counts.sum() <= 50
    assert np.abs(counts - counts.sum() * weight / weight.sum()).max() <= 1.0
    light = np.concatenate([np.ones(30), np.full(20, 1e-4)])
    assert (np.bincount(repeated(light, 50, rng), minlength=50)[:30] == 1).all()


def test_a_typical_row_stands_once_and_rows_come_in_order(rng):
    weight = rng.gamma(0.5, size=400) + 1e-3
    drawn = repeated(weight, 400, rng)
    assert (np.diff(drawn) >= 0).all()
    order = np.sort(weight)
    typical = order[np.searchsorted(order.cumsum(), 0.5 * order.sum())]
    assert len(drawn) == round(weight.sum() / typical)
    counts = np.bincount(drawn, minlength=400)
    assert counts[weight == typical][0] in (0, 1, 2)
    assert len(repeated(weight, 30, rng)) == 30


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (
            np.ones(10),
            "weights must be a pair (weights of x, weights of y), either of them None: got "
            "ndarray. Write weights=(w_x, None) for rows of x only.",
        ),
        (
            (np.ones(10),),
            "weights must be a pair (weights of x, weights of y), either of them None: got "
            "tuple. Write weights=(w_x, None) for rows of x only.",
        ),
        (
            (np.ones(9), None),
            "weights of x must hold one number per row: x has 10 rows, the weights 9. Pass "
            "weights in the order of the rows.",
        ),
        (
            (None, np.array([1, 1, -1, 1, 1])),
            "weights of y must not be negative: row 2 has -1. Use 0 for rows that must not count.",
        ),
        (
            (np.full(10, np.nan), None),
            "weights of x must be finite: 10 values are NaN or infinite, the first at row 0, "
            "column 0. Impute them or drop those rows.",
        ),
        (
            (np.eye(10)[0], None),
            "weights of x must be above 0 for at least two rows: 1 are. Without them there is no "
            "geometry to match by.",
        ),
    ],
)
def test_what_cannot_be_used_is_refused_with_a_sentence(weights, message):
    with pytest.raises(InputError) as caught:
        check_weights(weights, 10, 5)
    assert str(caught.value) == message
