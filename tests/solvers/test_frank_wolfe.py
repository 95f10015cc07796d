"""Many-to-one by Frank-Wolfe against brute force."""

from itertools import product

import numpy as np
import pytest

from unpaired.solvers.frank_wolfe import semi_relaxed
from unpaired.solvers.quadratic import alignment, partner_matrix


def centred_gram(rows):
    rows = rows - rows.mean(0)
    return rows @ rows.T


def test_semi_relaxed_reaches_the_brute_force_optimum(seed):
    rng = np.random.default_rng(seed)
    gram_x = centred_gram(rng.standard_normal((6, 3)))
    gram_y = centred_gram(rng.standard_normal((3, 3)))
    optimum = max((gram_x * gram_y[np.ix_(p, p)]).sum() for p in product(range(3), repeat=6))
    reached = []
    for _ in range(300):
        start = 0.5 / 3 + 0.5 * partner_matrix(rng.integers(3, size=6), 3)
        solution = semi_relaxed(gram_x, gram_y, start, np.array([]).reshape(0, 2))
        assert (solution.partner >= 0).all()
        reached.append(alignment(gram_x, gram_y, solution.partner))
    assert max(reached) == pytest.approx(optimum)


def test_semi_relaxed_keeps_known_pairs(seed):
    rng = np.random.default_rng(seed)
    gram_x = centred_gram(rng.standard_normal((9, 3)))
    gram_y = centred_gram(rng.standard_normal((3, 3)))
    known = np.array([[4, 2], [7, 2]])
    assert semi_relaxed(gram_x, gram_y, None, known).partner[[4, 7]].tolist() == [2, 2]
