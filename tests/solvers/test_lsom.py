"""SMI over matchings: its gradient, its rise, and the sign of its penalty."""

import numpy as np
import pytest

from unpaired.errors import InputError
from unpaired.solvers.lsom import lsom, penalised_lsom, ratio_of_plan, smi_gradient
from unpaired.solvers.quadratic import partner_matrix


def gaussian_gram(rows):
    distances = ((rows[:, None] - rows[None]) ** 2).sum(2)
    return np.exp(-distances / np.median(distances))


def isometric(n, rng, d=4, gram=gaussian_gram):
    """Gram matrices of the same rows in two orders, and the true partner of each row of x."""
    rows = rng.standard_normal((n, d)) * np.linspace(2.0, 1.0, d)
    order = rng.permutation(n)
    return gram(rows), gram(rows[order]), np.argsort(order)


def test_lsom_raises_smi_and_its_gradient_is_right(seed):
    rng = np.random.default_rng(seed)
    gram_x, gram_y, truth = isometric(15, rng, gram=gaussian_gram)
    blurred = truth.copy()
    blurred[:4] = np.roll(truth[:4], 1)
    solution = lsom(gram_x, gram_y, partner_matrix(blurred, 15))
    assert len(solution.trace) > 1
    assert (np.diff(solution.trace) > 0).all()
    plan = rng.random((15, 15)) / 15
    coef, value = ratio_of_plan(gram_x, gram_y, plan, 1e-3)

    def smi_with_fixed_coef(p):
        return np.trace(np.diag(coef) @ gram_x @ p @ gram_y @ p.T) / 30 - 0.5

    assert smi_with_fixed_coef(plan) == pytest.approx(value)
    step = 1e-6 * rng.standard_normal((15, 15))
    forward = smi_with_fixed_coef(plan + step) - smi_with_fixed_coef(plan - step)
    gradient = smi_gradient(gram_x, gram_y, plan, coef)
    assert forward / 2 == pytest.approx((gradient * step).sum(), rel=1e-4)


def test_the_penalty_is_subtracted_so_more_of_it_brings_the_sums_to_one(seed):
    rng = np.random.default_rng(seed)
    gram_x, gram_y, _ = isometric(12, rng, gram=gaussian_gram)
    errors = [
        np.abs(penalised_lsom(gram_x, gram_y, sum_penalty=weight).plan.sum(1) - 1.0).mean()
        for weight in (0.0, 1.0, 30.0)
    ]
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.1


def test_lsom_refuses_more_rows_in_x():
    with pytest.raises(InputError, match="needs a partner for every row of x"):
        lsom(np.eye(4), np.eye(3))
