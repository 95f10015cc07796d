"""From scores and partners to a Match, and the checks that both relations share."""

from __future__ import annotations

from typing import Any

import numpy as np

from unpaired._checks import check_pairs, check_view
from unpaired.errors import InputError
from unpaired.types import FloatArray, IntArray, Match, Objective


def certain(confidence: FloatArray, known: IntArray) -> FloatArray:
    """Confidence with known pairs at 1."""
    out = np.clip(np.asarray(confidence, dtype=np.float64), 0.0, 1.0)
    out[known[:, 0]] = 1.0
    return out


def check_forbidden(forbidden: Any, known: IntArray, n_x: int, n_y: int) -> IntArray:
    """Forbidden pairs as (k, 2), none of which is known."""
    if isinstance(forbidden, str):
        raise InputError(
            f'forbidden must be a (k, 2) integer array: got "{forbidden}". List the pairs.'
        )
    barred = check_pairs(forbidden, n_x, n_y)
    both = set(map(tuple, known.tolist())) & set(map(tuple, barred.tolist()))
    if both:
        raise InputError(
            f"pairs and forbidden must not share a pair: both name {min(both)}. Drop it from one."
        )
    return barred


def check_similarity(similarity: Any, n_x: int, n_y: int) -> FloatArray | None:
    """Side information as a (n_x, n_y) matrix, or None when it says nothing."""
    if similarity is None:
        return None
    array = check_view(similarity, "similarity", min_rows=1)
    if array.shape != (n_x, n_y):
        raise InputError(
            f"similarity must have shape ({n_x}, {n_y}), rows of x by rows of y: it has "
            f"{array.shape}. Transpose it, or compute it for all pairs."
        )
    return array if float(array.std()) > 0 else None


def softmax_rows(scores: FloatArray, sharpness: float) -> FloatArray:
    """Shares of each row that are proportional to exp(sharpness * score); rows sum to 1.

    >>> softmax_rows(np.zeros((1, 2)), 10.0).tolist()
    [[0.5, 0.5]]
    """
    weights = np.exp(sharpness * (scores - scores.max(axis=1, keepdims=True)))
    return weights / weights.sum(axis=1, keepdims=True)


def describe(
    scores: FloatArray,
    partner: IntArray,
    objective: Objective,
    *,
    relation: str = "one-to-one",
    converged: bool = True,
    probabilities: FloatArray | None = None,
    known: IntArray | None = None,
    agreement: float = float("nan"),
) -> Match:
    """The Match that belongs to a partner vector: confidence, runner-up and margin per row.

    ``scores`` (n_x, n_y) rank the candidates of each row. Confidence is the partner's share of
    ``probabilities`` (0 without them); ``known`` pairs get 1.
    """
    n_x, n_y = scores.shape
    rows = np.flatnonzero(partner >= 0)
    others = np.array(scores, dtype=np.float64)
    others[rows, partner[rows]] = -np.inf
    runner_up = others.argmax(1).astype(np.int64)
    margin = np.full(n_x, np.nan)
    margin[rows] = scores[rows, partner[rows]] - others[rows, runner_up[rows]]
    confidence = np.zeros(n_x)
    if probabilities is not None:
        confidence[rows] = probabilities[rows, partner[rows]]
    if n_y == 1:
        runner_up, margin = np.full(n_x, -1, dtype=np.int64), np.full(n_x, np.nan)
    return Match(
        partner=np.asarray(partner, dtype=np.int64),
        confidence=certain(confidence, np.empty((0, 2), np.int64) if known is None else known),
        objective=objective,
        runner_up=runner_up,
        margin=margin,
        n_y=n_y,
        relation=relation,
        converged=converged,
        agreement=agreement,
    )
