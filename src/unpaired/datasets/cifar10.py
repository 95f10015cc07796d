"""CIFAR-10 (Krizhevsky 2009) in the three forms in which people have it.

50,000 training and 10,000 test photos of 32 x 32 pixels, ten classes. The photos belong to their
authors; the data set is for research. ``unpaired data get cifar10`` fetches the PNG sheets; the
python and binary batches come from the authors' page, "CIFAR-10 python version" and "CIFAR-10
binary version".
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unpaired._checks import check_choice
from unpaired.datasets.safe_pickle import read_plain_pickle
from unpaired.datasets.sample import load_sample
from unpaired.datasets.two_views import TwoViews
from unpaired.errors import DataError, extra
from unpaired.types import IntArray

CLASS_NAMES = (
    "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck",
)  # fmt: skip
SPLITS = {"train": [f"data_batch_{k}" for k in range(1, 6)], "test": ["test_batch"]}
LABEL_FILES = {"train": "train_lables.json", "test": "test_lables.json"}  # as the package spells it
PYTHON_MD5 = {
    "data_batch_1": "c99cafc152244af753f735de768cd75f",
    "data_batch_2": "d4bba439e000b95fd0a9bffe97cbabec",
    "data_batch_3": "54ebc095f3ab1f0389bbae665268c751",
    "data_batch_4": "634d18415352ddfa80567beed471001a",
    "data_batch_5": "482c414d41f54cd18b22e5b47cb7c3cb",
    "test_batch": "40351d587109b95175f43aff81a1287e",
}
PIXELS = 3072
FORMS = {"python": "", "binary": ".bin", "png": ".png"}
SUBFOLDERS = (".", "cifar-10-batches-py", "cifar-10-batches-bin", "package", "cifar10")

Images = NDArray[np.uint8]


def load_cifar10(
    folder: str | os.PathLike[str],
    *,
    features: Callable[[Images], NDArray[Any]] | None = None,
    class_vectors: Any = None,
) -> TwoViews:
    """All 60,000 photos as rows of x and the ten class names as rows of y; truth = class.

    Args:
        folder: Where the official files lie, in any of the three forms.
        features: What turns photos (n, 32, 32, 3) into rows; by default pixels / 255, flat.
        class_vectors: (10, d) vectors of the class names, airplane to truck; by default the GloVe
            vectors that come inside the package.

    Raises:
        DataError: when the files are absent or damaged.
    """
    parts = {split: read_cifar10(folder, split) for split in SPLITS}
    images = np.concatenate([parts[split][0] for split in SPLITS])
    labels = np.concatenate([parts[split][1] for split in SPLITS])
    flat = (images.reshape(len(images), -1) / np.float32(255)).astype(np.float32)
    return TwoViews(
        x=flat if features is None else np.asarray(features(images)),
        y=load_sample().glove if class_vectors is None else np.asarray(class_vectors),
        truth=labels,
        split=np.repeat(list(SPLITS), [len(parts[split][0]) for split in SPLITS]),
        names_y=CLASS_NAMES,
    )


def read_cifar10(
    folder: str | os.PathLike[str], split: str = "train", *, n_batches: int | None = None
) -> tuple[Images, IntArray]:
    """Photos (n, 32, 32, 3) and labels (n,) of one split, in the official order.

    ``n_batches`` reads only the first batches of 10,000 photos.

    Raises:
        DataError: when the files are absent or do not hold what they should.
    """
    check_choice(split, "split", SPLITS)
    place, form = find_cifar10(folder)
    names = SPLITS[split][:n_batches]
    missing = [name + FORMS[form] for name in names if not (place / (name + FORMS[form])).is_file()]
    if missing:
        raise DataError(
            f"{place} must hold {', '.join(missing)} beside the other {form} batches: absent. "
            "Unpack the archive again."
        )
    if form == "png":
        images = [_read_png(place / f"{name}.png") for name in names]
        labels = _read_labels(place / LABEL_FILES[split])[: sum(map(len, images))]
    else:
        read = _read_binary if form == "binary" else _read_python
        batches = [read(place / (name + FORMS[form])) for name in names]
        images = [batch[0] for batch in batches]
        labels = np.concatenate([batch[1] for batch in batches])
    pixels = np.concatenate(images)
    if len(pixels) != len(labels) or labels.min() < 0 or labels.max() > 9:
        raise DataError(
            f"{place} must have one label from 0 to 9 for each photo of {split}: it has "
            f"{len(pixels)} photos and {len(labels)} labels from {labels.min()} to {labels.max()}."
        )
    return pixels, labels.astype(np.int64)


def find_cifar10(folder: str | os.PathLike[str]) -> tuple[Path, str]:
    """The folder that holds the batches, and their form: "python", "binary" or "png".

    Raises:
        DataError: when there are none, with what to do.
    """
    for sub in SUBFOLDERS:
        place = Path(folder) / sub
        for form, suffix in FORMS.items():
            if (place / f"data_batch_1{suffix}").is_file() or (
                place / f"test_batch{suffix}"
            ).is_file():
                return place, form
    raise DataError(
        f"{folder} must hold CIFAR-10 as data_batch_1 (python), data_batch_1.bin (binary) or "
        "data_batch_1.png: none is there. Run: unpaired data get cifar10 --out "
        f"{folder}, or unpack the archive from the data set's page there."
    )


def is_official(path: Path) -> bool | None:
    """Whether a python batch has its published checksum; None where none was published."""
    if path.name not in PYTHON_MD5:
        return None
    digest = hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()
    return digest == PYTHON_MD5[path.name]


def _read_binary(path: Path) -> tuple[Images, IntArray]:
    """One binary batch: records of a label and 3,072 bytes, red, green and blue planes."""
    content = np.frombuffer(path.read_bytes(), dtype=np.uint8)
    if len(content) == 0 or len(content) % (PIXELS + 1):
        raise DataError(
            f"{path} must hold records of {PIXELS + 1} bytes: it has {len(content)} bytes. "
            "Unpack the archive again."
        )
    records = content.reshape(-1, PIXELS + 1)
    return _planes_last(records[:, 1:]), records[:, 0].astype(np.int64)


def _read_python(path: Path) -> tuple[Images, IntArray]:
    """One python batch: a dict with data (n, 3072) and labels."""
    values = read_plain_pickle(path.read_bytes(), str(path))
    pairs = values.items() if isinstance(values, dict) else ()
    found = {k.decode("latin1") if isinstance(k, bytes) else k: v for k, v in pairs}
    data, labels = found.get("data"), found.get("labels")
    if (
        not isinstance(data, np.ndarray)
        or data.dtype != np.uint8
        or data.ndim != 2
        or data.shape[1] != PIXELS
        or not isinstance(labels, (list, np.ndarray))
    ):
        raise DataError(
            f'{path} must be a dict with "data", (n, {PIXELS}) bytes, and "labels": it has '
            f"{sorted(map(str, found))}. Unpack the archive again."
        )
    return _planes_last(data), np.asarray(labels, dtype=np.int64)


def _read_png(path: Path) -> Images:
    """One PNG sheet: a row of 1,024 RGB pixels for each photo."""
    with extra("report"):
        from PIL import Image

    try:
        with Image.open(path) as picture:
            width, height = picture.size
            if width != 1024 or height > 20_000:
                raise DataError(f"{path} must be 1024 pixels wide: it is {width} x {height}.")
            pixels = np.asarray(picture.convert("RGB"))
    except (OSError, SyntaxError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{path} must be a PNG sheet: {error}. Fetch it again.") from error
    return pixels.reshape(-1, 32, 32, 3)


def _read_labels(path: Path) -> IntArray:
    try:
        return np.asarray(json.loads(path.read_text(encoding="utf-8")), dtype=np.int64)
    except (OSError, ValueError, TypeError) as error:
        raise DataError(
            f"{path} must be a list of class numbers: {error}. Fetch it again."
        ) from error


def _planes_last(rows: NDArray[np.uint8]) -> Images:
    """Colour planes (n, 3 * 1024) as photos (n, 32, 32, 3)."""
    return np.ascontiguousarray(rows.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1))
