"""What a solver returns: a space, the evidence for it, and how it came about."""

from __future__ import annotations

from dataclasses import dataclass, field

from unpaired.spaces.space import Space


@dataclass(frozen=True)
class HeldPair:
    """A known pair under a fit that did not know it."""

    rank: float
    """Share of other rows of y that score above its own, 0 to 1."""
    share: float = float("nan")
    """Confidence, before any calibration, of the best row of y; NaN: not measured."""
    right: bool = False
    """Whether that is the known one."""


@dataclass(frozen=True)
class Evidence:
    """What speaks for a solution, label-free."""

    reached: dict[str, float]
    """What each start reached: dependence, or contrast where partners are evident."""
    agreement: float = float("nan")
    """How well independent starts agree, 0 to 1; NaN: not measured, as for evident partners."""
    gap: float = float("nan")
    """Dependence above that of random maps, as a share of what was possible; NaN: not measured."""
    confirmed: float = float("nan")
    """Share of rows whose mutual partner refinement finds again without them; NaN: not refined."""
    surprise: float = float("nan")
    """How much closer both sides end in refinement than from starts with random signs, in standard
    deviations of those; NaN: not refined."""
    finer: float = float("nan")
    """How well components that refinement did not search tell partners apart, in standard
    deviations above chance; NaN: not measured, as where nothing was kept."""
    repeated: float = float("nan")
    """How often a fit on half of the rows names the partners of others again, beyond chance
    (Cohen's kappa); NaN: not asked, as where partners are not evident."""
    flips: float = float("nan")
    """Dependence above that of the same alignment with directions turned round, as a share of what
    was possible; NaN: not measured, as where partners are evident or known pairs tell."""
    held_out: tuple[HeldPair, ...] = ()
    """Known pairs that were held out in turn."""


@dataclass(frozen=True, eq=False)
class Solution:
    """A space, the evidence for it, one dict per step, and sentences on what was done."""

    space: Space
    evidence: Evidence
    kind: str
    """How it was found: "evident", "tiny", "profiles", "known pairs" or "refined"."""
    certainty: float = 0.0
    """What the evidence lets single rows claim at most, 0 to 1."""
    temperature: float = 0.25
    """Of the shares from which confidence is read, in standard deviations of the scores."""
    history: list[dict[str, float]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def evident(self) -> bool:
        """Whether each row has one near partner, so that scores are minus squared distances."""
        return self.kind == "evident"
