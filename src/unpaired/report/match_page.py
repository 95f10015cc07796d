"""What the page shows of a match: the verdict, the rows side by side, a map of both sides."""

from __future__ import annotations

import math
from html import escape
from typing import Any

import numpy as np

from unpaired.errors import InputError
from unpaired.report import plots
from unpaired.report.numbers import decimals, number
from unpaired.types import IntArray, Match, Place, RunResult

ROWS_SHOWN = 2000
"""Rows in the table, at most: more would make the page slow to open."""
SURE, UNSURE = 0.9, 0.5
"""Confidence from which on a row counts as sure, and below which as unsure."""
STARTS_SHOWN = 30
MEANINGS = {
    "reliable": "Single partners can be relied on where their confidence is high.",
    "coarse": "Probably right for groups of rows, not for each row.",
    "unreliable": "Nothing vouches for this match: treat every partner as a guess.",
}
_SIDE, _MARGIN = 440.0, 14.0


def verdict_view(result: RunResult) -> dict[str, Any] | None:
    """What the first block of the page says; None where there is no match."""
    match = result.match
    if match is None:
        return None
    verdict = match.verdict
    view: dict[str, Any] = {
        "level": "not judged" if verdict is None else verdict.level,
        "meaning": match.told_verdict if verdict is None else MEANINGS[verdict.level],
        "figures": [],
        "reasons": () if verdict is None else verdict.reasons,
        "advice": result.advice,
    }
    if verdict is not None:
        low, high = verdict.interval
        view["figures"] = [
            ("Right for groups of rows", f"{100 * verdict.probability:.0f}%", "probability"),
            (
                "Expected rank of the true partner",
                decimals(verdict.expected_rank, 2),
                f"{low:.2f} to {high:.2f} in nine of ten cases; 0 = first, 0.5 = chance",
            ),
        ]
    return view


def match_view(result: RunResult, match: Match) -> dict[str, Any]:
    """What the section on the match shows; rows without names are called by their numbers."""
    from markupsafe import Markup

    ids_x, ids_y = result.ids_x, result.ids_y
    for name, ids, n_rows in (("ids_x", ids_x, len(match)), ("ids_y", ids_y, match.n_y)):
        if ids and len(ids) != n_rows:
            raise InputError(f"{name} must name all {n_rows} rows: it has {len(ids)} names.")
    matched = match.partner >= 0
    starts = sorted(
        match.objective.per_start.items(),
        key=lambda item: -item[1] if math.isfinite(item[1]) else math.inf,
    )
    finite = [value for _, value in starts if math.isfinite(value)]
    low, high = min([0.0, *finite]), max([0.0, *finite])
    chart = plots.histogram(
        match.confidence[matched], title="Confidence of the matched rows", x_label="confidence"
    )
    rows = least_certain_first(match)[:ROWS_SHOWN]
    drawn = space_map(result.places, match)
    return {
        "found": match,
        "ids_x": ids_x or range(len(match)),
        "ids_y": ids_y or range(match.n_y),
        "summary": [
            line.replace(": nan", ": not measured")
            for line in match.summary().splitlines()
            if not line.startswith((" ", "verdict"))  # these have places of their own
        ],
        "n_matched": int(matched.sum()),
        "starts": [
            (
                name,
                decimals(value, 4) if abs(value) < 100 else number(value),
                (value - low) / (high - low) if high > low and value in finite else 0.0,
            )
            for name, value in starts[:STARTS_SHOWN]
        ],
        "n_starts": len(starts),
        "histogram": Markup(chart) if matched.any() else None,
        "rows": rows.tolist(),
        "filters": [
            ("all", "all", len(rows)),
            ("sure", f"sure, {SURE:g} and more", _count(match, rows, "sure")),
            ("between", "between", _count(match, rows, "between")),
            ("unsure", f"unsure, below {UNSURE:g}", _count(match, rows, "unsure")),
            ("out", "left out", _count(match, rows, "out")),
        ],
        "kind": {int(row): kind_of(match, int(row)) for row in rows},
        "map": None if drawn is None else Markup(drawn),
        "n_on_map": len(result.places) // 2,
    }


def least_certain_first(match: Match) -> IntArray:
    """Rows by rising confidence, ties by rising margin; rows that were left out come last."""
    confidence = np.nan_to_num(match.confidence, nan=-1.0)
    margin = np.nan_to_num(match.margin, nan=-np.inf)
    return np.lexsort((margin, confidence, match.partner < 0)).astype(np.int64)


def kind_of(match: Match, row: int) -> str:
    """The filter that a row falls under: sure, between, unsure or out."""
    if match.partner[row] < 0:
        return "out"
    confidence = match.confidence[row]
    return "sure" if confidence >= SURE else "between" if confidence >= UNSURE else "unsure"


def _count(match: Match, rows: IntArray, kind: str) -> int:
    return sum(kind_of(match, int(row)) == kind for row in rows)


def space_map(places: tuple[Place, ...], match: Match) -> str | None:
    """An inline SVG of both sides in the space they share, a line from each row to its partner."""
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
            dots.append(f'<path class="spot s1" d="M{x - 3:.1f} {y - 3:.1f}h6v6h-6z"/>')
            continue
        dots.append(f'<circle class="spot s0" cx="{x:.1f}" cy="{y:.1f}" r="3"/>')
        partner = ("y", int(match.partner[row]))
        if partner in spots:
            there = at(spots[partner])
            sure = 0.15 + 0.75 * float(np.clip(match.confidence[row], 0.0, 1.0))
            lines.append(
                f'<path class="tie" opacity="{sure:.2f}" '
                f'd="M{x:.1f} {y:.1f}L{there[0]:.1f} {there[1]:.1f}"/>'
            )
    told = f"Map of both sides in the common space: {len(lines)} matched pairs"
    return (
        f'<svg class="chart map" viewBox="0 0 {_SIDE:.0f} {_SIDE:.0f}" role="img" '
        f'aria-label="{escape(told)}">' + "".join(lines + dots) + "</svg>"
    )
