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
from unpaired.bench.config import MethodSpec
from unpaired.errors import InputError

Maker = Callable[..., Any]


OWN = registry.Table(
    {
        "match": ("unpaired.bench.geometric:GeometricMatch", "no pairs: geometry, no networks"),
        "dmae": ("unpaired.models.dmae:DMAE", "no pairs: our learner"),
        "classifier": (
            "unpaired.models.classifier:UnsupervisedClassifier",
            "no labels: our classifier",
        ),
    }
)
_PUBLISHED = "unpaired.models.published_dmae:PublishedDMAE"
PUBLISHED: dict[str, dict[str, Any]] = {
    "published-dmae-smi": {"dependence": "smi"},
    "published-dmae-ukta": {"dependence": "ukta"},
    "published-deep-smi": {"dependence": "smi", "reconstruction_weight": 0.0},
    "published-deep-ukta": {"dependence": "ukta", "reconstruction_weight": 0.0},
}
"""The method as published under the names of the paper's tables: what each name sets."""


def method_home(name: str) -> str:
    """Where a method lives, "module:Class": by its name, or as it is for one's own.

    Raises:
        InputError: when there is none of that name.
    """
    if ":" in name:
        return name
    homes = OWN.homes | dict.fromkeys(PUBLISHED, _PUBLISHED) | registry.methods.homes
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


def make_method(method: MethodSpec, seed: int, **more: Any) -> Any:
    """An unfitted estimator; the seed is given to it as ``random_state`` when it takes one.

    ``more`` are parameters that the task sets where the configuration does not.

    Raises:
        InputError: when there is no such method, or it does not take such a parameter.
    """
    named = PUBLISHED.get(method.name, {})
    return _call(get_method(method.name), method.name, {**more, **named, **method.params}, seed)


def is_classifier(name: str) -> bool:
    """Whether a method names rows by itself, with the face of UnsupervisedClassifier."""
    return hasattr(get_method(name), "predict")


def knows_relation(name: str) -> bool:
    """Whether a method can be told that many rows of x belong to one of y."""
    return "relation" in inspect.signature(get_method(name)).parameters


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
