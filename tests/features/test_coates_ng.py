"""Coates & Ng features against a slow loop over patches."""

import numpy as np
import pytest
import torch

from unpaired.errors import InputError
from unpaired.features.coates_ng import (
    PatchDictionary,
    coates_ng_features,
    learn_dictionary,
    omp1_atoms,
    zca,
)


def slow_features(images, dictionary, threshold):
    size = dictionary.patch_size
    found = []
    for image in images.astype(np.float64):
        height, width = image.shape[0] - size + 1, image.shape[1] - size + 1
        n_atoms = dictionary.atoms.shape[1]
        sums = np.zeros((2, 2, 2, n_atoms))  # row half, column half, sign, atom
        for top in range(height):
            for left in range(width):
                patch = image[top : top + size, left : left + size]
                row = np.concatenate([patch[:, :, channel].ravel() for channel in range(3)])
                row = (row - row.mean()) / np.sqrt(row.var(ddof=1) + 10)
                response = ((row - dictionary.mean) @ dictionary.whitening) @ dictionary.atoms
                half = int(top >= -(-height // 2)), int(left >= -(-width // 2))
                sums[half][0] += np.maximum(response - threshold, 0)
                sums[half][1] += np.maximum(-response - threshold, 0)
        found.append(sums.ravel())
    return np.array(found)


@pytest.mark.parametrize(("size", "shape"), [(3, (8, 8)), (4, (9, 7))])
def test_features_equal_a_slow_loop(rng, size, shape):
    images = rng.integers(256, size=(3, *shape, 3), dtype=np.uint8)
    learned = learn_dictionary(images, rng, n_atoms=5, patch_size=size, n_patches=200, n_iter=3)
    found = coates_ng_features(images, learned, batch_size=2)
    assert found.shape == (3, 40)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, slow_features(images, learned, 0.25), rtol=1e-3, atol=1e-3)


def test_whitened_patches_are_white(rng):
    rows = torch.as_tensor(rng.normal(size=(4000, 6)) @ rng.normal(size=(6, 6)) * 5).float()
    mean = rows.mean(0)
    map_ = zca(rows, mean)
    np.testing.assert_allclose(map_, map_.T, atol=1e-5)
    covariance = np.cov(((rows - mean) @ map_).numpy().T)
    values = np.linalg.eigvalsh(np.cov(rows.numpy().T))
    expected = np.sort(values / (values + 0.1))  # the offset keeps small directions small
    np.testing.assert_allclose(np.linalg.eigvalsh(covariance), expected, atol=1e-3)


def test_atoms_find_planted_directions_up_to_sign(rng):
    frame = np.linalg.qr(rng.normal(size=(5, 5)))[0]
    which = rng.integers(5, size=2000)
    gain = rng.normal(size=2000) + np.sign(rng.normal(size=2000))
    rows = torch.as_tensor(frame[:, which].T * gain[:, None] + 0.01 * rng.normal(size=(2000, 5)))
    start = torch.as_tensor(frame + 0.2 * rng.normal(size=(5, 5)))
    atoms = omp1_atoms(rows, start / start.norm(dim=0), 10, rng).numpy()
    np.testing.assert_allclose(np.abs(frame.T @ atoms), np.eye(5), atol=0.02)
    np.testing.assert_allclose(np.linalg.norm(atoms, axis=0), 1, rtol=1e-5)


def test_unused_atoms_are_drawn_anew(rng):
    rows = torch.as_tensor(rng.normal(size=(50, 3)))
    start = torch.zeros(3, 4, dtype=rows.dtype)
    start[:, 0] = 1
    atoms = omp1_atoms(rows, start, 2, rng)
    assert torch.isfinite(atoms).all()
    np.testing.assert_allclose(atoms.norm(dim=0), 1, rtol=1e-5)


def test_the_same_seed_gives_the_same_dictionary(rng):
    images = rng.integers(256, size=(4, 10, 10, 3), dtype=np.uint8)
    made = [
        learn_dictionary(images, np.random.default_rng(3), n_atoms=4, n_patches=100, n_iter=2)
        for _ in range(2)
    ]
    np.testing.assert_array_equal(made[0].atoms, made[1].atoms)
    assert isinstance(made[0], PatchDictionary)


@pytest.mark.parametrize(
    ("images", "message"),
    [
        (np.zeros((2, 8, 8, 3)), "type uint8"),
        (np.zeros((2, 8, 8), np.uint8), "height, width, 3"),
        (np.zeros((2, 6, 6, 3), np.uint8), "at least 7 pixels"),
        (np.zeros((0, 8, 8, 3), np.uint8), "at least one"),
    ],
)
def test_unusable_images_are_told(images, message, rng):
    with pytest.raises(InputError, match=message):
        learn_dictionary(images, rng)
