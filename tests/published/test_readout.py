import numpy as np
import pytest
import torch

from unpaired.evaluation.retrieval import foscttm
from unpaired.published.config import PublishedConfig
from unpaired.published.objective import gram, scale_latents
from unpaired.published.readout import (
    fit_density_ratio,
    fit_readout,
    readout_arrays,
    readout_from_arrays,
)

PAIRS = np.repeat(np.arange(120)[:, None], 2, axis=1)


@pytest.fixture
def latents(rng):
    """The same latents, those of y rotated."""
    z = scale_latents(torch.as_tensor(rng.standard_normal((120, 6))))
    return z, z @ torch.as_tensor(np.linalg.qr(rng.standard_normal((6, 6)))[0])


def test_cosine_is_near_chance_on_rotated_latents_and_the_others_are_not(latents, rng):
    found = {}
    for name in ("density-ratio", "cosine", "linear-map"):
        config = PublishedConfig(readout=name)
        readout = fit_readout(*latents, PAIRS, config, rng)
        found[name] = foscttm(readout.scores(*latents).numpy())
    assert found["cosine"] > 0.3
    assert found["density-ratio"] < 0.15
    assert found["linear-map"] < 0.01


@pytest.mark.parametrize("dependence", ["smi", "ukta"])
def test_the_ratio_is_the_papers_sum_with_alpha_1_for_ukta(dependence, latents, rng):
    config = PublishedConfig(dependence=dependence, n_basis=40)
    ratio = fit_density_ratio(*latents, PAIRS, config, rng)
    assert len(ratio.coef) == 40
    assert bool((ratio.coef == 1.0).all()) == (dependence == "ukta")
    K, L = gram(latents[0], 2.5, ratio.basis_x), gram(latents[1], 0.5, ratio.basis_y)
    by_hand = sum(float(ratio.coef[l] * K[3, l] * L[7, l]) for l in range(40))
    assert float(ratio.scores(*latents)[3, 7]) == pytest.approx(by_hand)


@pytest.mark.parametrize("name", ["density-ratio", "cosine", "linear-map"])
def test_arrays_bring_a_readout_back(name, latents, rng):
    readout = fit_readout(*latents, PAIRS, PublishedConfig(readout=name), rng)
    again = readout_from_arrays(readout_arrays(readout), torch.device("cpu"))
    torch.testing.assert_close(again.scores(*latents), readout.scores(*latents), rtol=0, atol=0)
