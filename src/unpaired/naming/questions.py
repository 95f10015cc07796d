"""Which groups to ask about: those whose names are least certain."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import entr

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]


@dataclass(frozen=True, eq=False)
class Question:
    """A group of rows whose class is worth asking for.

    Attributes:
        group: Number of the group, a key of ``names`` in ``fit``.
        size: Rows in it.
        entropy: How uncertain its name is, in nats: 0 = certain, log m = nothing is known.
        classes: Classes (m,), the likeliest first.
        probabilities: Probability (m,) of each, in that order, over all namings.
        rows: Examples to look at, the surest members first.
    """

    group: int
    size: int
    entropy: float
    classes: NDArray[np.generic]
    probabilities: Floats
    rows: Ints


def name_entropy(marginals: Floats) -> Floats:
    """Return the entropy (m,) of each group's name, in nats.

    >>> name_entropy(np.array([[1.0, 0.0], [0.5, 0.5]])).round(3)
    array([0.   , 0.693])
    """
    return np.asarray(entr(marginals).sum(axis=1))


def least_certain(
    marginals: Floats,
    groups: Ints,
    sureness: Floats,
    classes: NDArray[np.generic],
    *,
    k: int,
    n_examples: int,
    answered: Collection[int] = (),
) -> list[Question]:
    """Return the ``k`` groups of largest entropy that hold rows and were not answered yet.

    Args:
        marginals: Probability (m, m) of each class for each group.
        groups: Group (n,) of each row.
        sureness: How typical (n,) each row is of its group, larger = more.
        classes: What the classes (m,) are called.
        k: Questions at most.
        n_examples: Rows to show of each group.
        answered: Groups that need no question.
    """
    entropy = name_entropy(marginals)
    questions: list[Question] = []
    for group in np.argsort(-entropy, kind="stable"):
        rows = np.flatnonzero(groups == group)
        if len(questions) == k:
            break
        if int(group) in answered or not len(rows):
            continue
        likeliest = np.argsort(-marginals[group], kind="stable")
        surest = rows[np.argsort(-sureness[rows], kind="stable")]
        questions.append(
            Question(
                group=int(group),
                size=len(rows),
                entropy=float(entropy[group]),
                classes=classes[likeliest],
                probabilities=marginals[group, likeliest],
                rows=surest[:n_examples],
            )
        )
    return questions
