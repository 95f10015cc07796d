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
    made="2026-11-18, python -m benchmarks.trust fit, 132 runs",
    alone=Regime(
        intercept=-6.7837,
        weights={"agreement": 1.256, "gap": 1.411, "rows": 0.2622},
        knots=(-5.8315, -4.7617, -4.0527, -3.2741, -2.3571, 0.9845),
        rank=(0.5174, 0.4969, 0.4902, 0.4878, 0.3537, 0.1113),
        low=(0.3765, 0.3482, 0.3482, 0.3038, 0.1582, 0.0236),
        high=(0.5425, 0.5388, 0.5388, 0.5388, 0.5388, 0.5),
        row=0.5548,
    ),
    repeated=(6, 6),
    repeated_rank=(0.0, 0.0, 0.05),
)
