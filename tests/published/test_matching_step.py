import itertools

import numpy as np
import pytest
import torch

from unpaired.math.dependence import smi, ukta
from unpaired.published.config import PublishedConfig
from unpaired.published.matching_step import (
    ascend,
    fit_sums,
    matched_dependence,
    matching_step,
    plan_objective,
    round_plan,
    start_plan,
)
from unpaired.published.objective import gram, scale_latents


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
    step = matching_step(z_x, z_y, begin, config, rng)
    assert (step.partner == truth).mean() >= 0.95
    K, L = gram(z_x, config.sigma2_x), gram(z_y, config.sigma2_y)
    before = matched_dependence(K, L, torch.arange(200), begin, config)
    assert step.value >= before
    assert all(np.diff(step.trace) >= 0)


@pytest.mark.parametrize("dependence", ["smi", "ukta"])
def test_a_perfect_matching_is_not_left(dependence, rng):
    z_x, z_y, truth = permuted(200, rng)
    config = PublishedConfig(dependence=dependence)
    step = matching_step(z_x, z_y, truth, config, rng)
    assert (step.partner == truth).mean() >= 0.99
    # Not the safeguard alone: the relaxed plan itself points there.
    assert (step.plan.argmax(1) == truth).mean() >= 0.95


def test_a_matching_of_lower_dependence_is_not_taken(rng):
    z_x, z_y, truth = permuted(40, rng)
    config = PublishedConfig(n_pi_steps=1, n_basis=40)
    K, L = gram(z_x, config.sigma2_x), gram(z_y, config.sigma2_y)
    everything = torch.arange(40)
    for share in (0.0, 0.5, 1.0):
        begin = partly_right(truth, share, rng)
        step = matching_step(z_x, z_y, begin, config, rng)
        before = matched_dependence(K, L, everything, begin, config)
        after = matched_dependence(K, L, everything, step.partner, config)
        assert after >= before
        assert step.value == pytest.approx(after)


@pytest.mark.parametrize("dependence", ["smi", "ukta"])
def test_dependence_of_a_matching_is_the_measure_of_the_paper(dependence, rng):
    z_x, z_y, _ = permuted(12, rng)
    config = PublishedConfig(dependence=dependence)
    K, L = gram(z_x, config.sigma2_x), gram(z_y, config.sigma2_y)
    partner = rng.permutation(12)
    perm = torch.as_tensor(partner)
    found = matched_dependence(K, L, torch.arange(12), partner, config)
    if dependence == "smi":
        assert found == pytest.approx(float(smi(K, L, perm, ratio_ridge=config.pi_ridge)))
    else:
        assert found == pytest.approx(float(ukta(K, L, perm)) / 12**2)


def test_under_ukta_the_step_objective_is_the_measure_for_every_matching(rng):
    z_x, z_y, _ = permuted(4, rng)
    config = PublishedConfig(dependence="ukta")
    K, L = gram(z_x, config.sigma2_x), gram(z_y, config.sigma2_y)
    objective = plan_objective(K, L, torch.arange(4), hard(np.arange(4), 4), config)
    for partner in itertools.permutations(range(4)):
        expected = float(ukta(K, L, torch.as_tensor(partner))) / 16
        assert float(objective(hard(partner, 4))) == pytest.approx(expected)


def test_under_smi_the_step_objective_is_a_lower_bound_that_touches_at_the_previous_matching(rng):
    z_x, z_y, _ = permuted(5, rng)
    config = PublishedConfig()
    K, L = gram(z_x, config.sigma2_x), gram(z_y, config.sigma2_y)
    previous = rng.permutation(5)
    objective = plan_objective(K, L, torch.arange(5), hard(previous, 5), config)
    alpha = _alpha(K, L, previous, config.pi_ridge)
    shrinkage = 0.5 * config.pi_ridge * float((alpha**2).sum())  # what the ridge takes off
    for partner in itertools.permutations(range(5)):
        value = float(smi(K, L, torch.as_tensor(partner), ratio_ridge=config.pi_ridge))
        assert float(objective(hard(partner, 5))) - shrinkage <= value + 1e-12
    touched = float(smi(K, L, torch.as_tensor(previous), ratio_ridge=config.pi_ridge))
    assert float(objective(hard(previous, 5))) - shrinkage == pytest.approx(touched)


def _alpha(K, L, partner, ridge):
    """alpha by loops over the paper's sums."""
    n = len(K)
    aligned = L[np.ix_(partner, partner)]
    H, h = np.zeros((n, n)), np.zeros(n)
    for l in range(n):
        h[l] = sum(float(K[i, l] * aligned[i, l]) for i in range(n)) / n
        for m in range(n):
            left = sum(float(K[i, l] * K[i, m]) for i in range(n))
            right = sum(float(aligned[j, l] * aligned[j, m]) for j in range(n))
            H[l, m] = left * right / n**2
    return np.linalg.solve(H + ridge * np.eye(n), h)


def classes(rng, sizes=(60, 20, 10)):
    """Latents of rows of some classes, those of the classes, and the class of each row."""
    label = np.repeat(np.arange(len(sizes)), sizes)
    corners = np.eye(len(sizes))
    z = 4.0 * corners[label] + 0.3 * rng.standard_normal((len(label), len(sizes)))
    return scale_latents(torch.as_tensor(z)), scale_latents(torch.as_tensor(corners)), label


def test_with_free_column_sums_ukta_collapses_and_smi_does_not(rng):
    z_x, z_y, label = classes(rng)
    begin = partly_right(label, 0.7, rng)
    config = PublishedConfig(dependence="ukta", relation="many-to-one")
    assert len(np.unique(matching_step(z_x, z_y, begin, config, rng).partner)) == 1
    config = PublishedConfig(dependence="smi", relation="many-to-one")
    step = matching_step(z_x, z_y, begin, config, rng)
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
        plan = matching_step(z_x, z_y, truth, config, rng).plan
        errors.append(np.abs(plan.sum(1) - 1.0).mean())
    assert errors[1] < errors[0] / 5


def test_many_to_one_drops_the_column_term(rng):
    z_x, z_y, label = classes(rng)  # column sums far from 1, and from each other
    config = PublishedConfig(relation="many-to-one")
    step = matching_step(z_x, z_y, partly_right(label, 0.7, rng), config, rng)
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
    step = matching_step(z_x, z_y[:30], np.where(truth < 30, truth, -1), PublishedConfig(), rng)
    matched = step.partner[step.partner >= 0]
    assert len(matched) == len(np.unique(matched)) == 30


def test_the_ascent_ends_after_the_steps_it_may_take(rng):
    z_x, z_y, truth = permuted(30, rng)
    config = PublishedConfig(n_pi_steps=3)
    K, L = gram(z_x, config.sigma2_x), gram(z_y, config.sigma2_y)
    begin = torch.as_tensor(start_plan(None, 30, 30, "one-to-one"))
    _, trace = ascend(begin, plan_objective(K, L, torch.arange(30), begin, config), config)
    assert 2 <= len(trace) <= 4


def test_basis_points_are_drawn_up_to_their_number(rng):
    z_x, z_y, truth = permuted(60, rng)
    begin = partly_right(truth, 0.5, rng)
    values = [
        matching_step(z_x, z_y, begin, PublishedConfig(n_basis=n, n_pi_steps=2), rng).trace[0]
        for n in (20, 60, 500)
    ]
    assert values[0] != pytest.approx(values[1], abs=1e-6)
    assert values[1] == pytest.approx(values[2], abs=1e-12)
