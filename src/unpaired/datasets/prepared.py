"""Folders of features that were made beforehand and saved as npz, one layout per kind of problem.

- captions: ``images.npz`` (``features``, ``split``, perhaps ``name``) and ``captions.npz``
  (``features``, ``image`` = row of the image, perhaps ``text``);
- classes: ``train.npz`` and ``test.npz``, or ``images.npz`` alone (``features``, ``label``), and
  ``classes.npz`` (``name``, one or more arrays of class vectors, perhaps ``unseen``);
- aligned: one npz with two arrays, or two files, in which row i belongs to row i.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unpaired.datasets.arrays import read_matrix
from unpaired.datasets.two_views import TwoViews
from unpaired.errors import DataError


def load_caption_features(folder: str | os.PathLike[str]) -> TwoViews:
    """Images and captions of a folder with images.npz and captions.npz.

    Raises:
        DataError: when files or arrays are absent or do not fit together.
    """
    place = Path(folder)
    images = _archive(place / "images.npz", ("features", "split"))
    captions = _archive(place / "captions.npz", ("features", "image"))
    owner = captions["image"].astype(np.int64)
    n_images = len(images["features"])
    if len(owner) != len(captions["features"]) or (
        len(owner) and (owner.min() < 0 or owner.max() >= n_images)
    ):
        raise DataError(
            f"{place / 'captions.npz'} must name a row of images.npz (0 to {n_images - 1}) for "
            "each caption. Save the array image along with the features."
        )
    first = np.full(n_images, -1, dtype=np.int64)
    first[owner[::-1]] = np.arange(len(owner))[::-1]
    return TwoViews(
        x=images["features"].astype(np.float32),
        y=captions["features"].astype(np.float32),
        truth=first,
        owner=owner,
        split=images["split"].astype(str),
        names_x=tuple(map(str, images.get("name", ()))),
        names_y=tuple(map(str, captions.get("text", ()))),
    )


def load_class_features(
    folder: str | os.PathLike[str], class_vectors: Sequence[str] | None = None
) -> TwoViews:
    """Images of a folder with train.npz, test.npz and classes.npz; y holds the class vectors.

    Instead of train.npz and test.npz there may be one images.npz. It has no split of its own: with
    an array ``unseen`` (m,) of classes.npz, images of these classes are "test" and all others
    "train". ``class_vectors`` names the arrays of classes.npz to use, None takes all. An array
    (m, k, d), k sentences a class, is averaged over k. Several are centred, brought to mean square
    length 1 and joined.

    Raises:
        DataError: when files or arrays are absent or do not fit together.
    """
    place = Path(folder)
    files = ("images",) if (place / "images.npz").is_file() else ("train", "test")
    parts = {name: _archive(place / f"{name}.npz", ("features", "label")) for name in files}
    classes = _archive(place / "classes.npz", ("name", *(class_vectors or ())))
    every = [name for name in classes if classes[name].ndim > 1]
    chosen = every if class_vectors is None else class_vectors
    if not chosen:
        raise DataError(f"{place / 'classes.npz'} must hold class vectors beside the names.")
    blocks = [classes[name].astype(np.float32) for name in chosen]
    blocks = [block.mean(1) if block.ndim == 3 else block for block in blocks]
    truth = np.concatenate([part["label"] for part in parts.values()]).astype(np.int64)
    n_classes = len(classes["name"])
    if truth.min() < 0 or truth.max() >= n_classes:
        raise DataError(
            f"{place} must have labels from 0 to {n_classes - 1}, as classes.npz lists."
        )
    split: NDArray[Any] | None = np.repeat(files, [len(part["label"]) for part in parts.values()])
    if "images" in parts:
        unseen = classes.get("unseen")
        split = None if unseen is None else np.where(unseen.astype(bool)[truth], "test", "train")
    return TwoViews(
        x=np.concatenate([part["features"] for part in parts.values()]).astype(np.float32),
        y=join_blocks(blocks),
        truth=truth,
        split=split,
        names_y=tuple(map(str, classes["name"])),
    )


def join_blocks(blocks: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Several descriptions of the same classes side by side, weighing the same; one stays as is.

    >>> join_blocks([np.eye(2), np.eye(2)]).shape
    (2, 4)
    """
    if len(blocks) == 1:
        return blocks[0]
    centred = [block - block.mean(0) for block in blocks]
    return np.hstack([block / np.sqrt((block**2).sum(1).mean()) for block in centred])


def load_aligned(
    path_x: str | os.PathLike[str],
    path_y: str | os.PathLike[str] | None = None,
    *,
    key_x: str = "x",
    key_y: str = "y",
) -> TwoViews:
    """Two matrices whose rows belong together in order, from one npz or two files.

    Raises:
        DataError: when files are absent or have unequal numbers of rows.
    """
    first, second = Path(path_x), Path(path_y if path_y is not None else path_x)
    for path in (first, second):
        if not path.is_file():
            raise DataError(f"There is no file {path}. Check the path and the data folder.")
    x = read_matrix(first, key_x)
    y = read_matrix(second, key_y, n_rows=len(x))
    return TwoViews(x.astype(np.float32), y.astype(np.float32), np.arange(len(x), dtype=np.int64))


def _archive(path: Path, required: Sequence[str]) -> dict[str, NDArray[Any]]:
    """All arrays of an npz file that must hold the ``required`` ones."""
    if not path.is_file():
        raise DataError(
            f"There is no file {path}. Save features there with numpy.savez: {', '.join(required)}."
        )
    try:
        with np.load(path, allow_pickle=False) as archive:
            found = {name: archive[name] for name in archive.files}
    except Exception as error:  # zip, zlib and NumPy each raise their own kinds
        raise DataError(f"{path} cannot be read: {error}. Make it again.") from error
    missing = [name for name in required if name not in found]
    if missing:
        raise DataError(
            f"{path} must hold the arrays {', '.join(required)}: {', '.join(missing)} absent; it "
            f"has {', '.join(found) or 'none'}."
        )
    return found
