"""Is confidence what it says? Shares of right rows beside what was claimed of them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unpaired.report.svg import axes, axis_labels, nice_ticks, scale, svg
from unpaired.types import FloatArray, IntArray, Match

N_BINS = 10
Z = 1.645
"""Nine of ten cases, under a normal curve."""


@dataclass(frozen=True)
class Bin:
    """Rows of about one confidence: what they claim, how many are right."""

    n: int
    claimed: float
    right: float
    low: float
    high: float
    """Where the share of right rows is to be found in nine of ten cases."""


def reliability_bins(confidence: FloatArray, right: NDArray[np.bool_]) -> list[Bin]:
    """The bins that hold rows, ten of equal width over [0, 1]."""
    bins = []
    place = np.minimum((np.clip(confidence, 0.0, 1.0) * N_BINS).astype(int), N_BINS - 1)
    for number in range(N_BINS):
        rows = place == number
        if n := int(rows.sum()):
            share = float(right[rows].mean())
            low, high = share_interval(share, n)
            bins.append(Bin(n, float(confidence[rows].mean()), share, low, high))
    return bins


def share_interval(share: float, n: int) -> tuple[float, float]:
    """Where a share seen in n cases is to be found in nine of ten (Wilson's interval).

    >>> round(share_interval(1.0, 10)[0], 2)
    0.79
    """
    middle = (share + Z * Z / (2 * n)) / (1 + Z * Z / n)
    half = Z * math.sqrt(share * (1 - share) / n + Z * Z / (4 * n * n)) / (1 + Z * Z / n)
    return max(0.0, middle - half), min(1.0, middle + half)


def reliability_chart(bins: list[Bin]) -> str:
    """An inline SVG: claimed confidence across, share of right rows up, the diagonal for both."""
    to_x, to_y = scale(0.0, 1.0, 0.0, 1.0)
    ticks = nice_ticks(0.0, 1.0)
    parts = axes(to_x, to_y, ticks, ticks)
    parts += axis_labels("confidence", "share right")
    parts.append(
        f'<path class="guide" d="M{to_x(0):.1f} {to_y(0):.1f}L{to_x(1):.1f} {to_y(1):.1f}"/>'
    )
    most = max((b.n for b in bins), default=1)
    for b in bins:
        x, y, radius = to_x(b.claimed), to_y(b.right), 3 + 5 * math.sqrt(b.n / most)
        parts.append(f'<path class="reach" d="M{x:.1f} {to_y(b.low):.1f}V{to_y(b.high):.1f}"/>')
        parts.append(
            f'<circle class="dot s0" cx="{x:.1f}" cy="{y:.1f}" r="{radius:.1f}">'
            f"<title>{b.n} rows: claimed {b.claimed:.2f}, right {b.right:.2f}</title></circle>"
        )
    told = "; ".join(f"{b.n} rows claim {b.claimed:.2f}, {b.right:.2f} right" for b in bins)
    return svg(parts, f"Reliability: {told or 'no rows'}")


def reliability_view(confidence: FloatArray, right: NDArray[np.bool_]) -> dict[str, Any] | None:
    """What the page shows of rows whose truth is known; None where there are none."""
    from markupsafe import Markup

    kept = np.isfinite(confidence)
    if not kept.any():
        return None
    claimed, share = float(confidence[kept].mean()), float(right[kept].mean())
    bins = reliability_bins(confidence[kept], right[kept])
    gap = sum(b.n * abs(b.claimed - b.right) for b in bins) / int(kept.sum())
    return {
        "n": int(kept.sum()),
        "claimed": claimed,
        "right": share,
        "interval": share_interval(share, int(kept.sum())),
        "gap": gap,
        "svg": Markup(reliability_chart(bins)),
    }


def match_reliability(match: Match, truth: IntArray | None) -> dict[str, Any] | None:
    """The reliability of matched rows of known truth that were not given as known pairs."""
    if truth is None:
        return None
    rows = (truth >= 0) & (match.partner >= 0) & (match.confidence < 1.0)
    return reliability_view(match.confidence[rows], match.partner[rows] == truth[rows])
