"""What one cell measured, and helpers that the three tasks share."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from unpaired.errors import InputError
from unpaired.evaluation.hubness import csls_scores
from unpaired.evaluation.matching import matching_accuracy
from unpaired.evaluation.retrieval import both_ways
from unpaired.types import FloatArray, IntArray


@dataclass(frozen=True)
class Outcome:
    """Numbers of one fit."""

    metrics: dict[str, float]
    sizes: dict[str, int]
    """How many rows of each kind there were."""
    seconds: dict[str, float]
    history: list[dict[str, float]] = field(default_factory=list)
    """One dict per iteration with the precision and recall of the matching, where traced."""


def amount(row: str, total: int) -> int:
    """How many of ``total`` a row such as "20%", "25 pairs" or "25" means.

    >>> amount("20%", 6000), amount("25 pairs", 1927)
    (1200, 25)
    """
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*(%|pairs?)?", row.strip())
    if found is None:
        raise InputError(f'A row must be a share "20%" or a number "25 pairs": got "{row}".')
    number = float(found[1])
    count = round(total * number / 100) if found[2] == "%" else int(number)
    if count > total:
        raise InputError(f'Row "{row}" asks for {count} of {total}. Ask for fewer.')
    return count


def read_outs(
    scores: FloatArray, owner: IntArray, ks: Sequence[int] = (1, 5, 10)
) -> dict[str, float]:
    """Recall both ways by the scores as they are, and ("csls ...") with hubs corrected."""
    plain = both_ways(scores, owner, ks)
    corrected = both_ways(csls_scores(np.asarray(scores, dtype=np.float32)), owner, ks)
    return {**plain, **{f"csls {name}": value for name, value in corrected.items()}}


def partners(model: Any, n_rows: int) -> IntArray | None:
    """The matching a fitted method inferred, (n_rows,), or None when it infers none."""
    found = getattr(getattr(model, "match_", None), "partner", None)
    return None if found is None or len(found) != n_rows else np.asarray(found, dtype=np.int64)


def matching_shares(
    model: Any, n_rows: int, judged: IntArray, truth: IntArray
) -> tuple[dict[str, float], list[dict[str, float]]]:
    """Precision and recall of the matching over the ``judged`` rows, at the end and by round.

    Both are empty when the method matches none of these rows.
    """
    inferred = partners(model, n_rows)
    if not len(judged) or inferred is None or (inferred[judged] < 0).all():
        return {}, []
    history = []
    for step, pairs in enumerate(getattr(model, "trace_", ())):
        partner = np.full(n_rows, -1, dtype=np.int64)
        partner[pairs[:, 0]] = pairs[:, 1]
        history.append({"step": float(step), **_shares(partner[judged], truth[judged])})
    return _shares(inferred[judged], truth[judged]), history


def _shares(partner: IntArray, truth: IntArray) -> dict[str, float]:
    found = matching_accuracy(partner, truth)
    return {"precision": found["precision"], "recall": found["recall"]}
