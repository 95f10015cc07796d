"""Flickr8K, Flickr30K and MS-COCO: photos, their captions and Karpathy's splits.

Read are Karpathy's ``dataset_flickr8k.json`` (``dataset_flickr30k.json``, ``dataset_coco.json``,
or plain ``dataset.json``) and feature matrices: of the images in the order of that file
(vgg_feats.mat with one column per image, or images.npy), of the captions in the order of their
``sentid`` (captions.npy), or made here as means of word vectors. The photos belong to their
authors and are not read; the features are for research.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unpaired._checks import check_choice
from unpaired.datasets.arrays import existing, read_matrix
from unpaired.datasets.two_views import TwoViews
from unpaired.datasets.word_vectors import WordVectors
from unpaired.errors import DataError, InputError
from unpaired.types import FloatArray, IntArray

NAMES = ("flickr8k", "flickr30k", "coco")
SIZES = {"flickr8k": 8000, "flickr30k": 31014, "coco": 123287}
IMAGE_FILES = ["images.npy", "images.npz", "images.mat", "vgg_feats.mat", "vgg19.npy"]
CAPTION_FILES = ["captions.npy", "captions.npz", "captions.mat"]


@dataclass(frozen=True, eq=False)
class CaptionList:
    """What Karpathy's file tells: images, their splits, and the captions of each."""

    names: tuple[str, ...]
    split: NDArray[np.str_]
    """(n_images,) "train", "val" or "test"; COCO's "restval" counts as train."""
    owner: IntArray
    """(n_captions,) image of each caption."""
    sentence_ids: IntArray
    """(n_captions,) ``sentid`` of each caption: its row in a matrix of caption features."""
    tokens: tuple[tuple[str, ...], ...]
    texts: tuple[str, ...]


def load_captions(
    folder: str | os.PathLike[str],
    name: str = "flickr30k",
    *,
    captions_per_image: int = 5,
    word_vectors: WordVectors | None = None,
    max_test_images: int | None = 1000,
) -> TwoViews:
    """Images as rows of x and captions as rows of y; ``owner`` tells whose each caption is.

    Args:
        folder: Where the JSON file and the feature matrices lie.
        name: "flickr8k", "flickr30k" or "coco".
        captions_per_image: How many captions of an image are kept, the first ones: 1 or 5.
        word_vectors: When given, a caption's row is the mean of the vectors of its words;
            otherwise a matrix of caption features must lie in the folder.
        max_test_images: The paper's COCO test has 1,000 images, Karpathy's 5,000: how many to
            keep, the first ones; None keeps all.

    Raises:
        DataError: when files are absent or do not fit together, with what to do.
    """
    if captions_per_image < 1:
        raise InputError(f"captions_per_image must be at least 1: got {captions_per_image}.")
    place = find_captions(folder, name)
    listed = read_karpathy(place)
    image_file = existing(place.parent, IMAGE_FILES)
    if image_file is None:
        raise DataError(
            f"{place.parent} must hold image features, one row (or column) per image of "
            f"{place.name}: none of {', '.join(IMAGE_FILES)} is there. Karpathy's archives carry "
            "vgg_feats.mat; or save your own as images.npy in the order of the file."
        )
    key = "feats" if image_file.name == "vgg_feats.mat" else "features"
    images = read_matrix(image_file, key, n_rows=len(listed.names))
    kept = _keep(listed, captions_per_image)
    vectors = _caption_vectors(place.parent, listed, kept, word_vectors)
    chosen = _first_test_images(listed.split, max_test_images)
    row = np.full(len(listed.names), -1, dtype=np.int64)
    row[chosen] = np.arange(len(chosen))
    with_image = row[listed.owner[kept]] >= 0
    owner = row[listed.owner[kept[with_image]]]
    first = np.full(len(chosen), -1, dtype=np.int64)
    first[owner[::-1]] = np.arange(len(owner))[::-1]
    return TwoViews(
        x=images[chosen],
        y=vectors[with_image],
        truth=first,
        owner=owner,
        split=listed.split[chosen],
        names_x=tuple(listed.names[i] for i in chosen),
        names_y=tuple(listed.texts[i] for i in kept[with_image]),
    )


def find_captions(folder: str | os.PathLike[str], name: str) -> Path:
    """The path of Karpathy's file of a data set.

    Raises:
        DataError: when it is absent, with what to do.
    """
    check_choice(name, "data set", NAMES)
    for sub in (".", name):
        for file in (f"dataset_{name}.json", "dataset.json"):
            path = Path(folder) / sub / file
            if path.is_file():
                return path
    raise DataError(
        f"{folder} must hold dataset_{name}.json, Karpathy's list of images, captions and splits: "
        "absent. Unpack caption_datasets.zip there, and put the image features beside it."
    )


def read_karpathy(path: Path) -> CaptionList:
    """What Karpathy's JSON file tells.

    Raises:
        DataError: when the file is not of that form.
    """
    try:
        images = json.loads(path.read_text(encoding="utf-8"))["images"]
        names = tuple(str(image["filename"]) for image in images)
        split = np.array(["train" if i["split"] == "restval" else str(i["split"]) for i in images])
        sentences = [(row, s) for row, image in enumerate(images) for s in image["sentences"]]
        owner = np.array([row for row, _ in sentences], dtype=np.int64)
        ids = np.array([s["sentid"] for _, s in sentences], dtype=np.int64)
        tokens = tuple(tuple(map(str, s["tokens"])) for _, s in sentences)
        texts = tuple(str(s.get("raw") or " ".join(s["tokens"])) for _, s in sentences)
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise DataError(
            f"{path} must be Karpathy's list of images with sentences and splits: {error!r}. "
            "Take it from caption_datasets.zip."
        ) from error
    if not names or not texts:
        raise DataError(f"{path} must list images with captions: it lists none.")
    return CaptionList(names, split, owner, ids, tokens, texts)


def mean_of_words(tokens: tuple[tuple[str, ...], ...], vectors: WordVectors) -> FloatArray:
    """Mean of the vectors of each caption's words, (n_captions, d); zero when none is known."""
    row = vectors.rows
    means = np.zeros((len(tokens), vectors.vectors.shape[1]), dtype=np.float32)
    for i, words in enumerate(tokens):
        known = [row[word] for word in (w.lower() for w in words) if word in row]
        if known:
            means[i] = vectors.vectors[known].mean(0)
    return means


def _keep(listed: CaptionList, captions_per_image: int) -> IntArray:
    """Indices of the first captions of each image."""
    seen: dict[int, int] = {}
    kept = []
    for i, image in enumerate(listed.owner.tolist()):
        seen[image] = seen.get(image, 0) + 1
        if seen[image] <= captions_per_image:
            kept.append(i)
    return np.array(kept, dtype=np.int64)


def _caption_vectors(
    folder: Path, listed: CaptionList, kept: IntArray, word_vectors: WordVectors | None
) -> NDArray[Any]:
    if word_vectors is not None:
        return mean_of_words(tuple(listed.tokens[i] for i in kept), word_vectors)
    file = existing(folder, CAPTION_FILES)
    if file is None:
        raise DataError(
            f"{folder} must hold caption features ({', '.join(CAPTION_FILES)}), one row per "
            "sentid: none is there. Save them, or pass word_vectors to use means of word vectors."
        )
    matrix = read_matrix(file, n_rows=len(listed.texts))
    ids = listed.sentence_ids
    if sorted(ids.tolist()) != list(range(len(ids))):
        return matrix[kept]  # numbers with gaps (COCO): rows stand in the order of the file
    return matrix[ids[kept]]


def _first_test_images(split: NDArray[np.str_], max_test_images: int | None) -> IntArray:
    rows = np.arange(len(split))
    if max_test_images is None:
        return rows
    surplus = np.flatnonzero(split == "test")[max_test_images:]
    return np.setdiff1d(rows, surplus)
