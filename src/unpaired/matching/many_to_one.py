"""Many rows of x to one row of y, as images to classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from unpaired._checks import check_pairs, check_view
from unpaired._random import RandomState, derive_rng, resolve_seed
from unpaired.errors import InputError
from unpaired.matching.assignment import assign_many
from unpaired.matching.describing import check_forbidden, check_similarity, describe
from unpaired.matching.naming import name_classes
from unpaired.types import Match, Objective


def match_many_to_one(
    x: Any,
    y: Any,
    pairs: Any,
    random_state: RandomState,
    forbidden: Any,
    similarity: Any,
    class_sizes: Any,
) -> Match:
    """Every row of x gets a row of y: clusters of x named by the geometry of y."""
    rows_x, rows_y = check_view(x, "x"), check_view(y, "y")
    known = check_pairs(pairs, len(rows_x), len(rows_y))
    barred = check_forbidden(forbidden, known, len(rows_x), len(rows_y))
    side = check_similarity(similarity, len(rows_x), len(rows_y))
    if len(rows_y) > len(rows_x):
        raise InputError(
            f"many-to-one needs at least as many rows in x as in y: x has {len(rows_x)}, y has "
            f"{len(rows_y)}. Swap them, or use one-to-one."
        )
    labels = np.full(len(rows_x), -1, dtype=np.int64)
    labels[known[::-1, 0]] = known[::-1, 1]  # the first pair of a row counts
    given = np.flatnonzero(labels >= 0)
    rng = derive_rng(resolve_seed(random_state), "match")
    named = name_classes(rows_x, rows_y, labels=labels, rng=rng)
    probability = np.maximum(named.probabilities, 1e-12)
    cost = -np.log(probability)
    if side is not None:
        cost = cost - (side - side.mean()) / side.std()
    partner = assign_many(
        cost,
        capacity=class_sizes,
        known=np.column_stack([given, labels[given]]),
        forbidden=barred,
    )
    score = named.assignments.score
    certain = probability * named.name_certainty[None, :]
    return describe(
        probability,
        partner,
        Objective(score, {"clusters": score}),
        relation="many-to-one",
        probabilities=certain,
        known=known,
    )
