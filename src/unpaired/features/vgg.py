"""VGG-19 up to its second fully connected layer (fc7), for weights under torchvision's names."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor, nn

from unpaired.errors import DataError

N_FEATURES = 4096
WEIGHTS_FILE = "vgg19-dcbb9e9d.pth"
# Channels and how many layers of them: configuration E of Simonyan & Zisserman 2015.
_STAGES = ((64, 2), (128, 2), (256, 4), (512, 4), (512, 4))


class VGG19(nn.Module):
    """Photos (b, 3, 224, 224), standardised as for ImageNet, to features (b, 4096)."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        n_in = 3
        for n_out, count in _STAGES:
            for _ in range(count):
                layers += [nn.Conv2d(n_in, n_out, 3, padding=1), nn.ReLU()]
                n_in = n_out
            layers.append(nn.MaxPool2d(2))
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential(
            *(nn.Linear(512 * 7 * 7, N_FEATURES), nn.ReLU(), nn.Dropout()),
            *(nn.Linear(N_FEATURES, N_FEATURES), nn.ReLU()),
        )

    def forward(self, photos: Tensor) -> Tensor:
        """What fc7 gives, after its ReLU."""
        made: Tensor = self.classifier(self.features(photos).flatten(1))
        return made


def load_vgg(folder: Path) -> VGG19:
    """The network with the weights of a file of torchvision's.

    Raises:
        DataError: when the file is not of this network.
    """
    file = folder / WEIGHTS_FILE
    try:
        weights = torch.load(file, map_location="cpu", weights_only=True)
        with torch.device("meta"):
            network = VGG19()
        kept = {name: weights[name] for name in network.state_dict()}
        network.load_state_dict(kept, assign=True)
    except Exception as error:  # torch.load raises many kinds on a damaged file
        reason = " ".join(str(error).split())[:200]
        raise DataError(
            f"{file} must be torchvision's VGG-19: {type(error).__name__}, {reason}. Put the file "
            "there again."
        ) from error
    return network.eval()
