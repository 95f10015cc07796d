"""What a finished run tells people: plain values for pages, tables and pictures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unpaired.types import FloatArray, IntArray, Match, Verdict


@dataclass(frozen=True)
class Naming:
    """One run of naming a pile of images: what the report shows of it."""

    title: str
    class_names: tuple[str, ...]
    labels: IntArray
    """(n,) class given to each image."""
    confidence: FloatArray
    truth: IntArray | None = None
    history: list[dict[str, float]] = field(default_factory=list)
    """One dict per step; keys as in ``DMAE.history_`` plus precision and recall where known."""
    verdict: Verdict | None = None
    """What may be claimed of the names as a whole; None where nothing was judged."""
    asked: tuple[Asked, ...] = ()
    """Groups that a person is asked to name, the least certain first."""


@dataclass(frozen=True, eq=False)
class Asked:
    """A group of images whose name is uncertain, as a person is shown it."""

    size: int
    names: tuple[str, ...]
    """What it may be, the likeliest first."""
    files: tuple[str, ...]
    """What some of the images are called."""
    images: tuple[NDArray[np.uint8], ...] = ()
    """(h, w, 3) picture of each of those, or none at all."""


@dataclass(frozen=True)
class Place:
    """Where a row lies on a map of two dimensions."""

    side: str
    """"x" or "y"."""
    row: int
    across: float
    up: float


@dataclass(frozen=True, eq=False)
class Items:
    """What a person is shown of the rows of one side, beside their names."""

    texts: Mapping[int, str] = field(default_factory=dict)
    """Row -> a line, for the rows that have one."""
    photos: Mapping[int, NDArray[np.uint8]] = field(default_factory=dict)
    """Row -> (h, w, 3) picture, for the rows that have one."""


@dataclass(frozen=True)
class RunResult:
    """Everything a report tells about a finished run; plain values only."""

    title: str
    headline: dict[str, float]
    """What to print large, name -> value between 0 and 1 (accuracies) or any number."""
    settings: dict[str, Any]
    seed: int
    versions: dict[str, str]
    seconds: dict[str, float]
    namings: tuple[Naming, ...] = ()
    images: NDArray[np.uint8] | None = None
    """(k, h, w, 3) thumbnails of the first k rows, shared by all namings, or None."""
    match: Match | None = None
    ids_x: tuple[str, ...] = ()
    ids_y: tuple[str, ...] = ()
    """What the rows of the match are called, where they have names."""
    items_x: Items = Items()
    items_y: Items = Items()
    """What a person is shown of the rows of the match: texts, pictures."""
    truth: IntArray | None = None
    """(n_x,) row of y that truly belongs to each row of x, -1 where unknown; scores the match."""
    places: tuple[Place, ...] = ()
    """Some rows of both sides on a map of the space they share."""
    advice: tuple[str, ...] = ()
    """What to do next, in sentences."""
    history: list[dict[str, float]] = field(default_factory=list)
    notes: tuple[str, ...] = ()
    """Sentences for the reader: what was compared with what, and what the result does not show."""


@dataclass(frozen=True)
class ResultTable:
    """A table for people: cells are text already; printed in several formats."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Curves:
    """Lines of one picture: name -> (x, mean, spread) points in order of x."""

    title: str
    x_label: str
    y_label: str
    lines: dict[str, list[tuple[float, float, float]]]
