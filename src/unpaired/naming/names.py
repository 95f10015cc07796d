"""Naming rows with no labels, or few: clusters of features matched to vectors of the classes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unpaired.naming.classifiers import (
    KernelSpace,
    fit_kernel,
    fit_linear,
    kernel_probabilities,
)
from unpaired.naming.clustering import follow_seeds, mean_by, spherical_k_means
from unpaired.naming.information_head import Head, apply_head, find_head, share_groups
from unpaired.naming.smooth_space import SmoothSpace, smooth_features
from unpaired.solvers.exhaustive_qap import Assignments, best_assignments

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]

UNKNOWN = -1
GEOMETRY_TEMPERATURE = 0.5
"""Standard deviations of the geometry's score that weigh as much as one unit of log-likelihood."""
LABEL_TRUST = 0.9
"""Share of labelled rows taken to lie in the group of their class."""
LABEL_WEIGHT = 0.5
"""Weight of the labels' log-likelihood beside the geometry: labels may be untypical of a class."""
UNEVEN_SIZES = 0.4
"""Variation of group sizes around the labels above which free groups are not trusted."""
ANSWER_WEIGHT = 1e3
"""Log-likelihood that an answer takes from a group's other names: more than any geometry gives."""
NEIGHBOURS = (5, 20)
"""Fewest and most rows taken to be neighbours of a row, itself among them."""
NEIGHBOUR_SHARE = 200
"""One row in so many is a neighbour, between the two."""


def centred_kernel(vectors: Floats) -> Floats:
    """Return the doubly centred linear kernel of the rows, scaled to Frobenius norm one.

    The diagonal stays: how far a class lies from the mean of all is part of the geometry.
    """
    rows = np.asarray(vectors, dtype=np.float64)
    rows = rows - rows.mean(axis=0)
    kernel = rows @ rows.T
    return kernel / max(float(np.linalg.norm(kernel)), 1e-300)


def off_diagonal_kernel(vectors: Floats) -> Floats:
    """Return the linear kernel centred without its diagonal (U-centred), Frobenius norm one."""
    kernel = centred_kernel(vectors)
    size = len(kernel)
    if size < 3:
        return kernel
    np.fill_diagonal(kernel, 0.0)
    sums = kernel.sum(axis=1)
    kernel = kernel - (sums[:, None] + sums[None, :]) / (size - 2)
    kernel += sums.sum() / ((size - 1) * (size - 2))
    np.fill_diagonal(kernel, 0.0)
    return kernel / max(float(np.linalg.norm(kernel)), 1e-300)


def kernel_mix(
    thing_views: Sequence[Floats], name_views: Sequence[Floats]
) -> list[tuple[Floats, Floats]]:
    """Return the pairs of kernels of every view of the things with every view of the names.

    Each pair of views counts twice, with and without the diagonal: neither is right everywhere.
    """
    return [
        (kernel(things), kernel(names))
        for kernel in (centred_kernel, off_diagonal_kernel)
        for things in thing_views
        for names in name_views
    ]


@dataclass(frozen=True)
class Naming:
    """Names of rows, how sure they are, and what they were made from.

    Attributes:
        labels: Class (n,) of each row, an index into the class vectors.
        groups: Group (n,) of each row; class ``assignments.best[g]`` was given to group g.
        probabilities: Probability (n, m) of each class for each row.
        assignments: Scores and marginals of the assignment of classes to the free groups.
        space: The smoothed space, which maps new rows.
        kernel: What the classifier sees when it is one of kernels, else None.
        classifier: Weights (p + 1, m) of the classifier, the last row the intercepts.
        head: The grouping that was named.
        trace: Labels (n,) of the start and of each round of the grouping, under the names found.
        notes: Sentences on what was used and what was not.
    """

    labels: Ints
    groups: Ints
    probabilities: Floats
    assignments: Assignments
    space: SmoothSpace
    kernel: KernelSpace | None
    classifier: Floats
    head: Head
    trace: list[Ints]
    notes: list[str]

    def predict_probabilities(self, features: Floats) -> Floats:
        """Return the probability (n, m) of each class for new rows."""
        if self.kernel is not None:
            return kernel_probabilities(self.kernel, self.classifier, features)
        return apply_head(self.space.with_surroundings(features), self.classifier)

    def predict(self, features: Floats) -> Ints:
        """Return the class (n,) of new rows."""
        return np.asarray(self.predict_probabilities(features).argmax(axis=1), dtype=np.int64)


def label_votes(probabilities: Floats, labels: Ints) -> Floats:
    """Return the log-likelihood (m, m) of the known labels if group i had class j.

    A labelled row lies in the group of its class with probability ``LABEL_TRUST``.
    """
    size = probabilities.shape[1]
    known = np.flatnonzero(labels >= 0)
    votes = np.zeros((size, size))
    evidence = np.log(LABEL_TRUST * probabilities[known] + (1.0 - LABEL_TRUST) / size)
    np.add.at(votes.T, labels[known], evidence)
    return votes


def answer_evidence(answers: Mapping[int, int], size: int) -> Floats:
    """Return the log-likelihood (m, m) of class j for group i, where some groups' are told."""
    evidence = np.zeros((size, size))
    for group, told in answers.items():
        evidence[group] = -ANSWER_WEIGHT
        evidence[group, told] = 0.0
    return evidence


def name_clusters(
    cluster_views: Sequence[Floats],
    class_views: Sequence[Floats],
    evidence: Floats | None = None,
    *,
    rng: np.random.Generator | None = None,
) -> Assignments:
    """Return the assignment of classes to clusters by geometry and log-likelihood evidence.

    Args:
        cluster_views: Means (m, p) of the clusters in several spaces.
        class_views: Vectors (m, q) of the classes by several descriptions.
        evidence: Log-likelihood (m, m) of class j for cluster i from any other source.
        rng: Randomness of the search when there are more than ten classes.
    """
    kernels = kernel_mix(cluster_views, class_views)
    found = best_assignments(kernels, temperature=GEOMETRY_TEMPERATURE, rng=rng)
    if evidence is None or not np.any(evidence):
        return found
    weight = GEOMETRY_TEMPERATURE * found.spread if found.spread > 0 else 1.0
    return best_assignments(
        kernels, evidence * weight, temperature=GEOMETRY_TEMPERATURE, spread=found.spread, rng=rng
    )


def sizes_are_uneven(smoothed: Floats, labels: Ints, size: int) -> bool:
    """Return whether k-means started at the labelled rows finds groups of uneven size."""
    counted = np.bincount(labels[labels >= 0], minlength=size)
    if size < 2 or counted.min() == 0:
        return False
    seeded = spherical_k_means(smoothed, mean_by(smoothed, labels, size), fixed=labels)
    sizes = np.bincount(seeded.index, minlength=size)
    return bool(sizes.std() / sizes.mean() > UNEVEN_SIZES)


def group_rows(
    features: Floats, size: int, rng: np.random.Generator, n_rounds: int = 5
) -> tuple[SmoothSpace, Head]:
    """Return the smoothed space of the rows and the head that groups them, names unknown."""
    k = int(np.clip(len(features) // NEIGHBOUR_SHARE, *NEIGHBOURS))
    k = max(1, min(k, len(features) // (2 * size)))
    space = smooth_features(features, n_neighbours=k)
    return space, find_head(space, size, rng, n_rounds=n_rounds)


def group_means(rows: Floats, space: SmoothSpace, group: Ints, size: int) -> list[Floats]:
    """Return the means (size, p) of groups in two views: as they are, and half-whitened."""
    return [mean_by(view, group, size) for view in (rows, space.whitened)]


def name_classes(
    features: Floats,
    class_vectors: Floats | Sequence[Floats],
    *,
    rng: np.random.Generator,
    labels: Ints | None = None,
    answers: Mapping[int, int] | None = None,
    classifier: str = "kernel",
    n_rounds: int = 5,
    grouping: tuple[SmoothSpace, Head] | None = None,
) -> Naming:
    """Classes of the rows by the geometry of the class vectors, with no or few labels: a Naming.

    The rows are grouped so that neighbours share a group. The groups take the classes whose
    vectors have the same mutual similarities, summed over two views of the groups (features,
    half-whitened) and all descriptions of the classes. Known labels enter as evidence; with labels
    a classifier is fitted on them and on the named groups. When groups around the labels are of
    uneven size, the labels alone name the rows.

    Args:
        features: Rows (n, d).
        class_vectors: Class vectors (m, q), or several such matrices of the same classes.
        rng: The source of randomness; equal states give equal results.
        labels: Class of each row (n,), -1 where unknown.
        answers: Group -> class, for groups that somebody looked at.
        classifier: "kernel", "logistic" or "svm"; without labels the first two leave the groups.
        n_rounds: Rounds in which the best grouping is improved and recorded.
        grouping: What ``group_rows`` returned for these very features, when it is at hand.
    """
    views = [class_vectors] if isinstance(class_vectors, np.ndarray) else list(class_vectors)
    size = len(views[0])
    rows = np.asarray(features, dtype=np.float32)
    space, head = group_rows(rows, size, rng, n_rounds) if grouping is None else grouping
    probabilities = apply_head(space.wide, head.weights)
    group = probabilities.argmax(axis=1)
    known = np.full(len(rows), UNKNOWN) if labels is None else np.asarray(labels)
    labelled = np.flatnonzero(known >= 0)
    evidence = LABEL_WEIGHT * label_votes(probabilities, known)
    evidence += answer_evidence(answers or {}, size)
    found = name_clusters(group_means(rows, space, group, size), views, evidence, rng=rng)
    notes = []
    probabilities = probabilities[:, np.argsort(found.best)]
    trace = [found.best[index] for index in head.trace]
    guesses = found.best[group]
    if len(labelled) and sizes_are_uneven(space.smoothed, known, size):
        guesses = follow_seeds(space.smoothed, known, size).index
        guesses = share_groups(space, guesses, size, rng)
        notes.append("Groups around the labels are of uneven size: the labels alone name the rows.")
    kernel = None
    if len(labelled) and classifier == "kernel":
        kernel, weights = fit_kernel(rows, known, guesses, size, rng)
        probabilities = kernel_probabilities(kernel, weights, rows)
    elif len(labelled) or classifier == "svm":
        inputs = space.with_surroundings()
        weights = fit_linear(inputs, known, guesses, size, rng, classifier)
        probabilities = apply_head(inputs, weights)
    else:
        own = head.weights[:, np.argsort(found.best)]
        weights = np.vstack([own[:-1], np.zeros_like(own[:-1]), own[-1:]])
    probabilities[labelled] = np.eye(size)[known[labelled]]
    names = probabilities.argmax(axis=1)
    return Naming(names, group, probabilities, found, space, kernel, weights, head, trace, notes)
