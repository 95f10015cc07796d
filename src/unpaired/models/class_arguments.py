"""What a classifier is given, checked: descriptions and names of classes, labels, answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unpaired._checks import check_choice, check_view
from unpaired.errors import InputError
from unpaired.naming.names import UNKNOWN
from unpaired.types import FloatArray, IntArray


def check_descriptions(class_vectors: Any) -> list[FloatArray]:
    """The class vectors as a list of matrices with equally many rows.

    Raises:
        InputError: when a matrix is unusable or the numbers of classes differ.
    """
    several = isinstance(class_vectors, Sequence) and np.ndim(class_vectors[0]) == 2
    matrices = list(class_vectors) if several else [class_vectors]
    checked: list[FloatArray] = [check_view(matrix, "class_vectors") for matrix in matrices]
    sizes = [len(matrix) for matrix in checked]
    if len(set(sizes)) > 1:
        raise InputError(
            f"class_vectors must describe the same classes in every matrix: they have {sizes} "
            "rows. Give each matrix one row per class, in one order."
        )
    return checked


def check_classes(classes: Any, size: int) -> NDArray[Any]:
    """What the classes are called, (m,): the names given, or numbers.

    Raises:
        InputError: when they are not ``size`` different names.
    """
    if classes is None:
        return np.arange(size)
    called = np.asarray(classes)
    if called.dtype.kind == "O" and all(isinstance(name, str) for name in called.flat):
        called = called.astype(str)
    if called.shape != (size,) or called.dtype.kind != "U":
        raise InputError(
            f"classes must be {size} names, one for each row of class_vectors: got shape "
            f"{called.shape} of type {called.dtype}."
        )
    names, counts = np.unique(called, return_counts=True)
    if counts.max() > 1 or "" in names.tolist():
        raise InputError(
            f"classes must be names that differ and are not empty: {str(names[counts.argmax()])!r} "
            f"comes {counts.max()} times. Rename it."
        )
    return called


def check_answers(names: Any, classes: NDArray[Any]) -> dict[int, int]:
    """Answers as group -> number of its class.

    Raises:
        InputError: when a group or a class does not exist, or a class is given to two groups.
    """
    if names is None:
        return {}
    if not isinstance(names, Mapping):
        raise InputError(
            f"names must map groups to classes, such as {{3: {classes[0].item()!r}}}: got "
            f"{type(names).__name__}."
        )
    numbers = {name: number for number, name in enumerate(classes.tolist())}
    answers: dict[int, int] = {}
    for group, told in names.items():
        told = told.item() if isinstance(told, np.generic) else told
        if not isinstance(group, int | np.integer) or not 0 <= group < len(classes):
            raise InputError(
                f"names must have groups as keys, 0 to {len(classes) - 1}: got {group!r}. "
                "suggest() tells them."
            )
        if told not in numbers:
            raise InputError(
                f"names must give classes of this classifier: got {told!r} for group {group}. "
                f"Some are {', '.join(map(str, classes[:12]))}."
            )
        if numbers[told] in answers.values():
            raise InputError(
                f"names must give each class to one group: {told!r} comes twice. "
                "Give it to the group that holds more of it."
            )
        answers[int(group)] = numbers[told]
    return answers


def check_labels(labels: Any, n_rows: int, classes: NDArray[Any], name: str = "labels") -> IntArray:
    """Labels as (n,) class numbers with -1 for unknown.

    Raises:
        InputError: when the length or a class is wrong.
    """
    if labels is None:
        return np.full(n_rows, UNKNOWN, dtype=np.int64)
    array = np.asarray(labels)
    named = classes.dtype.kind == "U" and array.dtype.kind in "UO"
    if array.shape != (n_rows,) or not (named or array.dtype.kind in "iu"):
        raise InputError(
            f"{name} must be {n_rows} {'names of classes or ' if classes.dtype.kind == 'U' else ''}"
            f"whole numbers, one per image, -1 = unknown: got shape {array.shape} of type "
            f"{array.dtype}."
        )
    if named:
        numbers = {called: number for number, called in enumerate(classes.tolist())}
        unknown = (None, "", UNKNOWN)
        plain = [None if value != value else value for value in array.tolist()]  # nan
        for value in plain:
            if value not in numbers and value not in unknown:
                check_choice(str(value), f"class in {name}", numbers)
        return np.array([numbers.get(value, UNKNOWN) for value in plain], dtype=np.int64)
    if array.min() < UNKNOWN or array.max() >= len(classes):
        raise InputError(
            f"{name} must lie between -1 (unknown) and {len(classes) - 1}: they go from "
            f"{array.min()} to {array.max()}. Number the classes as the rows of class_vectors."
        )
    return array.astype(np.int64)
