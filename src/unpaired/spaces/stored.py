"""A space as arrays, and back: what a saved model holds of it."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from unpaired.nets.residual import ResidualTower
from unpaired.spaces.space import Pair, Part, Space
from unpaired.views.features import FeatureMap
from unpaired.views.stored import Arrays, map_from_arrays, map_to_arrays, to_array, under

PREFIX = "space."


def space_to_arrays(space: Space) -> Arrays:
    """All that ``space_from_arrays`` needs; every name begins with PREFIX."""
    found: Arrays = {"n_nearest": np.asarray(space.n_nearest)}
    for side, name in enumerate("xy"):
        found[f"reference.{name}"] = to_array(space.references[side])
        for number, pair in enumerate(space.features):
            for key, array in map_to_arrays(pair[side]).items():
                found[f"features{number}.{name}.{key}"] = array
        for number, part in enumerate(space.parts):
            own = f"part{number}.{name}"
            found[f"{own}.map"] = to_array(part.maps[side])
            if part.offsets is not None:
                found[f"{own}.offset"] = to_array(part.offsets[side])
            if part.towers is not None:
                for key, tensor in part.towers[side].state_dict().items():
                    found[f"{own}.tower.{key}"] = to_array(tensor)
    for number, part in enumerate(space.parts):
        found[f"part{number}.view"] = np.asarray(part.view)
        found[f"part{number}.weight"] = np.asarray(part.weight)
        if part.penalty is not None:
            found[f"part{number}.penalty"] = to_array(part.penalty)
    return {f"{PREFIX}{name}": array for name, array in found.items()}


def space_from_arrays(arrays: Arrays, device: torch.device) -> Space:
    """The space among the arrays of a saved model."""
    arrays = under(PREFIX, arrays)

    def tensor(name: str) -> Tensor:
        return torch.as_tensor(arrays[name], device=device)

    def both(prefix: str, name: str) -> Pair:
        return tensor(f"{prefix}.x.{name}"), tensor(f"{prefix}.y.{name}")

    features: list[tuple[FeatureMap, FeatureMap]] = []
    while under(f"features{len(features)}.x.", arrays):
        name = f"features{len(features)}"
        map_x, map_y = (map_from_arrays(under(f"{name}.{s}.", arrays), device) for s in "xy")
        features.append((map_x, map_y))
    parts: list[Part] = []
    while f"part{len(parts)}.view" in arrays:
        name = f"part{len(parts)}"
        towers = [_tower(under(f"{name}.{side}.tower.", arrays), device) for side in "xy"]
        parts.append(
            Part(
                int(arrays[f"{name}.view"]),
                both(name, "map"),
                (towers[0], towers[1]) if towers[0] and towers[1] else None,
                float(arrays[f"{name}.weight"]),
                tensor(f"{name}.penalty") if f"{name}.penalty" in arrays else None,
                both(name, "offset") if f"{name}.x.offset" in arrays else None,
            )
        )
    references = tensor("reference.x"), tensor("reference.y")
    return Space(tuple(features), tuple(parts), references, int(arrays["n_nearest"]))


def _tower(arrays: Arrays, device: torch.device) -> ResidualTower | None:
    """The network that ``arrays`` hold, if any."""
    if not arrays:
        return None
    state = {name: torch.as_tensor(array) for name, array in arrays.items()}
    layers = sorted(int(name.split(".")[1]) for name in state if name.endswith("bias"))
    hidden = tuple(len(state[f"residual.{layer}.bias"]) for layer in layers)
    tower = ResidualTower(state["linear"], hidden)
    tower.load_state_dict(state)
    return tower.to(device).eval().requires_grad_(False)
