"""Signatures: rows are alike when their similarities to all others are distributed alike."""

import numpy as np

from unpaired.plans.assignment import assign
from unpaired.solvers.signatures import signature_scores


def gram(rows):
    rows = rows - rows.mean(0)
    return rows @ rows.T


def test_scores_are_minus_distances_between_quantile_functions(rng):
    grams = gram(rng.standard_normal((5, 3))), gram(rng.standard_normal((7, 3)))
    levels = np.linspace(0, 1, 64)
    signatures = [np.array([np.quantile(row, levels) for row in g]) for g in grams]
    signatures = [s / s.std() for s in signatures]
    expected = [[-np.linalg.norm(a - b) for b in signatures[1]] for a in signatures[0]]
    np.testing.assert_allclose(signature_scores(*grams), expected)


def test_rotated_and_shuffled_rows_find_each_other(rng):
    rows = rng.standard_normal((40, 4)) * [4, 3, 2, 1]
    order = rng.permutation(40)
    turned = 5.0 * rows[order] @ np.linalg.qr(rng.standard_normal((4, 4)))[0]
    scores = signature_scores(gram(rows), gram(turned))
    np.testing.assert_array_equal(assign(-scores), np.argsort(order))


def test_rows_that_are_all_alike_have_the_same_score():
    assert (signature_scores(np.zeros((3, 3)), np.zeros((4, 4))) == 0).all()
