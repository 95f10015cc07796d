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
    made="2026-11-19, python -m benchmarks.trust fit, 1030 runs",
    alone=Regime(
        intercept=-11.2467,
        weights={
            "agreement": 5.0002,
            "gap": 4.4911,
            "flips": 4.0443,
            "confirmed": 3.8767,
            "directions": 0.8808,
        },
        knots=(-5.7308, -3.7801, -2.6627, -1.6200, -0.2649, 2.2354),
        rank=(0.4879, 0.4707, 0.4607, 0.3353, 0.2243, 0.0868),
        low=(0.2226, 0.2172, 0.1263, 0.0528, 0.0073, 0.0002),
        high=(0.5803, 0.5803, 0.5803, 0.5589, 0.5130, 0.5130),
        row=0.7806,
    ),
    repeated=(42, 44),
    repeated_rank=(0.0168, 0.0000, 0.0543),
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
