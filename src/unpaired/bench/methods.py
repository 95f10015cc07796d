"""Methods by name: the registry's, or a user's own as "module:Class"."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from unpaired import registry
from unpaired._checks import check_choice
from unpaired.errors import InputError

Maker = Callable[..., Any]


OWN = registry.Table(
    {
        "match": ("unpaired.bench.geometric:GeometricMatch", "no pairs: geometry, no networks"),
        "dmae": ("unpaired.models.dmae:DMAE", "no pairs: our learner"),
    }
)
NAMERS = ("dmae", "dmae-smi")
"""Methods that name images as an UnsupervisedClassifier."""


def method_home(name: str) -> str:
    """Where a method lives, "module:Class": by its name, or as it is for one's own.

    Raises:
        InputError: when there is none of that name.
    """
    if ":" in name:
        return name
    homes = OWN.homes | registry.methods.homes
    alike = {_squash(other): other for other in homes}
    return homes[check_choice(alike.get(_squash(name), name), "method", homes)]


def get_method(name: str) -> Maker:
    """The callable that makes an estimator: by its name, or "module:Class" for one's own.

    A module is looked for in the folder one works in, too.

    Raises:
        InputError: when there is none.
    """
    module, _, attribute = method_home(name).partition(":")
    _look_here()
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


def method_file(name: str) -> tuple[str, Path] | None:
    """The module of a method and its file, without importing it; None where there is none."""
    _look_here()
    try:
        module = method_home(name).partition(":")[0]
        found = importlib.util.find_spec(module)
    except (InputError, ImportError):
        return None
    return None if found is None or found.origin is None else (module, Path(found.origin))


def _look_here() -> None:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)


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
        return _call(registry.models["UnsupervisedClassifier"], name, params, seed)
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
