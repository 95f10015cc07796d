"""What speaks for the names of groups, without a label or by labels held out.

Each measure has its like in one-to-one matching: kernels that name alone for starts, turned class
vectors for random maps, labels for known pairs.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from unpaired.naming.names import (
    GEOMETRY_TEMPERATURE,
    Naming,
    group_means,
    kernel_mix,
    name_classes,
)
from unpaired.solvers.exhaustive_qap import best_assignments
from unpaired.spaces.readout import relative_ranks
from unpaired.spaces.solution import Evidence, HeldPair
from unpaired.trust.verdict import LEAST_HELD

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]

N_TURNED = 5
"""Class vectors whose relation to the groups is destroyed, to compare with."""
N_SEARCHED = 40
"""Starts of a search above ten classes, for each comparison."""
N_FOLDS = 3
"""Parts in which labels are held out,"""
MOST_IN_TURN = 300
"""up to so many labels; of more, one part alone is."""
MOST_HELD = 500
"""Labels in a part, at most."""


def naming_evidence(
    features: Floats,
    class_views: Sequence[Floats],
    named: Naming,
    rng: np.random.Generator,
    *,
    labels: Ints | None = None,
    classifier: str = "kernel",
) -> Evidence:
    """What speaks for the names that rows were given.

    With LEAST_HELD labels or more these are held out. With fewer the geometry has to vouch: do its
    kernels agree, and is the naming better than that of turned class vectors?

    Args:
        features: The rows (n, d) that were named.
        class_views: Vectors (m, q) of the classes by several descriptions.
        named: Their naming.
        rng: The source of randomness.
        labels: Class of each row (n,), -1 where unknown.
        classifier: As the naming had it.
    """
    rows = np.asarray(features, dtype=np.float32)
    reached = {"groups": named.assignments.score}
    if labels is not None and int((labels >= 0).sum()) >= LEAST_HELD:
        held = held_out_labels(rows, class_views, named, labels, rng, classifier)
        return Evidence(reached, held_out=tuple(held))
    size = len(class_views[0])
    means = group_means(rows, named.space, named.groups, size)
    return Evidence(
        reached,
        agreement=agreement_of_kernels(means, class_views, named.groups, rng),
        gap=gap_above_turned(means, class_views, rng),
    )


def agreement_of_kernels(
    means: Sequence[Floats], class_views: Sequence[Floats], groups: Ints, rng: np.random.Generator
) -> float:
    """The share of rows to which one kernel of one description gives the name that all give."""
    kernels = kernel_mix(means, class_views)
    size = len(means[0])
    share = np.bincount(groups, minlength=size) / len(groups)
    together = _best(kernels, rng)[0]
    alone = [_best([pair], rng)[0] for pair in kernels]
    return float(np.mean([(share * (names == together)).sum() for names in alone]))


def gap_above_turned(
    means: Sequence[Floats], class_views: Sequence[Floats], rng: np.random.Generator
) -> float:
    """How far the best naming scores above that of turned class vectors, as a share of the rest.

    Turned vectors have the same spread in every direction, and nothing to do with the groups.
    """
    kernels = kernel_mix(means, class_views)
    size = len(means[0])
    centred = [np.asarray(view, dtype=np.float64) for view in class_views]
    centred = [view - view.mean(axis=0) for view in centred]
    turned = []
    for _ in range(N_TURNED):
        turns = [np.linalg.qr(rng.standard_normal((size, size)))[0] for _ in centred]
        views = [turn @ view for turn, view in zip(turns, centred, strict=True)]
        turned.append(_best(kernel_mix(means, views), rng)[1])
    usual = float(np.mean(turned)) / len(kernels)
    score = _best(kernels, rng)[1] / len(kernels)
    return (score - usual) / max(1.0 - usual, 1e-9)


def held_out_labels(
    rows: Floats,
    class_views: Sequence[Floats],
    named: Naming,
    labels: Ints,
    rng: np.random.Generator,
    classifier: str,
) -> list[HeldPair]:
    """How labelled rows fare under names made without their labels; groups know no labels."""
    known = rng.permutation(np.flatnonzero(labels >= 0))
    parts = np.array_split(known, min(N_FOLDS, len(known)))
    parts = parts if len(known) <= MOST_IN_TURN else [parts[0][:MOST_HELD]]
    found = []
    for part in parts:
        rest = labels.copy()
        rest[part] = -1
        fit = name_classes(
            rows,
            class_views,
            rng=rng,
            labels=rest,
            classifier=classifier,
            grouping=(named.space, named.head),
        )
        own = fit.probabilities[part]
        ranks = relative_ranks(np.log(np.maximum(own, 1e-12)), labels[part])
        best, share = own.argmax(axis=1), own.max(axis=1)
        found += [
            HeldPair(float(rank), float(claimed), bool(right))
            for rank, claimed, right in zip(ranks, share, best == labels[part], strict=True)
        ]
    return found


def _best(kernels: Sequence[tuple[Floats, Floats]], rng: np.random.Generator) -> tuple[Ints, float]:
    """The best naming by some kernels, and its score."""
    found = best_assignments(
        kernels, temperature=GEOMETRY_TEMPERATURE, rng=rng, n_starts=N_SEARCHED
    )
    return found.best, found.score
