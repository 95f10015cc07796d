import numpy as np
import pytest
import torch
from unpaired.training.objective import (
    MEDIAN_ROWS,
    ObjectiveConfig,
    dmae_loss,
    latent_gram,
    measure_dependence,
    reconstruction_error,
    standardise,
)

from unpaired.math.dependence import MEASURES


def make_config(dependence="smi", **changes):
    defaults = {
        "dependence_weight": 0.7,
        "bandwidth_x": "median",
        "bandwidth_y": 1.5,
        "ratio_ridge": 0.01,
    }
    return ObjectiveConfig(dependence=dependence, **{**defaults, **changes})


@pytest.fixture
def latents(rng):
    return torch.tensor(rng.normal(3, 2, size=(8, 3))), torch.tensor(rng.normal(size=(8, 2)))


def slow_gram(latents, bandwidth):
    z = latents.numpy()
    z = (z - z.mean(0)) / (z.std(0) + 1e-6)
    n = len(z)
    distances = [[np.linalg.norm(a - b) for b in z] for a in z]
    if bandwidth == "median":
        between = sorted(distances[i][j] for i in range(n) for j in range(i))
        bandwidth = between[(len(between) - 1) // 2]
    return np.array([[np.exp(-(d**2) / (2 * bandwidth**2)) for d in row] for row in distances])


by_name = pytest.mark.parametrize("name", sorted(MEASURES))


# Oracles


@pytest.mark.parametrize("bandwidth", ["median", 0.8])
def test_latent_gram_by_loops(latents, bandwidth):
    np.testing.assert_allclose(
        latent_gram(latents[0], bandwidth), slow_gram(latents[0], bandwidth), rtol=1e-9
    )


@by_name
def test_dependence_of_loops(name, latents):
    gram_x = torch.tensor(slow_gram(latents[0], "median"))
    gram_y = torch.tensor(slow_gram(latents[1], 1.5))
    options = {"ratio_ridge": 0.01} if name == "smi" else {}
    expected = MEASURES[name](gram_x, gram_y, **options) / (64 if name == "ukta" else 1)
    torch.testing.assert_close(measure_dependence(*latents, make_config(name)), expected)


@by_name
def test_loss_is_reconstruction_minus_weighted_dependence(name, latents, rng):
    x, x_hat = torch.tensor(rng.normal(size=(2, 8, 5)))
    y, y_hat = torch.tensor(rng.normal(size=(2, 8, 4)))
    config = make_config(name, dependence_weight=0.3)
    parts = dmae_loss(x, y, (latents[0], x_hat), (latents[1], y_hat), config)
    error_x = float(((x - x_hat) ** 2).sum() / (x**2).sum())
    error_y = float(((y - y_hat) ** 2).sum() / (y**2).sum())
    dependence = float(measure_dependence(*latents, config))
    assert parts.reconstruction_x == pytest.approx(error_x)
    assert parts.reconstruction_y == pytest.approx(error_y)
    assert parts.dependence == pytest.approx(dependence)
    assert parts.total.item() == pytest.approx(error_x + error_y - 0.3 * dependence)


# Invariants


def test_standardised_latents_have_mean_0_and_deviation_1(latents):
    scaled = standardise(latents[0])
    torch.testing.assert_close(scaled.mean(0), torch.zeros(3, dtype=torch.float64))
    torch.testing.assert_close(
        scaled.std(0, correction=0), torch.ones(3, dtype=torch.float64), atol=1e-5, rtol=0
    )
    assert (standardise(torch.ones(5, 2)) == 0).all()


@by_name
def test_scale_shift_and_common_order_of_latents_do_not_matter(name, latents, rng):
    z_x, z_y = latents
    order = torch.tensor(rng.permutation(8))
    before = measure_dependence(z_x, z_y, make_config(name))
    after = measure_dependence((40 * z_x - 3)[order], z_y[order], make_config(name))
    torch.testing.assert_close(after, before, rtol=1e-4, atol=1e-6)
    broken = measure_dependence(z_x[order.roll(1)], z_y[order], make_config(name))
    assert not torch.isclose(broken, before)


def test_ukta_of_a_batch_does_not_grow_with_its_size(latents):
    config = make_config("ukta", bandwidth_x=1.0)
    twice = tuple(torch.cat([z, z]) for z in latents)
    torch.testing.assert_close(
        measure_dependence(*twice, config), measure_dependence(*latents, config), rtol=1e-4, atol=0
    )


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("width", [1, 16, 200])
def test_median_bandwidth_overlooks_repeated_rows(rng, dtype, width):
    row = np.array([0] * 28 + [1] * 4)  # a many-to-one matching repeats rows
    expected = np.where(row[:, None] == row[None, :], 1.0, np.exp(-0.5))
    for _ in range(10):  # equal rows come out exactly equal now and then, and rounded otherwise
        repeated = torch.tensor(rng.normal(size=(2, width)), dtype=dtype)[row]
        np.testing.assert_allclose(latent_gram(repeated, "median"), expected, atol=1e-3)


def test_of_many_rows_evenly_spaced_ones_give_the_median(rng):
    latents = torch.tensor(rng.normal(size=(4 * MEDIAN_ROWS - 1, 3)))
    scaled = standardise(latents)
    some = torch.pdist(scaled[::4]).median()
    expected = torch.exp(-0.5 * (torch.cdist(scaled, scaled) / some) ** 2)
    np.testing.assert_allclose(latent_gram(latents, "median"), expected, atol=2e-3)
    assert some == pytest.approx(float(torch.pdist(scaled).median()), rel=0.03)


def test_reconstruction_error_is_a_share(rng):
    x = torch.tensor(rng.normal(size=(6, 3)))
    assert reconstruction_error(x, x).item() == 0.0
    assert reconstruction_error(x, torch.zeros_like(x)).item() == pytest.approx(1.0)
    torch.testing.assert_close(
        reconstruction_error(9 * x, 9 * x + 1.8), reconstruction_error(x, x + 0.2)
    )
    assert reconstruction_error(torch.zeros(2, 2), torch.zeros(2, 2)).item() == 0.0


# Gradients


@by_name
def test_gradient_of_dependence(name, latents):
    z_x, z_y = (z.clone().requires_grad_() for z in latents)
    config = make_config(name, bandwidth_x=1.0, ratio_ridge=0.1)  # the median has no gradient
    assert torch.autograd.gradcheck(
        lambda a, b: measure_dependence(a, b, config), (z_x, z_y), rtol=1e-3, atol=1e-5
    )


@by_name
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_collapsed_latents_give_finite_loss_and_gradient(name, dtype, rng):
    z_x = torch.full((8, 3), 0.1, dtype=dtype, requires_grad=True)
    z_y = torch.tensor(rng.normal(size=(8, 2)), dtype=dtype)
    value = measure_dependence(z_x, z_y, make_config(name))
    (gradient,) = torch.autograd.grad(value, z_x)
    assert value.isfinite()
    assert gradient.isfinite().all()


def test_total_carries_the_gradient_and_the_parts_are_numbers(latents):
    z_x = latents[0].clone().requires_grad_()
    x = torch.ones(8, 3, dtype=torch.float64)
    parts = dmae_loss(x, x, (z_x, x), (latents[1], x), make_config())
    (gradient,) = torch.autograd.grad(parts.total, z_x)
    assert (gradient != 0).any()
    assert all(
        isinstance(part, float)
        for part in (parts.reconstruction_x, parts.reconstruction_y, parts.dependence)
    )
