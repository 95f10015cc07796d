import numpy as np
import pytest
import torch
from unpaired.training.objective import ObjectiveConfig
from unpaired.training.published import BLOCK_ROWS, rematch_in_blocks, rematch_to_classes
from unpaired.training.readout import fit_ratio_readout


def make_config(dependence="smi"):
    return ObjectiveConfig(dependence, 0.7, "median", "median", 0.01)


def rotated(n, rng, d=5):
    z = torch.tensor(rng.exponential(size=(n, d)), dtype=torch.float32)  # alike in all columns
    rotation = torch.tensor(np.linalg.qr(rng.standard_normal((d, d)))[0], dtype=torch.float32)
    return z, z @ rotation


@pytest.mark.parametrize("dependence", ["smi", "ukta"])
def test_a_few_wrong_pairs_are_put_right_and_known_ones_stay(dependence, rng):
    z_x, z_y = rotated(60, rng)
    pairs = np.repeat(np.arange(60)[:, None], 2, axis=1)
    pairs[50:58, 1] = np.roll(pairs[50:58, 1], 1)
    pairs[:2, 1] = [1, 0]  # known, though wrong: they are the user's
    found = rematch_in_blocks(z_x, z_y, pairs, 10, make_config(dependence), 1.0, rng)
    np.testing.assert_array_equal(found[:10], pairs[:10])
    assert (found[10:, 0] == found[10:, 1]).mean() >= 0.9


def test_blocks_keep_the_matching_one_to_one(rng):
    n = BLOCK_ROWS + 40
    z_x, z_y = rotated(n, rng, d=3)
    pairs = np.column_stack([np.arange(n), rng.permutation(n)])
    found = rematch_in_blocks(z_x, z_y, pairs, 0, make_config("ukta"), 1.0, rng)
    assert sorted(found[:, 0]) == sorted(found[:, 1]) == list(range(n))


def test_classes_take_the_largest_ratio(rng):
    z_y = torch.eye(3) * 3
    truth = np.arange(60) % 3
    z_x = z_y[truth] + 0.1 * torch.tensor(rng.standard_normal((60, 3)), dtype=torch.float32)
    labels = truth.copy()
    labels[40:45] = (labels[40:45] + 1) % 3
    pairs = np.column_stack([np.arange(60), labels])
    found = rematch_to_classes(z_x, z_y, pairs, 10, make_config())
    np.testing.assert_array_equal(found[:, 1], truth)


def test_the_ratio_by_loops(rng):
    z_x, z_y = rotated(12, rng)
    pairs = np.column_stack([np.arange(12), rng.permutation(12)])
    readout = fit_ratio_readout(z_x, z_y, pairs, make_config())
    scores = readout.embed_x(z_x) @ readout.embed_y(z_y).T
    scaled_x = ((z_x - z_x.mean(0)) / (z_x.std(0, correction=0) + 1e-6)).double().numpy()
    scaled_y = ((z_y - z_y.mean(0)) / (z_y.std(0, correction=0) + 1e-6)).double().numpy()
    wide_x, wide_y = float(readout.width_x), float(readout.width_y)
    total = 0.0
    for l, (i, j) in enumerate(pairs):
        k = np.exp(-((scaled_x[3] - scaled_x[i]) ** 2).sum() / (2 * wide_x**2))
        m = np.exp(-((scaled_y[7] - scaled_y[j]) ** 2).sum() / (2 * wide_y**2))
        total += float(readout.coef[l]) * k * m
    assert float(scores[3, 7]) == pytest.approx(total, rel=1e-3)
