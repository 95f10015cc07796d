"""Iterative closest points: rotations of least squares, contrast by hand, and maps beyond."""

import numpy as np
import pytest
import torch
from scipy.linalg import orthogonal_procrustes

from unpaired.alignment import icp
from unpaired.alignment.icp import (
    RIDGES,
    Pairing,
    ScoreMap,
    contrast_of,
    fit_score_map,
    nearest_rows,
    pair_spaces,
    refine_rotation,
    rotation_map,
    weighted_rotation,
)
from unpaired.math.neighbours import build_cells
from unpaired.math.ridge import ridge_map
from unpaired.views.features import fit_features


def turn(d, rng):
    return np.linalg.qr(rng.standard_normal((d, d)))[0]


def pairing_of(x, y, rng, weights=(None, None)):
    x, y = (np.asarray(side, dtype=np.float32) for side in (x, y))
    return Pairing(x, y, build_cells(y, rng), (None, None), weights)


def copies(n, d, rng, noise=0.02):
    x = rng.standard_normal((n, d)) * np.linspace(1.5, 0.5, d)
    rotation = turn(d, rng)
    return x, x @ rotation + noise * rng.standard_normal((n, d)), rotation


# Rotations


def test_the_weighted_rotation_is_procrustes_with_its_scale(rng):
    x, y = rng.standard_normal((30, 4)), rng.standard_normal((30, 4))
    weight = rng.random(30)
    root = np.sqrt(weight)[:, None]
    rotation, total = orthogonal_procrustes(root * x, root * y)
    expected = total / (root * x**2 * root).sum() * rotation
    found = weighted_rotation(x.astype(np.float32), y.astype(np.float32), weight)
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_no_other_scaled_rotation_fits_better(rng):
    x, y = (rng.standard_normal((20, 3)).astype(np.float32) for _ in "xy")
    weight = rng.random(20)

    def loss(rotation):
        return float((weight[:, None] * (x @ rotation - y) ** 2).sum())

    best = weighted_rotation(x, y, weight)
    for _ in range(50):
        other = turn(3, rng) * rng.uniform(0.0, 1.0)
        assert loss(best) <= loss(other) + 1e-6
    for scale in (0.9, 1.1):
        assert loss(best) < loss(scale * best)


def test_a_rotation_between_unequal_ranks(rng):
    x = rng.standard_normal((40, 5)).astype(np.float32)
    y = (x @ turn(5, rng)[:, :3]).astype(np.float32)
    found = weighted_rotation(x, y, np.ones(40))
    assert found.shape == (5, 3)
    np.testing.assert_allclose(found.T @ found, found[:, 0] @ found[:, 0] * np.eye(3), atol=1e-5)


# Contrast


def test_contrast_by_hand():
    square = np.array([[1.0, 4.0], [9.0, 9.0], [0.0, 1.0], [0.25, np.inf], [0.0, 0.0]])
    np.testing.assert_allclose(contrast_of(square), [0.5, 0.0, 1.0, 0.5, 1.0])


def test_of_rows_that_share_a_nearest_row_only_the_closest_keeps_its_contrast(rng):
    y = np.array([[0.0, 0.0], [10.0, 0.0], [0.0, 10.0]])
    moved = np.array([[0.5, 0.0], [0.1, 0.0], [9.0, 0.0]])
    near, contrast = nearest_rows(pairing_of(moved, y, rng), moved)
    assert near.tolist() == [0, 0, 1]
    assert contrast[0] == 0.0
    assert contrast[1] == pytest.approx(1 - 0.1 / 9.9, rel=1e-4)
    assert contrast[2] == pytest.approx(1 - 1.0 / 9.0, rel=1e-4)


def test_means_count_pairs_by_the_product_of_their_weights(rng):
    value, query, near = rng.random(4), np.array([0, 2, 3, 1]), np.array([1, 1, 0, 2])
    weight_x, weight_y = rng.random(4), rng.random(3)
    x, y = rng.random((4, 2)), rng.random((3, 2))
    assert pairing_of(x, y, rng).mean(value, query, near) == pytest.approx(value.mean())
    for weights in ((weight_x, None), (None, weight_y), (weight_x, weight_y)):
        both = np.ones(4)
        both *= 1.0 if weights[0] is None else weights[0][query]
        both *= 1.0 if weights[1] is None else weights[1][near]
        found = pairing_of(x, y, rng, weights)
        assert found.mean(value, query, near) == pytest.approx((both * value).sum() / both.sum())
        np.testing.assert_allclose(found.weigh(value, query, near), both * value)


# Refinement


@pytest.mark.parametrize("weighted", [False, True])
def test_a_rough_rotation_is_refined_and_its_contrast_rises(rng, weighted):
    x, y, rotation = copies(400, 4, rng)
    weights = (rng.random(400) + 0.1, None) if weighted else (None, None)
    pairing = pairing_of(x, y, rng, weights)
    query = np.arange(400)
    rough = rotation + 0.1 * rng.standard_normal((4, 4))
    before = nearest_rows(pairing, pairing.x @ rough)[0]
    found, contrast = refine_rotation(pairing, rough, query)
    after = nearest_rows(pairing, pairing.x @ found)[0]
    assert (after == query).mean() > max(0.95, (before == query).mean())
    np.testing.assert_allclose(found, rotation, atol=0.05)
    _, chance = refine_rotation(pairing, turn(4, rng), query)
    assert contrast > 2 * chance


def test_rows_count_by_their_contrast_in_every_fit(rng, monkeypatch):
    """In a rotation by the contrast itself, in linear maps by its square."""
    x, y, rotation = copies(200, 4, rng, noise=0.3)
    pairing, query = pairing_of(x, y, rng), np.arange(200)
    near, contrast = nearest_rows(pairing, pairing.x @ rotation)
    found, _ = refine_rotation(pairing, rotation, query, n_rounds=1)
    expected = weighted_rotation(pairing.x, pairing.y[near], contrast + 1e-3)
    np.testing.assert_allclose(found, expected)
    weights = []

    def recorded(rows, target, ridge, weight):
        weights.append(weight.numpy())
        return ridge_map(rows, target, ridge, weight)

    monkeypatch.setattr(icp, "ridge_map", recorded)
    fit_score_map(pairing, rotation, query, min_gain=2.0)
    half = nearest_rows(pairing, pairing.x[:100] @ rotation)[1]  # the others are held out
    np.testing.assert_allclose(weights[0], (half + 1e-3) ** 2, rtol=1e-3)


def test_a_linear_map_is_taken_where_a_rotation_is_not_enough(rng):
    x, y, rotation = copies(500, 3, rng, noise=0.005)
    y = y * np.array([1.0, 0.88, 1.12])
    pairing = pairing_of(x, y, rng)
    query = rng.permutation(500)
    start, _ = refine_rotation(pairing, rotation, query)
    plain = nearest_rows(pairing, pairing.x @ start)[0]
    found = fit_score_map(pairing, start, query, min_gain=0.01)
    moved = found(pairing.x)
    near = nearest_rows(pairing, moved)[0]
    assert (near == np.arange(500)).mean() > max(0.95, (plain == np.arange(500)).mean())
    held = query[250:]
    expected = nearest_rows(pairing, found(pairing.x[held]))[1].mean()
    assert found.contrast == pytest.approx(expected)  # it is told on rows that were not fitted


def test_a_rotation_is_kept_where_nothing_gains(rng):
    x, y, rotation = copies(300, 3, rng)
    pairing = pairing_of(x, y, rng)
    found = fit_score_map(pairing, rotation, np.arange(300), min_gain=2.0)
    np.testing.assert_allclose(found.matrix, rotation, atol=1e-6)
    assert (found.intercept == 0).all()
    assert sorted(RIDGES, reverse=True) == list(RIDGES)  # the stiffest is tried first


def test_maps_move_scores(rng):
    scores = rng.standard_normal((20, 3)).astype(np.float32)
    plain = rotation_map(np.eye(3)[::-1], 0.4)
    np.testing.assert_allclose(plain(scores), scores[:, ::-1])
    assert plain.contrast == 0.4
    matrix, shift = (rng.standard_normal((rows, 3)).astype(np.float32) for rows in (3, 1))
    found = ScoreMap(matrix, shift)
    np.testing.assert_allclose(found(scores), scores @ matrix + shift, rtol=1e-5)


def test_both_sides_are_cut_to_the_smaller_rank(rng):
    x, y = rng.standard_normal((30, 6)), rng.standard_normal((25, 4))
    features = tuple(
        fit_features(torch.tensor(side).float(), rng, max_rank=9, metric="euclidean")
        for side in (x, y)
    )
    found = pair_spaces(features, x, y, rng, (None, None))
    assert found.x.shape == (30, 4)
    assert found.y.shape == (25, 4)
    whole = features[0](torch.tensor(x).float()).numpy()
    np.testing.assert_allclose(found.x, whole[:, :4], atol=1e-6)
    assert torch.equal(found.features[0](torch.tensor(x).float()), torch.tensor(found.x))
