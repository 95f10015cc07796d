"""Methods by name: the registry's, or a user's own as "module:Class"."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from unpaired import registry
from unpaired._checks import check_choice
from unpaired.errors import InputError
from unpaired.matching import align
from unpaired.models.classifier import UnsupervisedClassifier
from unpaired.models.dmae import DMAE
from unpaired.types import FloatArray

Maker = Callable[..., Any]


class GeometricMatch:
    """``unpaired.match`` with the face of an estimator: no networks, one-to-one."""

    def __init__(self, *, random_state: int | None = 0) -> None:
        self.random_state = random_state

    def fit(self, x: Any, y: Any, pairs: Any = None) -> Self:
        """Match the rows of x and y."""
        self._alignment = align(x, y, pairs, random_state=self.random_state)
        self.match_ = self._alignment.match
        return self

    def score_matrix(self, x: Any, y: Any) -> FloatArray:
        """How well each row of x goes with each row of y, larger = better."""
        return self._alignment.score_matrix(x, y)


OWN: dict[str, Maker] = {"match": GeometricMatch, "dmae": DMAE}
NAMERS = ("dmae", "dmae-smi")
"""Methods that name images as an UnsupervisedClassifier."""


def get_method(name: str) -> Maker:
    """The callable that makes an estimator: by its name, or "module:Class" for one's own.

    A module is looked for in the folder one works in, too.

    Raises:
        InputError: when there is none.
    """
    if ":" not in name:
        names = [*OWN, *registry.methods]
        alike = {_squash(other): other for other in names}
        found = check_choice(alike.get(_squash(name), name), "method", names)
        return OWN[found] if found in OWN else registry.methods[found]
    module, _, attribute = name.partition(":")
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        loaded = importlib.import_module(module)
    except ImportError as error:
        raise InputError(
            f'Method "{name}" must be module:Class that can be imported: {error}. Put the file '
            "into the folder you work in, or install its package."
        ) from error
    if not callable(getattr(loaded, attribute, None)):
        raise InputError(f'Method "{name}" must name a class: {module} has no "{attribute}".')
    maker: Maker = getattr(loaded, attribute)
    return maker


def least_pairs(name: str) -> int:
    """How many known pairs a method says it cannot begin without; 0 when it says nothing."""
    return int(getattr(get_method(name), "least_pairs", 0))


def make_method(name: str, params: dict[str, Any], seed: int) -> Any:
    """An unfitted estimator; the seed is given to it as ``random_state`` when it takes one.

    Raises:
        InputError: when there is no such method, or it does not take such a parameter.
    """
    return _call(get_method(name), name, params, seed)


def make_classifier(name: str, params: dict[str, Any], seed: int) -> Any | None:
    """The classifier that names images by this method, or None for a method of two views.

    DMAE-SMI becomes an UnsupervisedClassifier, whose groups maximise a mutual information too; a
    user's class that has a ``predict`` is taken as a classifier with the same face.
    """
    if _squash(name) in map(_squash, NAMERS):
        return _call(UnsupervisedClassifier, name, params, seed)
    maker = get_method(name)
    return _call(maker, name, params, seed) if hasattr(maker, "predict") else None


def _call(maker: Maker, name: str, params: dict[str, Any], seed: int) -> Any:
    taken = inspect.signature(maker).parameters
    given = {key: tuple(v) if isinstance(v, list) else v for key, v in params.items()}
    if "random_state" in taken:
        given.setdefault("random_state", seed)
    try:
        return maker(**given)
    except TypeError as error:
        raise InputError(
            f"Method {name} cannot be made with {params}: {error}. It takes "
            f"{', '.join(taken) or 'nothing'}."
        ) from error


def _squash(name: str) -> str:
    """A name without case, hyphens and blanks: "Deep CCA", "deep-cca" and "DeepCCA" are one."""
    return "".join(letter for letter in name.lower() if letter.isalnum())
