"""Pieces of inline SVG charts: axes with numbers, and the frame that describes itself."""

from __future__ import annotations

import math
from html import escape
from typing import Any

# SVG user units. A chart shown 350 px wide on a phone keeps its 14-unit text at 11 px.
_WIDTH, _HEIGHT = 440.0, 250.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 56.0, 12.0, 10.0, 42.0


def nice_ticks(low: float, high: float, n_ticks: int = 5) -> list[float]:
    """Return round numbers inside [low, high], about ``n_ticks`` of them.

    >>> nice_ticks(0.0, 1.0)
    [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]
    """
    span = high - low
    if not (math.isfinite(span) and span > 0):
        return [low]
    raw = span / max(n_ticks, 1)
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(m * power for m in (1, 2, 5, 10) if m * power >= raw * 0.999)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    digits = max(0, 1 - math.floor(math.log10(step)))
    return [round(i * step, digits) + 0.0 for i in range(first, last + 1)]


def scale(x_low: float, x_high: float, y_low: float, y_high: float) -> tuple[Any, Any]:
    """Return two functions from data to SVG user units."""
    plot_width, plot_height = _WIDTH - _LEFT - _RIGHT, _HEIGHT - _TOP - _BOTTOM
    return (
        lambda x: _LEFT + plot_width * (x - x_low) / (x_high - x_low),
        lambda y: _TOP + plot_height * (y_high - y) / (y_high - y_low),
    )


def axes(to_x: Any, to_y: Any, x_ticks: list[float], y_ticks: list[float]) -> list[str]:
    """Return grid lines with their numbers."""
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    parts = []
    for tick in y_ticks:
        y = to_y(tick)
        parts.append(f'<path class="grid" d="M{_LEFT:.0f} {y:.1f}H{right:.0f}"/>')
        parts.append(f'<text x="{_LEFT - 7:.0f}" y="{y + 4.5:.1f}" class="end">{tick:.6g}</text>')
    for tick in x_ticks:
        x = to_x(tick)
        parts.append(f'<text x="{x:.1f}" y="{bottom + 18:.0f}" class="mid">{tick:.6g}</text>')
    parts.append(f'<path class="axis" d="M{_LEFT:.0f} {bottom:.0f}H{right:.0f}"/>')
    return parts


def axis_labels(x_label: str, y_label: str) -> list[str]:
    """Return what the axes measure; the y axis may go without."""
    middle_x, middle_y = (_LEFT + _WIDTH - _RIGHT) / 2, (_TOP + _HEIGHT - _BOTTOM) / 2
    parts = [f'<text x="{middle_x:.0f}" y="{_HEIGHT - 6:.0f}" class="mid">{escape(x_label)}</text>']
    if y_label:
        turn = f'transform="translate(12 {middle_y:.0f}) rotate(-90)"'
        parts.append(f'<text {turn} class="mid">{escape(y_label)}</text>')
    return parts


def svg(parts: list[str], description: str) -> str:
    """Return the picture of these parts, with words for those who do not see it."""
    return (
        f'<svg class="chart" viewBox="0 0 {_WIDTH:.0f} {_HEIGHT:.0f}" role="img" '
        f'aria-label="{escape(description)}" fill="none" stroke="none">' + "".join(parts) + "</svg>"
    )
