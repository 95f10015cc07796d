"""Naming m things by m names: every assignment by brute force, and the search above ten."""

from itertools import permutations

import numpy as np
import pytest

from unpaired.solvers.exhaustive_qap import EXACT_SIZE, best_assignments


def kernels(rng, size, n_pairs=2):
    out = []
    for _ in range(2 * n_pairs):
        rows = rng.standard_normal((size, 3))
        out.append(rows @ rows.T)
    return list(zip(out[::2], out[1::2], strict=True))


def total(pairs, linear, order):
    order = np.asarray(order)
    quadratic = sum((k * l[np.ix_(order, order)]).sum() for k, l in pairs)
    return quadratic + linear[np.arange(len(order)), order].sum()


@pytest.mark.parametrize("size", [1, 2, 3, 5, 6])
def test_every_assignment_is_scored(size, seed):
    rng = np.random.default_rng([seed, size])
    pairs, linear = kernels(rng, size), rng.standard_normal((size, size))
    found = best_assignments(pairs, linear, temperature=0.7)
    orders = [np.array(p) for p in permutations(range(size))]
    scores = np.array([total(pairs, linear, order) for order in orders])
    assert found.exact
    assert found.score == pytest.approx(scores.max())
    np.testing.assert_array_equal(found.best, orders[int(scores.argmax())])
    assert found.mean == pytest.approx(scores.mean())
    assert found.spread == pytest.approx(scores.std(), abs=1e-9)
    weights = np.exp((scores - scores.max()) / max(0.7 * scores.std(), 1e-300))
    marginals = np.zeros((size, size))
    for order, weight in zip(orders, weights / weights.sum(), strict=True):
        marginals[np.arange(size), order] += weight
    np.testing.assert_allclose(found.marginals, marginals, atol=1e-9)
    expected = max(orders, key=lambda order: marginals[np.arange(size), order].sum())
    np.testing.assert_array_equal(found.expected, expected)


def test_names_by_value_alone_are_the_linear_assignment(rng):
    linear = rng.standard_normal((5, 5))
    found = best_assignments([], linear)
    best = max(permutations(range(5)), key=lambda p: linear[np.arange(5), p].sum())
    assert found.best.tolist() == list(best)


def test_the_search_above_ten_names_finds_a_planted_optimum(seed):
    rng = np.random.default_rng(seed)
    size = EXACT_SIZE + 3
    rows = rng.standard_normal((size, 5))
    order = rng.permutation(size)
    gram = rows @ rows.T
    found = best_assignments([(gram, gram[np.ix_(order, order)])], rng=rng)
    np.testing.assert_array_equal(found.best, np.argsort(order))
    assert not found.exact
    assert found.score == pytest.approx((gram**2).sum())
    np.testing.assert_allclose(found.marginals.sum(1), 1.0)


def test_the_search_agrees_with_the_full_count_where_both_can_be_run(seed, monkeypatch):
    rng = np.random.default_rng([seed, 7])
    pairs, linear = kernels(rng, 7), rng.standard_normal((7, 7))
    every = best_assignments(pairs, linear)
    monkeypatch.setattr("unpaired.solvers.exhaustive_qap.EXACT_SIZE", 3)
    searched = best_assignments(pairs, linear, rng=rng)
    assert searched.score == pytest.approx(every.score)
    np.testing.assert_array_equal(searched.best, every.best)
    assert searched.mean == pytest.approx(every.mean, abs=0.2 * every.spread)
