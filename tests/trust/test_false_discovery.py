"""Local false discovery rates on distances whose strangers are known."""

import numpy as np
import pytest

from unpaired.errors import InputError
from unpaired.trust.false_discovery import MIN_ROWS, fit_chooser


def drawn(rng, share, n=4000, d=6, noise=0.1):
    """Three nearest distances of n rows, and which rows have no partner."""
    others = np.sort(rng.chisquare(d, (n, 200)) ** 0.5, axis=1)[:, :3]
    strange = rng.random(n) < share
    own = noise * rng.chisquare(d, n) ** 0.5
    with_partner = np.sort(np.column_stack([own, others[:, :2]]), axis=1)
    return np.where(strange[:, None], others, with_partner), strange


@pytest.mark.parametrize("share", [0.0, 0.2, 0.5])
def test_strangers_are_counted_and_told_apart(share, rng):
    distance, strange = drawn(rng, share)
    chooser = fit_chooser(distance)
    assert chooser.stranger_share == pytest.approx(strange.mean(), abs=0.06)
    claimed = chooser.probability(distance[:, 0], distance[:, 1])
    sure = claimed >= 0.9
    assert strange[sure].mean() <= 0.05  # what is claimed holds
    assert claimed.mean() == pytest.approx(1.0 - strange.mean(), abs=0.06)
    assert sure[~strange].mean() > 0.8


def test_where_all_are_strangers_hardly_anything_is_claimed(rng):
    distance, _ = drawn(rng, 1.0)
    claimed = fit_chooser(distance).probability(distance[:, 0], distance[:, 1])
    assert (claimed >= 0.9).mean() < 0.06
    assert claimed.mean() < 0.4


def test_nearer_is_never_less_probable_and_the_limit_is_where_it_is_one_half(rng):
    distance, _ = drawn(rng, 0.3)
    chooser = fit_chooser(distance)
    assert (np.diff(chooser.false_rate) >= 0).all()
    other = np.full(2, 5.0)
    limit = chooser.limit(other)
    near, far = chooser.probability(limit * np.array([0.999, 1.05]), other)
    assert near >= 0.5 > far
    assert 0 < limit[0] < 5.0


def test_the_unit_of_distance_does_not_matter(rng):
    distance, _ = drawn(rng, 0.3, n=500)
    first, second = fit_chooser(distance), fit_chooser(100.0 * distance)
    assert first.cut == pytest.approx(second.cut, abs=1e-6)
    np.testing.assert_allclose(first.false_rate, second.false_rate, atol=1e-6)


def test_a_few_rows_all_count_as_matched(rng):
    distance, _ = drawn(rng, 0.9, n=MIN_ROWS - 1)
    chooser = fit_chooser(np.vstack([distance, np.full((5, 3), np.inf)]))
    assert (chooser.probability(distance[:, 0], distance[:, 1]) == 1.0).all()
    np.testing.assert_array_equal(chooser.limit(distance[:, 1]), distance[:, 1])


def test_two_neighbours_are_too_few():
    with pytest.raises(InputError, match=r"distance must be \(n, 3\) or wider"):
        fit_chooser(np.ones((30, 2)))
