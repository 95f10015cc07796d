"""Coates & Ng as an encoder: patches of the photos themselves are what it learns from.

A dictionary is kept under a digest of the photos it was learned from, so that new photos can be
encoded by the same one, and a second run does not learn it again.
"""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from unpaired._files import atomic_writer, check_writable, read_npz
from unpaired._log import track
from unpaired.errors import DataError, InputError
from unpaired.features.coates_ng import PatchDictionary, coates_ng_features, learn_dictionary
from unpaired.features.encoders import Encoder, Item
from unpaired.features.weights import find_weights, weights_folder

NAME = "coates-ng"
SIDE = 32
"""Height and width of the photos, in pixels: those of CIFAR-10, on which it was published."""
N_ATOMS, PATCH_SIZE, N_PATCHES = 1600, 6, 400_000
MOST_PHOTOS = 10_000
PATCHES_A_PHOTO = 400
_PARTS = ("mean", "whitening", "atoms")


def learning() -> Encoder:
    """An encoder that first learns a dictionary from what it is to encode."""

    def refuse(photos: Sequence[NDArray[np.uint8]]) -> NDArray[np.float32]:
        raise InputError(f"{NAME} must learn from photos before it can encode: call learn first.")

    return Encoder(NAME, refuse, SIDE, learn=_learn)


def learned(key: str) -> Encoder:
    """The encoder of a dictionary that was learned and kept.

    Raises:
        DataError: when there is none under that key.
    """
    file = f"{Path(key).name}.npz"
    how = f"Learn it from those photos again: --encoder {NAME}"
    return _encoder(key, _read(find_weights(NAME, (file,), how) / file))


def _learn(items: Sequence[Item]) -> Encoder:
    """The encoder of the dictionary of some photos, learned now or kept from before."""
    order = np.random.default_rng(0).permutation(len(items))[:MOST_PHOTOS]
    digest = hashlib.sha256(f"{N_ATOMS} {PATCH_SIZE} {N_PATCHES} {PATCHES_A_PHOTO}".encode())
    photos = []
    for number in track(order.tolist(), "Reading photos to learn from"):
        try:
            content = items[number].read()
            photos.append(items[number].decode(content))
        except (DataError, OSError):
            continue  # told when it is encoded
        digest.update(hashlib.sha256(content).digest())
    if not photos:
        raise InputError(f"SOURCE must hold photos that {NAME} can learn from: none can be read.")
    key = digest.hexdigest()[:12]
    file = weights_folder(NAME) / f"{key}.npz"
    if not file.is_file():
        check_writable(file.parent, (), "UNPAIRED_WEIGHTS")
        dictionary = learn_dictionary(
            np.stack(photos),
            np.random.default_rng(0),
            n_atoms=N_ATOMS,
            patch_size=PATCH_SIZE,
            n_patches=min(N_PATCHES, PATCHES_A_PHOTO * len(photos)),
        )
        with atomic_writer(file, binary=True) as handle:
            np.savez(handle, **{part: getattr(dictionary, part) for part in _PARTS})
    return learned(key)


def _encoder(key: str, dictionary: PatchDictionary) -> Encoder:
    return Encoder(
        f"{NAME}:{key}", lambda photos: coates_ng_features(np.stack(photos), dictionary), SIDE
    )


def _read(file: Path) -> PatchDictionary:
    """The dictionary in a file.

    Raises:
        DataError: when it holds none.
    """
    try:
        mean, whitening, atoms = (
            read_npz(file, lambda names, part=part: part)  # type: ignore[misc]
            for part in _PARTS
        )
    except (OSError, ValueError, zipfile.BadZipFile) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(
            f"{file} must hold a dictionary of patches: {error}. Remove it, and learn it again."
        ) from error
    size = round((len(mean) / 3) ** 0.5)
    return PatchDictionary(mean, whitening, atoms, size)
