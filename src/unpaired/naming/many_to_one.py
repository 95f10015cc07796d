"""Many rows of x to one row of y, as images to classes."""

from __future__ import annotations

import numpy as np

from unpaired.errors import InputError
from unpaired.naming.evidence import naming_evidence
from unpaired.naming.names import name_classes
from unpaired.plans.assignment import assign_many
from unpaired.problem.problem import MANY_TO_ONE, Problem
from unpaired.problem.weights import repeated
from unpaired.spaces.readout import read_dense, to_match
from unpaired.trust.names import covered_share, judge_names, name_certainty
from unpaired.types import Match


def match_many_to_one(problem: Problem, rng: np.random.Generator) -> Match:
    """Every row of x gets a row of y: groups of x named by the geometry of y.

    Scores are log probabilities of the classes, with the side information added. The verdict is on
    the names by geometry and labels; of side information it knows nothing.
    """
    n_x, n_y = len(problem.x), len(problem.y)
    labels = np.full(n_x, -1, dtype=np.int64)
    labels[problem.known[:, 0]] = problem.known[:, 1]
    weight = problem.weights[0]
    counted = np.arange(n_x)[repeated(weight, n_x, rng)]
    if len(counted) < n_y:
        raise InputError(
            f"weights of x must leave at least one row that counts for each of the {n_y} rows of "
            f"y: {len(counted)} do. Give more rows a weight above 0."
        )
    rows, known = problem.x[counted], labels[counted]
    named = name_classes(rows, problem.y, labels=known, rng=rng)
    evidence = naming_evidence(rows, [problem.y], named, rng, labels=known)
    covered = covered_share(named.labels, known[known >= 0])
    verdict = judge_names(evidence, len(rows), n_y, covered=covered)
    probability = named.probabilities
    if weight is not None:
        probability = named.predict_probabilities(problem.x)
        probability[problem.known[:, 0]] = np.eye(n_y)[problem.known[:, 1]]
    scores = np.log(np.maximum(probability, 1e-12))
    if problem.side is not None:
        scores = scores + problem.side.block(np.arange(n_x), np.arange(n_y))
    partner = assign_many(
        -scores, capacity=problem.class_sizes, known=problem.known, forbidden=problem.forbidden
    )
    share = np.exp(scores - scores.max(axis=1, keepdims=True))
    share /= share.sum(axis=1, keepdims=True)
    certainty = name_certainty(evidence, verdict, n_y, covered=covered)
    certain = share[np.arange(n_x), np.maximum(partner, 0)] * certainty
    return to_match(
        read_dense(scores, partner, certain),
        evidence,
        n_y,
        known=problem.known,
        relation=MANY_TO_ONE,
        verdict=verdict,
    )
