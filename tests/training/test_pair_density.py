"""The density ratio of training pairs: against slow loops, and what it must equal by itself."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize
from unpaired.training import pair_density
from unpaired.training.closed_form import (
    ClosedFormConfig,
    Rows,
    lay_out,
    metric_of,
    trust_of,
    weighted_pairs,
)
from unpaired.training.pair_density import (
    DENSITY_WEIGHT,
    FLOOR,
    NEAR_SHARE,
    PairDensity,
    density_of,
    near_shares,
    nearest_rows,
    with_density,
)
from unpaired.training.soft_plan import SoftPlan


def random_units(n, d, seed):
    return normalize(torch.randn(n, d, generator=torch.Generator().manual_seed(seed)))


def density(pairs, weights, n_x=40, n_y=30):
    order = torch.argsort(pairs[:, 0], stable=True)
    plan = SoftPlan(pairs[order, 0], pairs[order, 1], weights[order], (n_x, n_y))
    rows = random_units(n_x, 5, 1), random_units(n_y, 4, 2)
    return PairDensity((torch.ones(5), torch.ones(4)), rows, plan)


def test_ratio_is_the_sum_over_pairs_that_a_loop_makes():
    generator = torch.Generator().manual_seed(0)
    pairs = torch.stack(
        [torch.randint(n, (25,), generator=generator) for n in (40, 30)], 1
    )  # repeated rows and pairs on purpose
    weights = torch.rand(25, generator=generator)
    found = density(pairs, weights)
    x, y = random_units(3, 5, 3), random_units(4, 4, 4)
    near_x, near_y = near_shares(x, found.rows[0]), near_shares(y, found.rows[1])
    expected = np.zeros((3, 4))
    for a in range(3):
        for b in range(4):
            for (i, j), weight in zip(pairs.tolist(), weights.tolist(), strict=True):
                expected[a, b] += weight * float(near_x[a, i]) * float(near_y[b, j])
    expected /= float(weights.sum()) / (40 * 30)
    np.testing.assert_allclose(found.log_ratio(x, y).exp(), expected + FLOOR, rtol=1e-3)


def test_ratio_of_all_pairs_alike_is_one_everywhere():
    every = torch.cartesian_prod(torch.arange(40), torch.arange(30))
    found = density(every, torch.full((len(every),), 0.3))
    ratio = found.log_ratio(random_units(6, 5, 5), random_units(7, 4, 6)).exp() - FLOOR
    torch.testing.assert_close(ratio, torch.ones(6, 7), rtol=1e-4, atol=1e-4)


def test_pairs_without_weight_say_nothing():
    found = density(torch.tensor([[0, 1], [3, 2]]), torch.zeros(2))
    ratio = found.log_ratio(random_units(6, 5, 5), random_units(7, 4, 6))
    torch.testing.assert_close(ratio, torch.full((6, 7), math.log(FLOOR)))


@pytest.mark.parametrize("n", [200, 2500])
def test_about_the_same_share_of_rows_is_near_every_row(n):
    rows = random_units(n, 8, 7)
    shares = near_shares(random_units(50, 8, 8), rows)
    torch.testing.assert_close(shares.sum(1), torch.ones(50))
    effective = (-(shares * shares.clamp_min(1e-30).log()).sum(1)).exp() / n
    off = (effective / NEAR_SHARE - 1.0).abs()
    assert float(off.max()) < (0.02 if n < 1000 else 0.7)  # of many rows found on a sample
    assert float(off.median()) < 0.25


@pytest.mark.parametrize("n", [1, 2, 5])
def test_few_rows_give_finite_shares(n):
    shares = near_shares(random_units(4, 3, 0), random_units(n, 3, 1))
    assert torch.isfinite(shares).all()
    torch.testing.assert_close(shares.sum(1), torch.ones(4))


def views():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(60, 6, generator=generator)
    y = torch.randn(50, 5, generator=generator)
    return lay_out(x, y, ClosedFormConfig(), generator)[0]


def known_rows():
    pairs = torch.tensor([[0, 3], [0, 4], [7, 9]])
    weights = torch.tensor([0.5, 0.5, 1.0])
    return Rows(pairs, weights, torch.tensor([1, 2]), torch.tensor([5, 6, 8]))


def test_known_and_soft_pairs_weigh_what_they_are_trusted_with():
    plan = SoftPlan(
        torch.tensor([0, 0, 1, 1]),
        torch.tensor([0, 2, 1, 2]),
        torch.tensor([0.75, 0.25, 0.995, 0.005]),
        (2, 3),
    )
    config = ClosedFormConfig()
    first, second = trust_of(plan, config).tolist()
    pairs, weights = weighted_pairs(known_rows(), plan, config)
    found = {
        (i, j): weight for (i, j), weight in zip(pairs.tolist(), weights.tolist(), strict=True)
    }
    known = {(0, 3): 0.5, (0, 4): 0.5, (7, 9): 1.0}
    soft = {(1, 5): 0.75 * first, (1, 8): 0.25 * first, (2, 6): 0.995 * second}
    assert found == pytest.approx({**known, **soft})  # the share of 0.005 is left out


def test_with_too_many_rows_a_sample_and_its_pairs_are_kept(monkeypatch):
    monkeypatch.setattr(pair_density, "MAX_ROWS", 30)
    part, every = views(), torch.arange(50)
    generator = torch.Generator().manual_seed(0)
    scales, pairs = metric_of(part), every[:, None].repeat(1, 2)
    weights = torch.where(every < 10, 1e6, 1.0)
    found = density_of((part.x, part.y), scales, pairs, weights, generator)
    assert found.pairs.shape == (30, 30) == tuple(len(kept) for kept in found.rows)
    assert len(found.pairs.rows) == 30  # both rows of a pair, or none
    assert int((found.pairs.shares > 1.0).sum()) == 10  # heavy ones first
    for i, j in zip(found.pairs.rows, found.pairs.columns, strict=True):
        left = normalize(part.x * found.scales[0])
        right = normalize(part.y * found.scales[1])
        first = (left == found.rows[0][i]).all(1).nonzero().item()
        assert first == (right == found.rows[1][j]).all(1).nonzero().item()


def test_it_finds_partners_that_no_smooth_map_knows():
    """Partners by heart: y is drawn without regard to x, and unseen rows are near copies."""
    x, y = random_units(300, 10, 0), random_units(300, 10, 1)
    every = torch.arange(300)
    plan = SoftPlan(every, every, torch.ones(300), (300, 300))
    found = PairDensity((torch.ones(10), torch.ones(10)), (x, y), plan)
    generator = torch.Generator().manual_seed(2)
    near_x, near_y = (v[:100] + 0.05 * torch.randn(100, 10, generator=generator) for v in (x, y))
    ratio = found.log_ratio(near_x, near_y)
    assert float((ratio.argmax(1) == every[:100]).float().mean()) > 0.8
    assert float(ratio.min()) >= math.log(FLOOR) - 1e-6


def test_density_of_free_rows_is_what_a_loop_finds_without_the_row_itself(monkeypatch):
    monkeypatch.setattr(pair_density, "N_NEAREST", 4)
    x, y = random_units(12, 3, 0), random_units(10, 3, 1)
    free_x, free_y = torch.tensor([1, 4, 11]), torch.tensor([0, 9])
    near = nearest_rows(x, free_x), nearest_rows(y, free_y)
    pairs = torch.tensor([[1, 0], [2, 3], [2, 4], [5, 9], [4, 0]])
    weights = torch.tensor([1.0, 0.5, 0.5, 0.3, 0.1])
    blocks = [(torch.tensor([0, 1]), torch.ones(2, 2)), (torch.tensor([2]), torch.ones(1, 2))]
    found = torch.cat([scores for _, scores in with_density(blocks, near, pairs, weights)])

    def shares(units, row):
        cosines = {i: float(units[row] @ units[i]) for i in range(len(units)) if i != row}
        nearest = sorted(cosines, key=lambda i: -cosines[i])[:4]
        values = np.array([cosines[i] for i in nearest])
        parts = np.exp(values / values.std(ddof=1))
        return dict(zip(nearest, parts / parts.sum(), strict=True))

    for a, i in enumerate(free_x.tolist()):
        for b, j in enumerate(free_y.tolist()):
            near_x, near_y = shares(x, i), shares(y, j)
            mass = sum(
                float(w) * near_x.get(p, 0.0) * near_y.get(q, 0.0)
                for (p, q), w in zip(pairs.tolist(), weights, strict=True)
            )
            ratio = mass / (2.4 / 120)
            said = DENSITY_WEIGHT * math.log(ratio + FLOOR)
            assert float(found[a, b]) == pytest.approx(1.0 + said, 1e-4)
