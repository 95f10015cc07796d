"""The numbers that turn evidence into probabilities, measured once on a collection of runs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Regime:
    """How evidence is read; all weights are >= 0, so more evidence never lowers the odds."""

    intercept: float
    weights: dict[str, float]
    """Of each feature of ``trust.verdict.features`` in the log odds that FOSCTTM < 0.2."""
    knots: tuple[float, ...]
    """Log odds at which the next three are given; linear between, flat beyond."""
    rank: tuple[float, ...]
    """Expected FOSCTTM."""
    low: tuple[float, ...]
    high: tuple[float, ...]
    """Bounds that hold it in nine of ten cases."""
    row: float
    """Of rows whose share, times the probability of the run, is p, so many times p are right."""


@dataclass(frozen=True)
class Calibration:
    """Coefficients of the verdict."""

    made: str
    """Date and command that made them."""
    alone: Regime
    """Without known pairs."""
    repeated: tuple[int, int]
    """Of the runs whose single partners were named again: with FOSCTTM < 0.2, and all."""
    repeated_rank: tuple[float, float, float]
    """Their mean FOSCTTM, and bounds that hold it in nine of ten cases."""


CALIBRATION = Calibration(
    made="2026-11-18, python -m benchmarks.trust fit, 495 runs",
    alone=Regime(
        intercept=-5.6845,
        weights={"agreement": 0.9145, "gap": 1.1906, "agreement and gap": 1.0653, "rows": 0.3110},
        knots=(-4.7196, -3.3544, -2.9674, -2.5582, -1.5393, 0.5149),
        rank=(0.5073, 0.4839, 0.4397, 0.3843, 0.3602, 0.1820),
        low=(0.4091, 0.3065, 0.2768, 0.1589, 0.0946, 0.0739),
        high=(0.5418, 0.5047, 0.5047, 0.5047, 0.5047, 0.5000),
        row=0.2163,
    ),
    repeated=(18, 18),
    repeated_rank=(0.0, 0.0, 0.05),
)

NAMES = Regime(
    intercept=-3.0,
    weights={"gap": 1.0, "agreement and repeated": 1.0, "all three": 1.0},
    knots=(-3.0, 0.0),
    rank=(0.45, 0.3),
    low=(0.1, 0.05),
    high=(0.6, 0.5),
    row=0.5,
)
"""Of names of groups without labels; python -m benchmarks.trust_names fit."""
