"""Match two collections that were never paired, with no pairs known, a few, or all."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unpaired.aligned import Alignment
    from unpaired.checking import Check, check
    from unpaired.errors import ConvergenceError, DataError, InputError, UnpairedError
    from unpaired.loading import load
    from unpaired.matching import align, match
    from unpaired.models.classifier import UnsupervisedClassifier
    from unpaired.models.dmae import DMAE
    from unpaired.models.published_dmae import PublishedDMAE
    from unpaired.types import Match, Objective

__version__ = "0.2.0"

_HOMES = {  # public name -> the module it is loaded from when first asked for
    "DMAE": "unpaired.models.dmae",
    "PublishedDMAE": "unpaired.models.published_dmae",
    "UnsupervisedClassifier": "unpaired.models.classifier",
    "load": "unpaired.loading",
    "match": "unpaired.matching",
    "align": "unpaired.matching",
    "Alignment": "unpaired.aligned",
    "check": "unpaired.checking",
    "Check": "unpaired.checking",
    "Match": "unpaired.types",
    "Objective": "unpaired.types",
    "UnpairedError": "unpaired.errors",
    "InputError": "unpaired.errors",
    "ConvergenceError": "unpaired.errors",
    "DataError": "unpaired.errors",
}
__all__ = [
    "Alignment",
    "Check",
    "DMAE",
    "ConvergenceError",
    "DataError",
    "InputError",
    "Match",
    "Objective",
    "PublishedDMAE",
    "UnpairedError",
    "UnsupervisedClassifier",
    "align",
    "check",
    "load",
    "match",
]


def __getattr__(name: str) -> Any:
    """Load a public name when it is first used, so that importing the package costs nothing."""
    if name in _HOMES:
        value = getattr(import_module(_HOMES[name]), name)
        globals()[name] = value
        return value
    raise AttributeError(f"module 'unpaired' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Return the public names."""
    return sorted([*__all__, "__version__"])
