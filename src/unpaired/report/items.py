"""What a row of the table shows of a row of x or y: its name, a text, a photo."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from unpaired.errors import InputError
from unpaired.report.plots import photo_uri
from unpaired.results import Items, RunResult
from unpaired.types import IntArray, Match

ROWS_SHOWN = 2000
"""Rows in the table, at most: more would make the page slow to open."""
PHOTO_CHARACTERS = 3_000_000
"""What the photos of a page may take together: with 2,000 rows it then stays below 5 MB."""
SURE, UNSURE = 0.9, 0.5
"""Confidence from which on a row counts as sure, and below which as unsure."""
LONGEST_TEXT = 160
COLUMNS_TOLD = 3


def rows_shown(match: Match) -> IntArray:
    """Rows of x in the table: by rising confidence, ties by rising margin, left out last."""
    confidence = np.nan_to_num(match.confidence, nan=-1.0)
    margin = np.nan_to_num(match.margin, nan=-np.inf)
    order = np.lexsort((margin, confidence, match.partner < 0)).astype(np.int64)
    return order[:ROWS_SHOWN]


def rows_of_y_shown(match: Match) -> IntArray:
    """Rows of y in the table: partners and runners-up of the rows of x in it, in order."""
    rows = rows_shown(match)
    both = np.union1d(match.partner[rows], match.runner_up[rows])
    return both[both >= 0].astype(np.int64)


def describe_rows(
    values: NDArray[Any], columns: Sequence[str], rows: Iterable[int]
) -> dict[int, str]:
    """Row -> the columns in which it differs most from the mean, in standard deviations.

    >>> describe_rows(np.array([[0.0, 5.0], [2.0, 5.0], [1.0, 8.0]]), ["age", "dose"], [2])
    {2: 'dose +1.4'}
    """
    mean, spread = values.mean(axis=0), values.std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    told = {}
    for row in rows:
        scores = (values[row] - mean) / spread
        most = np.argsort(-np.abs(scores), kind="stable")[:COLUMNS_TOLD]
        told[int(row)] = ", ".join(f"{columns[c]} {scores[c]:+.1f}" for c in most if scores[c])
    return told


def check_items(result: RunResult, match: Match) -> None:
    """Accept names, texts, photos and truth that are of the rows of the match.

    Raises:
        InputError: otherwise, naming the first that is not.
    """
    n_rows = {"x": len(match), "y": match.n_y}
    for side, ids, items in (
        ("x", result.ids_x, result.items_x),
        ("y", result.ids_y, result.items_y),
    ):
        if ids and len(ids) != n_rows[side]:
            raise InputError(
                f"ids_{side} must name all {n_rows[side]} rows: it has {len(ids)} names."
            )
        for what, given in (("texts", items.texts), ("photos", items.photos)):
            for row in given:
                if not 0 <= row < n_rows[side]:
                    raise InputError(
                        f"{what} of items_{side} must be of rows 0 to {n_rows[side] - 1}: "
                        f"there is one of row {row}. Count rows from 0."
                    )
        for photo in items.photos.values():
            if photo.ndim != 3 or photo.shape[2] != 3 or photo.dtype != np.uint8:
                raise InputError(
                    f"photos of items_{side} must be uint8 of shape (height, width, 3): got "
                    f"{photo.dtype} of shape {photo.shape}. Repeat a grey channel three times."
                )
    if result.truth is not None and result.truth.shape != match.partner.shape:
        raise InputError(
            f"truth must have one entry per row of x, {len(match)}: its shape is "
            f"{result.truth.shape}. Write -1 where it is not known."
        )


class PhotoBudget:
    """Photos as data URIs, until what a page may hold is spent."""

    def __init__(self, characters: int = PHOTO_CHARACTERS) -> None:
        self.left = characters
        self.refused = 0

    def uri(self, items: Items, row: int) -> str | None:
        """The photo of a row; None where it has none, or where no room is left."""
        if row < 0 or row not in items.photos:
            return None
        uri = photo_uri(items.photos[row])
        if len(uri) > self.left:
            self.left = 0  # a later, smaller one would leave gaps
            self.refused += 1
            return None
        self.left -= len(uri)
        return uri


def table_rows(result: RunResult, match: Match, budget: PhotoBudget) -> Iterator[dict[str, Any]]:
    """One dict for each row of the table, in its order."""
    ids_x = result.ids_x or range(len(match))
    ids_y = result.ids_y or range(match.n_y)

    def cell(items: Items, ids: Sequence[Any], row: int, nothing: str) -> dict[str, Any]:
        text = items.texts.get(row, "")
        return {
            "name": ids[row] if row >= 0 else nothing,
            "text": text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…",
            "uri": budget.uri(items, row),
        }

    for row in rows_shown(match).tolist():
        partner = int(match.partner[row])
        yield {
            "x": cell(result.items_x, ids_x, row, ""),
            "y": cell(result.items_y, ids_y, partner, "left out"),
            "is_out": partner < 0,
            "confidence": float(match.confidence[row]),
            "second": cell(Items(result.items_y.texts), ids_y, int(match.runner_up[row]), "none"),
            "margin": float(match.margin[row]),
            "kind": kind_of(match, row),
            "verdict": truth_of(result.truth, match, row),
        }


def kind_of(match: Match, row: int) -> str:
    """The filter that a row falls under: sure, between, unsure or out."""
    if match.partner[row] < 0:
        return "out"
    confidence = match.confidence[row]
    return "sure" if confidence >= SURE else "between" if confidence >= UNSURE else "unsure"


def truth_of(truth: IntArray | None, match: Match, row: int) -> str:
    """Whether a matched row is "right" or "wrong"; "" where that is not known."""
    if truth is None or truth[row] < 0 or match.partner[row] < 0:
        return ""
    return "right" if truth[row] == match.partner[row] else "wrong"
