"""A map between two models' vectors, and what pairs that it did not know say of it."""

import numpy as np
import pytest

from unpaired.translating import LEAST_PAIRS, judge_on, learn_map


@pytest.fixture
def strangers(rng):
    """Vectors that have nothing to do with each other, paired all the same."""
    x, y = (rng.standard_normal((60, 40)) for _ in "xy")
    return x, y, np.column_stack([np.arange(60)] * 2)


def test_a_map_is_judged_by_pairs_that_it_did_not_know(strangers):
    x, y, pairs = strangers
    learned = learn_map(x, y, pairs)
    assert learned.held_out["pairs"] == 12
    assert learned.held_out["median_cosine"] < 0.4  # by chance
    assert learned.held_out["mean_rank"] > 5
    known = judge_on(learned.translation, x, y, pairs)  # the map that is given knows them all
    assert known["median_cosine"] > 0.5
    assert known["mean_rank"] < 1


def test_few_pairs_are_all_given_to_the_map(strangers):
    x, y, pairs = strangers
    learned = learn_map(x, y, pairs[: LEAST_PAIRS - 1])
    assert learned.held_out is None
    assert f"with {LEAST_PAIRS} known pairs" in learned.told()
