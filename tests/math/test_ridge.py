"""Ridge regression against scikit-learn, and by what must be the same."""

import numpy as np
import pytest
import torch
from sklearn.linear_model import Ridge

from unpaired.math.ridge import choose_ridge, ridge_map


@pytest.fixture
def problem(rng):
    rows = rng.normal(size=(40, 5)) * np.array([3.0, 2.0, 1.0, 1.0, 0.5]) + 4.0
    return torch.tensor(rows), torch.tensor(
        rows @ rng.normal(size=(5, 3)) + rng.normal(size=(40, 3))
    )


@pytest.mark.parametrize("ridge", [1e-6, 0.01, 2.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_it_is_scikit_learns_with_the_ridge_in_units_of_the_variance(problem, rng, ridge, weighted):
    rows, target = problem
    weights = rng.random(40) + 0.1 if weighted else np.ones(40)
    share = weights / weights.sum()
    centred = rows.numpy() - share @ rows.numpy()
    total = float((share[:, None] * centred**2).sum())
    # scikit-learn adds alpha to sums over rows, not to means
    expected = Ridge(alpha=ridge * total * weights.sum()).fit(rows, target, sample_weight=weights)
    slope, level = ridge_map(rows, target, ridge, torch.tensor(weights) if weighted else None)
    np.testing.assert_allclose(slope, expected.coef_.T, rtol=1e-6)
    np.testing.assert_allclose(level[0], expected.intercept_, rtol=1e-6)


def test_predictions_feel_no_shift_and_no_common_scale(problem):
    rows, target = problem

    def predicted(given):
        slope, level = ridge_map(given, target, 0.1)
        return given @ slope + level

    before = predicted(rows)
    torch.testing.assert_close(predicted(rows + 100.0), before)
    torch.testing.assert_close(predicted(7.0 * rows), before)


def test_rows_that_do_not_vary_predict_the_mean(problem):
    _, target = problem
    slope, level = ridge_map(torch.ones(40, 2, dtype=torch.float64), target, 0.1)
    prediction = torch.ones(1, 2, dtype=torch.float64) @ slope + level
    torch.testing.assert_close(prediction[0], target.mean(0))


@pytest.mark.parametrize("noise", [0.01, 3.0])
def test_the_chosen_ridge_is_the_one_of_least_generalised_error(rng, noise):
    """Against the formula with the hat matrix itself."""
    rows = torch.tensor(rng.normal(size=(30, 8)) * np.geomspace(3, 0.1, 8))
    target = rows @ torch.tensor(rng.normal(size=(8, 3)))
    target = target + noise * torch.tensor(rng.normal(size=(30, 3)))
    ridges = np.geomspace(1e-6, 10, 15).tolist()
    centred = rows - rows.mean(0)
    errors = []
    for ridge in ridges:
        total = float(centred.square().sum()) / 30
        gram = centred.T @ centred / 30 + ridge * total * torch.eye(8)
        hat = centred @ torch.linalg.solve(gram, centred.T) / 30 + 1 / 30
        missed = float((target - hat @ target).square().sum())
        errors.append(missed / float(30 - hat.trace()) ** 2)
    assert choose_ridge(rows, target, ridges) == ridges[int(np.argmin(errors))]


def test_a_row_of_weight_two_chooses_like_two_rows(problem):
    rows, target = problem
    ridges = np.geomspace(1e-6, 10, 15).tolist()
    twice = torch.cat([rows, rows[:9]]), torch.cat([target, target[:9]])
    weights = torch.ones(40)
    weights[:9] = 2.0
    assert choose_ridge(rows, target, ridges, weights) == choose_ridge(*twice, ridges)
