"""The space both views share once learning is over: its parts, scores and hubness correction."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from unpaired.nets.residual import ResidualTower
from unpaired.training.features import FeatureMap

BLOCK_ROWS = 2048
Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Part:
    """Coordinates of both views, and linear maps or networks that make them comparable."""

    features_x: FeatureMap
    features_y: FeatureMap
    maps: tuple[Tensor, Tensor]
    towers: tuple[ResidualTower, ResidualTower] | None = None
    """Networks that take the coordinates times ``maps`` (then factors (r,)), or None."""
    offsets: tuple[Tensor, Tensor] | None = None
    """Added after the maps; such a part is taken as it is, others count by direction alone."""

    def embed(self, rows: Tensor, view: int) -> Tensor:
        """Rows of a view (0 = x, 1 = y) in this part of the space."""
        coordinates = (self.features_x, self.features_y)[view](rows)
        if self.offsets is not None:
            return coordinates @ self.maps[view] + self.offsets[view]
        if self.towers is not None:
            return normalize(self.towers[view](coordinates * self.maps[view]))
        return normalize(coordinates @ self.maps[view])


@dataclass(frozen=True)
class CommonSpace:
    """Embeddings whose inner product is the mean score of the parts."""

    parts: tuple[Part, ...]
    reference_x: Tensor
    reference_y: Tensor
    """Training rows in the space, against which hubs are corrected; empty = no correction."""
    n_neighbours: int

    @torch.no_grad()
    def embed(self, rows: Tensor, view: int) -> Tensor:
        """Rows of a view (0 = x, 1 = y) in the space, (n, sum of the parts' dimensions)."""
        blocks = [
            torch.cat([part.embed(block, view) for part in self.parts], 1)
            for block in torch.split(rows, BLOCK_ROWS)
        ]
        return torch.cat(blocks) / math.sqrt(len(self.parts))

    @torch.no_grad()
    def crowding(self, embedded: Tensor, view: int) -> Tensor:
        """Half the mean similarity of embedded rows to their nearest training rows, (n,).

        Subtracting it from the scores (CSLS, Conneau et al. 2018) lets hubs fall back; taken from
        training rows of the other view, it needs no other row that is scored.
        """
        reference = (self.reference_y, self.reference_x)[view]
        if not len(reference):
            return embedded.new_zeros(len(embedded))
        count = min(self.n_neighbours, len(reference))
        blocks = [
            torch.topk(block @ reference.T, count).values.mean(1)
            for block in torch.split(embedded, BLOCK_ROWS)
        ]
        return 0.5 * torch.cat(blocks)

    def placed(self, rows: Tensor, view: int) -> Tensor:
        """Embeddings with two more columns, so that plain inner products are corrected scores."""
        embedded = self.embed(rows, view)
        crowding = -self.crowding(embedded, view)[:, None]
        ones = torch.ones_like(crowding)
        return torch.cat([embedded, *((crowding, ones) if view == 0 else (ones, crowding))], 1)

    def arrays(self) -> Arrays:
        """All that ``from_arrays`` needs."""
        found: Arrays = {
            "reference_x": self.reference_x.cpu().numpy(),
            "reference_y": self.reference_y.cpu().numpy(),
            "n_neighbours": np.array(self.n_neighbours),
        }
        for number, part in enumerate(self.parts):
            name = f"part{number}"
            for number_of_view, view in enumerate("xy"):
                features = (part.features_x, part.features_y)[number_of_view]
                for field in fields(FeatureMap):
                    value = getattr(features, field.name)
                    if value is not None:
                        found[f"{name}.{view}.{field.name}"] = _array(value)
                found[f"{name}.{view}.map"] = _array(part.maps[number_of_view])
                if part.offsets is not None:
                    found[f"{name}.{view}.shift"] = _array(part.offsets[number_of_view])
                if part.towers is not None:
                    for key, tensor in part.towers[number_of_view].state_dict().items():
                        found[f"{name}.{view}.tower.{key}"] = _array(tensor)
        return found

    @classmethod
    def from_arrays(cls, arrays: Arrays, device: torch.device) -> CommonSpace:
        """The space that ``arrays`` were taken from."""

        def tensor(name: str) -> Tensor:
            return torch.as_tensor(arrays[name], device=device)

        parts: list[Part] = []
        while f"part{len(parts)}.x.map" in arrays:
            name = f"part{len(parts)}"
            shifted = f"{name}.x.shift" in arrays
            parts.append(
                Part(
                    _features(arrays, f"{name}.x", device),
                    _features(arrays, f"{name}.y", device),
                    (tensor(f"{name}.x.map"), tensor(f"{name}.y.map")),
                    _towers(arrays, name, device),
                    (tensor(f"{name}.x.shift"), tensor(f"{name}.y.shift")) if shifted else None,
                )
            )
        count = int(arrays["n_neighbours"].item())
        return cls(tuple(parts), tensor("reference_x"), tensor("reference_y"), count)


def build_space(
    parts: Sequence[Part],
    x: Tensor,
    y: Tensor,
    *,
    n_neighbours: int,
    max_reference: int,
    generator: torch.Generator,
) -> CommonSpace:
    """The space made of ``parts``, with training rows of both views as reference."""
    empty = torch.zeros(0, 1, device=x.device)
    space = CommonSpace(tuple(parts), empty, empty, n_neighbours)
    references = []
    for view, rows in enumerate((x, y)):
        kept = torch.randperm(len(rows), generator=generator)[:max_reference].to(rows.device)
        references.append(space.embed(rows[kept], view))
    return CommonSpace(space.parts, references[0], references[1], n_neighbours)


def _array(value: Tensor | float | bool) -> np.ndarray:
    return value.detach().cpu().numpy() if isinstance(value, Tensor) else np.array(value)


def _features(arrays: Arrays, prefix: str, device: torch.device) -> FeatureMap:
    """The feature map stored under ``prefix``."""
    values: dict[str, Tensor | float | bool | None] = {}
    for field in fields(FeatureMap):
        array = arrays.get(f"{prefix}.{field.name}")
        if array is None:
            values[field.name] = None
        elif field.name in ("take_root", "inverse_width", "total_variance"):
            values[field.name] = array.item()
        else:
            values[field.name] = torch.as_tensor(array, device=device)
    return FeatureMap(**values)  # type: ignore[arg-type]


def _towers(
    arrays: Arrays, name: str, device: torch.device
) -> tuple[ResidualTower, ResidualTower] | None:
    """The networks stored with part ``name``, if it has any."""
    if f"{name}.x.tower.linear" not in arrays:
        return None
    found = []
    for view in "xy":
        prefix = f"{name}.{view}.tower."
        state = {
            key.removeprefix(prefix): torch.as_tensor(array)
            for key, array in arrays.items()
            if key.startswith(prefix)
        }
        first = state.get("residual.0.weight")
        hidden = 0 if first is None else len(first)
        tower = ResidualTower(state["linear"], hidden, decodes="decoder.weight" in state)
        tower.load_state_dict(state)
        found.append(tower.to(device).eval())
    return found[0], found[1]
