"""Kernelized sorting and its starts."""

import numpy as np
import pytest

from unpaired.solvers.kernelized_sorting import gram_factors, kernelized_sorting, principal_start
from unpaired.solvers.quadratic import alignment


def centred_gram(rows):
    rows = rows - rows.mean(0)
    return rows @ rows.T


def test_gram_factors_give_the_gram_matrix_back(seed):
    gram = centred_gram(np.random.default_rng(seed).standard_normal((9, 3)))
    factors = gram_factors(gram, 3)
    np.testing.assert_allclose(factors @ factors.T, gram, atol=1e-9)


def test_the_principal_starts_sort_rows_along_a_line_both_ways(rng):
    x = np.sort(rng.standard_normal(7))[:, None]
    order = rng.permutation(7)
    plans = principal_start(centred_gram(x), centred_gram(3 * x[order]))
    partners = {tuple(plan.argmax(1).tolist()) for plan in plans}
    assert partners == {tuple(np.argsort(order)), tuple(np.argsort(order)[::-1])}


def test_without_a_start_the_better_of_both_directions_is_kept(rng):
    x = rng.gamma(1.0, size=(9, 1))
    order = rng.permutation(9)
    gram_x, gram_y = centred_gram(x), centred_gram(-x[order])
    found = kernelized_sorting(gram_x, gram_y)
    runs = [kernelized_sorting(gram_x, gram_y, plan) for plan in principal_start(gram_x, gram_y)]
    assert found.trace[-1] == max(run.trace[-1] for run in runs)
    assert alignment(gram_x, gram_y, found.partner) == pytest.approx(found.trace[-1])
