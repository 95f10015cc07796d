"""The space both sides share: arrays that embed, score and place rows, also rows never seen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn.functional import normalize

from unpaired.math.hubness import crowding
from unpaired.math.neighbours import Float32
from unpaired.types import FloatArray
from unpaired.views.features import FeatureMap
from unpaired.views.view import View

if TYPE_CHECKING:
    from unpaired.nets.residual import ResidualTower

BLOCK_ROWS = 2048
SPREAD_ROWS = 1000
"""Rows a side on which the spread of scores is measured."""

Pair = tuple[Tensor, Tensor]
"""Something of x and the same of y."""


@dataclass(frozen=True, eq=False)
class Part:
    """Linear maps or networks that make the coordinates of both sides in one view comparable."""

    view: int
    """Number of the view."""
    maps: Pair
    """(r, k) linear maps; (r,) factors of the coordinates where networks follow."""
    towers: tuple[ResidualTower, ResidualTower] | None = None
    weight: float = 1.0
    """What the products of this part count in a score."""
    penalty: Tensor | None = None
    """What the square of each embedded value costs a score, (k,). With it rows keep their length;
    without it they are scaled to length one, so that products are cosines."""
    offsets: Pair | None = None
    """(1, k) added after the maps."""

    @property
    def width(self) -> int:
        """Dimensions of its embedding."""
        return (self.maps[0] if self.towers is None else self.towers[0].linear).shape[1]

    def embed(self, coordinates: Tensor, side: int, width: int | None = None) -> Tensor:
        """Rows of a side (0 = x, 1 = y) by their coordinates, (n, r) -> (n, k)."""
        if self.towers is not None:
            rows = self.towers[side](coordinates * self.maps[side])
        else:
            rows = coordinates @ self.maps[side]
        if self.offsets is not None:
            rows = rows + self.offsets[side]
        rows = rows if self.penalty is not None else normalize(rows)
        return rows[:, :width] * self.weight**0.5


def rotation_parts(rotation: Float32, like: Tensor) -> list[Part]:
    """A rotation (r_x, r_y) as a part: the larger side is sent into the smaller one."""
    found = torch.from_numpy(rotation).to(like)
    r_x, r_y = found.shape
    eye = torch.eye(min(r_x, r_y)).to(like)
    return [Part(0, (found, eye) if r_x >= r_y else (eye, found.T.contiguous()))]


def join(
    parts: Sequence[Part], coordinates: Sequence[Tensor], side: int, width: int | None = None
) -> Tensor:
    """Rows of a side in the space, from their coordinates in every view, (n, sum of widths)."""
    return torch.cat([part.embed(coordinates[part.view], side, width) for part in parts], 1)


def lengths(parts: Sequence[Part], joined: Tensor) -> Tensor:
    """What the lengths of joined rows cost their scores, (n,)."""
    costs = [
        joined.new_zeros(part.width) if part.penalty is None else part.penalty for part in parts
    ]
    return joined.square() @ torch.cat(costs)


def spread(left: Tensor, right: Tensor) -> float:
    """The standard deviation of the inner products of two sets of rows, on some of them."""
    some = [rows[:: -(-len(rows) // SPREAD_ROWS)] for rows in (left, right)]
    return max(float((some[0] @ some[1].T).std(correction=0)), 1e-12)


def even_weights(
    parts: Sequence[Part], views: Sequence[View], width: int | None = None
) -> list[Part]:
    """The parts with weights under which the scores of all of them spread alike."""
    found = []
    for part in parts:
        plain = replace(part, weight=1.0)
        view = views[part.view]
        sides = plain.embed(view.x, 0, width), plain.embed(view.y, 1, width)
        found.append(replace(part, weight=1.0 / spread(*sides)))
    return found


@dataclass(frozen=True, eq=False)
class Space:
    """Feature maps, parts on top of them, and how hubs are held back; products are scores."""

    features: tuple[tuple[FeatureMap, FeatureMap], ...]
    parts: tuple[Part, ...]
    references: Pair
    """Embedded training rows of x and of y, against which crowding is measured; may be empty."""
    n_nearest: int = 10
    """Rows of the other side that count as near (CSLS)."""

    @torch.no_grad()
    def embed(self, rows: Tensor, side: int) -> Tensor:
        """Rows of a side (0 = x, 1 = y) in the space, (n, k)."""
        blocks = [
            join(self.parts, [pair[side](block) for pair in self.features], side)
            for block in torch.split(rows, BLOCK_ROWS)
        ]
        return torch.cat(blocks)

    @torch.no_grad()
    def corrected(self, embedded: Tensor, side: int) -> Tensor:
        """Embedded rows with two more columns, so that plain products are corrected scores.

        CSLS (Conneau et al. 2018) takes off half of how crowded a row is among the training rows of
        the other side: it needs no other row that is scored.
        """
        cost = 0.5 * crowding(embedded, self.references[1 - side], self.n_nearest)
        if any(part.penalty is not None for part in self.parts):
            cost = cost + lengths(self.parts, embedded)
        level, ones = -cost[:, None], torch.ones_like(cost[:, None])
        return torch.cat([embedded, *((level, ones) if side == 0 else (ones, level))], 1)

    def place(self, rows: Tensor, side: int) -> Tensor:
        """Rows of a side so that inner products across sides are scores, hubs held back."""
        return self.corrected(self.embed(rows, side), side)

    def placed(self, x: FloatArray, y: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The same for arrays of both sides."""
        sides = (torch.as_tensor(rows, dtype=torch.float32) for rows in (x, y))
        left, right = (self.place(rows, side).cpu().numpy() for side, rows in enumerate(sides))
        return left, right

    def scores(self, x: Tensor, y: Tensor) -> Tensor:
        """How well each row of x goes with each row of y, (n, m); larger = better."""
        return self.place(x, 0) @ self.place(y, 1).T


def build_space(
    views: Sequence[View], parts: Sequence[Part], *, n_nearest: int, max_reference: int = 5000
) -> Space:
    """The space made of ``parts`` on ``views``, with the views' rows as reference."""
    references = []
    for side in (0, 1):
        rows = [view.x if side == 0 else view.y for view in views]
        step = -(-len(rows[0]) // max_reference)
        references.append(join(parts, [placed[::step] for placed in rows], side))
    features = tuple((view.map_x, view.map_y) for view in views)
    return Space(features, tuple(parts), (references[0], references[1]), n_nearest)
