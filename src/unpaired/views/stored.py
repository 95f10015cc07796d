"""Feature maps as arrays, and back: each field of a map is a tensor, a number or another map."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any, get_type_hints

import numpy as np
import torch
from torch import Tensor

from unpaired.views.features import FeatureMap, Features
from unpaired.views.geodesic import Geodesic

Arrays = dict[str, np.ndarray]
KINDS = {kind.kind: kind for kind in (Features, Geodesic)}
SAVED_AS = {"preparation": "prepare"}
"""What fields are called in saved files, where they are called otherwise here."""


def map_to_arrays(found: FeatureMap) -> Arrays:
    """The arrays of a feature map, named by its kind first."""
    return {f"{found.kind}.{name}": array for name, array in _arrays_of(found)}


def map_from_arrays(arrays: Arrays, device: torch.device) -> FeatureMap:
    """The feature map that ``map_to_arrays`` gave these arrays for."""
    kind = next(iter(arrays)).split(".")[0]
    found: FeatureMap = _read(KINDS[kind], under(f"{kind}.", arrays), device)
    return found


def _arrays_of(found: Any) -> Iterator[tuple[str, np.ndarray]]:
    for field in fields(found):
        name, value = SAVED_AS.get(field.name, field.name), getattr(found, field.name)
        if is_dataclass(value):
            yield from ((f"{name}.{inner}", array) for inner, array in _arrays_of(value))
        elif value is not None:
            yield name, to_array(value)


def _read(kind: type, arrays: Arrays, device: torch.device) -> Any:
    """The value of a kind, each field read as its annotation says."""
    hints, found = get_type_hints(kind), {}
    for field in fields(kind):
        name, wanted = SAVED_AS.get(field.name, field.name), hints[field.name]
        if is_dataclass(wanted):
            found[field.name] = _read(wanted, under(f"{name}.", arrays), device)  # type: ignore[arg-type]
        elif wanted in (bool, int, float):
            found[field.name] = wanted(arrays[name])
        elif wanted is Tensor or name in arrays:
            found[field.name] = torch.as_tensor(arrays[name], device=device)
        else:
            found[field.name] = None
    return kind(**found)


def under(prefix: str, arrays: Arrays) -> Arrays:
    """The arrays whose names begin so, by the rest of their names."""
    return {k.removeprefix(prefix): a for k, a in arrays.items() if k.startswith(prefix)}


def to_array(value: Tensor | float | bool | int) -> np.ndarray:
    """A tensor, a number or a flag as an array."""
    return value.detach().cpu().numpy() if isinstance(value, Tensor) else np.asarray(value)
