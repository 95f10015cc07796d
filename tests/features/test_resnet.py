"""ResNet-50 from a manifest and shards in Keras's layout."""

import json

import numpy as np
import pytest
import torch
from torch.nn import functional

from unpaired.errors import DataError
from unpaired.features.encoders import IMAGES, load_encoder
from unpaired.features.resnet import ResNet50, load_resnet
from unpaired.features.weights import weights_folder

STAGES = {2: "abc", 3: "abcd", 4: "abcdef", 5: "abc"}


def keras_entries():
    """Name and shape of every weight as npm's package lists them, classifier and all."""
    entries, n_in = {}, 64

    def layer(kind, norm, inputs, outputs, size):
        entries[f"{kind}/kernel"] = (size, size, inputs, outputs)
        entries[f"{kind}/bias"] = (outputs,)
        for part in ("gamma", "beta", "moving_mean", "moving_variance"):
            entries[f"{norm}/{part}"] = (outputs,)

    layer("conv1", "bn_conv1", 3, 64, 7)
    for stage, letters in STAGES.items():
        inner = 16 * 2**stage
        for letter in letters:
            at = f"{stage}{letter}_branch"
            layer(f"res{at}2a", f"bn{at}2a", n_in, inner, 1)
            layer(f"res{at}2b", f"bn{at}2b", inner, inner, 3)
            layer(f"res{at}2c", f"bn{at}2c", inner, 4 * inner, 1)
            if letter == "a":
                layer(f"res{at}1", f"bn{at}1", n_in, 4 * inner, 1)
            n_in = 4 * inner
    entries["fc1000/kernel"], entries["fc1000/bias"] = (2048, 10), (10,)
    return entries


@pytest.fixture(scope="module")
def keras(tmp_path_factory):
    """A folder of random weights, and the weights by Keras's names."""
    folder = tmp_path_factory.mktemp("weights") / "resnet50"
    folder.mkdir()
    rng = np.random.default_rng(0)
    weights = {}
    for name, shape in keras_entries().items():
        scale = np.sqrt(2 / max(1, np.prod(shape[:-1]))) if name.endswith("kernel") else 0.1
        weights[name] = (scale * rng.standard_normal(shape)).astype("<f4")
        if name.endswith(("gamma", "variance")):
            weights[name] = 1 + 0.1 * np.abs(weights[name])
    data = np.concatenate([value.ravel() for value in weights.values()])
    cut = len(data) // 2
    data[:cut].tofile(folder / "one.bin")
    data[cut:].tofile(folder / "two.bin")
    listed = [{"name": n, "shape": list(v.shape), "dtype": "float32"} for n, v in weights.items()]
    manifest = {"weightsManifest": [{"paths": ["one.bin", "two.bin"], "weights": listed}]}
    (folder / "model.json").write_text(json.dumps(manifest))
    return folder, {name: torch.tensor(value) for name, value in weights.items()}


def by_keras(weights, photos):
    """The network written out layer by layer, as the published model.json tells it."""

    def layer(maps, name, norm, stride=1, pad=0):
        kernel = weights[f"{name}/kernel"].permute(3, 2, 0, 1)
        maps = functional.conv2d(maps, kernel, weights[f"{name}/bias"], stride, pad)
        mean, variance, gamma, beta = (
            weights[f"{norm}/{part}"].view(1, -1, 1, 1)
            for part in ("moving_mean", "moving_variance", "gamma", "beta")
        )
        return (maps - mean) / (variance + 1e-3).sqrt() * gamma + beta

    maps = layer(photos, "conv1", "bn_conv1", 2, 3).clamp_min(0)
    maps = functional.max_pool2d(functional.pad(maps, (1, 1, 1, 1)), 3, 2)
    for stage, letters in STAGES.items():
        for letter in letters:
            at = f"{stage}{letter}_branch"
            stride = 2 if letter == "a" and stage > 2 else 1
            made = layer(maps, f"res{at}2a", f"bn{at}2a", stride).clamp_min(0)
            made = layer(made, f"res{at}2b", f"bn{at}2b", 1, 1).clamp_min(0)
            made = layer(made, f"res{at}2c", f"bn{at}2c")
            if letter == "a":
                maps = layer(maps, f"res{at}1", f"bn{at}1", stride)
            maps = (maps + made).clamp_min(0)
    return maps.mean(dim=(2, 3))


def test_the_network_is_keras_network(keras, monkeypatch):
    folder, weights = keras
    monkeypatch.setenv("UNPAIRED_WEIGHTS", str(folder.parent))
    photos = np.random.default_rng(1).integers(0, 256, (2, 64, 64, 3), dtype=np.uint8)
    blue_first = torch.tensor(photos[..., ::-1].copy()).permute(0, 3, 1, 2).float()
    mean = torch.tensor([103.939, 116.779, 123.68]).view(1, 3, 1, 1)
    expected = by_keras(weights, blue_first - mean).numpy()
    encoder = load_encoder("resnet50", IMAGES)
    np.testing.assert_allclose(encoder.encode(list(photos)), expected, rtol=2e-3, atol=1e-4)


def test_it_has_as_many_weights_as_the_published_one():
    with torch.device("meta"):
        network = ResNet50()
    # 25,636,712 of Keras's ResNet50, less 2,049,000 of the classifier and 53,120 moving statistics.
    assert sum(part.numel() for part in network.parameters()) == 25_636_712 - 2_049_000 - 53_120


def test_other_files_are_told(keras, tmp_path):
    (tmp_path / "model.json").write_text("{}")
    with pytest.raises(DataError, match="must hold ResNet-50.*unpaired data get resnet50"):
        load_resnet(tmp_path)
    manifest = json.loads((keras[0] / "model.json").read_text())
    manifest["weightsManifest"][0]["paths"] = ["one.bin"]
    (tmp_path / "model.json").write_text(json.dumps(manifest))
    (tmp_path / "one.bin").write_bytes((keras[0] / "one.bin").read_bytes())
    with pytest.raises(DataError, match="must hold ResNet-50"):
        load_resnet(tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(
    not (weights_folder("resnet50") / "model.json").is_file(), reason="no weights of ResNet-50"
)
def test_the_published_weights_tell_the_samples_classes_apart(nearest_mean_accuracy):
    assert nearest_mean_accuracy(load_encoder("resnet50", IMAGES)) > 0.6
