"""A linear map and a network beside it."""

import numpy as np
import pytest
import torch

from unpaired.nets.residual import ResidualTower


def build(hidden, seed=0):
    start = torch.tensor(np.random.default_rng(1).standard_normal((4, 3)), dtype=torch.float32)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return start, ResidualTower(start, hidden)


@pytest.mark.parametrize("hidden", [(), (5,), (7, 6)])
def test_a_new_tower_is_its_linear_map(hidden, rng):
    start, tower = build(hidden)
    x = torch.tensor(rng.standard_normal((9, 4)), dtype=torch.float32)
    torch.testing.assert_close(tower(x), x @ start)
    assert (tower.residual is None) == (hidden == ())


@pytest.mark.parametrize("hidden", [(5,), (7, 6), (4, 4, 4)])
def test_forward_by_loops_over_layers(hidden, rng):
    _, tower = build(hidden)
    with torch.no_grad():
        for parameter in tower.parameters():
            parameter.copy_(torch.tensor(rng.standard_normal(parameter.shape)))
    x = rng.standard_normal((3, 4)).astype(np.float32)
    weights = {name: value.detach().numpy() for name, value in tower.named_parameters()}
    values = x
    for layer in range(len(hidden)):
        weight, bias = (weights.pop(f"residual.{2 * layer}.{kind}") for kind in ("weight", "bias"))
        assert weight.shape[0] == hidden[layer]
        values = np.maximum(values @ weight.T + bias, 0)
    values = values @ weights.pop(f"residual.{2 * len(hidden)}.weight").T
    values = values + x @ weights.pop("linear")
    assert not weights  # every weight took part
    np.testing.assert_allclose(tower(torch.tensor(x)).detach(), values, rtol=1e-4, atol=1e-4)


def test_weights_come_from_the_global_state_and_the_start_is_copied():
    start, first = build((5,), seed=1)
    assert not torch.equal(first.residual[0].weight, build((5,), seed=2)[1].residual[0].weight)
    assert torch.equal(first.residual[0].weight, build((5,), seed=1)[1].residual[0].weight)
    with torch.no_grad():
        first.linear.zero_()
    assert float(start.abs().max()) > 0


def test_gradients_reach_every_weight_once_the_last_layer_has_moved(rng):
    _, tower = build((16, 8))
    with torch.no_grad():
        tower.residual[-1].weight.normal_()
    x = torch.tensor(rng.standard_normal((20, 4)), dtype=torch.float32)
    (tower(x) ** 2).mean().backward()
    assert all((p.grad != 0).any() for p in tower.parameters())
