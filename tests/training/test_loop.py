import warnings

import numpy as np
import pytest
import torch
from unpaired.training.loop import LoopConfig, alternate
from unpaired.training.objective import ObjectiveConfig

from unpaired.errors import CollapseWarning
from unpaired.nets.autoencoder import Autoencoder, AutoencoderConfig


def run(nets, rng):
    views = tuple(torch.tensor(rng.standard_normal((40, 4)), dtype=torch.float32) for _ in "xy")
    pairs = np.repeat(np.arange(40)[:, None], 2, axis=1)
    objective = ObjectiveConfig("ukta", 0.7, "median", "median", 0.01)
    return alternate(nets, views, pairs, None, objective, LoopConfig(0, 1, 1, 20, 1e-9, 0.0), rng)


def make_nets():
    return tuple(Autoencoder(AutoencoderConfig(4, 3, (8,)), seed) for seed in (0, 1))


def test_latents_on_one_line_are_a_collapse_and_told(rng):
    nets = make_nets()
    with torch.no_grad():
        last = nets[0].encoder[-1]
        last.weight[:] = last.weight[:1]
    with pytest.warns(CollapseWarning, match="latents of x collapsed: they use 1.0 of 3"):
        found = run(nets, rng)
    assert found.history[-1]["rank_x"] == pytest.approx(1.0, abs=0.01)
    assert found.history[-1]["rank_y"] > 1.2


def test_latents_in_one_point_have_no_rank(rng):
    nets = make_nets()
    with torch.no_grad():
        nets[1].encoder[-1].weight.zero_()
    with pytest.warns(CollapseWarning, match="latents of y"):
        assert run(nets, rng).history[-1]["rank_y"] < 0.5


def test_nothing_is_said_of_healthy_latents(rng):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        run(make_nets(), rng)
