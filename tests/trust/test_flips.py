import numpy as np
import pytest
import torch

from unpaired.matching import solve
from unpaired.problem.problem import check_problem
from unpaired.trust.flips import gap_of_scores, half_whitened


def skewed(rng, n=200, d=6):
    """Rows whose directions can be told from their opposites."""
    return rng.exponential(size=(n, d)) * 1.5 ** -np.arange(d)


def placed(rows):
    return half_whitened(torch.as_tensor(rows, dtype=torch.float32))


def test_right_scores_lie_above_flipped_ones_and_turned_ones_do_not(rng):
    x = placed(skewed(rng))
    turned = x * np.float32([-1, 1, -1, 1, -1, -1])
    right, wrong = (
        gap_of_scores(scores, x, x, np.random.default_rng(0)) for scores in (x @ x.T, turned @ x.T)
    )
    assert 0.05 < right <= 1.0
    assert wrong < right / 2


def test_directions_without_a_side_are_no_evidence(rng):
    x, y = (placed(rng.standard_normal((300, 5))) for _ in range(2))
    assert gap_of_scores(x @ y.T, x, y, np.random.default_rng(0)) < 0.05


def test_rows_that_are_all_alike_have_no_gap(rng):
    x = placed(np.ones((60, 3)))
    assert np.isfinite(x).all()
    found = gap_of_scores(x @ x.T, x, x, np.random.default_rng(0))
    assert 0.0 <= found <= 1.0


def test_half_whitened_rows_have_the_root_of_the_spread(rng):
    rows = rng.standard_normal((4000, 2)) * [16.0, 1.0]
    found = placed(rows)
    spread = found.std(0)
    assert float(spread[0] / spread[1]) == pytest.approx(4.0, rel=0.05)
    assert float(np.square(found).sum(1).mean()) == pytest.approx(1.0, rel=1e-4)


def test_a_soft_alignment_is_compared_with_flips_and_known_pairs_are_not(rng):
    x, y = skewed(rng, 80), skewed(rng, 80)
    assert 0.0 <= solve(check_problem(x, y), 0).solution.evidence.flips <= 1.0
    pairs = np.column_stack([np.arange(10), np.arange(10)])
    assert np.isnan(solve(check_problem(x, y, pairs), 0).solution.evidence.flips)
