"""The convex relaxation: the same problem on permutations, convex beyond them."""

from itertools import permutations

import numpy as np
import pytest

from unpaired.errors import InputError
from unpaired.solvers.convex_sorting import (
    convex_sorting,
    mismatch,
    mismatch_gradient,
    penalised_convex_sorting,
)
from unpaired.solvers.quadratic import alignment, partner_matrix


def centred_gram(rows):
    rows = rows - rows.mean(0)
    return rows @ rows.T


def gaussian_gram(rows):
    distances = ((rows[:, None] - rows[None]) ** 2).sum(2)
    return np.exp(-distances / np.median(distances))


def test_the_convex_objective_is_the_same_problem_on_permutations(seed):
    rng = np.random.default_rng(seed)
    gram_x, gram_y = (centred_gram(rng.standard_normal((5, 3))) for _ in "xy")
    constant = (gram_x**2).sum() + (gram_y**2).sum()
    for p in permutations(range(5)):
        expected = constant - 2.0 * alignment(gram_x, gram_y, np.array(p))
        assert mismatch(gram_x, gram_y, partner_matrix(np.array(p), 5)) == pytest.approx(expected)


def test_the_relaxed_problem_is_convex_and_its_gradient_right(seed):
    rng = np.random.default_rng(seed)
    gram_x, gram_y = (centred_gram(rng.standard_normal((6, 3))) for _ in "xy")
    for _ in range(20):
        a, b = rng.random((2, 6, 6))
        middle = mismatch(gram_x, gram_y, (a + b) / 2)
        assert middle <= (mismatch(gram_x, gram_y, a) + mismatch(gram_x, gram_y, b)) / 2 + 1e-9
    step = 1e-6 * rng.standard_normal((6, 6))
    forward = mismatch(gram_x, gram_y, a + step) - mismatch(gram_x, gram_y, a - step)
    assert forward / 2 == pytest.approx(
        (mismatch_gradient(gram_x, gram_y, a) * step).sum(), rel=1e-4
    )


def test_convex_sorting_ends_in_one_optimum_from_every_start(seed):
    rng = np.random.default_rng(seed)
    gram_x, gram_y = (gaussian_gram(rng.standard_normal((7, 3))) for _ in "xy")
    ends = [
        convex_sorting(
            gram_x, gram_y, partner_matrix(rng.permutation(7), 7), max_iter=3000, tol=1e-3
        )
        for _ in range(3)
    ]
    values = [mismatch(gram_x, gram_y, end.plan) for end in ends]
    assert max(values) - min(values) <= 4e-3 * mismatch(gram_x, gram_y, np.eye(7))
    for end in ends:
        np.testing.assert_allclose(end.plan.sum(0), 1.0)
        np.testing.assert_allclose(end.plan.sum(1), 1.0)
    bound = min(
        mismatch(gram_x, gram_y, partner_matrix(np.array(p), 7)) for p in permutations(range(7))
    )
    assert min(values) <= bound + 1e-9


def test_penalised_form_nears_the_projected_one_as_the_penalty_grows(seed):
    rng = np.random.default_rng(seed)
    gram_x, gram_y = (gaussian_gram(rng.standard_normal((8, 3))) for _ in "xy")
    errors = []
    for weight in (0.01, 1.0, 100.0):
        plan = penalised_convex_sorting(gram_x, gram_y, sum_penalty=weight, max_iter=5000).plan
        assert (plan >= 0).all()
        errors.append(np.abs(plan.sum(1) - 1).max())
    assert errors[0] > errors[1] > errors[2]


@pytest.mark.parametrize("solve", [convex_sorting, penalised_convex_sorting])
def test_convex_sorting_refuses_unequal_sizes(solve):
    with pytest.raises(InputError, match="needs equally many rows: x has 3, y has 4"):
        solve(np.eye(3), np.eye(4))
