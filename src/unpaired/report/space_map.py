"""A map of both sides in the space they share, a line from each row to its partner."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Any

import numpy as np

from unpaired.report.items import UNSURE
from unpaired.results import Place
from unpaired.types import Match

_SIDE, _MARGIN = 440.0, 14.0


def space_map(
    places: tuple[Place, ...], match: Match, ids_x: Sequence[Any] = (), ids_y: Sequence[Any] = ()
) -> str | None:
    """An inline SVG; rows that are named tell their names under the pointer."""
    spots = {(place.side, place.row): (place.across, place.up) for place in places}
    values = np.array(list(spots.values()), dtype=float).reshape(-1, 2)
    if not len(values) or not np.isfinite(values).all():
        return None
    low, span = values.min(axis=0), np.maximum(np.ptp(values, axis=0), 1e-12)

    def at(spot: tuple[float, float]) -> tuple[float, float]:
        shares = (np.array(spot) - low) / span
        width = _SIDE - 2 * _MARGIN
        return _MARGIN + width * float(shares[0]), _MARGIN + width * float(1 - shares[1])

    lines, dots = [], []
    for (side, row), spot in spots.items():
        x, y = at(spot)
        if side == "y":
            name = _title(f"y: {ids_y[row]}" if ids_y else f"y: row {row}")
            dots.append(f'<path class="spot s1" d="M{x - 3:.1f} {y - 3:.1f}h6v6h-6z">{name}</path>')
            continue
        partner = int(match.partner[row])
        told = f"x: {ids_x[row]}" if ids_x else f"x: row {row}"
        if partner >= 0:
            told += f" → y: {ids_y[partner] if ids_y else f'row {partner}'}"
            told += f", confidence {match.confidence[row]:.2f}"
        dots.append(
            f'<circle class="spot s0" cx="{x:.1f}" cy="{y:.1f}" r="3">{_title(told)}</circle>'
        )
        if ("y", partner) in spots:
            there = at(spots["y", partner])
            sure = float(np.clip(match.confidence[row], 0.0, 1.0))
            kind = "tie" if sure >= UNSURE else "tie unsure"
            lines.append(
                f'<path class="{kind}" opacity="{0.15 + 0.75 * sure:.2f}" '
                f'd="M{x:.1f} {y:.1f}L{there[0]:.1f} {there[1]:.1f}"/>'
            )
    told = f"Map of both sides in the common space: {len(lines)} matched pairs"
    return (
        f'<svg class="chart map" viewBox="0 0 {_SIDE:.0f} {_SIDE:.0f}" role="img" '
        f'aria-label="{escape(told)}">' + "".join(lines + dots) + "</svg>"
    )


def _title(text: str) -> str:
    return f"<title>{escape(text)}</title>"
