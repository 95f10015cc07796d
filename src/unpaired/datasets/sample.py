"""The embedded sample: 2,000 CIFAR-10 photos, their features, and vectors of the class names.

``load_pile`` adds 14,000 more photos of the same classes by features alone, cut to a byte each.

The files lie beside this module in ``sample/``, with a README telling where each comes from and
under which licence. ``scripts/make_sample.py`` made them.
"""

from __future__ import annotations

import io
from collections.abc import Iterable
from dataclasses import dataclass
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unpaired.errors import DataError, extra
from unpaired.types import IntArray

N_PARTS = 2
PHOTOS_PER_PART = 1000
TILE = 32
TILES_PER_ROW = 40
N_PILE = 16_000
N_PILE_COMPONENTS = 128


@dataclass(frozen=True, eq=False)
class Sample:
    """2,000 photos and the names of ten classes, with vectors for both; nothing pairs the two.

    ``labels`` are for evaluation only. Row i of ``images``, ``features``, ``labels`` and
    ``indices`` is the same photo; row c of ``glove``, ``sentence`` and ``prompts`` is the same
    class.
    """

    images: NDArray[np.uint8]
    """(2000, 32, 32, 3) thumbnails, RGB."""
    features: NDArray[np.float32]
    """(2000, 1280) pooled EfficientNet-Lite0 features; the network saw ImageNet labels."""
    labels: IntArray
    """(2000,) true class of each photo, for evaluation only."""
    class_names: tuple[str, ...]
    """The ten names, in the order of the labels."""
    glove: NDArray[np.float32]
    """(10, 100) GloVe word vectors of the names."""
    sentence: NDArray[np.float32]
    """(10, 384) mean of the prompts' MiniLM vectors, unit length."""
    prompts: NDArray[np.float32]
    """(10, 8, 384) MiniLM vectors of eight sentences a class, unit length."""
    indices: IntArray
    """(2000,) row of each photo in CIFAR-10's test set, ascending."""

    @property
    def class_vectors(self) -> list[NDArray[np.float32]]:
        """The two descriptions of the classes, [glove, sentence]."""
        return [self.glove, self.sentence]


def load_sample() -> Sample:
    """Return the sample that comes inside the package; no download, well under a second.

    Raises:
        DataError: when a file of the sample is missing or damaged.

    >>> sample = load_sample()
    >>> sample.images.shape, sample.features.shape
    ((2000, 32, 32, 3), (2000, 1280))
    >>> sample.class_names[:3]
    ('airplane', 'automobile', 'bird')
    """
    folder = resources.files("unpaired.datasets") / "sample"
    photos = _read_npz(folder / "photos.npz", ("index", "label"))
    classes = _read_npz(folder / "classes.npz", ("name", "glove100", "minilm_prompts"))
    parts = range(N_PARTS)
    images = [_read_sheet(folder / f"thumbnails-{part}.jpg") for part in parts]
    features = [
        _read_npz(folder / f"features-{part}.npz", ("features",))["features"] for part in parts
    ]
    prompts = classes["minilm_prompts"].astype(np.float32)
    return Sample(
        images=np.concatenate(images),
        features=np.concatenate(features).astype(np.float32),
        labels=photos["label"].astype(np.int64),
        class_names=tuple(str(name) for name in classes["name"]),
        glove=classes["glove100"].astype(np.float32),
        sentence=_unit_mean(prompts),
        prompts=prompts,
        indices=photos["index"].astype(np.int64),
    )


@dataclass(frozen=True, eq=False)
class Pile:
    """16,000 photos by their features; the first 2,000 are those of the sample, in its order.

    ``labels`` are for evaluation only.
    """

    features: NDArray[np.float32]
    """(16000, 128) principal components of EfficientNet-Lite0 features, rounded to 8 bits."""
    labels: IntArray
    """(16000,) true class of each photo, for evaluation only."""


def load_pile() -> Pile:
    """Return the 16,000 photos that come inside the package by their features.

    Raises:
        DataError: when the file is missing or damaged.

    >>> pile = load_pile()
    >>> pile.features.shape, bool((pile.labels[:2000] == load_sample().labels).all())
    ((16000, 128), True)
    """
    folder = resources.files("unpaired.datasets") / "sample"
    found = _read_npz(folder / "pile.npz", ("codes", "step", "label"))
    return Pile(
        features=found["codes"] * np.float32(found["step"]),
        labels=found["label"].astype(np.int64),
    )


def _unit_mean(prompts: NDArray[np.float32]) -> NDArray[np.float32]:
    """Return one unit vector a class: the mean of its prompts, rescaled."""
    means: NDArray[np.float64] = prompts.mean(axis=1, dtype=np.float64)  # (10, 384)
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    return means.astype(np.float32)


def _read_bytes(file: Traversable) -> bytes:
    """Return the content of one file of the sample, or raise DataError when it is absent."""
    try:
        return file.read_bytes()
    except OSError as error:
        raise DataError(
            f"The embedded sample must hold {file.name}: it cannot be read ({error}). "
            "Reinstall unpaired, or run scripts/make_sample.py in a clone."
        ) from error


def _read_npz(file: Traversable, names: Iterable[str]) -> dict[str, NDArray[Any]]:
    """Return the named arrays of one npz file of the sample."""
    content = _read_bytes(file)
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            return {name: archive[name] for name in names}
    except Exception as error:  # zip, zlib and NumPy each raise their own kinds
        raise _damaged(file, error) from error


def _read_sheet(file: Traversable) -> NDArray[np.uint8]:
    """Return the photos of one sheet of thumbnails, (1000, 32, 32, 3), read row by row."""
    with extra("report"):
        from PIL import Image

    content = _read_bytes(file)
    try:
        with Image.open(io.BytesIO(content)) as picture:
            sheet = np.asarray(picture.convert("RGB"))
        rows = PHOTOS_PER_PART // TILES_PER_ROW
        tiles = sheet.reshape(rows, TILE, TILES_PER_ROW, TILE, 3)
    except (OSError, SyntaxError, ValueError) as error:
        raise _damaged(file, error) from error
    return tiles.swapaxes(1, 2).reshape(PHOTOS_PER_PART, TILE, TILE, 3)


def _damaged(file: Traversable, error: Exception) -> DataError:
    """Return the error for a file of the sample that does not hold what it should."""
    return DataError(
        f"The embedded sample must be whole: {file.name} is damaged "
        f"({type(error).__name__}: {error}). Reinstall unpaired."
    )
