import numpy as np
import pytest

from unpaired.alignment.registration import register
from unpaired.matching import solve_softly
from unpaired.math.copies import copies_of, first_copies
from unpaired.problem.problem import check_problem
from unpaired.spaces.readout import relative_ranks
from unpaired.trust.evidence import (
    effective_rank,
    repeated_partners,
    replicate,
    shape_of,
)


def registered(problem, rng):
    return register(problem, rng).solution()


def rotated(rng, n=200, d=10, noise=0.05):
    x = rng.standard_normal((n, d)) * 1.5 ** -np.arange(d)
    y = x @ np.linalg.qr(rng.standard_normal((d, d)))[0] + noise * rng.standard_normal((n, d)) / d
    order = rng.permutation(n)
    return x, y[order], np.argsort(order)


def test_relative_ranks_against_brute_force(rng):
    scores = np.round(rng.standard_normal((12, 9)), 1)
    column = rng.integers(9, size=12)
    for row, found in enumerate(relative_ranks(scores, column)):
        others = np.delete(scores[row], column[row])
        own = scores[row, column[row]]
        expected = ((others > own).sum() + 0.5 * (others == own).sum()) / 8
        assert found == pytest.approx(expected)


def test_repeated_partners_of_the_same_of_unrelated_and_of_opposite_scores(rng):
    scores = rng.standard_normal((400, 50))
    assert repeated_partners(scores, 3 * scores + 1) == 1.0
    assert abs(repeated_partners(scores, rng.standard_normal((400, 50)))) < 0.06
    assert repeated_partners(scores, -scores) < 0.0


def test_naming_a_copy_is_naming_the_same_partner():
    scores = np.array([[2.0, 1.0, 0.0], [0.0, 1.0, 2.0]])
    others = np.array([[1.0, 2.0, 0.0], [0.0, 1.0, 2.0]])
    assert repeated_partners(scores, others) < 1.0
    assert repeated_partners(scores, others, np.array([4, 4, 5])) == 1.0


def test_columns_that_every_row_names_are_no_evidence(rng):
    scores, others = rng.standard_normal((2, 500, 40))
    scores[:, 3] += 2.0
    others[:, 3] += 2.0
    assert (scores.argmax(1) == others.argmax(1)).mean() > 0.15
    assert abs(repeated_partners(scores, others)) < 0.1
    scores[:, 3] = others[:, 3] = 99.0
    assert repeated_partners(scores, others) == 0.0


def test_copies_against_brute_force(rng):
    rows = rng.integers(0, 2, (60, 4)).astype(float)
    rows[rows == 0] = rng.choice([0.0, -0.0], (rows == 0).sum())
    group, count = copies_of(rows)
    same = (rows[:, None] == rows[None]).all(axis=2)
    np.testing.assert_array_equal(group[:, None] == group[None], same)
    np.testing.assert_array_equal(count, same.sum(axis=1))
    kept = first_copies(rows)
    assert kept.tolist() == [i for i in range(60) if not same[i, :i].any()]


def test_effective_rank_counts_even_directions(rng):
    flat = rng.standard_normal((300, 6))
    flat -= flat.mean(axis=0)
    even = np.linalg.qr(flat)[0]
    assert effective_rank(even) == pytest.approx(6.0)
    wide = np.hstack([even, np.zeros((300, 500))])
    assert effective_rank(wide) == pytest.approx(6.0)  # the other Gram matrix, the same number
    assert effective_rank(np.outer(rng.standard_normal(50), [1.0, 2.0])) == pytest.approx(1.0)
    spread = np.array([4.0, 1.0, 1.0, 1.0, 1.0, 1.0])
    as_they_are, half_whitened = 21**2 / 261, 9**2 / 21
    assert effective_rank(even * spread) == pytest.approx((as_they_are * half_whitened) ** 0.5)


def test_shape_takes_the_worse_side(rng):
    x, y = rng.standard_normal((80, 5)), rng.standard_normal((60, 9))
    y[40:] = 0.0
    shape = shape_of(check_problem(x, y))
    assert shape.n == 60
    assert shape.repeats == pytest.approx(19 / 60)
    assert shape.rank == pytest.approx(min(effective_rank(x), effective_rank(y)))


def test_evident_partners_are_found_again_and_noise_is_not(rng):
    x, y, _ = rotated(rng)
    problem = check_problem(x, y)
    found = register(problem, rng)
    assert replicate(problem, found.solution(), found.again, rng) > 0.95
    noise = check_problem(rng.standard_normal((80, 200)), rng.standard_normal((80, 200)))
    fooled = register(noise, rng)
    assert (
        replicate(noise, fooled.solution(), fooled.again, rng) < 0.1
    )  # ranks repeat themselves even here: a few rows of y are near all


def test_partners_among_many_rows_without_a_spectrum_are_found_again(seed):
    rng = np.random.default_rng([seed, 8])
    x = rng.standard_normal((2500, 20))
    y = x @ np.linalg.qr(rng.standard_normal((20, 20)))[0] + 0.1 * rng.standard_normal(x.shape)
    problem = check_problem(x, y[rng.permutation(2500)])
    found = register(problem, rng)
    assert found.stands_out
    assert replicate(problem, found.solution(), found.again, rng) > 0.95


def test_a_start_is_not_told_to_the_fit_that_is_to_find_partners_again(rng):
    x, y, truth = rotated(rng)
    problem = check_problem(x, y, start=truth)
    told = []

    def fit(half, rng):
        told.append(half.start)
        return registered(half, rng)

    replicate(problem, registered(problem, rng), fit, rng)
    assert told == [None]


def test_held_out_ranks_tell_right_known_pairs_from_wrong_ones(rng):
    x, y, truth = rotated(rng, n=120)
    rows = rng.permutation(120)[:20]
    right = check_problem(x, y, np.column_stack([rows, truth[rows]]))
    wrong = check_problem(x, y, np.column_stack([rows, np.roll(truth[rows], 1)]))
    found = [solve_softly(p, rng).evidence.held_out for p in (right, wrong)]
    assert all(len(pairs) == 20 for pairs in found)
    ranks = [np.mean([pair.rank for pair in pairs]) for pairs in found]
    assert ranks[0] < 0.15
    assert ranks[1] > 0.3
    assert all(0 < pair.share <= 1 for pairs in found for pair in pairs)
    named = [np.mean([pair.right for pair in pairs]) for pairs in found]
    assert named[0] > 0.3 > named[1]


def test_too_few_rows_are_not_measured(rng):
    problem = check_problem(rng.standard_normal((9, 3)), rng.standard_normal((9, 3)))
    found = replicate(problem, None, None, rng)
    assert np.isnan(found)
