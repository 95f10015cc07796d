"""Naming rows with no labels, or few: clusters of features matched to vectors of the classes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

from unpaired.matching.clustering import (
    Clusters,
    cluster,
    follow_seeds,
    mean_by,
    membership,
    spherical_k_means,
)
from unpaired.matching.small_qap import Assignments, best_assignments
from unpaired.matching.smoothing import SmoothSpace, smooth_features

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]

UNKNOWN = -1
GEOMETRY_TEMPERATURE = 0.5
"""Standard deviations of the geometry's score that weigh as much as one unit of log-likelihood."""
LABEL_TRUST = 0.8
"""Share of labelled rows taken to lie in the cluster of their class."""
CLUSTER_WORTH = 5.0
"""Labels per class that the named clusters are worth when a classifier is fitted."""
INVERSE_PENALTY = 5.0
"""Inverse strength of the penalty of the classifier."""
UNEVEN_SIZES = 0.4
"""Variation of cluster sizes around the labels above which free clusters are not trusted."""
NEIGHBOURS = 5
"""Rows averaged in a round of smoothing; more of them blur small groups."""
_PSEUDO_ROWS = 2000


def centred_kernel(vectors: Floats) -> Floats:
    """Return the doubly centred linear kernel of the rows, scaled to Frobenius norm one.

    The diagonal stays: how far a class lies from the mean of all is part of the geometry.
    """
    rows = np.asarray(vectors, dtype=np.float64)
    rows = rows - rows.mean(axis=0)
    kernel = rows @ rows.T
    return kernel / max(float(np.linalg.norm(kernel)), 1e-300)


def kernel_mix(
    thing_views: Sequence[Floats], name_views: Sequence[Floats]
) -> list[tuple[Floats, Floats]]:
    """Return the pairs of kernels of every view of the things with every view of the names."""
    return [
        (centred_kernel(things), centred_kernel(names))
        for things in thing_views
        for names in name_views
    ]


@dataclass(frozen=True)
class Naming:
    """Names of rows, how sure they are, and what they were made from.

    Attributes:
        labels: Class (n,) of each row, an index into the class vectors.
        probabilities: Probability (n, m) of each class for each row.
        clusters: The clustering that was named; cluster c stands for class c.
        assignments: Scores and marginals of the assignment of classes to the free clusters.
        space: The smoothed space, which maps new rows.
        classifier: Weights (p + 1, m), the last row the intercepts, or None without labels.
    """

    labels: Ints
    probabilities: Floats
    clusters: Clusters
    assignments: Assignments
    space: SmoothSpace
    classifier: Floats | None = None

    def probabilities_of(self, features: Floats) -> Floats:
        """Return the probability (n, m) of each class for rows that need not have been seen."""
        smoothed = self.space.transform(features)
        if self.classifier is None:
            return membership(smoothed, self.clusters.centres)
        return apply_classifier(
            np.hstack([self.space.whiten(features)[0], smoothed]), self.classifier
        )

    @property
    def name_certainty(self) -> Floats:
        """Probability (m,) that each class was given to the right cluster.

        The marginal of the assignment: near 1 only where no other naming scores nearly as high.
        """
        names = self.assignments.best
        certainty = np.empty(len(names))
        certainty[names] = self.assignments.marginals[np.arange(len(names)), names]
        return certainty

    def predict_probabilities(self, features: Floats) -> Floats:
        """Return the probability (n, m) of each class for new rows."""
        return self.class_probabilities(
            self.space.whiten(features)[0], self.space.transform(features)
        )

    def class_probabilities(self, wide: Floats, smoothed: Floats) -> Floats:
        """Return the probability (n, m) of each class for rows already in the two spaces."""
        if self.classifier is None:
            return membership(smoothed, self.clusters.centres)
        return apply_classifier(np.hstack([wide, smoothed]), self.classifier)

    def predict(self, features: Floats) -> Ints:
        """Return the class (n,) of new rows."""
        return np.asarray(self.predict_probabilities(features).argmax(axis=1), dtype=np.int64)


def label_votes(smoothed: Floats, centres: Floats, labels: Ints) -> Floats:
    """Return the log-likelihood (m, m) of the known labels if cluster i had class j.

    A labelled row lies in the cluster of its class with probability ``LABEL_TRUST``.
    """
    size = len(centres)
    known = np.flatnonzero(labels >= 0)
    inside = membership(smoothed[known], centres, sharpness=20.0)
    votes = np.zeros((size, size))
    evidence = np.log(LABEL_TRUST * inside + (1.0 - LABEL_TRUST) / size)
    np.add.at(votes.T, labels[known], evidence)
    return votes


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


def fit_classifier(
    inputs: Floats, labels: Ints, guesses: Ints, size: int, rng: np.random.Generator
) -> Floats:
    """Return the weights (p + 1, m) of a logistic regression on labels and guesses of the rest.

    All guesses together weigh ``CLUSTER_WORTH`` labels per class, so they lead when labels are
    few and fade when labels are many.
    """
    known, rest = np.flatnonzero(labels >= 0), np.flatnonzero(labels < 0)
    if len(rest) > _PSEUDO_ROWS:
        rest = np.sort(rng.choice(rest, size=_PSEUDO_ROWS, replace=False))
    rows = np.concatenate([known, rest])
    target = np.concatenate([labels[known], guesses[rest]])
    weight = np.ones(len(rows))
    weight[len(known) :] = CLUSTER_WORTH * size / max(1, len(rest))
    weights = np.zeros((inputs.shape[1] + 1, size))
    present = np.unique(target)
    if len(present) < 2:
        weights[-1, present] = 50.0
        return weights
    model = LogisticRegression(C=INVERSE_PENALTY, max_iter=300)
    model.fit(inputs[rows].astype(np.float64), target, sample_weight=weight)
    coefficients, intercepts = model.coef_, model.intercept_
    if len(present) == 2:
        coefficients = np.vstack([-coefficients, coefficients]) / 2
        intercepts = np.concatenate([-intercepts, intercepts]) / 2
    weights[-1] = -1e3
    weights[:-1, present], weights[-1, present] = coefficients.T, intercepts
    return weights


def apply_classifier(inputs: Floats, weights: Floats) -> Floats:
    """Return the class probabilities (n, m) of a linear classifier with intercepts last."""
    return np.asarray(softmax(inputs @ weights[:-1] + weights[-1], axis=1))


def name_classes(
    features: Floats,
    class_vectors: Floats | Sequence[Floats],
    *,
    rng: np.random.Generator,
    labels: Ints | None = None,
    anchors: Callable[[Floats], Floats] | Floats | None = None,
    space: SmoothSpace | None = None,
    clusters: Clusters | None = None,
) -> Naming:
    """Return a class for each row from the geometry of the class vectors, with no or few labels.

    The rows are clustered in the smoothed space. The clusters take the classes whose vectors
    have the same mutual similarities, summed over three views of the clusters (features,
    half-whitened, smoothed) and all descriptions of the classes. Known labels and anchors enter
    as evidence; with labels a classifier is fitted on them and on the named clusters. When groups
    around the labels are of uneven size, the labels alone name the rows.

    Args:
        features: Rows (n, d).
        class_vectors: Class vectors (m, q), or several such matrices of the same classes.
        rng: The source of randomness; equal states give equal results.
        labels: Class of each row (n,), -1 where unknown.
        anchors: Log-likelihood (m, m) of class j for cluster i, or a function that returns it
            from the feature means (m, d) of the clusters, as ``pools.anchor_evidence`` makes.
        space: The smoothed space of these very features, when it is at hand.
        clusters: The clusters of that space, when they are at hand.
    """
    views = [class_vectors] if isinstance(class_vectors, np.ndarray) else list(class_vectors)
    size = len(views[0])
    rows = np.asarray(features, dtype=np.float32)
    if space is None:
        space = smooth_features(rows, n_neighbours=max(1, min(NEIGHBOURS, len(rows) // (2 * size))))
    smoothed = space.smoothed
    free = cluster(smoothed, size, rng) if clusters is None else clusters
    means = [mean_by(view, free.index, size) for view in (rows, space.whitened, smoothed)]
    evidence = np.zeros((size, size))
    if anchors is not None:
        evidence += anchors(means[0]) if callable(anchors) else np.asarray(anchors)
    known = None if labels is None or not np.any(np.asarray(labels) >= 0) else np.asarray(labels)
    if known is not None:
        evidence += label_votes(smoothed, free.centres, known)
    found = name_clusters(means, views, evidence, rng=rng)
    order = np.argsort(found.best)
    if known is None:
        named = Clusters(free.centres[order], found.best[free.index], free.fit)
        return Naming(named.index, membership(smoothed, named.centres), named, found, space)
    if sizes_are_uneven(smoothed, known, size):
        named = follow_seeds(smoothed, known, size)
    else:
        named = spherical_k_means(smoothed, free.centres[order], fixed=known)
    inputs = np.hstack([space.wide, smoothed])
    weights = fit_classifier(inputs, known, named.index, size, rng)
    probabilities = apply_classifier(inputs, weights)
    given = np.flatnonzero(known >= 0)
    probabilities[given] = np.eye(size)[known[given]]
    return Naming(probabilities.argmax(axis=1), probabilities, named, found, space, weights)
