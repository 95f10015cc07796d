"""Data for the harness: what [data] in a configuration names, as TwoViews."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unpaired._checks import check_choice, check_number
from unpaired._random import derive_rng
from unpaired.datasets import prepared, toy
from unpaired.datasets.awa import load_awa
from unpaired.datasets.captions import load_captions
from unpaired.datasets.cifar10 import CLASS_NAMES, SPLITS, read_cifar10
from unpaired.datasets.sample import load_sample
from unpaired.datasets.two_views import TwoViews
from unpaired.datasets.word_vectors import (
    WordVectors,
    load_word_alignment,
    load_word_vectors,
    read_dictionary,
)
from unpaired.errors import InputError

ENVIRONMENT = "UNPAIRED_DATA"


class DataSource:
    """Reads what a [data] table names, below one folder; slow features are kept in a cache."""

    def __init__(self, spec: dict[str, Any], root: str | None, cache: Path) -> None:
        self.spec, self.cache = spec, cache
        self._root = root or os.environ.get(ENVIRONMENT)

    def load(self) -> TwoViews:
        """The data.

        Raises:
            InputError: when the table names an unknown source or lacks a field.
            DataError: when the files are absent or damaged.
        """
        kinds: dict[str, Callable[[], TwoViews]] = {
            "aligned": self._aligned,
            "awa": self._awa,
            "captions-npz": lambda: prepared.load_caption_features(self.path("folder")),
            "cifar10": self._cifar10,
            "classes-npz": self._classes,
            "digits": lambda: toy.jittered_digits(self._rows(), derive_rng(0, "digits")),
            "karpathy": self._karpathy,
            "rotated-clusters": lambda: toy.rotated_clusters(
                self._rows(), derive_rng(0, "rotated-clusters"), n_clusters=10, d_x=16, d_y=16
            ),
            "sample": self._sample,
            "words": self._words,
        }
        return kinds[check_choice(self.spec.get("source"), "data source", kinds)]()

    def path(self, field: str) -> Path:
        """The file or folder that a field names, below the data folder unless absolute."""
        name = self.spec.get(field, "." if field == "folder" else None)
        if not isinstance(name, str):
            raise InputError(f"[data] must have the field {field}, a path below the data folder.")
        if Path(name).is_absolute():
            return Path(name)
        if self._root is None:
            raise InputError(
                f"[data] names {name}, and no data folder is given. Pass --data FOLDER or set the "
                f"environment variable {ENVIRONMENT}."
            )
        return Path(self._root) / name

    def _rows(self) -> int:
        return int(self.spec.get("rows", 500))

    def _aligned(self) -> TwoViews:
        second = self.path("file_y") if "file_y" in self.spec else None
        keys = {name: self.spec[name] for name in ("key_x", "key_y") if name in self.spec}
        return prepared.load_aligned(self.path("file"), second, **keys)

    def _classes(self) -> TwoViews:
        return prepared.load_class_features(self.path("folder"), self.spec.get("class_vectors"))

    def _sample(self) -> TwoViews:
        sample = load_sample()
        order = derive_rng(0, "sample").permutation(len(sample.labels))
        split = np.where(np.arange(len(order)) < 1500, "train", "test")
        vectors = prepared.join_blocks(sample.class_vectors)
        return TwoViews(
            sample.features[order],
            vectors,
            sample.labels[order],
            split=split,
            names_y=sample.class_names,
        )

    def _karpathy(self) -> TwoViews:
        vectors = None
        if "word_vectors" in self.spec:
            vectors = load_word_vectors(
                self.path("word_vectors"), max_words=self.spec.get("max_words")
            )
        return load_captions(
            self.path("folder"),
            self.spec.get("name", "flickr30k"),
            captions_per_image=int(self.spec.get("captions_per_image", 5)),
            word_vectors=vectors,
            max_test_images=self.spec.get("max_test_images", 1000),
        )

    def _words(self) -> TwoViews:
        limit = self.spec.get("max_words", 200_000)
        sides = [load_word_vectors(self.path(f"vectors_{s}"), max_words=limit) for s in "xy"]
        return load_word_alignment(sides[0], sides[1], read_dictionary(self.path("dictionary")))

    def _awa(self) -> TwoViews:
        found = load_awa(self.path("folder"), predicates=self.spec.get("predicates", "continuous"))
        vectors = self._name_vectors(found.names_y)
        if vectors is None:
            return found
        return TwoViews(found.x, vectors, found.truth, split=found.split, names_y=found.names_y)

    def _cifar10(self) -> TwoViews:
        """Photos as rows by the named features, computed once and kept in the cache.

        ``n_train`` and ``n_test`` keep the first photos of a split, all by default;
        ``n_components`` keeps the first principal components of the training photos' features.
        """
        kind = check_choice(
            self.spec.get("features", "coates-ng"), "features", ("coates-ng", "efficientnet")
        )
        parts = {}
        for split in SPLITS:
            photos, labels = read_cifar10(self.path("folder"), split)
            limit = self.spec.get(f"n_{split}", len(photos))
            check_number(limit, f"n_{split}", 1, integer=True)
            parts[split] = photos[:limit], labels[:limit]
        images = np.concatenate([part[0] for part in parts.values()])
        vectors = self._name_vectors(CLASS_NAMES)
        return TwoViews(
            x=self._cached(kind, images, len(parts["train"][0])),
            y=prepared.join_blocks(load_sample().class_vectors) if vectors is None else vectors,
            truth=np.concatenate([part[1] for part in parts.values()]),
            split=np.repeat(list(parts), [len(part[0]) for part in parts.values()]),
            names_y=CLASS_NAMES,
        )

    def _name_vectors(self, names: tuple[str, ...]) -> NDArray[np.float32] | None:
        """Word vectors of class names ("polar+bear" is the mean of its words), if asked for."""
        if "word_vectors" not in self.spec:
            return None
        parts = [name.lower().replace("+", " ").replace("_", " ").split() for name in names]
        wanted = [word for words in parts for word in words]
        vectors: WordVectors = load_word_vectors(self.path("word_vectors"), words=wanted)
        rows = []
        for name, words in zip(names, parts, strict=True):
            known = [vectors[word] for word in words if word in vectors.rows]
            if not known:
                raise InputError(
                    f'word_vectors must know every class: it has no word of "{name}". Take a '
                    "larger file."
                )
            rows.append(np.mean(known, axis=0))
        return np.stack(rows)

    def _cached(self, kind: str, images: NDArray[np.uint8], n_train: int) -> NDArray[np.float32]:
        n_atoms = int(self.spec.get("n_atoms", 1600))
        n_patches = int(self.spec.get("n_patches", 400_000))
        n_components = self.spec.get("n_components")
        told = [kind, n_atoms, n_patches, n_components, n_train, len(images)]
        identity = json.dumps([*told, hashlib.sha256(images.tobytes()).hexdigest()])
        path = self.cache / f"{kind}-{hashlib.sha256(identity.encode()).hexdigest()[:12]}.npy"
        if path.is_file():
            return np.load(path, mmap_mode="r")
        if kind == "efficientnet":
            from unpaired.features.efficientnet import efficientnet_features

            features = efficientnet_features(images)
        else:
            from unpaired.features.coates_ng import coates_ng_features, learn_dictionary

            rng = derive_rng(0, "coates-ng")
            learned = learn_dictionary(images[:n_train], rng, n_atoms=n_atoms, n_patches=n_patches)
            features = coates_ng_features(images, learned)
            mean, spread = features[:n_train].mean(0), features[:n_train].std(0)
            features = (features - mean) / np.sqrt(spread**2 + 0.01)
        if n_components is not None:
            check_number(n_components, "n_components", 1, integer=True)
            from sklearn.decomposition import PCA

            n_kept = min(n_components, n_train, features.shape[1])
            axes = PCA(n_kept, random_state=0).fit(features[:n_train])
            features = axes.transform(features).astype(np.float32)
        self.cache.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=self.cache, suffix=".npy")
        with os.fdopen(descriptor, "wb") as handle:
            np.save(handle, features)
        os.replace(temporary, path)
        return features
