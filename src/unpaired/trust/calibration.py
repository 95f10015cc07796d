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
    made="2026-11-18, python -m benchmarks.trust fit, 1030 runs",
    alone=Regime(
        intercept=-14.2480,
        weights={"agreement": 8.0008, "gap": 4.8180, "flips": 3.6183, "directions": 1.1816},
        knots=(-6.2024, -3.6959, -2.5277, -1.3547, -0.2710, 2.0721),
        rank=(0.4950, 0.4681, 0.4520, 0.3232, 0.1970, 0.1243),
        low=(0.2219, 0.1842, 0.0783, 0.0342, 0.0074, 0.0008),
        high=(0.5949, 0.5851, 0.5851, 0.5747, 0.5358, 0.5217),
        row=0.7973,
    ),
    repeated=(37, 38),
    repeated_rank=(0.0091, 0.0000, 0.0500),
)

NAMES = Regime(
    intercept=-4.3983,
    weights={"agreement": 2.0333, "gap": 2.1312, "agreement and gap": 2.3975},
    knots=(-3.7235, -3.1233, -2.3976, -1.7728, -0.9848, 0.6556),
    rank=(0.5000, 0.4843, 0.4425, 0.4225, 0.3240, 0.0545),
    low=(0.2301, 0.2301, 0.2184, 0.1677, 0.0271, 0.0222),
    high=(0.6205, 0.6205, 0.5390, 0.5390, 0.5390, 0.5390),
    row=1.0000,
)
"""Of names of groups without labels; 2026-11-18, python -m benchmarks.trust_names fit, 163 runs."""
