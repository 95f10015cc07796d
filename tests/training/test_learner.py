"""What networks learn from, and that the learner uses it."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from unpaired.models.presets import PRESETS, learner_config
from unpaired.training.closed_form import ClosedFormConfig, Rows, lay_out
from unpaired.learning.learner import SOFT_SHARE, deepen, training_pairs
from unpaired.training.soft_plan import SoftPlan, hard_plan


@pytest.fixture
def rows() -> Rows:
    """Two images, the first with two captions; rows 2 and 3 of x and 3 and 4 of y are free."""
    return Rows(
        torch.tensor([[0, 0], [0, 1], [1, 2]]),
        torch.tensor([0.5, 0.5, 1.0]),
        torch.tensor([2, 3]),
        torch.tensor([3, 4]),
    )


@pytest.fixture
def plan() -> SoftPlan:
    return SoftPlan(
        torch.tensor([0, 0, 1]),
        torch.tensor([0, 1, 1]),
        torch.tensor([0.25, 0.75, 1.0]),
        (2, 2),
    )


def test_each_free_row_is_paired_with_its_expected_partner(rows, plan):
    config = ClosedFormConfig(soft_weight=0.4, doubt=0.1)
    pairs, weights = training_pairs(rows, plan, config, n_y=5)
    assert pairs.tolist() == [[0, 0], [0, 1], [1, 2], [2, 5], [3, 6]]
    soft = [SOFT_SHARE * 0.4 * peak / (peak + 0.1) for peak in (0.75, 1.0)]
    assert weights.tolist() == pytest.approx([0.5, 0.5, 1.0, *soft])


@pytest.mark.parametrize("soft_weight", [0.0, 0.4])
def test_without_a_plan_or_a_weight_for_it_known_pairs_are_all(rows, plan, soft_weight):
    config = ClosedFormConfig(soft_weight=soft_weight)
    pairs, weights = training_pairs(rows, plan if soft_weight == 0.0 else None, config, n_y=5)
    assert pairs.tolist() == rows.pairs.tolist()
    assert weights.tolist() == [0.5, 0.5, 1.0]


def test_networks_learn_from_soft_pairs():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(200, 20, generator=generator)
    y = x @ torch.linalg.qr(torch.randn(20, 20, generator=generator)).Q
    known = torch.arange(5)
    rest = torch.arange(5, 200)
    rows = Rows(known[:, None].repeat(1, 2), torch.ones(5), rest, rest)
    truth = hard_plan(torch.arange(195).numpy(), 195, x.device)
    config = learner_config("smi", replace(PRESETS["default"], n_latent=20, n_epochs=2))

    coordinates = lay_out(x, y, config.closed_form, generator)
    last = (coordinates[-1].x, coordinates[-1].y)

    def right(plan: SoftPlan | None, n_pairs: float) -> float:
        part = deepen(coordinates, rows, plan, n_pairs, config, 0, lambda step: None)
        with torch.no_grad():
            placed = [part.embed(found[rest], view) for view, found in enumerate(last)]
        scores = placed[0] @ placed[1].T
        return float((scores.argmax(1) == torch.arange(195)).float().mean())

    assert right(truth, 80.0) > right(None, 5.0) + 0.1
