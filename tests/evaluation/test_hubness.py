import numpy as np
import pytest

from unpaired.evaluation.hubness import csls_scores, nearest_mean
from unpaired.evaluation.retrieval import both_ways


def test_csls_against_a_loop(rng):
    scores = rng.standard_normal((5, 7))
    slow = np.empty_like(scores)
    for i in range(5):
        for j in range(7):
            row = np.mean(sorted(scores[i])[-3:])
            column = np.mean(sorted(scores[:, j])[-3:])
            slow[i, j] = scores[i, j] - (row + column) / 2
    np.testing.assert_allclose(csls_scores(scores, n_neighbours=3), slow)


def test_hubness_may_come_from_other_rows(rng):
    scores, others = rng.standard_normal((4, 6)), rng.standard_normal((6, 50))
    found = csls_scores(scores, hubness_x=np.zeros(4), hubness_y=nearest_mean(others, 10))
    np.testing.assert_allclose(found, scores - nearest_mean(others, 10)[None, :] / 2)


def test_the_read_out_is_an_option_of_the_evaluation():
    scores = np.array([[0.5, 0.9], [0.2, 0.8]])  # column 1 is a hub
    plain = both_ways(scores, np.array([0, 1]), ks=(1,))
    corrected = both_ways(scores - [[0.0, 0.0], [0.0, 0.0]], np.array([0, 1]), ks=(1,))
    assert plain == corrected
    found = both_ways(
        np.array([[0.5, 0.9, 0.1], [0.2, 0.95, 0.1], [0.1, 0.9, 0.7]]),
        np.array([0, 1, 2]),
        ks=(1,),
        readout="csls",
    )
    assert found["x->y R@1"] > 0.3
    with pytest.raises(ValueError, match="Did you mean"):
        both_ways(scores, np.array([0, 1]), readout="csl")
