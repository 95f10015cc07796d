import itertools

import numpy as np
import pytest
import torch

from unpaired.math.dependence import ukta
from unpaired.published.config import PublishedConfig, resolve
from unpaired.published.matching_step import (
    Aligned,
    align,
    ascend,
    fit_sums,
    matching_step,
    plan_objective,
    ratio_around_one,
    round_plan,
    start_plan,
)
from unpaired.published.objective import gram, scale_latents

NONE = (torch.empty(0, 8).double(),) * 2
NO_CLASSES = (torch.empty(0, 3).double(),) * 2


def permuted(n, rng):
    """Latents of 8 Gaussian dimensions, a permuted copy, and which row is which."""
    z = scale_latents(torch.as_tensor(rng.standard_normal((n, 8))))
    perm = rng.permutation(n)
    return z, z[perm], np.argsort(perm)


def partly_right(truth, share, rng):
    """The truth with a share of its partners kept and the others shuffled among themselves."""
    partner = truth.copy()
    wrong = rng.permutation(len(truth))[int(share * len(truth)) :]
    partner[wrong] = partner[wrong][rng.permutation(len(wrong))]
    return partner


def hard(partner, n_y):
    plan = torch.zeros(len(partner), n_y, dtype=torch.float64)
    plan[torch.arange(len(partner)), torch.as_tensor(partner)] = 1.0
    return plan


@pytest.mark.parametrize("dependence", ["smi", "ukta"])
def test_from_30_percent_right_a_step_finds_nearly_all(dependence, rng):
    z_x, z_y, truth = permuted(200, rng)
    config = PublishedConfig(dependence=dependence)
    begin = partly_right(truth, 0.3, rng)
    assert (begin == truth).mean() < 0.35
    step = matching_step(z_x, z_y, NONE, begin, config, rng)
    assert (step.partner == truth).mean() >= 0.95
    assert step.value >= align(z_x, z_y, NONE, config, rng).dependence(begin, config)
    assert all(np.diff(step.trace) >= 0)


@pytest.mark.parametrize("dependence", ["smi", "ukta"])
def test_identical_latents_are_matched_from_the_uniform_plan(dependence, rng):
    z_x, z_y, truth = permuted(150, rng)
    config, partner = PublishedConfig(dependence=dependence), None
    for _ in range(2):
        partner = matching_step(z_x, z_y, NONE, partner, config, rng).partner
    assert (partner == truth).mean() >= 0.9


@pytest.mark.parametrize("dependence", ["smi", "ukta"])
def test_a_perfect_matching_is_not_left(dependence, rng):
    z_x, z_y, truth = permuted(200, rng)
    config = PublishedConfig(dependence=dependence)
    step = matching_step(z_x, z_y, NONE, truth, config, rng)
    assert (step.partner == truth).mean() >= 0.99
    # Not the safeguard alone: the relaxed plan itself points there.
    assert (step.plan.argmax(1) == truth).mean() >= 0.95


def test_a_matching_of_lower_dependence_is_not_taken(rng):
    z_x, z_y, truth = permuted(40, rng)
    config = PublishedConfig(n_pi_steps=1, n_basis=40)
    aligned = align(z_x, z_y, NONE, config, rng)
    for share in (0.0, 0.5, 1.0):
        begin = partly_right(truth, share, rng)
        step = matching_step(z_x, z_y, NONE, begin, config, rng)
        before = aligned.dependence(begin, config)
        after = aligned.dependence(step.partner, config)
        assert after >= before
        assert step.value == pytest.approx(after)


def grams(n, config, rng):
    """Gram matrices of permuted latents, all rows basis points, nothing known."""
    z_x, z_y, _ = permuted(n, rng)
    return Aligned(
        gram(z_x, config.sigma2_x),
        gram(z_y, config.sigma2_y),
        torch.arange(n),
        torch.arange(n),
        n_known=0,
    )


def test_under_ukta_objective_and_dependence_are_the_measure_for_every_matching(rng):
    config = PublishedConfig(dependence="ukta")
    aligned = grams(4, config, rng)
    objective = plan_objective(aligned, hard(np.arange(4), 4), config)
    for partner in itertools.permutations(range(4)):
        expected = float(ukta(aligned.K, aligned.L, torch.as_tensor(partner))) / 16
        assert float(objective(hard(partner, 4))) == pytest.approx(expected)
        assert aligned.dependence(np.array(partner), config) == pytest.approx(expected)


def test_under_smi_the_objective_is_a_lower_bound_that_touches_at_the_previous_matching(rng):
    config = PublishedConfig()
    aligned, previous = grams(5, config, rng), rng.permutation(5)
    objective = plan_objective(aligned, hard(previous, 5), config)
    alpha, own = _ratio_by_loops(aligned, previous, previous, config.pi_ridge)
    assert aligned.dependence(previous, config) == pytest.approx(own)
    shrinkage = 0.5 * config.pi_ridge * float((alpha**2).sum())  # what the ridge takes off
    for partner in itertools.permutations(range(5)):
        _, value = _ratio_by_loops(aligned, np.array(partner), previous, config.pi_ridge)
        bound = float(objective(hard(partner, 5))) - shrinkage
        assert bound <= value + 1e-12
        if (np.array(partner) == previous).all():
            assert bound == pytest.approx(value)


def _ratio_by_loops(aligned, partner, of_basis, ridge):
    """alpha and SMI of a matching by loops, with the basis pairs of another one."""
    n = len(aligned.K)
    K, L = aligned.K.numpy(), aligned.L.numpy()[np.ix_(partner, of_basis)]
    matched = np.array([K[i] * L[i] for i in range(n)])
    everywhere = np.array([K[i] * L[j] for i in range(n) for j in range(n)])
    centred = everywhere - everywhere.mean(0)
    rise = matched.mean(0) - everywhere.mean(0)
    alpha = np.linalg.solve(centred.T @ centred / n**2 + ridge * np.eye(n), rise)
    return alpha, 0.5 * alpha @ rise


def test_the_dependence_of_a_matching_counts_known_pairs_and_not_rows_left_out(rng):
    config = PublishedConfig(dependence="ukta", n_basis=36)
    z_x, z_y = (torch.as_tensor(rng.standard_normal((n, 3))) for n in (30, 4))
    known = torch.as_tensor(rng.standard_normal((6, 3))), z_y[[2, 0, 2, 2, 0, 3]]
    partner = rng.integers(-1, 4, 30)
    found = align(z_x, z_y, known, config, rng).dependence(partner, config)
    x = torch.cat([known[0], z_x[partner >= 0]])
    y = torch.cat([known[1], z_y[partner[partner >= 0]]])
    expected = gram(x, config.sigma2_x) * gram(y, config.sigma2_y)
    assert found == pytest.approx(float(expected.mean()))


@pytest.mark.parametrize(("n_y", "repeated"), [(4, False), (25, False), (4, True)])
def test_moments_are_those_of_the_aligned_gram_matrix(n_y, repeated, rng):
    z_x, z_y = (torch.as_tensor(rng.standard_normal((n, 3))) for n in (30, n_y))
    known = tuple(torch.as_tensor(rng.standard_normal((6, 3))) for _ in range(2))
    if repeated:  # the vectors of classes, once for each known pair
        known = known[0], z_y[[2, 0, 2, 2, 0, 3]]
    aligned = align(z_x, z_y, known, PublishedConfig(n_basis=10), rng)
    assert len(aligned.L) == n_y + (0 if repeated else 6)
    plan, weights = torch.as_tensor(rng.random((30, n_y))), torch.as_tensor(rng.random((10, 36)))
    L = aligned.of_plan(plan)
    everything = np.zeros((36, 6 + n_y))  # Pi written out
    everything[:6, :6], everything[6:, 6:] = np.eye(6), plan.numpy()
    L_whole = gram(torch.cat([known[1], z_y]), PublishedConfig().sigma2_y).numpy()
    by_hand = everything @ L_whole @ everything.T
    np.testing.assert_allclose(L.numpy(), by_hand[aligned.basis.numpy()])
    total, means, products = aligned.moments(plan, weights, aligned.rows(plan))
    assert float(total) == pytest.approx(float((weights * L).sum()))
    torch.testing.assert_close(means, L.mean(1))
    torch.testing.assert_close(products, L @ L.T)


def test_independence_is_worth_nothing_at_any_ridge(rng):
    K = torch.as_tensor(rng.random((30, 5)))
    for ridge in (1e-3, 1.0, 100.0):
        assert float(ratio_around_one(K, torch.ones(30, 5).double(), ridge)[1]) == pytest.approx(0)


def test_known_pairs_are_held_in_the_step(rng):
    n, k = 30, 12
    z_x, z_y, truth = permuted(n, rng)
    known = (z_x[:k], z_y[truth[:k]])
    rest = np.setdiff1d(np.arange(n), truth[:k])
    config = PublishedConfig()
    aligned = align(z_x[k:], z_y[rest], known, config, rng)
    partner = np.searchsorted(rest, truth[k:])
    # L~ of the right matching is the Gram matrix of y in the order of x.
    expected = gram(z_y[truth], config.sigma2_y)
    torch.testing.assert_close(aligned.of_plan(hard(partner, n - k)), expected)
    step = matching_step(z_x[k:], z_y[rest], known, None, config, rng)
    assert (step.partner == partner).mean() >= 0.9  # from the uniform Pi: known pairs lead it


def classes(rng, sizes=(60, 20, 10)):
    """Latents of rows of some classes, those of the classes, and the class of each row."""
    label = np.repeat(np.arange(len(sizes)), sizes)
    corners = np.eye(len(sizes))
    z = 4.0 * corners[label] + 0.3 * rng.standard_normal((len(label), len(sizes)))
    return scale_latents(torch.as_tensor(z)), scale_latents(torch.as_tensor(corners)), label


def test_with_free_column_sums_ukta_collapses_and_smi_does_not(rng):
    z_x, z_y, label = classes(rng)
    begin = partly_right(label, 0.7, rng)
    config = resolve({"dependence": "ukta", "relation": "many-to-one"})
    assert len(np.unique(matching_step(z_x, z_y, NO_CLASSES, begin, config, rng).partner)) == 1
    config = resolve({"dependence": "smi", "relation": "many-to-one"})
    step = matching_step(z_x, z_y, NO_CLASSES, begin, config, rng)
    assert (step.partner == label).mean() >= 0.97


def test_sums_after_a_step_solve_the_penalised_problem(rng):
    logs = torch.as_tensor(rng.standard_normal((6, 4)))
    shift = torch.as_tensor(rng.standard_normal(4))
    stiffness = 3.0
    rows_only = fit_sums(logs, torch.zeros(4), stiffness, balanced=False)
    # Stationarity, entry by entry: log P - logs = -stiffness (row sum - 1).
    expected = -stiffness * (rows_only.sum(1) - 1.0)[:, None].expand(6, 4)
    torch.testing.assert_close(rows_only.log() - logs, expected)
    both = fit_sums(logs, shift, stiffness, balanced=True)
    expected = -stiffness * ((both.sum(1) - 1.0)[:, None] + (both.sum(0) - 1.0)[None, :])
    torch.testing.assert_close(both.log() - logs - shift, expected, rtol=0, atol=2e-2)


def test_a_larger_penalty_brings_the_sums_nearer_to_one(rng):
    z_x, z_y, truth = permuted(30, rng)
    errors = []
    for lam_pi in (0.02, 1.0):
        config = PublishedConfig(dependence="ukta", lam_pi=lam_pi)
        plan = matching_step(z_x, z_y, NONE, truth, config, rng).plan
        errors.append(np.abs(plan.sum(1) - 1.0).mean())
    assert errors[1] < errors[0] / 5


@pytest.mark.parametrize("relation", ["one-to-one", "many-to-one"])
def test_what_rises_is_the_dependence_minus_the_penalty(relation, rng):
    config = PublishedConfig(dependence="ukta", relation=relation, lam_pi=0.5, n_pi_steps=10)
    aligned = grams(12, config, rng)
    begin = torch.as_tensor(start_plan(rng.permutation(12), 12, 12, relation))
    plan, trace = ascend(begin, plan_objective(aligned, begin, config), config)
    errors = sum((float(plan[k].sum()) - 1.0) ** 2 for k in range(12))
    if relation == "one-to-one":
        errors += sum((float(plan[:, k].sum()) - 1.0) ** 2 for k in range(12))
    value = float((aligned.K * (plan @ aligned.L @ plan.T)).mean())
    assert trace[-1] == pytest.approx(value - 0.5 * errors)
    assert errors > 1e-8


def test_many_to_one_drops_the_column_term(rng):
    z_x, z_y, label = classes(rng)  # column sums far from 1, and from each other
    config = PublishedConfig(relation="many-to-one")
    step = matching_step(z_x, z_y, NO_CLASSES, partly_right(label, 0.7, rng), config, rng)
    np.testing.assert_allclose(step.plan.sum(1), 1.0, atol=0.1)
    assert step.plan.sum(0).max() > 40


def test_the_start_is_uniform_or_half_of_the_matching():
    np.testing.assert_allclose(start_plan(None, 4, 4, "one-to-one"), 0.25)
    np.testing.assert_allclose(start_plan(None, 6, 2, "many-to-one"), 0.5)
    plan = start_plan(np.array([1, -1]), 2, 2, "one-to-one")
    np.testing.assert_allclose(plan, [[0.25, 0.75], [0.5, 0.5]])


def test_rounding_gives_each_row_its_own_partner_or_its_best():
    plan = np.array([[0.9, 0.1], [0.8, 0.7]])
    np.testing.assert_array_equal(round_plan(plan, "one-to-one"), [0, 1])
    np.testing.assert_array_equal(round_plan(plan, "many-to-one"), [0, 0])


def test_unequal_sizes_leave_rows_out(rng):
    z_x, z_y, truth = permuted(40, rng)
    step = matching_step(
        z_x, z_y[:30], NONE, np.where(truth < 30, truth, -1), PublishedConfig(), rng
    )
    matched = step.partner[step.partner >= 0]
    assert len(matched) == len(np.unique(matched)) == 30


def test_the_ascent_ends_after_the_steps_it_may_take(rng):
    config = PublishedConfig(n_pi_steps=3, dependence="ukta")
    begin = torch.as_tensor(start_plan(None, 30, 30, "one-to-one"))
    _, trace = ascend(begin, plan_objective(grams(30, config, rng), begin, config), config)
    assert 2 <= len(trace) <= 4


def test_basis_points_are_drawn_up_to_their_number(rng):
    z_x, z_y, truth = permuted(60, rng)
    begin = partly_right(truth, 0.5, rng)
    values = [
        matching_step(z_x, z_y, NONE, begin, PublishedConfig(n_basis=n, n_pi_steps=2), rng).trace[0]
        for n in (20, 60, 500)
    ]
    assert values[0] != pytest.approx(values[1], abs=1e-6)
    assert values[1] == pytest.approx(values[2], abs=1e-12)
