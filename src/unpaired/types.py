"""The values that travel between the rooms of the package."""

from __future__ import annotations

import csv
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from unpaired.errors import extra

if TYPE_CHECKING:
    import pandas as pd

FloatArray = NDArray[np.floating[Any]]
IntArray = NDArray[np.int64]


class Objective(float):
    """What the best start reached: a float that also tells what each of them reached.

    Contrast where partners are evident, dependence elsewhere.
    """

    per_start: dict[str, float]

    def __new__(cls, value: float, per_start: dict[str, float] | None = None) -> Objective:
        """Return ``value`` as a float carrying ``per_start``, start name -> what it reached."""
        self = super().__new__(cls, value)
        self.per_start = dict(per_start or {})
        return self

    def __reduce__(self) -> tuple[type[Objective], tuple[float, dict[str, float]]]:
        """Return what copying needs to build the same object again."""
        return Objective, (float(self), self.per_start)


TRUSTED = 0.9
"""Probability from which on a coarse match is trusted."""


@dataclass(frozen=True)
class Verdict:
    """What may be claimed of a match as a whole; plain values only.

    In many-to-one the rows of y are classes: a partner is the class of a row.
    """

    level: str
    """"reliable": single partners can be relied on; "coarse": probably right for groups of rows,
    not for each; "unreliable": nothing vouches for it."""
    probability: float
    """That FOSCTTM is below 0.2."""
    expected_rank: float
    """Estimate of FOSCTTM: the share of rows ranked above the true partner; 0.5 = chance."""
    interval: tuple[float, float]
    """Where FOSCTTM is to be found in nine of ten cases."""
    reasons: tuple[str, ...] = ()
    """Sentences: what speaks for the level, and against a better one."""

    @property
    def trusted(self) -> bool:
        """Reliable, or coarse with a probability of 0.9 or more."""
        return self.level == "reliable" or (self.level == "coarse" and self.probability >= TRUSTED)

    def __str__(self) -> str:
        """Return one line for a person."""
        low, high = self.interval
        line = (
            f"{self.level}: right for groups of rows with probability {self.probability:.2f}, "
            f"expected rank of the true partner {self.expected_rank:.2f} ({low:.2f} to {high:.2f})"
        )
        return "; ".join([line, *self.reasons])


@dataclass(frozen=True, eq=False)
class Match:
    """Which row of y belongs to each row of x, how sure that is, and how it was found.

    All per-row arrays have one entry per row of x, in the caller's row order. ``partner[i]`` is
    the row of y matched with row i of x, or -1 when row i was left out.
    """

    partner: IntArray
    confidence: FloatArray
    objective: Objective
    runner_up: IntArray
    """Second best row of y for each row of x, -1 when there is none."""
    margin: FloatArray
    """Score of the partner minus the best other score; negative when another row scored higher."""
    n_y: int
    relation: str = "one-to-one"
    agreement: float = float("nan")
    """How well independent starts agree, 0 to 1; NaN: not measured, as for evident partners."""
    gap: float = float("nan")
    """How far the objective is above that of random maps, as a share of what was possible; NaN: not
    measured."""
    converged: bool = True
    verdict: Verdict | None = None
    """What may be claimed of the match as a whole; None where nothing was judged."""

    def __len__(self) -> int:
        """Return the number of rows of x."""
        return len(self.partner)

    def __repr__(self) -> str:
        """Return one line, however many rows there are."""
        n_matched = int((self.partner >= 0).sum())
        verdict = "trusted" if self.trusted else "not trusted"
        return (
            f"<Match {self.relation}: {n_matched} of {len(self)} rows of x in {self.n_y} of y, "
            f"objective {float(self.objective):.4g}, {verdict}>"
        )

    @property
    def trusted(self) -> bool:
        """Whether the verdict vouches for the match; False wherever nothing was judged."""
        return self.verdict is not None and self.verdict.trusted

    @property
    def pairs(self) -> IntArray:
        """The matched rows as a (k, 2) array of (row of x, row of y)."""
        rows = np.flatnonzero(self.partner >= 0)
        return np.column_stack([rows, self.partner[rows]]).astype(np.int64)

    @property
    def told_verdict(self) -> str:
        """The verdict in a line; that there is none, where nothing was judged."""
        if self.verdict is not None:
            return str(self.verdict)
        return "not judged: check some rows yourself"

    def summary(self) -> str:
        """Return a few lines for a person: the verdict, how many rows matched, how sure."""
        matched = self.partner >= 0
        n_sure = int((self.confidence[matched] >= 0.9).sum())
        n_starts = len(self.objective.per_start)
        lines = [
            f"verdict: {self.told_verdict}",
            f"{int(matched.sum())} of {len(self)} rows of x matched to {self.n_y} rows of y "
            f"({self.relation})",
            f"confidence: median {np.median(self.confidence[matched]):.2f}, {n_sure} rows at 0.9 "
            "or more"
            if matched.any()
            else "confidence: no row was matched",
            f"objective: {float(self.objective):.4f}"
            + (f", the best of {n_starts} starts" if n_starts > 1 else "")
            + ("" if self.converged else " (stopped before it settled)"),
        ]
        if np.isfinite(self.agreement):
            lines.append(f"agreement between starts: {self.agreement:.2f}")
        if np.isfinite(self.gap):
            lines.append(f"above random maps: {self.gap:.2f} of what was possible")
        return "\n".join(lines)

    def _columns(self) -> dict[str, NDArray[Any]]:
        return {
            "row": np.arange(len(self)),
            "partner": self.partner,
            "confidence": self.confidence,
            "runner_up": self.runner_up,
            "margin": self.margin,
        }

    def to_pandas(self) -> pd.DataFrame:
        """Return one row per row of x: row, partner, confidence, runner_up, margin."""
        with extra("frames"):
            import pandas as pd

        return pd.DataFrame(self._columns())

    def to_csv(self, path: str | os.PathLike[str]) -> None:
        """Write one line per row of x to ``path``: row, partner, confidence, runner_up, margin."""
        from unpaired._files import atomic_writer

        columns = self._columns()
        with atomic_writer(path) as handle:
            writer = csv.writer(handle)
            writer.writerow(columns)
            writer.writerows(zip(*(c.tolist() for c in columns.values()), strict=True))


@dataclass(frozen=True, eq=False)
class TwoViews:
    """Two sets of rows and, for evaluation only, which belong together."""

    x: FloatArray
    y: FloatArray
    truth: IntArray
    """(n_x,) row of y that belongs to each row of x, -1 where there is none."""
    owner: IntArray | None = None
    """(n_y,) row of x that each row of y belongs to, where one row of x has several (captions)."""
    split: NDArray[np.str_] | None = None
    """(n_x,) "train", "val" or "test", as the data set says; None when it says nothing."""
    names_x: tuple[str, ...] = ()
    names_y: tuple[str, ...] = ()
    """What each row is called: file names, words, classes; empty when unknown."""


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
