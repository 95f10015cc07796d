"""The values that travel between the rooms of the package."""

from __future__ import annotations

import csv
import os
from dataclasses import dataclass
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
