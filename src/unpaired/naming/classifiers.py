"""Classifiers of rows, some of whose labels are known and the others guessed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

from unpaired.naming.information_head import apply_head
from unpaired.naming.smooth_space import unit_rows

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]

CLASSIFIERS = ("kernel", "logistic", "svm")
CLUSTER_WORTH = 5.0
"""Labels per class that the named groups are worth when a classifier is fitted."""
INVERSE_PENALTY = 5.0
"""Inverse strength of the penalty of the linear classifiers."""
WIDTH = 1.2
"""Exponent of the kernel for rows at right angles; insensitive from 1 to 2.5."""
RIDGE = 0.1
"""Penalty of the kernel classifier."""
SHARPNESS = 10.0
"""Factor from the kernel classifier's values, one for the class, to logits."""
N_LANDMARKS = 2500
"""Rows at which the kernel is known, at most; up to so many rows the fit is exact."""
_GUESSED_ROWS = 2000
_BLOCK = 4096


@dataclass(frozen=True)
class KernelSpace:
    """Gaussian kernel between rows and landmarks, on the sphere around the mean row.

    Attributes:
        mean: Column means (d,).
        landmarks: Rows (k, d) of unit length around the mean.
        rooted: 1 when rows enter by their square roots, as activations that are never negative do.
    """

    mean: Floats
    landmarks: Floats
    rooted: int

    def place(self, features: Floats) -> Floats:
        """Return rows on the unit sphere around the mean."""
        rows = np.asarray(features, dtype=np.float32)
        rows = np.sqrt(np.maximum(rows, 0.0)) if self.rooted else rows
        return unit_rows(rows - self.mean)

    def transform(self, features: Floats) -> Floats:
        """Return the kernel (n, k) between rows and landmarks."""
        return np.asarray(np.exp(WIDTH * (self.place(features) @ self.landmarks.T - 1.0)))


def kernel_probabilities(space: KernelSpace, weights: Floats, features: Floats) -> Floats:
    """Return the class probabilities (n, m) of rows by a kernel classifier, in blocks."""
    found = np.empty((len(features), weights.shape[1]))
    for start in range(0, len(features), _BLOCK):
        part = slice(start, start + _BLOCK)
        found[part] = apply_head(space.transform(features[part]), weights)
    return found


def kernel_space(features: Floats, landmarks: Ints) -> KernelSpace:
    """Return the kernel space of rows (n, d) with some of them, by their indices, as landmarks."""
    rows = np.asarray(features, dtype=np.float32)
    rooted = int(rows.min(initial=0.0) >= 0.0)
    mean = (np.sqrt(rows) if rooted else rows).mean(axis=0, dtype=np.float64)
    empty = KernelSpace(mean.astype(np.float32), rows[:0], rooted)
    return KernelSpace(empty.mean, empty.place(rows[landmarks]), rooted)


def rows_to_fit(
    labels: Ints, guesses: Ints, size: int, rng: np.random.Generator
) -> tuple[Ints, Ints, Floats]:
    """Return indices, classes and weights of the rows a classifier is fitted on.

    All guesses of a class together weigh ``CLUSTER_WORTH`` labels, so they lead when labels are few
    and fade when labels are many, and a large class does not take rows of a small one. No guess
    weighs more than a label.
    """
    known, rest = np.flatnonzero(labels >= 0), np.flatnonzero(labels < 0)
    if len(rest) > _GUESSED_ROWS and len(known):
        rest = np.sort(rng.choice(rest, size=_GUESSED_ROWS, replace=False))
    rows = np.concatenate([known, rest])
    target = np.concatenate([labels[known], guesses[rest]])
    weight = np.ones(len(rows))
    if len(known):
        count = np.bincount(guesses[rest], minlength=size)
        weight[len(known) :] = np.minimum(1.0, CLUSTER_WORTH / np.maximum(count, 1))[guesses[rest]]
    return rows, target, weight


def fit_kernel(
    features: Floats, labels: Ints, guesses: Ints, size: int, rng: np.random.Generator
) -> tuple[KernelSpace, Floats]:
    """Return a kernel space and the weights (k + 1, m) of a weighted kernel ridge regression.

    Args:
        features: Rows (n, d).
        labels: Class of each row (n,), -1 where unknown.
        guesses: Class (n,) to go by where the label is unknown.
        size: Number of classes m.
        rng: Draws the guessed rows and the landmarks.
    """
    rows, target, weight = rows_to_fit(labels, guesses, size, rng)
    chosen = rows
    if len(rows) > N_LANDMARKS:
        chosen = rng.choice(rows, size=N_LANDMARKS, replace=False, p=weight / weight.sum())
    space = kernel_space(features, np.sort(chosen))
    marks = space.landmarks.astype(np.float64)
    gram, aim = RIDGE * np.exp(WIDTH * (marks @ marks.T - 1.0)), np.zeros((len(marks), size))
    for start in range(0, len(rows), _BLOCK):
        part = slice(start, start + _BLOCK)
        root = np.sqrt(weight[part])[:, None]
        near = space.transform(features[rows[part]]) * root
        gram += near.T @ near
        aim += near.T @ (root * (np.eye(size)[target[part]] - 1.0 / size))
    gram[np.diag_indices_from(gram)] += 1e-9 * float(np.trace(gram))
    values = cho_solve(cho_factor(gram, overwrite_a=True), aim)
    weights = np.vstack([SHARPNESS * values, np.zeros(size)]).astype(np.float32)
    weights[-1, np.setdiff1d(np.arange(size), target)] = -1e3
    return space, weights


def fit_linear(
    inputs: Floats,
    labels: Ints,
    guesses: Ints,
    size: int,
    rng: np.random.Generator,
    kind: str = "logistic",
) -> Floats:
    """Return the weights (p + 1, m) of a linear classifier of labels and guesses of the rest."""
    rows, target, weight = rows_to_fit(labels, guesses, size, rng)
    weights = np.zeros((inputs.shape[1] + 1, size))
    present = np.unique(target)
    if len(present) < 2:
        weights[-1, present] = 50.0
        return weights
    if kind == "svm":
        model = LinearSVC(C=INVERSE_PENALTY / 5, random_state=0)
    else:
        model = LogisticRegression(C=INVERSE_PENALTY, max_iter=300, tol=1e-3)
    model.fit(inputs[rows].astype(np.float64), target, sample_weight=weight)
    coefficients, intercepts = model.coef_, model.intercept_
    if len(present) == 2:
        coefficients = np.vstack([-coefficients, coefficients]) / 2
        intercepts = np.concatenate([-intercepts, intercepts]) / 2
    weights[-1] = -1e3
    weights[:-1, present], weights[-1, present] = coefficients.T, intercepts
    return weights
