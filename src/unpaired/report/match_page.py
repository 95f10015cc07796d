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
from unpaired.results import RunResult
from unpaired.types import Match, Verdict

STARTS_SHOWN = 30
MEANINGS = {
    "reliable": "Single partners can be relied on where their confidence is high.",
    "coarse": "Probably right for groups of rows, not for each row.",
    "unreliable": "Nothing vouches for this match: treat every partner as a guess.",
}
NAME_MEANINGS = {
    "reliable": "The name of a single photo can be relied on where its confidence is high.",
    "coarse": "Most groups probably have the right name. Where one is wrong, all its photos are.",
    "unreliable": "Nothing vouches for these names: look at each group before you use them.",
}


def verdict_view(result: RunResult) -> dict[str, Any] | None:
    """What the first block of the page says; None where truth scores the names or nobody judged."""
    match = result.match
    if match is not None:
        return _block(match.verdict, MEANINGS, match.told_verdict, "rows", result.advice)
    judged = [naming.verdict for naming in result.namings if naming.truth is None]
    if not judged or judged[0] is None:
        return None
    return _block(judged[0], NAME_MEANINGS, "", "photos", result.advice)


def _block(
    verdict: Verdict | None,
    meanings: dict[str, str],
    otherwise: str,
    things: str,
    advice: tuple[str, ...],
) -> dict[str, Any]:
    if verdict is None:
        return {
            "level": "not judged",
            "meaning": otherwise,
            "figures": [],
            "reasons": (),
            "advice": advice,
        }
    low, high = verdict.interval
    true = "partner" if things == "rows" else "name"
    return {
        "level": verdict.level,
        "meaning": meanings[verdict.level],
        "figures": [
            (
                f"Right for groups of {things}",
                f"{100 * verdict.probability:.0f}%",
                f"probability that the mean rank of the true {true} is below 0.2",
            ),
            (
                f"Expected rank of the true {true}",
                decimals(verdict.expected_rank, 2),
                f"{low:.2f} to {high:.2f} in nine of ten cases; 0 = first, 0.5 = chance",
            ),
        ],
        "reasons": verdict.reasons,
        "advice": advice,
    }


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
            if not line.startswith("verdict")  # it has a place of its own
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
            ("between", f"between, {UNSURE:g} to {SURE:g}", kinds["between"]),
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
