from __future__ import annotations

import re

import numpy as np
import pytest

from unpaired.report.reliability import (
    match_reliability,
    reliability_bins,
    reliability_chart,
    reliability_view,
    share_interval,
)
from unpaired.types import Match, Objective


def test_bins_hold_what_was_claimed_and_what_was_right():
    confidence = np.array([0.0, 0.05, 0.55, 0.55, 0.55, 1.0])
    right = np.array([False, True, True, True, False, True])
    low, middle, high = reliability_bins(confidence, right)
    assert (low.n, low.claimed, low.right) == (2, 0.025, 0.5)
    assert (middle.n, middle.right) == (3, pytest.approx(2 / 3))
    assert middle.claimed == pytest.approx(0.55)
    assert (high.n, high.claimed, high.right) == (1, 1.0, 1.0)
    assert all(b.low <= b.right <= b.high for b in (low, middle, high))


def test_an_interval_holds_the_true_share_in_nine_of_ten_cases(rng):
    share, n = 0.8, 60
    seen = rng.binomial(n, share, 4000) / n
    held = [low <= share <= high for low, high in (share_interval(s, n) for s in seen)]
    assert np.mean(held) == pytest.approx(0.9, abs=0.03)


def test_honest_confidence_lies_on_the_diagonal_and_boasting_below(rng):
    confidence = rng.random(4000)
    honest = reliability_view(confidence, rng.random(4000) < confidence)
    boasting = reliability_view(confidence, rng.random(4000) < confidence / 2)
    assert honest["gap"] < 0.05
    assert boasting["gap"] == pytest.approx(0.25, abs=0.03)
    assert boasting["right"] < boasting["claimed"]
    assert reliability_view(np.array([]), np.array([], dtype=bool)) is None


def test_the_chart_has_a_dot_a_bin_at_its_place():
    drawn = reliability_chart(reliability_bins(np.array([0.1, 0.9]), np.array([False, True])))
    dots = re.findall(r'cx="([\d.]+)" cy="([\d.]+)"', drawn)
    (x0, y0), (x1, y1) = [(float(x), float(y)) for x, y in dots]
    assert x0 < x1
    assert y0 > y1
    assert "1 rows claim 0.90, 1.00 right" in drawn


def test_rows_that_were_given_left_out_or_unknown_do_not_count():
    match = Match(
        partner=np.array([0, 1, 2, -1, 4]),
        confidence=np.array([1.0, 0.8, 0.8, 0.0, 0.8]),
        objective=Objective(0.5),
        runner_up=np.full(5, -1),
        margin=np.zeros(5),
        n_y=5,
    )
    view = match_reliability(match, np.array([0, 1, 4, 3, -1]))
    assert (view["n"], view["right"]) == (2, 0.5)
    assert match_reliability(match, None) is None
