"""Retrieval metrics over a score matrix, larger = better; any real scores, also negative ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from unpaired._checks import check_choice
from unpaired.errors import InputError
from unpaired.evaluation.hubness import csls_scores
from unpaired.types import FloatArray, IntArray


def _rank_of_best(scores: FloatArray, relevant: NDArray[np.bool_]) -> FloatArray:
    """Number of irrelevant columns that score above each row's best relevant one; ties half."""
    best = np.where(relevant, scores, -np.inf).max(1, keepdims=True)
    above = ((scores > best) & ~relevant).sum(1)
    equal = ((scores == best) & ~relevant).sum(1)
    return np.asarray(above + equal / 2.0)


def recall_at_k(
    scores: FloatArray, relevant: NDArray[np.bool_] | IntArray, ks: Sequence[int] = (1, 5, 10)
) -> dict[str, float]:
    """Share of rows with a relevant column among their k best, as {"R@1": ..., ...}.

    Notation: scores (n, m). ``relevant`` is a boolean (n, m) matrix (several captions to one
    image) or one column number per row (n,). Ties count half a place each.

    >>> recall_at_k(np.array([[-1.0, -2.0], [-3.0, -4.0]]), np.array([0, 1]), ks=(1, 2))
    {'R@1': 0.5, 'R@2': 1.0}
    """
    scores = _check_scores(scores)
    mask = _relevance(scores, relevant)
    rank = _rank_of_best(scores, mask)
    return {f"R@{k}": float((rank < k).mean()) for k in ks}


def _relevance(scores: FloatArray, relevant: NDArray[np.bool_] | IntArray) -> NDArray[np.bool_]:
    """``relevant`` as a boolean matrix of the shape of ``scores``."""
    marks: NDArray[Any] = np.asarray(relevant)
    if marks.shape == (scores.shape[0],) and marks.dtype.kind in "iu":
        marks = marks[:, None] == np.arange(scores.shape[1])[None, :]
    elif marks.dtype != np.bool_ or marks.shape != scores.shape:
        raise InputError(
            f"relevant must be a boolean {scores.shape} matrix or {scores.shape[0]} column "
            f"numbers: it has shape {marks.shape} and type {marks.dtype}. One entry per row of "
            "scores."
        )
    without = np.flatnonzero(~marks.any(1))
    if len(without):
        raise InputError(
            f"relevant must mark at least one column in every row: row {without[0]} has none. "
            "Drop rows without truth."
        )
    return marks


def _check_scores(scores: FloatArray) -> FloatArray:
    """``scores`` as an array; NaN would rank above nothing and so look like a perfect result."""
    scores = np.asarray(scores)
    if scores.ndim != 2 or np.isnan(scores).any():
        raise InputError(
            f"scores must be a matrix without NaN: its shape is {scores.shape} and "
            f"{int(np.isnan(scores).sum())} entries are NaN. Score every row against every column."
        )
    return scores


def both_ways(
    scores: FloatArray,
    owner: IntArray,
    ks: Sequence[int] = (1, 5, 10),
    *,
    readout: Literal["plain", "csls"] = "plain",
) -> dict[str, float]:
    """Recall from rows to columns ("x->y R@1") and back, where column j belongs to row owner[j].

    ``readout="csls"`` corrects the scores for hubs first, whatever method they come from.

    >>> both_ways(np.eye(2), np.array([0, 1]), ks=(1,))
    {'x->y R@1': 1.0, 'y->x R@1': 1.0}
    """
    scores = _check_scores(scores)
    if check_choice(readout, "readout", ("plain", "csls")) == "csls":
        scores = csls_scores(scores)
    mask = np.asarray(owner)[None, :] == np.arange(scores.shape[0])[:, None]
    forth = recall_at_k(scores, mask, ks)
    back = recall_at_k(scores.T, np.asarray(owner, dtype=np.int64), ks)
    return {
        **{f"x->y {key}": value for key, value in forth.items()},
        **{f"y->x {key}": value for key, value in back.items()},
    }


def foscttm(scores: FloatArray) -> float:
    """Fraction of samples closer than the true match, both ways; 0 is perfect, 0.5 is chance.

    Notation: scores (n, n), row i and column i belong together. Ties count half.

    >>> foscttm(np.eye(4))
    0.0
    """
    scores = _check_scores(scores)
    n_rows, n_columns = scores.shape
    if n_rows != n_columns or n_rows < 2:
        raise InputError(
            f"foscttm needs a square score matrix of at least 2 rows, row i and column i "
            f"belonging together: got shape {scores.shape}. Reorder the columns first."
        )
    truth = np.diag(scores)
    total = 0.0
    for matrix in (scores, scores.T):
        above = (matrix > truth[:, None]).sum(1)
        ties = (matrix == truth[:, None]).sum(1) - 1
        total += float((above + ties / 2.0).mean()) / (n_rows - 1)
    return total / 2.0
