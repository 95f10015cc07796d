"""Folders of photos and files of texts, as items to encode."""

from __future__ import annotations

import functools
import io
import os
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unpaired._text import decode_text, lines_of
from unpaired.errors import DataError, InputError, extra
from unpaired.features.encoders import Encoder, Item
from unpaired.features.text_encoders import words_of

PHOTO_KINDS = (".jpg", ".jpeg", ".png", ".webp", ".bmp", ".gif", ".tif", ".tiff")
MAX_PIXELS = 100_000_000
LONGEST = 4
"""A photo counts at most so many times its shorter side."""


def photos_in(folder: Path, side: int) -> list[Item]:
    """The photos of a folder and the folders in it, by name.

    Raises:
        DataError: when it is no folder, or has no photo.
    """
    if not folder.is_dir():
        what = "is a file" if folder.is_file() else "is not there"
        raise DataError(f"There is no folder of photos {folder}: it {what}. Check the path.")
    files = sorted(
        file
        for file in folder.rglob("*")
        if file.suffix.lower() in PHOTO_KINDS and not file.name.startswith(".") and file.is_file()
    )
    if not files:
        raise DataError(
            f"{folder} must hold photos ({', '.join(PHOTO_KINDS)}): it has none. Check the path."
        )
    decode = functools.partial(read_photo, side=side)
    return [_photo_item(file, file.relative_to(folder).as_posix(), decode) for file in files]


def _photo_item(file: Path, name: str, decode: Callable[[bytes], Any]) -> Item:
    """A photo to encode; one whose name no text file can hold is none."""
    shown = os.fsencode(name).decode("utf-8", "backslashreplace")

    def read() -> bytes:
        if shown != name:
            raise DataError("its name is not in UTF-8; rename it")
        return file.read_bytes()

    return Item(shown, read, decode)


def read_photo(content: bytes, side: int) -> NDArray[np.uint8]:
    """The middle of a photo, (side, side, 3): its shorter side is resized to ``side`` pixels.

    Raises:
        DataError: when the bytes are no photo, or one of more than 100 million pixels.
    """
    with extra("report"):
        from PIL import Image, ImageOps

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow's own word on large photos comes below
            with Image.open(io.BytesIO(content)) as opened:
                if opened.width * opened.height > MAX_PIXELS:
                    raise DataError(f"it has {opened.width} x {opened.height} pixels, too many")
                photo = _middle(ImageOps.exif_transpose(opened).convert("RGB"))
            scale = side / min(photo.size)
            size = tuple(max(side, round(length * scale)) for length in photo.size)
            photo = photo.resize((size[0], size[1]), Image.Resampling.BICUBIC)
    except DataError:
        raise
    except Exception as error:  # Pillow's readers raise many kinds
        reason = " ".join(str(error).split())[:120] or type(error).__name__
        if "BytesIO" in reason:
            reason = "it is of no kind that Pillow knows" if content else "it is empty"
        raise DataError(f"it cannot be read as a photo ({reason})") from error
    left, top = ((length - side) // 2 for length in photo.size)
    return np.asarray(photo.crop((left, top, left + side, top + side)), dtype=np.uint8)


def _middle(photo: Any) -> Any:
    """The photo, or the middle of one that is very long, which would be huge once resized."""
    most = LONGEST * min(photo.size)
    width, height = (min(length, most) for length in photo.size)
    left, top = (photo.width - width) // 2, (photo.height - height) // 2
    return photo.crop((left, top, left + width, top + height))


def texts_in(file: Path, encoder: Encoder) -> list[Item]:
    """The lines of a text file, called by their numbers from 1; empty lines are left out.

    Raises:
        DataError: when the file cannot be read as UTF-8 text, or has no line.
    """
    lines = read_lines(file)
    return [text_item(str(number), line, encoder) for number, line in lines]


def text_item(name: str, text: str, encoder: Encoder) -> Item:
    """A text to encode; one of whose words none has a vector is none."""
    content = text.encode()

    def read() -> bytes:
        if encoder.unknown_words is not None and len(encoder.unknown_words(text)) == len(
            words_of(text)
        ):
            raise DataError(f'no word of "{text[:60]}" has a vector')
        return content

    return Item(name, read, lambda found: found.decode())


def unknown_words(texts: Iterable[str], encoder: Encoder) -> list[str]:
    """The words of the texts that an encoder has no vector for, each once, in order."""
    if encoder.unknown_words is None:
        return []
    return list(dict.fromkeys(word for text in texts for word in encoder.unknown_words(text)))


def read_lines(file: Path) -> list[tuple[int, str]]:
    """Number from 1 and text of each line that is not empty.

    Raises:
        DataError: when the file cannot be read as text, or has no line.
    """
    try:
        data = file.read_bytes()
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise DataError(f"There is no text file {file} ({reason}). Check the path.") from error
    text = decode_text(data, file)
    # A tab at the beginning stays: before it a name is missing.
    lines = [(n, line.strip(" \r")) for n, line in enumerate(lines_of(text), 1) if line.strip()]
    if not lines:
        raise DataError(f"{file} must hold one text a line: it is empty. Write some.")
    return lines


def read_names(file: Path) -> dict[str, list[str]]:
    """Name of each class -> texts that describe it, from lines of "name" or "name<TAB>description".

    A name that comes several times has several descriptions. A name alone describes itself.

    Raises:
        InputError: when there are fewer than two names.
    """
    names: dict[str, list[str]] = {}
    for number, line in read_lines(file):
        name, _, text = (part.strip() for part in line.partition("\t"))
        if not name:
            raise InputError(f"NAMES must have a name before the tab: line {number} has none.")
        names.setdefault(name, []).append(text or name)
    if len(names) < 2:
        raise InputError(f"NAMES must hold two names or more: {file} has {len(names)}.")
    return names
