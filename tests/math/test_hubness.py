"""Hub correction against loops."""

import numpy as np
import torch

from unpaired.math import hubness
from unpaired.math.hubness import best_mean, crowding, csls


def test_csls_by_loops(rng):
    scores = torch.tensor(rng.random((12, 9)))
    k = 3
    expected = np.empty((12, 9))
    for i in range(12):
        for j in range(9):
            row, column = np.sort(scores[i])[-k:].mean(), np.sort(scores[:, j])[-k:].mean()
            expected[i, j] = scores[i, j] - row / 2 - column / 2
    np.testing.assert_allclose(csls(scores, k), expected)


def test_best_mean_of_fewer_scores_than_asked_for_is_their_mean(rng):
    scores = torch.tensor(rng.random((4, 3)))
    torch.testing.assert_close(best_mean(scores, 10), scores.mean(1))
    torch.testing.assert_close(best_mean(scores, 10, dim=0), scores.mean(0))


def test_crowding_by_loops_and_in_blocks(rng, monkeypatch):
    rows, others = torch.tensor(rng.normal(size=(11, 4))), torch.tensor(rng.normal(size=(7, 4)))
    expected = [np.sort([float(r @ o) for o in others])[-2:].mean() for r in rows]
    np.testing.assert_allclose(crowding(rows, others, 2), expected)
    monkeypatch.setattr(hubness, "BLOCK_ROWS", 3)
    np.testing.assert_allclose(crowding(rows, others, 2), expected)


def test_nothing_is_crowded_among_no_rows(rng):
    rows = torch.tensor(rng.normal(size=(5, 4)))
    assert crowding(rows, rows[:0], 10).tolist() == [0.0] * 5


def test_a_hub_is_no_longer_everybodys_best(rng):
    scores = torch.eye(6) + 0.1 * torch.tensor(rng.random((6, 6)))
    scores[:, 0] += 1.2
    assert (scores.argmax(1) == 0).all()
    assert (csls(scores, 3).argmax(1) == torch.arange(6)).all()
