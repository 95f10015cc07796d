"""A map from the vectors of one model to those of another, and how far to believe it."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from unpaired._checks import check_columns, check_pairs, check_view, column_names
from unpaired._random import derive_rng
from unpaired._saving import Columns, read_saved, saved_columns, write_saved
from unpaired._threads import few_threads
from unpaired.matching import align
from unpaired.spaces.translation import Translation, learn_translations
from unpaired.types import FloatArray, IntArray, Verdict

LEAST_PAIRS = 10
"""Known pairs from which on a fifth of them is held out to judge the map."""
MOST_HELD_OUT = 200


@dataclass(frozen=True, eq=False)
class LearnedMap:
    """A translation, the verdict on the alignment it was read from, and how held-out pairs fare."""

    translation: Translation
    verdict: Verdict | None
    held_out: dict[str, float] | None = None
    """pairs, median_cosine, mean_rank (0 = first) and out_of; None where too few pairs are known.
    """
    columns: Columns = field(default_factory=dict)
    """How many columns each side has, and their names where it came as a frame."""

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Write the translation as its own ``save`` does, and the names of the columns with it.

        Raises:
            InputError: when ``directory`` cannot be written, or holds other files.
        """
        kind, arrays = type(self.translation).__name__, self.translation.arrays()
        write_saved(directory, kind, arrays, columns=self.columns)

    def told(self) -> str:
        """What is known of its quality, in a sentence or two."""
        if self.held_out is None:
            return (
                f"No pairs were held out to judge it: with {LEAST_PAIRS} known pairs (--pairs) a "
                "fifth is."
            )
        held = self.held_out
        return (
            f"{held['pairs']:.0f} known pairs, held out: median cosine to the partner "
            f"{held['median_cosine']:.3f}, mean rank {held['mean_rank']:.1f} of "
            f"{held['out_of']:,.0f} rows (0 = first)."
        )


def learn_map(x: Any, y: Any, pairs: Any = None, *, seed: int = 0) -> LearnedMap:
    """The translation from x's columns into y's, from rows of which no, few or all pairs are known.

    With ten known pairs or more a fifth of them, at most 200, is held out from the alignment and
    from the map that is judged; the map returned is then fitted anew with all of them.
    """
    rows_x, rows_y = check_view(x, "x"), check_view(y, "y")
    known = check_pairs(pairs, len(rows_x), len(rows_y))
    order = derive_rng(seed, "held out").permutation(len(known))
    n_held = min(MOST_HELD_OUT, len(known) // 5) if len(known) >= LEAST_PAIRS else 0
    held, given = known[order[:n_held]], known[np.sort(order[n_held:])]
    aligned = align(rows_x, rows_y, given, random_state=seed)
    found, verdict = aligned.translations[0], aligned.match.verdict
    columns: Columns = {
        name: (rows.shape[1], column_names(given))
        for name, rows, given in (("x", rows_x, x), ("y", rows_y, y))
    }
    if not n_held:
        return LearnedMap(found, verdict, None, columns)
    with few_threads(len(rows_x)):
        every, _ = learn_translations(
            aligned.solution.space,
            rows_x,
            rows_y,
            derive_rng(seed, "translation"),
            known=known,
            partner=aligned.match.partner,
        )
    return LearnedMap(every, verdict, judge_on(found, rows_x, rows_y, held), columns)


def check_rows(directory: str | os.PathLike[str], rows: Any, name: str) -> None:
    """Accept rows that have the columns, by name, from which the map in a folder was learned.

    Raises:
        InputError: when they have others, or the same in another order.
    """
    known = saved_columns(read_saved(directory)[0])
    if "x" in known:
        check_columns(column_names(rows), rows.to_numpy().shape[1], name, *known["x"])


def judge_on(
    translation: Translation, x: FloatArray, y: FloatArray, pairs: IntArray
) -> dict[str, float]:
    """How near translated rows come to their known partners: cosine, and rank among all of y."""
    length = np.linalg.norm(y, axis=1, keepdims=True)
    gallery = y / np.maximum(length, 1e-12)
    moved = translation(x[pairs[:, 0]]).astype(np.float64)
    moved /= np.maximum(np.linalg.norm(moved, axis=1, keepdims=True), 1e-12)
    scores = moved @ gallery.T
    own = scores[np.arange(len(pairs)), pairs[:, 1]]
    ranks = (scores > own[:, None]).sum(axis=1)
    return {
        "pairs": float(len(pairs)),
        "median_cosine": float(np.median(own)),
        "mean_rank": float(ranks.mean()),
        "out_of": float(len(y)),
    }
