import numpy as np
import pytest
import torch

from unpaired.errors import InputError
from unpaired.nets.autoencoder import Autoencoder, AutoencoderConfig, pick_device


@pytest.mark.parametrize("hidden", [(), (5,), (7, 6)])
def test_forward_by_loops_over_layers(hidden, rng, seed):
    network = Autoencoder(AutoencoderConfig(n_inputs=4, n_latent=2, hidden=hidden), seed)
    x = torch.tensor(rng.normal(size=(3, 4)), dtype=torch.float32)
    weights = {name: value.detach().numpy() for name, value in network.named_parameters()}
    values = x.numpy()
    for part in ("encoder", "decoder"):
        for layer in range(len(hidden) + 1):
            if layer > 0:
                values = np.maximum(values, 0)
            weight = weights.pop(f"{part}.{2 * layer}.weight")
            values = values @ weight.T + weights.pop(f"{part}.{2 * layer}.bias")
        if part == "encoder":
            latents = values
    z, x_hat = network(x)
    assert not weights  # every weight took part
    assert (z.shape, x_hat.shape) == ((3, 2), (3, 4))
    np.testing.assert_allclose(z.detach(), latents, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(x_hat.detach(), values, rtol=1e-4, atol=1e-5)


def test_default_has_three_layers_each_way():
    network = Autoencoder(AutoencoderConfig(n_inputs=10, n_latent=2), 0)
    for stack in (network.encoder, network.decoder):
        assert sum(isinstance(layer, torch.nn.Linear) for layer in stack) == 3


def test_the_seed_decides_the_weights_and_the_global_state_is_left_alone(seed):
    config = AutoencoderConfig(n_inputs=4, n_latent=2)
    before = torch.random.get_rng_state()
    first, again, other = (Autoencoder(config, s) for s in (seed, seed, seed + 1))
    assert torch.equal(torch.random.get_rng_state(), before)
    for a, b, c in zip(first.parameters(), again.parameters(), other.parameters(), strict=True):
        assert torch.equal(a, b)
        assert not torch.equal(a, c)


def test_gradients_reach_every_weight(rng, seed):
    network = Autoencoder(AutoencoderConfig(n_inputs=4, n_latent=3, hidden=(16,)), seed)
    x = torch.tensor(rng.normal(size=(20, 4)), dtype=torch.float32)
    ((network(x)[1] - x) ** 2).mean().backward()
    assert all(p.grad is not None and (p.grad != 0).any() for p in network.parameters())


def test_a_few_steps_reconstruct_better(rng, seed):
    network = Autoencoder(AutoencoderConfig(n_inputs=5, n_latent=2, hidden=(16,)), seed)
    x = torch.tensor(rng.normal(size=(50, 2)) @ rng.normal(size=(2, 5)), dtype=torch.float32)
    optimiser = torch.optim.Adam(network.parameters(), lr=0.01)
    errors = []
    for _ in range(60):
        error = ((network(x)[1] - x) ** 2).mean()
        errors.append(error.item())
        optimiser.zero_grad()
        error.backward()
        optimiser.step()
    assert errors[-1] < 0.5 * errors[0]


@pytest.mark.parametrize(
    ("cuda", "mps", "expected"),
    [(True, True, "cuda"), (False, True, "mps"), (False, False, "cpu")],
)
def test_auto_takes_the_fastest_device_there_is(monkeypatch, cuda, mps, expected):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)
    assert pick_device() == torch.device(expected)
    assert pick_device("cpu") == torch.device("cpu")


@pytest.mark.parametrize("name", ["gpu", "", 1.5])
def test_unknown_device(name):
    with pytest.raises(InputError) as error:
        pick_device(name)
    assert str(error.value) == (
        f'device must be "auto" or a torch device: got {name!r}. Write device="cpu", or "cuda:0" '
        "for the first graphics card."
    )


@pytest.mark.parametrize("name", ["cuda:99", "meta"])
def test_a_device_that_is_not_here(name, monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(InputError) as error:
        pick_device(name)
    assert str(error.value) == (
        f"device must be one that this machine can compute on: {name!r} is not, and there is 1 "
        'CUDA device. Write device="auto" or "cpu".'
    )
