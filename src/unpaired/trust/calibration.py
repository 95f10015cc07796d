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
        intercept=-6.5421,
        weights={"agreement": 1.0789, "gap": 0.7749, "agreement and gap": 0.7712, "rows": 0.2007},
        knots=(-5.2227, -3.6141, -3.0665, -2.6768, -1.5308, 0.8236),
        rank=(0.5084, 0.4841, 0.4350, 0.4301, 0.2569, 0.1763),
        low=(0.3966, 0.3037, 0.2368, 0.2129, 0.0946, 0.0739),
        high=(0.5418, 0.5365, 0.5291, 0.5251, 0.5251, 0.5000),
        row=0.2590,
    ),
    repeated=(18, 18),
    repeated_rank=(0.0001, 0.0000, 0.0500),
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
