"""Several starts, each refined, one judge: what ``match`` and DMAE's Pi step begin with."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.spatial.distance import pdist, squareform

from unpaired._checks import check_choice, check_one_to_one, check_pairs, check_view
from unpaired._random import RandomState, derive_rng, resolve_seed
from unpaired.errors import InputError
from unpaired.matching.assignment import assign
from unpaired.matching.frank_wolfe import frank_wolfe
from unpaired.matching.naming import name_classes
from unpaired.matching.solution import alignment, plan_of
from unpaired.matching.starts import signature_scores
from unpaired.types import FloatArray, IntArray, Match, Objective

RELATIONS = ("one-to-one", "many-to-one")
MAX_DENSE_ROWS = 5000


def match(
    x: Any,
    y: Any,
    pairs: Any = None,
    relation: str = "one-to-one",
    random_state: RandomState = 0,
) -> Match:
    """Match the rows of two views by their geometry alone, without networks.

    Args:
        x: Rows to find partners for, (n_x, d_x): array, tensor, frame or sparse matrix.
        y: Rows to choose from, (n_y, d_y); the columns need not have anything in common with x's.
        pairs: Known pairs, (k, 2) of (row of x, row of y), kept as they are.
        relation: "one-to-one" (rows of the larger side are left out), or "many-to-one" (every row
            of x gets one of the rows of y, as images get classes).
        random_state: Seed; the same seed gives the same result.

    Returns:
        A Match in the order of the rows of x.
    """
    rows_x, rows_y = check_view(x, "x"), check_view(y, "y")
    known = check_pairs(pairs, len(rows_x), len(rows_y))
    rng = derive_rng(resolve_seed(random_state), "match")
    if check_choice(relation, "relation", RELATIONS) == "many-to-one":
        return _match_many_to_one(rows_x, rows_y, known, rng)
    return _match_one_to_one(rows_x, rows_y, check_one_to_one(known))


def _match_one_to_one(x: FloatArray, y: FloatArray, known: IntArray) -> Match:
    if max(len(x), len(y)) > MAX_DENSE_ROWS:
        raise InputError(
            f"x and y must have at most {MAX_DENSE_ROWS} rows each for now: they have {len(x)} "
            f"and {len(y)}. Match a random subset of the rows, or cluster them first."
        )
    gram_x, gram_y = _centred_gram(x), _centred_gram(y)
    starts = {"signatures": signature_scores(gram_x, gram_y)}
    if len(known):
        starts["known pairs"] = gram_x[:, known[:, 0]] @ gram_y[known[:, 1]]
    found = {}
    for name, scores in starts.items():
        plan = plan_of(assign(-scores, known=known), len(y))
        solution = frank_wolfe(gram_x, gram_y, plan, known)
        found[name] = (_relative_alignment(gram_x, gram_y, solution.partner), solution)
    value, best = max(found.values(), key=lambda item: item[0])
    partner = best.partner
    scores = gram_x @ plan_of(partner, len(y)) @ gram_y
    return describe(
        scores,
        partner,
        Objective(value, {name: item[0] for name, item in found.items()}),
        relation="one-to-one",
        converged=best.converged,
        known=known,
    )


def _centred_gram(rows: FloatArray) -> FloatArray:
    """Doubly centred Gaussian Gram matrix at the median bandwidth."""
    distances = pdist(rows, "sqeuclidean")
    width = float(np.median(distances)) or float(distances.mean())
    gram = np.exp(-squareform(distances) / (2.0 * width))
    return np.asarray(gram - gram.mean(0) - gram.mean(1)[:, None] + gram.mean())


def _relative_alignment(gram_x: FloatArray, gram_y: FloatArray, partner: IntArray) -> float:
    """Centred kernel alignment of the matched rows."""
    rows = np.flatnonzero(partner >= 0)
    norm_x = float(np.linalg.norm(gram_x[np.ix_(rows, rows)]))
    norm_y = float(np.linalg.norm(gram_y[np.ix_(partner[rows], partner[rows])]))
    return alignment(gram_x, gram_y, partner) / max(norm_x * norm_y, 1e-300)


def _match_many_to_one(
    x: FloatArray, y: FloatArray, known: IntArray, rng: np.random.Generator
) -> Match:
    labels = np.full(len(x), -1, dtype=np.int64)
    labels[known[:, 0]] = known[:, 1]
    named = name_classes(x, y, labels=labels, rng=rng)
    partner = np.asarray(named.labels, dtype=np.int64)
    partner[known[:, 0]] = known[:, 1]
    score = named.assignments.score
    return describe(
        named.probabilities,
        partner,
        Objective(score, {"clusters": score}),
        relation="many-to-one",
        probabilities=named.probabilities,
        known=known,
    )


def describe(
    scores: FloatArray,
    partner: IntArray,
    objective: Objective,
    *,
    relation: str,
    converged: bool = True,
    probabilities: FloatArray | None = None,
    known: IntArray | None = None,
) -> Match:
    """The Match that belongs to a partner vector: confidence, runner-up and margin per row.

    ``scores`` (n_x, n_y) rank the candidates of each row. Without ``probabilities`` the confidence
    is a softmax of the standardised scores of a row's candidates; ``known`` pairs get 1.
    """
    n_x, n_y = scores.shape
    rows = np.flatnonzero(partner >= 0)
    chosen = np.full(n_x, -np.inf)
    chosen[rows] = scores[rows, partner[rows]]
    others = scores.copy()
    others[rows, partner[rows]] = -np.inf
    runner_up = others.argmax(1).astype(np.int64)
    best_other = others[np.arange(n_x), runner_up]
    if probabilities is None:
        scale = np.maximum(scores.std(1, keepdims=True), 1e-300)
        logits = 10.0 * (scores - scores.max(1, keepdims=True)) / scale
        probabilities = np.exp(logits)
        probabilities /= probabilities.sum(1, keepdims=True)
    confidence = np.zeros(n_x)
    confidence[rows] = probabilities[rows, partner[rows]]
    if known is not None:
        confidence[known[:, 0]] = 1.0
    margin = np.where(partner >= 0, chosen - best_other, np.nan)
    if n_y == 1:
        runner_up = np.full(n_x, -1, dtype=np.int64)
        margin = np.full(n_x, np.nan)
    return Match(
        partner=np.asarray(partner, dtype=np.int64),
        confidence=np.clip(confidence, 0.0, 1.0),
        objective=objective,
        runner_up=runner_up,
        margin=margin,
        n_y=n_y,
        relation=relation,
        converged=converged,
    )
