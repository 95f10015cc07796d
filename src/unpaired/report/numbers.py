"""Numbers as people read them."""

from __future__ import annotations

import math


def number(value: float, digits: int = 3) -> str:
    """Return a number for reading: whole ones in full, others to ``digits`` significant digits."""
    value = float(value)
    if not math.isfinite(value):
        return "n/a" if math.isnan(value) else str(value)
    if value == int(value) and abs(value) < 1e15:
        return f"{int(value):,}"
    return f"{value:,.{digits}g}" if abs(value) < 1000 else f"{value:,.0f}"


def decimals(value: float, n_digits: int) -> str:
    """Return a number with ``n_digits`` after the point, for columns; "n/a" when not finite."""
    return f"{value:.{n_digits}f}" if math.isfinite(value) else "n/a"


def percent(value: float) -> str:
    """Return a share as a percentage, "n/a" when it is not known."""
    return f"{100 * float(value):.1f}%" if math.isfinite(value) else "n/a"


def duration(seconds: float) -> str:
    """Return a time in seconds, or in minutes and seconds from two minutes on."""
    if not math.isfinite(seconds):
        return "n/a"
    if seconds < 120:
        return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.1f} s"
    return f"{int(seconds // 60)} min {int(seconds % 60)} s"
