"""Which data sets are known, where each comes from, and what a folder holds of them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from unpaired.datasets import awa, captions, cifar10, prepared
from unpaired.datasets.arrays import existing
from unpaired.datasets.two_views import TwoViews
from unpaired.errors import DataError

MAX_FOLDERS = 200


@dataclass(frozen=True)
class Known:
    """A data set the package can read."""

    name: str
    what: str
    how: str
    """How to get it."""


CATALOGUE = (
    Known("sample", "2,000 CIFAR-10 photos with features and class vectors", "in the package"),
    Known("toy", "rotated clusters and digit images with a known matching", "made on the spot"),
    Known("cifar10", "60,000 photos of ten classes", "unpaired data get cifar10"),
    Known("awa", "AwA and AwA2: features of 50 animals, attributes", "archives of its page"),
    Known("flickr8k", "8,000 photos, five captions each", "Karpathy's JSON and features"),
    Known("flickr30k", "31,014 photos, five captions each", "Karpathy's JSON and features"),
    Known("coco", "MS-COCO, 123,287 photos, five captions each", "Karpathy's JSON and features"),
    Known("words", "word vectors and a bilingual dictionary", "fastText, word2vec, MUSE files"),
)


@dataclass(frozen=True)
class Finding:
    """What a folder holds of one data set."""

    name: str
    folder: Path
    lines: tuple[str, ...]
    """Shapes and numbers, then what is missing."""
    whole: bool


def check_folder(folder: str | os.PathLike[str]) -> list[Finding]:
    """What ``folder``, and the folders below it, hold of the known data sets.

    Raises:
        DataError: when there is no such folder.
    """
    root = Path(folder)
    if not root.is_dir():
        raise DataError(f"There is no folder {root}. Name the one in which the files lie.")
    findings = []
    for place in _folders(root):
        for find in (_cifar10, _awa, _captions, _prepared, _words):
            findings += list(find(place))
    return findings


def _folders(root: Path) -> Iterator[Path]:
    """``root`` and what is at most two levels below it, hidden folders apart."""
    yield root
    below = sorted(p for p in [*root.glob("*/"), *root.glob("*/*/")] if p.is_dir())
    yield from [p for p in below if not any(part.startswith(".") for part in p.parts)][:MAX_FOLDERS]


def _cifar10(place: Path) -> Iterator[Finding]:
    for form, suffix in cifar10.FORMS.items():
        needed = [name + suffix for names in cifar10.SPLITS.values() for name in names]
        if form == "png":
            needed += list(cifar10.LABEL_FILES.values())
        there = [name for name in needed if (place / name).is_file()]
        if not any("batch" in name for name in there):
            continue
        lines = [f"form: {form}, {len(there)} of {len(needed)} files"]
        whole = len(there) == len(needed)
        for split in cifar10.SPLITS if whole else ():
            try:
                images, labels = cifar10.read_cifar10(place, split)
                lines.append(f"{split}: photos {images.shape}, labels {labels.shape}")
            except DataError as error:
                lines.append(f"damaged: {error}")
                whole = False
        if form == "python":
            wrong = [name for name in there if cifar10.is_official(place / name) is False]
            lines.append(
                f"not the official files (checksum): {', '.join(wrong)}"
                if wrong
                else "checksums: official"
            )
        lines += [f"missing: {name}" for name in needed if name not in there]
        yield Finding("cifar10", place, tuple(lines), whole)


def _awa(place: Path) -> Iterator[Finding]:
    predicates = [place / f"predicate-matrix-{p}.txt" for p in awa.PREDICATES]
    if (place / "att_splits.mat").is_file() or any(path.is_file() for path in predicates):
        yield _loaded("awa", place, lambda: awa.load_awa(place, predicates=_which(predicates)))


def _which(predicates: list[Path]) -> str:
    return "binary" if predicates[1].is_file() and not predicates[0].is_file() else "continuous"


def _captions(place: Path) -> Iterator[Finding]:
    for name in captions.NAMES:
        path = place / f"dataset_{name}.json"
        plain = place / "dataset.json"
        if not path.is_file() and (place.name != name or not plain.is_file()):
            continue
        try:
            listed = captions.read_karpathy(captions.find_captions(place, name))
        except DataError as error:
            yield Finding(name, place, (f"damaged: {error}",), False)
            continue
        splits = {s: int((listed.split == s).sum()) for s in ("train", "val", "test")}
        lines = [
            f"{len(listed.names)} images ({', '.join(f'{n} {s}' for s, n in splits.items())}), "
            f"{len(listed.texts)} captions; the whole set has {captions.SIZES[name]} images"
        ]
        missing = [
            f"missing: {what} (one of {', '.join(files)})"
            for what, files in (
                ("image features", captions.IMAGE_FILES),
                ("caption features, unless word vectors are given", captions.CAPTION_FILES),
            )
            if existing(place, files) is None
        ]
        if missing:
            yield Finding(name, place, (*lines, *missing), False)
        else:
            found = _loaded(name, place, lambda n=name: captions.load_captions(place, n))  # type: ignore[misc]
            yield Finding(name, place, (*lines, *found.lines), found.whole)


def _prepared(place: Path) -> Iterator[Finding]:
    if (place / "images.npz").is_file() and (place / "captions.npz").is_file():
        yield _loaded("captions, npz", place, lambda: prepared.load_caption_features(place))
    if (place / "train.npz").is_file() and (place / "classes.npz").is_file():
        yield _loaded("classes, npz", place, lambda: prepared.load_class_features(place))


def _words(place: Path) -> Iterator[Finding]:
    for path in sorted(place.iterdir()):
        if path.name.endswith((".vec", ".vec.gz", "vectors-negative300.bin")):
            yield Finding("words", place, (f"{path.name}: word vectors, not read here",), True)


def _loaded(name: str, place: Path, load: Callable[[], TwoViews]) -> Finding:
    """What loading says: shapes, or what is missing."""
    try:
        data = load()
    except DataError as error:
        return Finding(name, place, (str(error),), False)
    lines = [f"x {data.x.shape}, y {data.y.shape}"]
    if data.split is not None:
        names = sorted(set(data.split.tolist()))
        lines.append(", ".join(f"{int((data.split == s).sum())} {s}" for s in names))
    if data.names_y and len(data.names_y) <= 60:
        lines.append(
            "classes: " + ", ".join(data.names_y[:12]) + ", ..." * (len(data.names_y) > 12)
        )
    return Finding(name, place, tuple(lines), True)
