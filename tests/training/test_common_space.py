"""The common space: what its parts share, and what comes back from its arrays."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize
from unpaired.models.presets import PRESETS, learner_config
from unpaired.training import common_space
from unpaired.training.closed_form import Rows
from unpaired.training.common_space import CommonSpace

from unpaired.learning.learner import N_TOWERS, learn


@pytest.fixture(scope="module")
def views():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(80, 6, generator=generator)
    return x, x @ torch.randn(6, 5, generator=generator)


@pytest.fixture(scope="module")
def space(views):
    known = torch.arange(40)
    free = torch.arange(40, 80)
    rows = Rows(known[:, None].repeat(1, 2), torch.ones(40), free, free)
    return learn(*views, rows, learner_config("smi", PRESETS["default"]), 0).space


def test_networks_take_the_features_of_the_kernel_closed_form(space):
    assert len(space.features) == 2
    assert [part.features for part in space.parts] == [0, 1] + [1] * N_TOWERS


@pytest.mark.parametrize("view", [0, 1])
def test_products_of_embeddings_are_mean_cosines_of_the_parts(space, views, view):
    rows = views[view][:7]
    found = space.embed(rows, view)
    total = np.zeros((7, 7))
    with torch.no_grad():
        for part in space.parts:
            coordinates = space.features[part.features][view](rows)
            if part.towers is None:
                placed = coordinates @ part.maps[view]
            else:
                placed = part.towers[view](coordinates * part.maps[view])
            total += (normalize(placed) @ normalize(placed).T).numpy()
    np.testing.assert_allclose(found @ found.T, total / len(space.parts), atol=1e-5)


@pytest.mark.parametrize("view", [0, 1])
def test_references_are_embeddings_of_training_rows(space, views, view):
    reference = (space.reference_x, space.reference_y)[view]
    every = space.embed(views[view], view)
    assert reference.shape == every.shape
    nearest = torch.cdist(reference.double(), every.double()).min(1)
    assert float(nearest.values.max()) < 1e-4
    assert len(nearest.indices.unique()) == len(every)


def test_the_space_comes_back_from_its_arrays(space, views):
    arrays = space.arrays()
    assert sum(name.endswith("landmarks") for name in arrays) == 2
    again = CommonSpace.from_arrays(arrays, torch.device("cpu"))
    for view, rows in enumerate(views):
        torch.testing.assert_close(again.placed(rows, view), space.placed(rows, view))
    torch.testing.assert_close(again.scores(*views), space.scores(*views))


def test_scores_are_products_plus_the_say_of_the_density(space, views, monkeypatch):
    x, y = (rows[:9] for rows in views)
    said = space.density.log_ratio(space.features[0][0](x), space.features[0][1](y))
    expected = space.placed(x, 0) @ space.placed(y, 1).T + common_space.DENSITY_WEIGHT * said
    torch.testing.assert_close(space.scores(x, y), expected)
    monkeypatch.setattr(common_space, "BLOCK_ROWS", 4)
    torch.testing.assert_close(space.scores(x, y), expected, rtol=1e-4, atol=1e-5)
