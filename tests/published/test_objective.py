import numpy as np
import pytest
import torch

from unpaired.math.dependence import smi, ukta
from unpaired.published.config import PublishedConfig
from unpaired.published.objective import dependence, gram, reconstruction_error, scale_latents


def test_latents_have_mean_squared_distance_2_and_keep_their_shape(rng):
    z = torch.as_tensor(rng.standard_normal((50, 64)) * np.linspace(5.0, 0.1, 64) + 7.0)
    scaled = scale_latents(z)
    distances = torch.cdist(scaled, scaled) ** 2
    assert float(distances.mean()) == pytest.approx(2.0)
    ratio = torch.cdist(z, z)[0, 1:] / torch.cdist(scaled, scaled)[0, 1:]
    torch.testing.assert_close(ratio, ratio[:1].expand_as(ratio))


def test_kernels_take_squared_widths_as_the_paper_gives_them():
    rows = torch.tensor([[0.0], [2.0]])
    assert float(gram(rows, 2.5)[0, 1]) == pytest.approx(np.exp(-4.0 / 5.0))


@pytest.mark.parametrize("name", ["smi", "ukta"])
def test_dependence_uses_both_widths_and_its_own_measure(name, rng):
    z_x, z_y = (scale_latents(torch.as_tensor(rng.standard_normal((20, 3)))) for _ in range(2))
    config = PublishedConfig(dependence=name)
    K, L = gram(z_x, 2.5), gram(z_y, 0.5)
    expected = smi(K, L, ratio_ridge=config.ratio_ridge) if name == "smi" else ukta(K, L) / 400
    assert float(dependence(z_x, z_y, config)) == pytest.approx(float(expected))


def test_two_views_of_k_equal_clusters_reach_half_of_k_minus_1():
    label = np.repeat(np.arange(4), 25)
    z = scale_latents(torch.as_tensor(np.eye(4)[label]))
    config = PublishedConfig(sigma2_x=0.05, sigma2_y=0.05, ratio_ridge=1e-8)
    assert float(dependence(z, z, config)) == pytest.approx(1.5, abs=0.01)


def test_the_dependence_does_not_change_when_one_latent_space_is_rotated(rng):
    z_x, z_y = (scale_latents(torch.as_tensor(rng.standard_normal((30, 5)))) for _ in range(2))
    rotation = torch.as_tensor(np.linalg.qr(rng.standard_normal((5, 5)))[0])
    values = [
        float(dependence(z_x @ turn, z_y, PublishedConfig()))
        for turn in (torch.eye(5).double(), rotation)
    ]
    assert values[0] == pytest.approx(values[1])


def test_an_error_of_1_is_what_predicting_nothing_gives(rng):
    rows = torch.as_tensor(rng.standard_normal((10, 4)))
    power = float((rows**2).mean())
    assert float(reconstruction_error(rows, torch.zeros_like(rows), power)) == pytest.approx(1.0)
    assert float(reconstruction_error(rows, rows, power)) == 0.0
