"""Every solver against brute force, against the others, and on what it must keep."""

from itertools import permutations, product

import numpy as np
import pytest

from unpaired.errors import InputError
from unpaired.registry import solvers
from unpaired.solvers.convex_sorting import (
    convex_sorting,
    mismatch,
    mismatch_gradient,
    penalised_convex_sorting,
)
from unpaired.solvers.frank_wolfe import annealed_sinkhorn, frank_wolfe, semi_relaxed
from unpaired.solvers.kernelized_sorting import (
    gram_factors,
    kernelized_sorting,
    procrustes_hungarian,
)
from unpaired.solvers.lsom import lsom, penalised_lsom, ratio_of_plan, smi_gradient
from unpaired.solvers.quadratic import alignment, check_gram, plan_of

ONE_TO_ONE = sorted(set(solvers) - {"semi-relaxed"})
UKTA = ["annealed-sinkhorn", "frank-wolfe", "kernelized-sorting"]


def centred_gram(rows):
    rows = rows - rows.mean(0)
    return rows @ rows.T


def gaussian_gram(rows):
    distances = ((rows[:, None] - rows[None]) ** 2).sum(2)
    return np.exp(-distances / np.median(distances))


def isometric(n, rng, d=4, gram=centred_gram):
    """Gram matrices of the same rows in two orders, and the true partner of each row of x."""
    rows = rng.standard_normal((n, d)) * np.linspace(2.0, 1.0, d)
    order = rng.permutation(n)
    return gram(rows), gram(rows[order]), np.argsort(order)


def best_by_brute_force(gram_x, gram_y):
    n = len(gram_x)
    return max(alignment(gram_x, gram_y, np.array(p)) for p in permutations(range(n)))


def test_alignment_is_the_trace_with_the_plan_written_out(seed):
    rng = np.random.default_rng(seed)
    gram_x, gram_y, _ = isometric(5, rng)
    partner = np.array([2, -1, 0, 4, 3])
    plan = plan_of(partner, 5)
    assert alignment(gram_x, gram_y, partner) == pytest.approx(
        np.trace(gram_x @ plan @ gram_y @ plan.T)
    )


@pytest.mark.parametrize("name", UKTA)
@pytest.mark.parametrize("n", [4, 6, 7])
def test_best_of_random_starts_reaches_the_brute_force_optimum(name, n, seed):
    rng = np.random.default_rng([seed, n])
    gram_x = centred_gram(rng.standard_normal((n, 3)))
    gram_y = centred_gram(rng.standard_normal((n, 3)))
    optimum = best_by_brute_force(gram_x, gram_y)
    reached = []
    for _ in range(20 if name == "annealed-sinkhorn" else 300):
        start = 0.5 / n + 0.5 * plan_of(rng.permutation(n), n)
        partner = solvers[name](gram_x, gram_y, start).partner
        assert sorted(partner.tolist()) == list(range(n))
        reached.append(alignment(gram_x, gram_y, partner))
    assert max(reached) == pytest.approx(optimum)
    assert max(reached) <= optimum * (1 + 1e-12)


@pytest.mark.parametrize("name", ONE_TO_ONE)
def test_a_good_start_is_refined_to_the_truth(name, seed):
    """From a start with a fifth of the rows shuffled, every solver finds an isometric truth."""
    rng = np.random.default_rng(seed)
    kernel = gaussian_gram if "lsom" in name or "convex" in name else centred_gram
    gram_x, gram_y, truth = isometric(30, rng, gram=kernel)
    blurred = truth.copy()
    blurred[:6] = rng.permutation(truth[:6])
    solution = solvers[name](gram_x, gram_y, 0.7 * plan_of(blurred, 30) + 0.3 / 30)
    assert (solution.partner == truth).mean() >= 0.9


@pytest.mark.parametrize("name", ONE_TO_ONE)
def test_known_pairs_are_kept_even_when_wrong(name, seed):
    rng = np.random.default_rng(seed)
    gram_x, gram_y, truth = isometric(12, rng)
    known = np.array([[0, truth[1]], [5, truth[5]]])
    solution = solvers[name](gram_x, gram_y, None, known)
    assert solution.partner[0] == truth[1]
    assert solution.partner[5] == truth[5]
    assert sorted(solution.partner.tolist()) == list(range(12))


@pytest.mark.parametrize("name", ["frank-wolfe", "kernelized-sorting", "procrustes-hungarian"])
def test_each_step_raises_the_objective(name, seed):
    rng = np.random.default_rng(seed)
    gram_x, gram_y = (centred_gram(rng.standard_normal((25, 4))) for _ in "xy")
    solution = solvers[name](gram_x, gram_y, plan_of(rng.permutation(25), 25))
    assert (np.diff(solution.trace) >= -1e-9 * np.abs(solution.trace[:-1])).all()
    assert solution.converged


@pytest.mark.parametrize("name", ["annealed-sinkhorn", "frank-wolfe", "kernelized-sorting"])
@pytest.mark.parametrize(("n_x", "n_y"), [(8, 5), (5, 8)])
def test_unequal_sizes_leave_the_surplus_out(name, n_x, n_y, seed):
    rng = np.random.default_rng(seed)
    gram_x, gram_y = (centred_gram(rng.standard_normal((n, 3))) for n in (n_x, n_y))
    partner = solvers[name](gram_x, gram_y).partner
    used = partner[partner >= 0]
    assert len(used) == min(n_x, n_y) == len(set(used.tolist()))


def test_semi_relaxed_reaches_the_brute_force_optimum(seed):
    rng = np.random.default_rng(seed)
    gram_x = centred_gram(rng.standard_normal((6, 3)))
    gram_y = centred_gram(rng.standard_normal((3, 3)))
    optimum = max((gram_x * gram_y[np.ix_(p, p)]).sum() for p in product(range(3), repeat=6))
    reached = []
    for _ in range(40):
        start = 0.5 / 3 + 0.5 * plan_of(rng.integers(3, size=6), 3)
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


def test_the_convex_objective_is_the_same_problem_on_permutations(seed):
    rng = np.random.default_rng(seed)
    gram_x, gram_y = (centred_gram(rng.standard_normal((5, 3))) for _ in "xy")
    constant = (gram_x**2).sum() + (gram_y**2).sum()
    for p in permutations(range(5)):
        expected = constant - 2.0 * alignment(gram_x, gram_y, np.array(p))
        assert mismatch(gram_x, gram_y, plan_of(np.array(p), 5)) == pytest.approx(expected)


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
        convex_sorting(gram_x, gram_y, plan_of(rng.permutation(7), 7), max_iter=3000, tol=1e-4)
        for _ in range(4)
    ]
    values = [mismatch(gram_x, gram_y, end.plan) for end in ends]
    assert max(values) - min(values) <= 2e-3 * mismatch(gram_x, gram_y, np.eye(7))
    for end in ends:
        np.testing.assert_allclose(end.plan.sum(0), 1.0)
        np.testing.assert_allclose(end.plan.sum(1), 1.0)
    bound = min(mismatch(gram_x, gram_y, plan_of(np.array(p), 7)) for p in permutations(range(7)))
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


def test_lsom_raises_smi_and_its_gradient_is_right(seed):
    rng = np.random.default_rng(seed)
    gram_x, gram_y, truth = isometric(15, rng, gram=gaussian_gram)
    blurred = truth.copy()
    blurred[:4] = np.roll(truth[:4], 1)
    solution = lsom(gram_x, gram_y, plan_of(blurred, 15))
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


def test_gram_factors_give_the_gram_matrix_back(seed):
    gram = centred_gram(np.random.default_rng(seed).standard_normal((9, 3)))
    factors = gram_factors(gram, 3)
    np.testing.assert_allclose(factors @ factors.T, gram, atol=1e-9)


def test_solvers_agree_on_an_easy_case(seed):
    rng = np.random.default_rng(seed)
    gram_x, gram_y, truth = isometric(20, rng)
    start = 0.8 * plan_of(truth, 20) + 0.2 / 20
    for solve in (frank_wolfe, kernelized_sorting, annealed_sinkhorn, procrustes_hungarian):
        np.testing.assert_array_equal(solve(gram_x, gram_y, start).partner, truth)


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


@pytest.mark.parametrize("name", sorted(solvers))
def test_every_solver_names_wrong_input(name):
    for gram_x, start, message in (
        (np.array([[0.0, 1.0], [2.0, 0.0]]), None, "gram_x must be symmetric"),
        (np.ones((2, 3)), None, "gram_x must be a square matrix"),
        (np.eye(2), np.ones((2, 3)), "start must be a finite plan of shape (2, 2): it has shape"),
    ):
        with pytest.raises(InputError) as caught:
            solvers[name](gram_x, np.eye(2), start)
        assert message in str(caught.value)
    with pytest.raises(InputError):
        solvers[name](np.eye(3), np.eye(3), None, np.array([[0, 1], [0, 2]]))


@pytest.mark.parametrize("name", ONE_TO_ONE)
def test_one_row_indefinite_and_constant_gram_matrices_get_an_answer(name, seed):
    assert solvers[name](np.eye(1), np.eye(1)).partner.tolist() == [0]
    gram = np.random.default_rng(seed).standard_normal((6, 6))
    for matrix in (gram + gram.T, np.ones((6, 6)), np.zeros((6, 6))):
        found = solvers[name](matrix, matrix)
        assert sorted(found.partner.tolist()) == list(range(6))
        assert np.isfinite(found.plan).all()


@pytest.mark.parametrize("solve", [convex_sorting, penalised_convex_sorting])
def test_convex_sorting_refuses_unequal_sizes(solve):
    with pytest.raises(InputError, match="needs equally many rows: x has 3, y has 4"):
        solve(np.eye(3), np.eye(4))


def test_lsom_refuses_more_rows_in_x():
    with pytest.raises(InputError, match="needs a partner for every row of x"):
        lsom(np.eye(4), np.eye(3))
