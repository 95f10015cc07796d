"""Encoders of photos: each function returns one that is ready."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unpaired.features.encoders import Encoder, need
from unpaired.features.weights import find_weights

SMALL_SIDE = 16
IMAGENET_MEAN, IMAGENET_SCALE = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def lite0() -> Encoder:
    """EfficientNet-Lite0, its last layer averaged over positions."""
    return _lite(0)


def lite1() -> Encoder:
    """EfficientNet-Lite1, its last layer averaged over positions."""
    return _lite(1)


def lite2() -> Encoder:
    """EfficientNet-Lite2, its last layer averaged over positions."""
    return _lite(2)


def _lite(version: int) -> Encoder:
    from unpaired.features.efficientnet import INPUT_SIZES, encode_batch, load_network

    network, side = load_network(version), INPUT_SIZES[version]
    return Encoder(
        f"efficientnet-lite{version}",
        lambda photos: encode_batch(network, np.stack(photos), size=side),
        side,
    )


def mobilenet() -> Encoder:
    """MobileNetV2, its last layer averaged over positions."""
    from unpaired.features.mobilenet import load_mobilenet

    network = load_mobilenet()
    return Encoder("mobilenet-v2", lambda photos: _pooled(network, photos))


def resnet50() -> Encoder:
    """ResNet-50, its last layer averaged over positions."""
    import torch

    from unpaired.features.resnet import MEAN_BGR, load_resnet

    command = "Run: unpaired data get resnet50"
    network = load_resnet(find_weights("resnet50", ("model.json",), command))
    mean = torch.tensor(MEAN_BGR).view(1, 3, 1, 1)

    def encode(photos: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        batch = torch.from_numpy(np.stack(photos)).permute(0, 3, 1, 2).float()
        with torch.inference_mode():
            return np.asarray(network(batch.flip(1) - mean).numpy())

    return Encoder("resnet50", encode)


def vgg19() -> Encoder:
    """VGG-19, what its second fully connected layer (fc7) gives."""
    from unpaired.features.vgg import WEIGHTS_FILE, load_vgg

    command = f"Put torchvision's {WEIGHTS_FILE} there; no package carries it."
    network = load_vgg(find_weights("vgg19", (WEIGHTS_FILE,), command))
    return Encoder("vgg19", lambda photos: _pooled(network, photos))


def pixels() -> Encoder:
    """The colours of a 16 x 16 copy of the photo: a yardstick that needs no weights."""

    def encode(photos: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        rows = np.stack(photos).astype(np.float32) / 255
        step = rows.shape[1] // SMALL_SIDE
        tiles = rows.reshape(len(rows), SMALL_SIDE, step, SMALL_SIDE, step, 3)
        return np.asarray(tiles.mean(axis=(2, 4)).reshape(len(rows), -1))

    return Encoder("pixels", encode)


def timm_model(name: str) -> Encoder:
    """A model of timm without its last layer, at its own size of photo."""
    timm = need("timm", f"timm:{name}", "pip install timm")
    network = timm.create_model(name, pretrained=True, num_classes=0).eval()
    settings = timm.data.resolve_model_data_config(network)
    side = int(settings["input_size"][-1])
    return Encoder(
        f"timm:{name}",
        lambda photos: _pooled(network, photos, settings["mean"], settings["std"]),
        side,
    )


def clip_photos(name: str) -> Encoder:
    """The image side of a model of open_clip, named as MODEL/WEIGHTS."""
    import torch

    open_clip = need("open_clip", f"clip:{name}", "pip install open_clip_torch")
    model, _, weights = name.partition("/")
    network, _, prepare = open_clip.create_model_and_transforms(model, pretrained=weights or None)
    network.eval()

    def encode(photos: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        from PIL import Image

        batch = torch.stack([prepare(Image.fromarray(photo)) for photo in photos])
        with torch.inference_mode():
            return np.asarray(network.encode_image(batch).float().numpy())

    return Encoder(f"clip:{name}", encode)


def _pooled(
    network: Any,
    photos: Sequence[NDArray[np.uint8]],
    mean: Sequence[float] = IMAGENET_MEAN,
    scale: Sequence[float] = IMAGENET_SCALE,
) -> NDArray[np.float32]:
    """What a network makes of photos whose colours were standardised as in its training."""
    import torch

    batch = torch.from_numpy(np.stack(photos)).permute(0, 3, 1, 2).float() / 255
    centre, width = (torch.tensor(tuple(v)).view(1, 3, 1, 1) for v in (mean, scale))
    with torch.inference_mode():
        return np.asarray(network((batch - centre) / width).float().numpy())
