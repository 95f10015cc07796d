"""The networks: their loss by loops, where they begin, what they are averaged to."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

from unpaired.errors import ConvergenceError
from unpaired.learning.towers import TowerConfig, _decay, _rate, info_nce, train_towers

SMALL = TowerConfig(n_epochs=30, batch_size=30, hidden=(16,))


def views(rng, n=60, d=8):
    """Rows, a rotation of them, and that row i belongs to row i."""
    x = torch.tensor(rng.standard_normal((n, d)), dtype=torch.float32)
    y = x @ torch.linalg.qr(torch.tensor(rng.standard_normal((d, d)), dtype=torch.float32))[0]
    return x, y, torch.arange(n)[:, None].repeat(1, 2)


def train(rng, config, *, d=8, spread=0.1, **options):
    """Towers that begin at half of the coordinates, with the rows they were trained on."""
    x, y, pairs = views(rng, d=d)
    start = (torch.eye(d)[:, : d // 2], torch.eye(d)[:, : d // 2])
    noise = (torch.full((d,), spread), torch.full((d,), spread))
    return train_towers(x, y, pairs, start, noise, config, **options), x, y, pairs


def outputs(found):
    towers, x, y, _ = found
    return torch.cat([towers[0](x), towers[1](y)]).numpy()


def test_the_loss_by_loops_leaves_out_pairs_that_share_a_row(rng):
    scores = torch.tensor(rng.standard_normal((5, 5)))
    pairs = torch.tensor([[0, 0], [0, 1], [1, 2], [2, 3], [3, 3]])
    weights = torch.tensor([1.0, 0.5, 2.0, 1.0, 0.2], dtype=torch.float64)

    def by_loops(weights):
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
        return total / float(weights.sum())

    temperature = torch.tensor(0.3)
    assert float(info_nce(scores, pairs, temperature, weights)) == pytest.approx(by_loops(weights))
    alike = by_loops(torch.ones(5))
    assert float(info_nce(scores, pairs, temperature)) == pytest.approx(alike)


def test_gradients_of_the_loss(rng):
    scores = torch.tensor(rng.standard_normal((4, 4)), requires_grad=True)
    temperature = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
    pairs = torch.tensor([[0, 0], [0, 1], [1, 2], [2, 3]])
    assert torch.autograd.gradcheck(lambda s, t: info_nce(s, pairs, t), (scores, temperature))


@pytest.mark.parametrize("hidden", [(), (16,), (16, 8)])
def test_without_epochs_the_towers_are_the_start(hidden, rng):
    towers, x, y, _ = train(rng, TowerConfig(n_epochs=0, hidden=hidden))
    torch.testing.assert_close(towers[0](x), x[:, :4])
    torch.testing.assert_close(towers[1](y), y[:, :4])


def test_one_pair_tells_nothing_apart(rng):
    x, y, pairs = views(rng)
    start, noise = (torch.eye(8), torch.eye(8)), (torch.zeros(8), torch.zeros(8))
    told = []
    towers = train_towers(x, y, pairs[:1], start, noise, SMALL, on_epoch=told.append)
    assert not told
    torch.testing.assert_close(towers[0](x), x)


def test_learning_is_finite_repeatable_and_lowers_the_loss(seed):
    losses, embedded = [], []
    for _ in range(2):
        steps = []
        before = torch.random.get_rng_state()
        found = train(np.random.default_rng(seed), SMALL, seed=3, on_epoch=steps.append)
        assert torch.equal(torch.random.get_rng_state(), before)
        losses.append([step["loss"] for step in steps])
        embedded.append(outputs(found))
    assert losses[0] == losses[1]
    np.testing.assert_array_equal(embedded[0], embedded[1])
    assert len(losses[0]) == SMALL.n_epochs
    assert np.isfinite(losses[0]).all()
    assert np.mean(losses[0][-5:]) < np.mean(losses[0][:5])


def test_trained_towers_tell_partners_apart_that_the_start_does_not(rng):
    config = TowerConfig(n_epochs=60, batch_size=60, learning_rate=1e-2)
    right = []
    for epochs in (0, config.n_epochs):
        towers, x, y, _ = train(np.random.default_rng(0), replace(config, n_epochs=epochs))
        scores = normalize(towers[0](x)) @ normalize(towers[1](y)).T
        right.append(float((scores.argmax(1) == torch.arange(60)).float().mean()))
    assert right[0] < 0.3
    assert right[1] > 0.8


@pytest.mark.parametrize(
    "change",
    [
        {"hidden": ()},
        {"hidden": (16, 8)},
        {"hidden": (16, 9)},
        {"learning_rate": 1e-3},
        {"batch_size": 20},
        {"temperature": 0.2},
        {"noise": 0.0},
        {"averaging": 0.0},
        {"warmup": 0.5},
    ],
)
def test_every_constant_changes_what_is_learned(change, seed):
    plain = outputs(train(np.random.default_rng(seed), SMALL, seed=3))
    other = outputs(train(np.random.default_rng(seed), replace(SMALL, **change), seed=3))
    assert np.abs(plain - other).max() > 1e-3


def test_hidden_layers_are_of_the_sizes_given_and_all_take_part(rng):
    towers, x, _, _ = train(rng, replace(SMALL, hidden=(16, 9, 5)), seed=1)
    for tower in towers:
        linear = [layer for layer in tower.residual if isinstance(layer, torch.nn.Linear)]
        assert [layer.out_features for layer in linear] == [16, 9, 5, 4]
    before = towers[0](x)
    for layer in (2, 4):  # second and third hidden layer
        with torch.no_grad():
            kept = towers[0].residual[layer].weight.clone()
            towers[0].residual[layer].weight.zero_()
            assert float((towers[0](x) - before).abs().max()) > 1e-4
            towers[0].residual[layer].weight.copy_(kept)


def test_the_seed_decides_weights_batches_and_noise(seed):
    first, again, other = (
        outputs(train(np.random.default_rng(seed), SMALL, seed=s)) for s in (1, 1, 2)
    )
    np.testing.assert_array_equal(first, again)
    assert np.abs(first - other).max() > 1e-3


def test_pairs_without_weight_teach_nothing(seed):
    """Half of the pairs are wrong; with their weight 0 the towers do not follow them."""
    x, y, pairs = views(np.random.default_rng(seed))
    wrong = pairs.clone()
    wrong[30:, 1] = wrong[30:, 1].roll(7)
    start, noise = (torch.eye(8),) * 2, (torch.zeros(8),) * 2
    config = TowerConfig(n_epochs=150, batch_size=60, learning_rate=1e-2, averaging=0.5)
    weights = torch.cat([torch.ones(30), torch.zeros(30)])

    def wrong_are_believed(weights):
        towers = train_towers(x, y, wrong, start, noise, config, weights=weights)
        scores = normalize(towers[0](x)) @ normalize(towers[1](y)).T
        return float((scores[30:].argmax(1) == wrong[30:, 1]).float().mean())

    assert wrong_are_believed(None) > wrong_are_believed(weights) + 0.3


def test_the_running_mean_of_the_weights_is_what_comes_back(monkeypatch, rng):
    """The mean is written out from the weights after every step."""
    history = []
    adam = torch.optim.Adam.step

    def step(self, *arguments, **options):
        done = adam(self, *arguments, **options)
        history.append([p.detach().clone() for group in self.param_groups for p in group["params"]])
        return done

    monkeypatch.setattr(torch.optim.Adam, "step", step)
    config = TowerConfig(n_epochs=4, batch_size=20, hidden=(5,), averaging=0.7)
    towers, *_ = train(rng, config, seed=2)
    assert len(history) == 4 * 3
    means = history[0][:-1]  # the last parameter is the temperature, which is not averaged
    for count, weights in enumerate(history[1:], start=1):
        kept = min(0.7, (1 + count) / (10 + count))
        means = [kept * m + (1 - kept) * w for m, w in zip(means, weights[:-1], strict=True)]
    found = [p for tower in towers for p in tower.parameters()]
    for mean, last, parameter in zip(means, history[-1], found, strict=False):
        torch.testing.assert_close(parameter, mean, rtol=1e-4, atol=1e-6)
        assert float((parameter - last).abs().max()) > 1e-5
    assert len(found) == len(means)
    assert not any(parameter.requires_grad for parameter in found)


def test_rates_rise_then_fall_to_nothing():
    rates = [_rate(step, 100, 0.1) for step in range(101)]
    assert rates[0] < 0.1
    assert max(rates) == rates[10] > 0.9
    assert np.all(np.diff(rates[:11]) > 0)
    assert np.all(np.diff(rates[10:]) < 0)
    assert rates[100] == pytest.approx(0.0, abs=1e-12)


def test_the_mean_forgets_its_first_steps():
    kept = [_decay(count, 0.98) for count in range(1000)]
    assert kept[0] == pytest.approx(0.1)
    assert np.all(np.diff(kept) >= 0)
    assert kept[-1] == 0.98


def test_divergence_is_told(rng):
    with pytest.raises(ConvergenceError, match="smaller learning_rate"):
        train(rng, TowerConfig(n_epochs=20, learning_rate=1e30))
