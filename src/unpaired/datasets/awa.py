"""Animals with Attributes, first and second edition (Lampert 2009, Xian 2018): 50 animals.

Three layouts are read. The authors' own: classes.txt, predicate-matrix-continuous.txt (or
-binary), and AwA2-features.txt with AwA2-labels.txt, in the folder or below Features/. The one of
the zero-shot benchmarks: res101.mat with att_splits.mat. And one's own: features.npy (or .npz,
.mat) with labels.txt or labels.npy beside classes.txt. Images of AwA2 carry free licences of many
kinds, those of the first edition are not given out any more; only features are read here.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from unpaired._checks import check_choice
from unpaired.datasets.arrays import existing, read_mat, read_matrix
from unpaired.datasets.two_views import TwoViews
from unpaired.errors import DataError
from unpaired.types import FloatArray, IntArray

PREDICATES = ("continuous", "binary")
FEATURE_FOLDERS = (".", "Features/ResNet101", "Features/vgg19", "Features/VGG19")
FEATURE_FILES = ["features.npy", "features.npz", "features.mat", "AwA2-features.npy",
                 "AwA2-features.txt", "AwA-features.txt", "features.txt"]  # fmt: skip
LABEL_FILES = ["labels.npy", "AwA2-labels.txt", "AwA-labels.txt", "labels.txt"]


def load_awa(
    folder: str | os.PathLike[str],
    *,
    predicates: str = "continuous",
    class_vectors: Any = None,
) -> TwoViews:
    """Images as rows of x and the 50 animals as rows of y; truth = class of each image.

    ``split`` is "train" for images of the 40 animals of trainclasses.txt and "test" for those of
    testclasses.txt (the zero-shot split), where these files are there.

    Args:
        folder: Where the files lie, in one of the three layouts.
        predicates: Which attributes describe a class, "continuous" or "binary".
        class_vectors: (50, d) other vectors of the classes, such as word vectors of the names.

    Raises:
        DataError: when the files are absent or do not fit together.
    """
    check_choice(predicates, "predicates", PREDICATES)
    root = find_awa(folder)
    if (root / "att_splits.mat").is_file():
        found = _read_benchmark(root)
    else:
        found = _read_text_layout(root, predicates)
    if class_vectors is None:
        return found
    vectors = np.asarray(class_vectors)
    if vectors.ndim != 2 or len(vectors) != len(found.y):
        raise DataError(
            f"class_vectors must have one row for each of the {len(found.y)} classes: its shape "
            f"is {vectors.shape}. Keep the order of names_y."
        )
    return TwoViews(found.x, vectors, found.truth, split=found.split, names_y=found.names_y)


def find_awa(folder: str | os.PathLike[str]) -> Path:
    """The folder that holds classes.txt or att_splits.mat.

    Raises:
        DataError: when neither is there, with what to do.
    """
    for sub in (".", "Animals_with_Attributes2", "Animals_with_Attributes", "AWA2", "AWA1"):
        place = Path(folder) / sub
        if (place / "att_splits.mat").is_file() or (
            (place / "classes.txt").is_file()
            and any((place / f"predicate-matrix-{p}.txt").is_file() for p in PREDICATES)
        ):
            return place
    raise DataError(
        f"{folder} must hold classes.txt and predicate-matrix-continuous.txt (AwA2-base.zip) with "
        "the features (AwA2-features.zip), or res101.mat and att_splits.mat: none is there. "
        "Unpack one of these archives there; they stand on the data set's page."
    )


def _read_text_layout(root: Path, predicates: str) -> TwoViews:
    names = read_classes(root / "classes.txt")
    vectors = read_matrix(root / f"predicate-matrix-{predicates}.txt", n_rows=len(names))
    labels = features = None
    for sub in FEATURE_FOLDERS:
        labels = labels or existing(root / sub, LABEL_FILES)
        features = features or existing(root / sub, FEATURE_FILES)
    if features is None or labels is None:
        raise DataError(
            f"{root} must hold image features and labels beside the classes: "
            f"{'features' if features is None else 'labels'} are absent. Unpack AwA2-features.zip "
            "there, or save features.npy and labels.npy (classes count from 1, as in classes.txt)."
        )
    truth = _read_labels(labels, len(names))
    return TwoViews(
        x=read_matrix(features, n_rows=len(truth)),
        y=vectors,
        truth=truth,
        split=_class_split(root, names, truth),
        names_y=names,
    )


def _read_benchmark(root: Path) -> TwoViews:
    """The layout of the zero-shot benchmarks: one column per image, labels from 1."""
    splits = read_mat(root / "att_splits.mat")
    feature_file = existing(root, ["res101.mat", "vgg19.mat", "features.mat"])
    if feature_file is None:
        raise DataError(f"{root} must hold res101.mat beside att_splits.mat: absent. Add it.")
    try:
        values = read_mat(feature_file)
        truth = np.asarray(values["labels"]).ravel().astype(np.int64) - 1
        names = tuple(str(name[0][0]) for name in splits["allclasses_names"])
        vectors = np.asarray(splits["att"], dtype=np.float32).T  # (50, 85)
        rows = np.asarray(splits["test_unseen_loc"]).ravel().astype(np.int64) - 1
    except (KeyError, IndexError, TypeError, ValueError) as error:
        raise DataError(
            f"{root} must hold the benchmark's own variables: {error!r}. Take the archive anew."
        ) from error
    split = np.full(len(truth), "train")
    split[rows] = "test"
    features = np.asarray(values["features"], dtype=np.float32)
    features = features if len(features) == len(truth) else features.T
    _check_range(truth, len(names), root)
    return TwoViews(np.ascontiguousarray(features), vectors, truth, split=split, names_y=names)


def read_classes(path: Path) -> tuple[str, ...]:
    """Names in a file of lines "number<TAB>name" or "name", such as classes.txt.

    Raises:
        DataError: when the file cannot be read or has no line.
    """
    try:
        lines = [line.split() for line in path.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} must list the classes: {error}. Unpack the archive.") from error
    names = tuple(words[-1] for words in lines if words)
    if not names:
        raise DataError(f"{path} must list the classes: it is empty. Unpack the archive again.")
    return names


def _read_labels(path: Path, n_classes: int) -> IntArray:
    """Labels from 0, read from a file in which classes count from 1."""
    values: FloatArray | IntArray
    try:
        values = np.load(path) if path.suffix == ".npy" else np.loadtxt(path, ndmin=1)
        truth = np.asarray(values).ravel().astype(np.int64) - 1
    except (OSError, ValueError) as error:
        raise DataError(f"{path} must hold one class number a line: {error}.") from error
    _check_range(truth, n_classes, path)
    return truth


def _check_range(truth: IntArray, n_classes: int, path: Path) -> None:
    if len(truth) == 0 or truth.min() < 0 or truth.max() >= n_classes:
        raise DataError(
            f"{path} must number the classes from 1 to {n_classes}: it has {len(truth)} labels"
            + (f" from {truth.min() + 1} to {truth.max() + 1}." if len(truth) else ".")
        )


def _class_split(root: Path, names: tuple[str, ...], truth: IntArray) -> Any:
    """Split by class: "test" for images of the classes in testclasses.txt, else "train"."""
    if not (root / "testclasses.txt").is_file():
        return None
    unseen = set(read_classes(root / "testclasses.txt"))
    return np.where(np.isin(np.asarray(names)[truth], sorted(unseen)), "test", "train")
