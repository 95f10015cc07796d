"""Directions grown from those that are held: against densities, and on a toy without pairs."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal
from unpaired.models.presets import PRESETS, learner_config
from unpaired.training import grown
from unpaired.training.common_space import CommonSpace
from unpaired.training.grown import gaussian_log_ratio, leading_directions

from unpaired.evaluation.retrieval import foscttm
from unpaired.learning.learner import take_over

CONFIG = learner_config("smi", PRESETS["default"]).closed_form


def grow_space(x, y, embedded, config, seed):
    return grown.grow_space(x, y, embedded, take_over(x, y, embedded, config, seed), seed)


def clusters(n, rng):
    """Factors of n rows in 40 clusters that are the same for every draw."""
    centres = np.random.default_rng(7).standard_normal((40, 8))
    return centres[rng.integers(40, size=n)] + 0.2 * rng.standard_normal((n, 8))


def worlds(factors, rng):
    """Two views of the factors, of 20 and 15 columns."""
    lift = np.random.default_rng(8)
    return tuple(
        torch.as_tensor(
            factors @ lift.standard_normal((8, width)) + rng.normal(size=(len(factors), width)),
            dtype=torch.float32,
        )
        for width in (20, 15)
    )


def toy(seed, n=600):
    """Views of different rows; an alignment that has three directions right and the rest wrong."""
    rng = np.random.default_rng(seed)
    left, right = clusters(n, rng), clusters(n, rng)
    x, y = worlds(left, rng)[0], worlds(right, rng)[1]
    strength = np.sqrt([1.0, 0.6, 0.4, 0.2, 0.2])
    embedded = [
        torch.as_tensor(np.c_[rows[:, :3], wrong] * strength, dtype=torch.float32)
        for rows, wrong in ((left, left[:, 3:5]), (right, right[:, 5:7]))
    ]
    return x, y, (embedded[0], embedded[1])


@pytest.mark.parametrize("rho", [0.0, 0.3, 0.9])
def test_the_log_ratio_is_that_of_normal_densities(rho):
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((4, 2)), rng.standard_normal((3, 2))
    rhos = np.array([rho, 0.5])
    expected = np.zeros((4, 3))
    for i in range(4):
        for j in range(3):
            for k, r in enumerate(rhos):
                joint = multivariate_normal([0, 0], [[1, r], [r, 1]]).logpdf([a[i, k], b[j, k]])
                alone = multivariate_normal(0, 1).logpdf
                expected[i, j] += joint - alone(a[i, k]) - alone(b[j, k])
    shift = 0.5 * np.log(1 - rhos**2).sum()  # the same for all pairs
    found = gaussian_log_ratio(*(torch.as_tensor(part) for part in (a, b, rhos)))
    np.testing.assert_allclose(found, expected + shift, atol=1e-9)


def test_leading_directions_rebuild_the_products_and_have_unit_variance():
    rng = np.random.default_rng(1)
    x, y = (torch.as_tensor(rng.standard_normal((n, 5)) * [3, 2, 1, 1, 1]) for n in (50, 40))
    left, right, strengths = leading_directions(x, y)
    centred = (x - x.mean(0)) @ (y - y.mean(0)).T
    rebuilt = (left * strengths) @ right.T
    np.testing.assert_allclose(rebuilt * (centred[0, 0] / rebuilt[0, 0]), centred, atol=1e-6)
    for variates in (left, right):
        np.testing.assert_allclose(variates.T @ variates / len(variates), np.eye(5), atol=1e-6)
    assert strengths[0] == 1.0
    assert (strengths.diff() <= 0).all()


@pytest.mark.parametrize("seed", range(4))
def test_rounds_find_more_than_the_directions_that_are_held(seed, monkeypatch):
    x, y, embedded = toy(seed)
    rng = np.random.default_rng([seed, 1])
    new = worlds(clusters(300, rng), rng)
    error = foscttm(grow_space(x, y, embedded, CONFIG, seed).scores(*new).numpy())
    monkeypatch.setattr(grown, "HELD", tuple((count, 0) for count, _ in grown.HELD))
    held = foscttm(grow_space(x, y, embedded, CONFIG, seed).scores(*new).numpy())
    assert error < 0.8 * held


def test_scores_are_log_ratios_of_the_grown_and_products_of_what_is_taken_over():
    x, y, embedded = toy(0, 200)
    space = grow_space(x, y, embedded, CONFIG, 0)
    ratios, products, start = torch.zeros(200, 200), torch.zeros(200, 200), 0
    for number, part in enumerate(space.parts):
        a, b = (
            part.embed(space.features[part.features][view](rows), view)
            for view, rows in enumerate((x, y))
        )
        rho = 2.0 * space.penalty[start : start + a.shape[1]]
        start += a.shape[1]
        if number < len(grown.HELD):
            scale = (rho / (1 - rho**2)).sqrt()
            ratios += gaussian_log_ratio(a / scale, b / scale, rho) / len(space.parts)
        else:
            assert not rho.any()
            products += a @ b.T / len(space.parts)
    torch.testing.assert_close(space.scores(x, y), ratios + products, rtol=1e-3, atol=1e-3)
    assert float(products.std() / ratios.std()) == pytest.approx(grown.TAKEN_SHARE, rel=1e-3)


def test_held_directions_stay_and_others_are_uncorrelated_with_them():
    x, y, embedded = toy(0, 200)
    space = grow_space(x, y, embedded, CONFIG, 0)
    for (count, _), part in zip(grown.HELD, space.parts[: len(grown.HELD)], strict=True):
        for view, rows in enumerate((x, y)):
            placed = part.embed(space.features[0][view](rows), view)
            values = np.corrcoef(placed.T)
            assert np.abs(values[:count, count:]).max() < 0.05
            target = leading_directions(*embedded)[view][:, :count]
            both = np.corrcoef(placed[:, :count].T, target.T)[:count, count:]
            assert np.abs(np.diag(both)).min() > 0.6


def test_nothing_grows_where_the_alignment_has_three_directions_or_views_have():
    x, y, embedded = toy(0, 100)
    assert grow_space(x, y, (embedded[0][:, :3], embedded[1][:, :3]), CONFIG, 0) is None
    weak = torch.tensor([1.0, 1.0, 1.0, 0.01, 0.01])
    assert grow_space(x, y, (embedded[0] * weak, embedded[1] * weak), CONFIG, 0) is None
    assert grow_space(x[:, :2], y, embedded, CONFIG, 0) is None


def test_rows_beyond_the_limit_are_placed_by_the_maps(monkeypatch):
    x, y, embedded = toy(0, 300)
    monkeypatch.setattr(grown, "MAX_ROWS", 120)
    seen = []
    real = grown.sinkhorn

    def spy(score, *args):
        seen.append(score.shape)
        return real(score, *args)

    monkeypatch.setattr(grown, "sinkhorn", spy)
    space = grow_space(x, y[:250], (embedded[0], embedded[1][:250]), CONFIG, 0)
    assert set(seen) == {(120, 120)}
    assert len(seen) == sum(n_rounds for _, n_rounds in grown.HELD)
    assert torch.isfinite(space.scores(x, y)).all()


def test_the_grown_space_comes_back_from_its_arrays():
    x, y, embedded = toy(0, 100)
    space = grow_space(x, y, embedded, CONFIG, 0)
    again = CommonSpace.from_arrays(space.arrays(), torch.device("cpu"))
    torch.testing.assert_close(again.scores(x, y), space.scores(x, y))
