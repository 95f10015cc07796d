"""Many rows of x to one row of y, as images to classes."""

from __future__ import annotations

from typing import Any

import numpy as np

from unpaired._checks import check_pairs, check_view
from unpaired._random import RandomState, derive_rng, resolve_seed
from unpaired.errors import InputError
from unpaired.matching.assignment import assign_many
from unpaired.matching.describing import check_forbidden, describe
from unpaired.matching.hints import check_hint
from unpaired.matching.naming import name_classes
from unpaired.matching.weighing import check_weights, repeated
from unpaired.types import Match, Objective


def match_many_to_one(
    x: Any,
    y: Any,
    pairs: Any,
    random_state: RandomState,
    *,
    forbidden: Any = None,
    similarity: Any = None,
    shared: Any = None,
    weights: Any = None,
    class_sizes: Any = None,
) -> Match:
    """Every row of x gets a row of y: clusters of x named by the geometry of y."""
    rows_x, rows_y = check_view(x, "x"), check_view(y, "y")
    n_x, n_y = len(rows_x), len(rows_y)
    known = check_pairs(pairs, n_x, n_y)
    barred = check_forbidden(forbidden, known, n_x, n_y)
    hint = check_hint(similarity, shared, n_x, n_y)
    weight, weight_y = check_weights(weights, n_x, n_y)
    if weight_y is not None:
        raise InputError(
            "weights of y must be None for many-to-one: each row of y is one class, and how many "
            "rows it takes is class_sizes."
        )
    if n_y > n_x:
        raise InputError(
            f"many-to-one needs at least as many rows in x as in y: x has {n_x}, y has "
            f"{n_y}. Swap them, or use one-to-one."
        )
    labels = np.full(n_x, -1, dtype=np.int64)
    labels[known[::-1, 0]] = known[::-1, 1]  # the first pair of a row counts
    given = np.flatnonzero(labels >= 0)
    rng = derive_rng(resolve_seed(random_state), "match")
    counted = np.arange(n_x)[repeated(weight, n_x, rng)]
    if len(counted) < n_y:
        raise InputError(
            f"weights of x must leave at least one row that counts for each of the {n_y} rows of "
            f"y: {len(counted)} do."
        )
    named = name_classes(rows_x[counted], rows_y, labels=labels[counted], rng=rng)
    probability = named.probabilities
    if weight is not None:
        probability = named.predict_probabilities(rows_x)
        probability[given] = np.eye(n_y)[labels[given]]
    probability = np.maximum(probability, 1e-12)
    cost = -np.log(probability)
    if hint is not None:
        cost = cost - hint.block(np.arange(n_x), np.arange(n_y))
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
