"""The numbers that turn evidence into probabilities, measured once on a collection of runs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Calibration:
    """Coefficients of the verdict; all weights are >= 0, so more evidence never lowers it."""

    made: str
    """Date and command that made them."""
    intercept: float
    weights: dict[str, float]
    """Of each feature of ``trust.verdict.features`` in the log odds that FOSCTTM < 0.2."""
    knots: tuple[float, ...]
    """Log odds at which the next three are given; linear between, flat beyond."""
    rank: tuple[float, ...]
    """Expected FOSCTTM."""
    low: tuple[float, ...]
    high: tuple[float, ...]
    """Its 5% and 95% quantiles."""
    repeated: tuple[int, int]
    """Of so many runs whose single partners were repeated, so many had FOSCTTM < 0.2."""
    repeated_rank: tuple[float, float, float]
    """Their mean FOSCTTM, and its 5% and 95% quantiles."""
    halving: tuple[float, float]
    """FOSCTTM of the whole is that of a fit on halves to this power, in units of chance; and the
    standard deviation from that."""
    row: tuple[float, float, float]
    """Log odds that a row is right: intercept, and weights of the log odds of its share and of the
    run's log odds."""


CALIBRATION = Calibration(
    made="",
    intercept=-3.0,
    weights={"ranks": 1.0, "agreement": 1.0, "gap": 3.0, "confirmed": 2.0, "single": 3.0},
    knots=(-3.0, 0.0, 3.0),
    rank=(0.45, 0.25, 0.05),
    low=(0.25, 0.05, 0.0),
    high=(0.6, 0.5, 0.3),
    repeated=(30, 30),
    repeated_rank=(0.01, 0.0, 0.05),
    halving=(2.0, 0.06),
    row=(-2.0, 1.0, 1.0),
)
