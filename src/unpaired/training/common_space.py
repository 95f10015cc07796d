"""The space both views share once learning is over: its parts, scores and hubness correction."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import normalize

from unpaired.nets.residual import ResidualTower
from unpaired.training.closed_form import Coordinates
from unpaired.training.features import FeatureMap
from unpaired.training.pair_density import DENSITY_WEIGHT, PairDensity
from unpaired.training.soft_plan import SoftPlan

BLOCK_ROWS = 2048
Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Part:
    """Linear maps or networks that make coordinates of both views comparable."""

    features: int
    """Which of the space's features it takes."""
    maps: tuple[Tensor, Tensor]
    towers: tuple[ResidualTower, ResidualTower] | None = None
    """Networks that take the coordinates times ``maps`` (then factors (r,)), or None."""
    offsets: tuple[Tensor, Tensor] | None = None
    """Added after the maps; such a part is taken as it is, others count by direction alone."""

    def embed(self, coordinates: Tensor, view: int) -> Tensor:
        """Coordinates of a view's rows (0 = x, 1 = y) in this part of the space."""
        if self.offsets is not None:
            return coordinates @ self.maps[view] + self.offsets[view]
        if self.towers is not None:
            return normalize(self.towers[view](coordinates * self.maps[view]))
        return normalize(coordinates @ self.maps[view])


@dataclass(frozen=True)
class CommonSpace:
    """Embeddings whose inner product is the mean score of the parts."""

    features: tuple[tuple[FeatureMap, FeatureMap], ...]
    """Of x and of y; several parts may take the same."""
    parts: tuple[Part, ...]
    reference_x: Tensor
    reference_y: Tensor
    """Training rows in the space, against which hubs are corrected; empty = no correction."""
    n_neighbours: int
    density: PairDensity | None = None
    """Of the training pairs, over the first of the features; it has a say in scores."""
    penalty: Tensor | None = None
    """What the square of each embedded value costs a score, (k,), in the place of crowding."""

    @torch.no_grad()
    def embed(self, rows: Tensor, view: int) -> Tensor:
        """Rows of a view (0 = x, 1 = y) in the space, (n, sum of the parts' dimensions)."""
        blocks = [
            self.join([found[view](block) for found in self.features], view)
            for block in torch.split(rows, BLOCK_ROWS)
        ]
        return torch.cat(blocks)

    @torch.no_grad()
    def join(self, coordinates: Sequence[Tensor], view: int) -> Tensor:
        """Rows in the space, from their coordinates under each of the features."""
        parts = [part.embed(coordinates[part.features], view) for part in self.parts]
        return torch.cat(parts, 1) / math.sqrt(len(self.parts))

    @torch.no_grad()
    def crowding(self, embedded: Tensor, view: int) -> Tensor:
        """Half the mean similarity of embedded rows to their nearest training rows, (n,).

        Subtracting it from the scores (CSLS, Conneau et al. 2018) lets hubs fall back; taken from
        training rows of the other view, it needs no other row that is scored. A space with a
        penalty on the length of rows has that instead.
        """
        if self.penalty is not None:
            return (embedded**2) @ self.penalty
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

    @torch.no_grad()
    def scores(self, x: Tensor, y: Tensor) -> Tensor:
        """Corrected scores of all rows of x with all rows of y, and the density's say, (n, m)."""
        scores = self.placed(x, 0) @ self.placed(y, 1).T
        if self.density is None:
            return scores
        map_x, map_y = self.features[0]
        for columns in torch.split(torch.arange(len(y), device=y.device), BLOCK_ROWS):
            right = map_y(y[columns])
            for rows in torch.split(torch.arange(len(x), device=x.device), BLOCK_ROWS):
                said = self.density.log_ratio(map_x(x[rows]), right)
                scores[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1] += (
                    DENSITY_WEIGHT * said
                )
        return scores

    def arrays(self) -> Arrays:
        """All that ``from_arrays`` needs."""
        found: Arrays = {
            "reference_x": self.reference_x.cpu().numpy(),
            "reference_y": self.reference_y.cpu().numpy(),
            "n_neighbours": np.array(self.n_neighbours),
        }
        if self.penalty is not None:
            found["penalty"] = _array(self.penalty)
        if self.density is not None:
            for number_of_view, view in enumerate("xy"):
                found[f"density.{view}.scale"] = _array(self.density.scales[number_of_view])
                found[f"density.{view}.rows"] = _array(self.density.rows[number_of_view])
            for name in ("rows", "columns", "shares"):
                found[f"density.pairs.{name}"] = _array(getattr(self.density.pairs, name))
        for number, features in enumerate(self.features):
            for view, of_view in zip("xy", features, strict=True):
                for field in fields(FeatureMap):
                    value = getattr(of_view, field.name)
                    if value is not None:
                        found[f"features{number}.{view}.{field.name}"] = _array(value)
        for number, part in enumerate(self.parts):
            name = f"part{number}"
            found[f"{name}.features"] = np.array(part.features)
            for number_of_view, view in enumerate("xy"):
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

        features: list[tuple[FeatureMap, FeatureMap]] = []
        while f"features{len(features)}.x.mean" in arrays:
            name = f"features{len(features)}"
            features.append(
                (_features(arrays, f"{name}.x", device), _features(arrays, f"{name}.y", device))
            )
        parts: list[Part] = []
        while f"part{len(parts)}.features" in arrays:
            name = f"part{len(parts)}"
            shifted = f"{name}.x.shift" in arrays
            parts.append(
                Part(
                    int(arrays[f"{name}.features"].item()),
                    (tensor(f"{name}.x.map"), tensor(f"{name}.y.map")),
                    _towers(arrays, name, device),
                    (tensor(f"{name}.x.shift"), tensor(f"{name}.y.shift")) if shifted else None,
                )
            )
        references = tensor("reference_x"), tensor("reference_y")
        density = None
        if "density.x.rows" in arrays:
            rows = tensor("density.x.rows"), tensor("density.y.rows")
            density = PairDensity(
                (tensor("density.x.scale"), tensor("density.y.scale")),
                rows,
                SoftPlan(
                    tensor("density.pairs.rows"),
                    tensor("density.pairs.columns"),
                    tensor("density.pairs.shares"),
                    (len(rows[0]), len(rows[1])),
                ),
            )
        count = int(arrays["n_neighbours"].item())
        penalty = tensor("penalty") if "penalty" in arrays else None
        return cls(tuple(features), tuple(parts), *references, count, density, penalty)


def build_space(
    parts: Sequence[Part],
    coordinates: Sequence[Coordinates],
    *,
    n_neighbours: int,
    max_reference: int,
    generator: torch.Generator,
) -> CommonSpace:
    """The space made of ``parts``, with training rows of both views as reference."""
    features = tuple((found.features_x, found.features_y) for found in coordinates)
    empty = parts[0].maps[0].new_zeros(0, 1)
    space = CommonSpace(features, tuple(parts), empty, empty, n_neighbours)
    references = []
    for view in (0, 1):
        rows = [(found.x, found.y)[view] for found in coordinates]
        kept = torch.randperm(len(rows[0]), generator=generator)[:max_reference].to(empty.device)
        references.append(space.join([found[kept] for found in rows], view))
    return replace(space, reference_x=references[0], reference_y=references[1])


def _array(value: Tensor | float | bool) -> np.ndarray:
    return value.detach().cpu().numpy() if isinstance(value, Tensor) else np.array(value)


def _features(arrays: Arrays, prefix: str, device: torch.device) -> FeatureMap:
    """The feature map stored under ``prefix``."""
    values: dict[str, Tensor | float | bool | None] = {}
    for field in fields(FeatureMap):
        array = arrays.get(f"{prefix}.{field.name}")
        if array is None:
            values[field.name] = None
        elif field.type in ("bool", "float"):
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
