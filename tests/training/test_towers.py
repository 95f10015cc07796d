import math

import numpy as np
import pytest
import torch

from unpaired.errors import ConvergenceError
from unpaired.training.objective import ObjectiveConfig
from unpaired.learning.towers import TowerConfig, log_smi_loss, train_towers


def objective(dependence="smi", reconstruction_weight=0.0):
    return ObjectiveConfig(dependence, 1.0, "median", "median", 0.01, reconstruction_weight)


def views(rng, n=60, d=8):
    x = torch.tensor(rng.standard_normal((n, d)), dtype=torch.float32)
    y = x @ torch.linalg.qr(torch.tensor(rng.standard_normal((d, d)), dtype=torch.float32))[0]
    return x, y, torch.arange(n)[:, None].repeat(1, 2)


def test_the_loss_by_loops_leaves_out_pairs_that_share_a_row(rng):
    scores = torch.tensor(rng.standard_normal((5, 5)))
    pairs = torch.tensor([[0, 0], [0, 1], [1, 2], [2, 3], [3, 3]])
    weights = torch.tensor([1.0, 0.5, 2.0, 1.0, 0.2], dtype=torch.float64)
    total = 0.0
    for i in range(5):
        for matrix in (scores, scores.T):
            others = [
                math.exp(float(matrix[i, j]) / 0.3)
                for j in range(5)
                if j == i or not (pairs[i] == pairs[j]).any()
            ]
            own = math.exp(float(matrix[i, i]) / 0.3)
            total -= float(weights[i]) * math.log(own / sum(others)) / 2.0
    loss = log_smi_loss(scores, pairs, torch.tensor(0.3), weights)
    assert float(loss) == pytest.approx(total / float(weights.sum()))


def test_gradients_of_the_loss(rng):
    scores = torch.tensor(rng.standard_normal((4, 4)), requires_grad=True)
    temperature = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
    pairs = torch.tensor([[0, 0], [0, 1], [1, 2], [2, 3]])
    assert torch.autograd.gradcheck(lambda s, t: log_smi_loss(s, pairs, t), (scores, temperature))


def test_without_epochs_the_towers_are_the_start(rng):
    x, y, pairs = views(rng)
    start = (torch.eye(8), torch.eye(8))
    noise = (torch.zeros(8), torch.zeros(8))
    towers = train_towers(x, y, pairs, start, noise, TowerConfig(n_epochs=0), objective())
    torch.testing.assert_close(towers[0](x), x)
    torch.testing.assert_close(towers[1](y), y)


@pytest.mark.parametrize("dependence", ["smi", "ukta", "hsic", "cka"])
@pytest.mark.parametrize("reconstruction_weight", [0.0, 0.5])
def test_learning_is_finite_repeatable_and_lowers_the_loss(dependence, reconstruction_weight, rng):
    x, y, pairs = views(rng)
    start = (torch.eye(8)[:, :4], torch.eye(8)[:, :4])
    noise = (torch.full((8,), 0.1), torch.full((8,), 0.1))
    config = TowerConfig(n_epochs=30, batch_size=30, hidden=16, averaging=0.5)
    losses, embedded = [], []
    for _ in range(2):
        steps = []
        towers = train_towers(
            x,
            y,
            pairs,
            start,
            noise,
            config,
            objective(dependence, reconstruction_weight),
            seed=3,
            weights=torch.ones(60),
            on_epoch=steps.append,
        )
        losses.append([step["loss"] for step in steps])
        embedded.append(towers[0](x).detach().numpy())
    assert losses[0] == losses[1]
    np.testing.assert_array_equal(embedded[0], embedded[1])
    assert np.isfinite(losses[0]).all()
    assert np.mean(losses[0][-5:]) < np.mean(losses[0][:5])


def test_divergence_is_told(rng):
    x, y, pairs = views(rng)
    start = (torch.eye(8), torch.eye(8))
    noise = (torch.zeros(8), torch.zeros(8))
    config = TowerConfig(n_epochs=20, learning_rate=1e30)
    with pytest.raises(ConvergenceError, match="smaller learning_rate"):
        train_towers(x, y, pairs, start, noise, config, objective(reconstruction_weight=1.0))
