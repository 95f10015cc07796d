"""Encoders of photos with their real weights, where these are."""

import os
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from unpaired.errors import DataError
from unpaired.features import efficientnet_features
from unpaired.features.encoders import IMAGES, load_encoder


def loaded(name):
    try:
        return load_encoder(name, IMAGES)
    except DataError as missing:
        pytest.skip(str(missing))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["efficientnet-lite1", "efficientnet-lite2"])
def test_other_sizes_tell_the_samples_classes_apart(name, nearest_mean_accuracy):
    encoder = loaded(name)
    assert encoder.side == {"1": 240, "2": 260}[name[-1]]
    assert nearest_mean_accuracy(encoder) > 0.6


@pytest.mark.slow
def test_lite0_gives_the_vectors_that_others_made_of_the_same_photos():
    data = Path(os.environ.get("UNPAIRED_DATA", "nowhere")) / "cifar10" / "test.npz"
    sheet = Path(os.environ.get("UNPAIRED_CIFAR10", "data/cifar10")) / "test_batch.png"
    if not (data.is_file() and sheet.is_file()):
        pytest.skip("UNPAIRED_DATA has no features, or UNPAIRED_CIFAR10 no photos of CIFAR-10")
    from unpaired.datasets.cifar10 import read_cifar10

    encoder = loaded("efficientnet-lite0")
    images, labels = read_cifar10(sheet.parent, "test")
    with np.load(data) as held:
        others, truth = held["features"][:30].astype(float), held["label"][:30]
    np.testing.assert_array_equal(labels[:30], truth)

    def cosines(ours):
        lengths = np.linalg.norm(ours, axis=1) * np.linalg.norm(others, axis=1)
        return (ours * others).sum(1) / lengths

    assert cosines(efficientnet_features(images[:30], device="cpu")).min() > 0.99
    # A file is enlarged by Pillow, which rounds to bytes.
    large = [np.asarray(Image.fromarray(photo).resize((224, 224), 3)) for photo in images[:30]]
    found = cosines(encoder.encode(large))
    assert found.min() > 0.97
    assert np.median(found) > 0.99
