"""From the vectors of one side into the other's own columns: one linear map, in closed form.

A space says which rows go together, but vectors in it belong to neither side. A translation takes
the place of the other model: the regression of each row's partner on the row itself. The partners
are read from the space and are soft, the mean of the best few, as rows of different documents have
no partner proper. They are taken both ways, from x to y and from y to x, and the regression is
shrunk towards a rotation instead of nothing. Against mutual best partners and plain ridge, with the
right space, both matter: docs/notebook/translation.md.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from scipy.special import softmax
from torch import Tensor

from unpaired._checks import check_view
from unpaired._log import step
from unpaired._saving import under, write_saved
from unpaired.errors import InputError
from unpaired.math.neighbours import top_k
from unpaired.math.ridge import choose_ridge, ridge_map
from unpaired.spaces.space import Space, spread
from unpaired.types import FloatArray, IntArray

BLOCK_ROWS = 8192
MOST_ROWS = 10_000
"""Rows a side that a map is learned from, at most."""
MOST_COLUMNS = 4096
"""Wider vectors would need a map of more than 16 million numbers."""
N_SOFT = 10
"""Best partners of which a soft partner is the mean."""
HEAT = 0.3
"""Temperature of that mean, in standard deviations of the scores."""
RIDGES = tuple(float(ridge) for ridge in np.geomspace(1e-6, 1e2, 33))
"""Ridges to choose from, in units of the total variance."""
FREE_WEIGHTS = (1.0, 0.1, 0.0)
"""What a row without a known partner may count beside a known pair."""
LEAST_KNOWN = 10
"""Known pairs from which on held-out ones choose that weight; with fewer it is 1."""
UNIT = 1e-3
"""How far lengths may lie from one to count as one."""


@dataclass(frozen=True, eq=False)
class Translation:
    """An affine map from one side's columns into the other's: ``rows @ matrix + offset``.

    It is linear, so it brings over what is linear in the vectors; what the other model alone knows
    is not in it. Where all vectors it was learned from have length one, so have its own.
    """

    matrix: FloatArray
    """(d, k), float32."""
    offset: FloatArray
    """(k,), float32."""
    unit: bool = False
    """Whether rows are scaled to length one at the end."""

    def __call__(self, rows: Any) -> FloatArray:
        """Rows (n, d) in the other side's own columns, (n, k), float32; arrays block by block."""
        array = rows if isinstance(rows, np.ndarray) and rows.dtype.kind in "fiu" else None
        array = check_view(rows, "rows", min_rows=1) if array is None else array
        width, columns = self.matrix.shape
        if array.ndim != 2 or array.shape[1] != width:
            raise InputError(
                f"rows must have the {width} columns that the translation was learned from. "
                f"Got shape {array.shape}. Take vectors of the same model."
            )
        out = np.empty((len(array), columns), dtype=np.float32)
        for begin in range(0, len(array), BLOCK_ROWS):
            block = slice(begin, begin + BLOCK_ROWS)
            out[block] = self.block(array[block])
            if not np.isfinite(out[block]).all():
                check_view(array, "rows", min_rows=1)  # names the cell
        return out

    def block(self, rows: FloatArray) -> FloatArray:
        """A few checked rows, translated at once."""
        moved = rows.astype(np.float32) @ self.matrix + self.offset
        if self.unit:
            moved /= np.maximum(np.linalg.norm(moved, axis=1, keepdims=True), 1e-12)
        return moved

    def arrays(self) -> dict[str, np.ndarray]:
        """All that ``from_arrays`` needs."""
        return {"matrix": self.matrix, "offset": self.offset, "unit": np.asarray(self.unit)}

    @classmethod
    def from_arrays(cls, arrays: dict[str, Any]) -> Self:
        """The translation that ``arrays`` were taken from."""
        return cls(arrays["matrix"], arrays["offset"], bool(arrays["unit"]))

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Write config.json and arrays.safetensors to ``directory``; ``unpaired.load`` reads it.

        Raises:
            InputError: when ``directory`` cannot be written, or holds other files.
        """
        write_saved(directory, type(self).__name__, self.arrays())

    @classmethod
    def _load(cls, config: dict[str, Any], arrays: dict[str, np.ndarray]) -> Self:
        return cls.from_arrays(arrays)


def translations_to_arrays(made: tuple[Translation, Translation]) -> dict[str, np.ndarray]:
    """All that ``translations_from_arrays`` needs of both maps."""
    return {
        f"translation.{name}.{key}": array
        for name, own in zip("xy", made, strict=True)
        for key, array in own.arrays().items()
    }


def translations_from_arrays(
    arrays: dict[str, np.ndarray],
) -> tuple[Translation, Translation] | None:
    """The translations among the arrays of a saved model; None where it has none."""
    if "translation.x.matrix" not in arrays:
        return None
    there, back = (Translation.from_arrays(under(f"translation.{name}.", arrays)) for name in "xy")
    return there, back


def learn_translations(
    space: Space,
    x: FloatArray,
    y: FloatArray,
    rng: np.random.Generator,
    *,
    known: IntArray | None = None,
    partner: IntArray | None = None,
) -> tuple[Translation, Translation]:
    """Translations from x's columns into y's, and back, by what a space says of the rows.

    Where there are too many rows for all, ``partner`` of those drawn of x are among those of y.
    Known pairs are partners of each other; how much the other rows count beside them is what
    predicts pairs best that are held out.
    """
    if max(x.shape[1], y.shape[1]) > MOST_COLUMNS:
        raise InputError(
            f"x and y must have at most {MOST_COLUMNS} columns to be translated. Got "
            f"{x.shape[1]} and {y.shape[1]}. Reduce them first, by principal components."
        )
    known = np.empty((0, 2), dtype=np.int64) if known is None else known
    step("Learning maps into the other side's columns")
    left, right, is_known = _partners(space, x, y, known, partner, rng)
    sides = torch.as_tensor(left), torch.as_tensor(right)
    units = [bool((np.abs(np.linalg.norm(s, axis=1) - 1) < UNIT).all()) for s in (x, y)]
    weight = _free_weight(*sides, is_known, rng)
    weights = torch.as_tensor(np.where(is_known, 1.0, weight))
    return (
        Translation(*fit_map(sides[0], sides[1], weights), units[1]),
        Translation(*fit_map(sides[1], sides[0], weights), units[0]),
    )


def _partners(
    space: Space,
    x: FloatArray,
    y: FloatArray,
    known: IntArray,
    partner: IntArray | None,
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray, np.ndarray]:
    """Rows of x and of y that go together, (n, d_x) and (n, d_y), and which of them are known.

    First the known pairs, then each free row of x with its soft partner, then each of y.
    """
    free_x, free_y = (
        np.setdiff1d(np.arange(len(side)), known[:, number]) for number, side in enumerate((x, y))
    )
    free_x = np.sort(rng.permutation(free_x)[:MOST_ROWS])
    if len(free_y) > MOST_ROWS:
        named = np.empty(0, dtype=np.int64) if partner is None else partner[free_x]
        named = np.intersect1d(named, free_y)
        others = rng.permutation(np.setdiff1d(free_y, named))
        free_y = np.concatenate([named, others[: MOST_ROWS - len(named)]])
    pairs = [(x[known[:, 0]], y[known[:, 1]])]
    if len(free_x) and len(free_y):
        rows = x[free_x], y[free_y]
        device = space.references[0].device
        placed = [
            space.place(torch.as_tensor(r, dtype=torch.float32, device=device), side).cpu()
            for side, r in enumerate(rows)
        ]
        heat = HEAT * spread(*placed)
        pairs += [
            (rows[0], _soft(placed[0], placed[1], rows[1], heat)),
            (_soft(placed[1], placed[0], rows[0], heat), rows[1]),
        ]
    left, right = (np.concatenate([pair[side] for pair in pairs]) for side in (0, 1))
    return left, right, np.arange(len(left)) < len(known)


def _soft(queries: Tensor, base: Tensor, rows: FloatArray, heat: float) -> FloatArray:
    """The mean of the rows that score best with each query, weighted by their shares."""
    near, score = top_k(queries, base, min(N_SOFT, len(base)), metric="inner", use_faiss=True)
    shares = softmax(score.astype(np.float64) / heat, axis=1)
    found = np.zeros((len(near), rows.shape[1]))
    for rank in range(near.shape[1]):
        found += shares[:, rank, None] * rows[near[:, rank]]
    return found


def fit_map(source: Tensor, target: Tensor, weights: Tensor) -> tuple[FloatArray, FloatArray]:
    """Matrix and offset: a scaled rotation, and a ridge regression of what it leaves over.

    Soft partners lie too near to the middle, so that plain ridge shrinks the directions it knows
    little of, and with them what tells rows apart; a rotation does not.
    """
    share = (weights / weights.sum()).double()[:, None]
    source, target = source.double(), target.double()
    mean, level = (share * source).sum(0), (share * target).sum(0)
    source, target = source - mean, target - level
    u, values, v = torch.linalg.svd((share * source).T @ target, full_matrices=False)
    rotation = u @ v
    moved = source @ rotation
    scale = values.sum() / (share * moved.square()).sum().clamp_min(1e-30)
    rest = target - scale * moved
    ridge = choose_ridge(source, rest, RIDGES, weights)
    matrix = scale * rotation + ridge_map(source, rest, ridge, weights)[0]
    offset = level - mean @ matrix
    return matrix.float().numpy(), offset.float().numpy()


def _free_weight(
    source: Tensor, target: Tensor, is_known: np.ndarray, rng: np.random.Generator
) -> float:
    """What rows without a known partner count, by the error on halves of the known pairs."""
    known = np.flatnonzero(is_known)
    if len(known) < LEAST_KNOWN or len(known) == len(is_known):
        return 1.0
    order = rng.permutation(known)
    errors = []
    for weight in FREE_WEIGHTS:
        error = 0.0
        for held in (order[::2], order[1::2]):
            weights = np.where(is_known, 1.0, weight)
            weights[held] = 0.0
            matrix, offset = fit_map(source, target, torch.as_tensor(weights))
            error += float(
                np.square(source[held].numpy() @ matrix + offset - target[held].numpy()).sum()
            )
        errors.append(error)
    return FREE_WEIGHTS[int(np.argmin(errors))]
