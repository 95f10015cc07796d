"""A handful of rows: all matchings by brute force, and scores that name the best one."""

from itertools import permutations

import numpy as np
import pytest
import torch

from unpaired.alignment.tiny import BRUTE_ROWS, align_tiny, best_matching, best_of_all
from unpaired.plans.assignment import assign
from unpaired.problem.problem import check_problem
from unpaired.solvers.quadratic import alignment, partner_matrix
from unpaired.spaces.readout import read_match

SHAPES = [(6, 6), (5, 6), (6, 4), (2, 2), (3, 3)]


def centred_gram(rows, weight=None):
    """Centred Gaussian kernel at the median squared distance, by the book, of unit norm."""
    weight = np.ones(len(rows)) if weight is None else weight
    square = ((rows[:, None] - rows[None]) ** 2).sum(2)
    apart = np.sort(square[~np.eye(len(rows), dtype=bool)])
    kernel = np.exp(-square / (2.0 * apart[(len(apart) - 1) // 2]))
    share = weight / weight.sum()
    centre = np.eye(len(rows)) - np.outer(np.ones(len(rows)), share)
    gram = weight[:, None] * (centre @ kernel @ centre.T) * weight
    return gram / np.linalg.norm(gram)


def matchings(n_x, n_y):
    """All partial matchings of full size, as partners."""
    for chosen in permutations(range(max(n_x, n_y)), min(n_x, n_y)):
        trial = np.full(n_x, -1)
        if n_x <= n_y:
            trial[:] = chosen
        else:
            trial[list(chosen)] = np.arange(n_y)
        yield trial


def solve(problem):
    solution = align_tiny(problem, np.random.default_rng(0))
    x, y = (torch.tensor(side).float() for side in (problem.x, problem.y))
    return solution, solution.space.scores(x, y).double().numpy()


@pytest.mark.parametrize(("n_x", "n_y"), SHAPES)
@pytest.mark.parametrize("weighted", [False, True])
def test_scores_name_the_best_matching_of_all(n_x, n_y, weighted, seed):
    rng = np.random.default_rng([seed, n_x, n_y])
    x, y = rng.standard_normal((n_x, 3)), rng.standard_normal((n_y, 4))
    weight = rng.integers(1, 4, n_x).astype(float) if weighted and n_x > 2 else None
    if weight is not None:
        weight[0], weight[1] = 1.0, 3.0
    problem = check_problem(x, y, weights=(weight, None))
    solution, scores = solve(problem)
    scores = scores if weight is None else scores * weight[:, None]  # those of one row each
    grams = centred_gram(x, weight), centred_gram(y)
    reached = {tuple(m): alignment(*grams, m) for m in matchings(n_x, n_y)}
    best = np.array(max(reached, key=reached.get))
    np.testing.assert_array_equal(assign(-scores), best)
    assert max(solution.evidence.reached.values()) == pytest.approx(max(reached.values()), rel=1e-3)
    product = grams[0] @ partner_matrix(best, n_y) @ grams[1]  # K P L
    ratio = scores.std() / product.std()
    np.testing.assert_allclose(scores, ratio * product, atol=2e-3 * scores.std())
    assert solution.certainty == 0.0
    assert solution.kind == "tiny"


@pytest.mark.parametrize("trial", range(12))  # weights change the match in one draw of three
def test_the_match_of_weighted_rows_reaches_what_is_told(trial, seed):
    rng = np.random.default_rng([seed, trial, 1])
    x, y = rng.standard_normal((6, 3)), rng.standard_normal((6, 4))
    weights = rng.integers(1, 6, 6).astype(float), rng.integers(1, 6, 6).astype(float)
    problem = check_problem(x, y, weights=weights)
    solution, _ = solve(problem)
    found = read_match(problem, solution)
    reached = alignment(centred_gram(x, weights[0]), centred_gram(y, weights[1]), found.partner)
    assert reached == pytest.approx(max(found.objective.per_start.values()), rel=1e-3)


@pytest.mark.parametrize(("n_x", "n_y"), SHAPES[:3])
def test_known_pairs_stay_in_the_best_matching(n_x, n_y, seed):
    rng = np.random.default_rng([seed, n_x, n_y])
    x, y = rng.standard_normal((n_x, 3)), rng.standard_normal((n_y, 4))
    known = np.array([[1, 3], [0, 2]])
    problem = check_problem(x, y, known)
    grams = centred_gram(x), centred_gram(y)
    allowed = [m for m in matchings(n_x, n_y) if (m[known[:, 0]] == known[:, 1]).all()]
    best = max(allowed, key=lambda m: alignment(*grams, m))
    np.testing.assert_array_equal(best_of_all(*grams, known), best)
    partner, reached = best_matching(*grams, problem)
    np.testing.assert_array_equal(partner, best)
    assert max(reached, key=reached.get)
    _, scores = solve(problem)
    np.testing.assert_array_equal(assign(-scores, known=known), best)


def test_all_matchings_are_tried_up_to_seven_free_rows(rng):
    for free, tried in ((BRUTE_ROWS, True), (BRUTE_ROWS + 1, False)):
        n = free + 2
        grams = tuple(centred_gram(rng.standard_normal((n, 2))) for _ in "xy")
        problem = check_problem(rng.random((n, 2)), rng.random((n, 2)), [[0, 0], [1, 1]])
        assert ("all matchings" in best_matching(*grams, problem)[1]) == tried


def test_the_best_of_all_starts_is_kept_and_all_are_told(rng):
    x = rng.standard_normal((20, 3))
    order = rng.permutation(20)
    side = np.zeros((20, 20))
    side[np.arange(20), np.argsort(order)] = 1.0
    problem = check_problem(x, x[order], start=np.argsort(order), similarity=side)
    grams = centred_gram(x), centred_gram(x[order])
    partner, reached = best_matching(*grams, problem)
    names = {"signatures", "uniform", "principal 0", "principal 1"}
    assert set(reached) == names | {"side information", "given start"}
    np.testing.assert_array_equal(partner, np.argsort(order))
    assert reached["given start"] == pytest.approx(1.0)
    assert reached["side information"] == pytest.approx(1.0)


def test_a_start_as_a_plan_of_any_size_is_scaled_to_a_plan(rng):
    x = rng.standard_normal((10, 3))
    plan = 1e6 * (np.eye(10) + 0.01)
    problem = check_problem(x, x, start=plan)
    gram = centred_gram(x)
    assert best_matching(gram, gram, problem)[1]["given start"] == pytest.approx(1.0)


def test_agreement_is_the_share_of_starts_that_reach_the_best(rng):
    x = rng.standard_normal((12, 3))
    solution, _ = solve(check_problem(x, x[rng.permutation(12)]))
    values = np.array(list(solution.evidence.reached.values()))
    assert solution.evidence.agreement == pytest.approx((values >= values.max() * 0.999).mean())


def test_rows_never_seen_can_be_scored(seed):
    """Five rows beside 25 that were aligned; a single draw of so few says little."""
    right = []
    for draw in range(8):
        rng = np.random.default_rng([seed, draw])
        x = rng.standard_normal((30, 3))
        turned = x @ np.linalg.qr(rng.standard_normal((3, 3)))[0]
        solution, _ = solve(check_problem(x[:25], turned[:25]))
        rows = [torch.tensor(side[25:]).float() for side in (x, turned)]
        scores = solution.space.scores(*rows)
        assert scores.shape == (5, 5)
        right.append((scores.argmax(1) == torch.arange(5)).float().mean())
    assert np.mean(right) >= 0.6
