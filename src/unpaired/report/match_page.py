"""What the page shows of a match: the verdict, the rows side by side, figures and pictures."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

from unpaired.report import plots
from unpaired.report.items import SURE, UNSURE, PhotoBudget, check_items, table_rows
from unpaired.report.numbers import decimals, number
from unpaired.report.reliability import match_reliability
from unpaired.report.space_map import space_map
from unpaired.types import Match, RunResult

STARTS_SHOWN = 30
MEANINGS = {
    "reliable": "Single partners can be relied on where their confidence is high.",
    "coarse": "Probably right for groups of rows, not for each row.",
    "unreliable": "Nothing vouches for this match: treat every partner as a guess.",
}
NAMES_NOT_JUDGED = (
    "Nothing vouches for the names as a whole. When one is wrong, it is usually wrong for all "
    "photos of a group."
)


def verdict_view(result: RunResult) -> dict[str, Any] | None:
    """What the first block of the page says; None where photos were named and truth scores it."""
    match = result.match
    if match is None:
        if not result.advice or any(naming.truth is not None for naming in result.namings):
            return None
        return {
            "level": "not judged",
            "meaning": NAMES_NOT_JUDGED,
            "figures": [],
            "reasons": (),
            "advice": result.advice,
        }
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
            (
                "Right for groups of rows",
                f"{100 * verdict.probability:.0f}%",
                "probability that the mean rank of true partners is below 0.2",
            ),
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

    check_items(result, match)
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
    budget = PhotoBudget()
    rows = list(table_rows(result, match, budget))
    kinds = Counter(row["kind"] for row in rows) + Counter(row["verdict"] for row in rows)
    drawn = space_map(result.places, match, result.ids_x, result.ids_y)
    return {
        "found": match,
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
        "rows": rows,
        "filters": [
            ("all", "all", len(rows)),
            ("sure", f"sure, {SURE:g} and more", kinds["sure"]),
            ("between", "between", kinds["between"]),
            ("unsure", f"unsure, below {UNSURE:g}", kinds["unsure"]),
            ("out", "left out", kinds["out"]),
            ("wrong", "wrong", kinds["wrong"]),
            ("right", "right", kinds["right"]),
        ],
        "n_photos_refused": budget.refused,
        "reliability": match_reliability(match, result.truth),
        "map": None if drawn is None else Markup(drawn),
        "n_on_map": len(result.places) // 2,
    }
