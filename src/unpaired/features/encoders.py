"""Encoders by name: photos or texts in, one vector each out.

Those that carry weights come from packages that hold them, or from timm, open_clip and
sentence-transformers where they are installed; each is imported only when it is asked for.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unpaired._names import check_choice
from unpaired.errors import DataError, InputError

Encode = Callable[[Sequence[Any]], NDArray[Any]]
IMAGES, TEXTS = "images", "texts"
PHOTO_SIDE = 224


@dataclass(frozen=True)
class Item:
    """Something to encode: what it is called, its bytes, and what the encoder gets of them."""

    name: str
    read: Callable[[], bytes]
    decode: Callable[[bytes], Any]


@dataclass(frozen=True)
class Encoder:
    """A way from photos (side, side, 3) of bytes, or from strings, to vectors.

    Attributes:
        name: What it is called; encoded blocks are kept under it.
        encode: A list of photos or strings in, an array (n, width) out.
        side: Height and width of the photos it takes, in pixels.
        unknown_words: The words of a text that it has no vector for; None when it reads any text.
        learn: Items in, an encoder out that learned from them; None when it is ready as it is.
    """

    name: str
    encode: Encode
    side: int = PHOTO_SIDE
    unknown_words: Callable[[str], list[str]] | None = None
    learn: Callable[[Sequence[Item]], Encoder] | None = None


@dataclass(frozen=True)
class Known:
    """An encoder that can be asked for: what it reads, what it is, and who makes it."""

    kind: str
    about: str
    home: str


KNOWN = {
    "efficientnet-lite0": Known(
        IMAGES, "1,280 numbers, trained on ImageNet", "unpaired.features.photo_encoders:lite0"
    ),
    "mobilenet-v2": Known(
        IMAGES, "1,280 numbers, trained on ImageNet", "unpaired.features.photo_encoders:mobilenet"
    ),
    "efficientnet-lite1": Known(
        IMAGES, "1,280 numbers, trained on ImageNet", "unpaired.features.photo_encoders:lite1"
    ),
    "efficientnet-lite2": Known(
        IMAGES, "1,280 numbers, trained on ImageNet", "unpaired.features.photo_encoders:lite2"
    ),
    "resnet50": Known(
        IMAGES, "2,048 numbers, trained on ImageNet", "unpaired.features.photo_encoders:resnet50"
    ),
    "vgg19": Known(
        IMAGES,
        "4,096 numbers (fc7); your file of weights",
        "unpaired.features.photo_encoders:vgg19",
    ),
    "coates-ng": Known(
        IMAGES,
        "12,800 numbers, learned from patches of your photos; needs nothing",
        "unpaired.features.patch_encoder:learning",
    ),
    "coates-ng:KEY": Known(
        IMAGES,
        "the same for new photos, by what was learned before",
        "unpaired.features.patch_encoder:learned",
    ),
    "pixels": Known(
        IMAGES,
        "768 colours of a small copy; needs nothing",
        "unpaired.features.photo_encoders:pixels",
    ),
    "timm:NAME": Known(
        IMAGES, "any model of timm, where installed", "unpaired.features.photo_encoders:timm_model"
    ),
    "clip:NAME/WEIGHTS": Known(
        IMAGES,
        "photos by open_clip, where installed",
        "unpaired.features.photo_encoders:clip_photos",
    ),
    "use": Known(
        TEXTS, "512 numbers, sentences of 16 languages", "unpaired.features.text_encoders:use"
    ),
    "minilm": Known(
        TEXTS, "384 numbers, English sentences", "unpaired.features.text_encoders:minilm"
    ),
    "mpnet": Known(
        TEXTS, "768 numbers, English sentences", "unpaired.features.text_encoders:mpnet"
    ),
    "gte-small": Known(
        TEXTS, "384 numbers, English sentences", "unpaired.features.text_encoders:gte_small"
    ),
    "wordllama": Known(
        TEXTS, "256 numbers, mean of token vectors", "unpaired.features.text_encoders:wordllama"
    ),
    "wink": Known(
        TEXTS, "100 numbers, mean of English word vectors", "unpaired.features.text_encoders:wink"
    ),
    "glove": Known(
        TEXTS, "50 numbers, mean of English word vectors", "unpaired.features.text_encoders:glove"
    ),
    "letters": Known(
        TEXTS,
        "256 counts of letters in a row; needs nothing",
        "unpaired.features.text_encoders:letters",
    ),
    "sbert:NAME": Known(
        TEXTS,
        "any model of sentence-transformers, where installed",
        "unpaired.features.text_encoders:sentence_model",
    ),
    "clip-text:NAME/WEIGHTS": Known(
        TEXTS, "texts by open_clip, where installed", "unpaired.features.text_encoders:clip_texts"
    ),
}
DEFAULT = {IMAGES: "efficientnet-lite0", TEXTS: "use"}


def load_encoder(name: str, kind: str) -> Encoder:
    """The encoder called ``name``, ready to encode ``kind``, "images" or "texts".

    Raises:
        InputError: when there is none of that name, or it encodes the other kind.
        DataError: when a package that it needs is not installed.
    """
    check_choice(kind, "kind to encode", (IMAGES, TEXTS))
    family, colon, model = name.partition(":")
    entry = next((e for e in KNOWN if colon and model and e.startswith(f"{family}:")), None)
    if entry is None:
        entry = check_choice(
            name, "encoder", [e for e in KNOWN if ":" not in e] if not colon else KNOWN
        )
    found = KNOWN[entry]
    if found.kind != kind:
        others = ", ".join(e for e, known in KNOWN.items() if known.kind == kind)
        raise InputError(
            f"encoder must be one of {kind}: {name} encodes {found.kind}. Name one of {others}."
        )
    module, _, function = found.home.partition(":")
    make = getattr(importlib.import_module(module), function)
    encoder: Encoder = make(model) if colon else make()
    return encoder


def need(package: str, what: str, command: str) -> Any:
    """The package, imported.

    Raises:
        DataError: when it is not installed, with the command that brings it.
    """
    try:
        return importlib.import_module(package)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != package.partition(".")[0]:
            raise
        raise DataError(
            f"The encoder {what} needs the package {package}, and it is not installed. "
            f"Run: {command}"
        ) from error


def as_vectors(values: Any, n_items: int, name: str) -> NDArray[np.float32]:
    """What an encoder returned, as one finite row per item.

    Raises:
        DataError: when it is anything else.
    """
    vectors = np.asarray(values, dtype=np.float32)
    if vectors.ndim != 2 or len(vectors) != n_items or not np.isfinite(vectors).all():
        raise DataError(
            f"The encoder {name} must give {n_items} rows of finite numbers: it gave shape "
            f"{vectors.shape}. Try another encoder."
        )
    return vectors
