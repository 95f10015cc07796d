"""What every solver works on: the objective, plans, and the gate of Gram matrices."""

import numpy as np
import pytest

from unpaired.errors import InputError
from unpaired.solvers.quadratic import (
    alignment,
    check_gram,
    fix_known,
    partner_matrix,
    uniform_plan,
)


def centred_gram(rows):
    rows = rows - rows.mean(0)
    return rows @ rows.T


def isometric(n, rng, d=4, gram=centred_gram):
    """Gram matrices of the same rows in two orders, and the true partner of each row of x."""
    rows = rng.standard_normal((n, d)) * np.linspace(2.0, 1.0, d)
    order = rng.permutation(n)
    return gram(rows), gram(rows[order]), np.argsort(order)


def test_alignment_is_the_trace_with_the_plan_written_out(seed):
    rng = np.random.default_rng(seed)
    gram_x, gram_y, _ = isometric(5, rng)
    partner = np.array([2, -1, 0, 4, 3])
    plan = partner_matrix(partner, 5)
    assert alignment(gram_x, gram_y, partner) == pytest.approx(
        np.trace(gram_x @ plan @ gram_y @ plan.T)
    )


@pytest.mark.parametrize(
    ("gram", "message"),
    [
        (np.ones((2, 3)), "gram_x must be a square matrix: it has shape (2, 3)"),
        (np.array([[0.0, 1.0], [2.0, 0.0]]), "gram_x must be symmetric: entries differ"),
        (np.array([[np.nan, 1.0], [1.0, 0.0]]), "gram_x must be finite: 1 entries are not"),
    ],
)
def test_wrong_gram_matrices_are_named(gram, message):
    with pytest.raises(InputError) as caught:
        check_gram(gram, "gram_x")
    assert message in str(caught.value)


def test_plans_of_partners_of_nothing_and_with_known_pairs():
    partner = np.array([1, -1, 0])
    assert partner_matrix(partner, 2).tolist() == [[0, 1], [0, 0], [1, 0]]
    plan = uniform_plan(3, 4)
    assert (plan == 0.25).all()
    fixed = uniform_plan(3, 4, np.array([[0, 2]]))
    assert fixed[0].tolist() == [0, 0, 1, 0]
    assert fixed[1:, 2].tolist() == [0, 0]
    np.testing.assert_array_equal(fixed[1:][:, [0, 1, 3]], 0.25)
    assert fix_known(plan, None) is plan
    assert fix_known(plan, np.empty((0, 2), dtype=int)) is plan
    assert (plan == 0.25).all()  # a copy was fixed
