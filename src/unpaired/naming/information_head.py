"""Classes that neighbours share: linear heads of maximal mutual information between neighbours."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from unpaired._log import track
from unpaired.naming.clustering import cluster
from unpaired.naming.smooth_space import SmoothSpace

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]

N_STARTS = 6
N_STEPS = 250
BATCH = 1024
LEARNING_RATE = 0.02
SCALE = 8.0
"""Length of the rows a head sees."""
SOFTNESS = 0.4
"""Factor on a trained head's logits; maximal information makes it surer than it is right."""
_TINY = 1e-9


@dataclass(frozen=True)
class Head:
    """A linear head and how it came about.

    Attributes:
        weights: Weights (p + 1, m) for half-whitened rows of unit length, intercepts last.
        information: Mutual information reached, in nats.
        trace: Class of each row (n,) at the start and after each round.
        informations: Mutual information after each round.
        starts: Mutual information that each start reached.
    """

    weights: Floats
    information: float
    trace: list[Ints]
    informations: list[float]
    starts: list[float]


def apply_head(inputs: Floats, weights: Floats) -> Floats:
    """Return the class probabilities (n, m) of a linear classifier with intercepts last."""
    logits = (inputs @ weights[:-1] + weights[-1]).astype(np.float64)
    return np.asarray(softmax(logits, axis=1))


def mutual_information(probabilities: Floats, neighbours: Ints) -> float:
    """Return the mutual information between the class of a row and that of its neighbour.

    >>> mutual_information(np.eye(2), np.array([[0], [1]])).__round__(3)
    0.693
    """
    near = sum(probabilities[column] for column in neighbours.T) / neighbours.shape[1]
    joint = probabilities.T @ near / len(probabilities)
    joint = (joint + joint.T) / 2
    return float((joint * _pointwise(joint)).sum())


def find_head(
    space: SmoothSpace, size: int, rng: np.random.Generator, *, n_rounds: int = 5
) -> Head:
    """Return the head, out of several k-means starts, whose classes neighbours share the most.

    Mutual information rises when neighbours get the same class, when rows are sure of their class
    and when classes are of like size; it needs no label, and tells good starts from bad ones.
    """
    rows = _with_ones(space.wide)
    starts = [
        cluster(space.smoothed, size, rng, n_init=2).index
        for _ in track(range(N_STARTS), "Grouping, first starts")
    ]
    heads = np.stack([_regress(rows, index, size) for index in starts])
    heads = train_heads(rows, space.neighbours, heads, rng)
    reached = [_information(rows, head, space.neighbours) for head in heads]
    best = int(np.argmax(reached))
    trace, informations = [starts[best]], []
    head = heads[best]
    for _ in track(range(n_rounds), "Grouping"):
        head = train_heads(
            rows, space.neighbours, head[None], rng, n_steps=N_STEPS // 5, learning_rate=0.01
        )[0]
        trace.append((rows @ head).argmax(axis=1))
        informations.append(_information(rows, head, space.neighbours))
    final = informations[-1] if informations else reached[best]
    weights = SOFTNESS * np.vstack([SCALE * head[:-1], head[-1:]])
    return Head(weights, final, trace, informations, reached)


def share_groups(
    space: SmoothSpace, index: Ints, size: int, rng: np.random.Generator, *, n_steps: int = 60
) -> Ints:
    """Return the groups (n,) after some steps towards groups that neighbours share.

    Few steps: the information prefers groups of like size, which these need not be.
    """
    rows = _with_ones(space.wide)
    start = _regress(rows, index, size)[None]
    head = train_heads(rows, space.neighbours, start, rng, n_steps=n_steps)[0]
    return np.asarray((rows @ head).argmax(axis=1))


def train_heads(
    rows: Floats,
    neighbours: Ints,
    heads: Floats,
    rng: np.random.Generator,
    *,
    n_steps: int = N_STEPS,
    learning_rate: float = LEARNING_RATE,
) -> Floats:
    """Return heads (h, p, m) after Adam steps up the mutual information, each on a random batch.

    The gradient with respect to a row's probabilities is the pointwise mutual information of each
    class with its neighbour's; all heads see the same batches.
    """
    heads = np.array(heads, dtype=np.float32)
    n_heads, width, size = heads.shape
    first, second = np.zeros_like(heads), np.zeros_like(heads)
    batch = min(BATCH, len(rows))
    for step in track(range(n_steps), "Training heads"):
        chosen = rng.integers(len(rows), size=batch)
        near = neighbours[chosen, rng.integers(neighbours.shape[1], size=batch)]
        gradient = np.zeros_like(heads)
        flat = heads.transpose(1, 0, 2).reshape(width, n_heads * size)
        inputs = (rows[chosen], rows[near])
        own, other = (
            softmax((x @ flat).reshape(batch, n_heads, size), axis=2).transpose(1, 0, 2)
            for x in inputs
        )
        joint = own.transpose(0, 2, 1) @ other / batch
        value = _pointwise((joint + joint.transpose(0, 2, 1)) / 2)
        for x, mine, yours in ((inputs[0], own, other), (inputs[1], other, own)):
            pull = yours @ value
            pull = mine * (pull - (mine * pull).sum(axis=2, keepdims=True))
            gradient += x.T @ pull / (2 * batch)
        first = 0.9 * first + 0.1 * gradient
        second = 0.999 * second + 0.001 * gradient**2
        rate = learning_rate * 0.5 * (1.0 + np.cos(np.pi * step / n_steps))
        mean, scale = first / (1 - 0.9 ** (step + 1)), second / (1 - 0.999 ** (step + 1))
        heads = (heads + rate * mean / (np.sqrt(scale) + 1e-8)).astype(np.float32)
    return heads


def _pointwise(joint: Floats) -> Floats:
    """Return log(joint / product of its margins) over the last two axes of a symmetric table."""
    margin = np.log(np.maximum(joint.sum(axis=-1), _TINY))
    return np.log(np.maximum(joint, _TINY)) - margin[..., :, None] - margin[..., None, :]


def _with_ones(wide: Floats) -> Floats:
    ones = np.ones((len(wide), 1))
    return np.hstack([SCALE * wide, ones]).astype(np.float32)


def _information(rows: Floats, head: Floats, neighbours: Ints) -> float:
    return mutual_information(softmax(rows @ head, axis=1), neighbours)


def _regress(rows: Floats, index: Ints, size: int) -> Floats:
    """Return the head (p, m) of a ridge regression on the clusters, scaled to be fairly sure."""
    target = np.eye(size)[index] - 1.0 / size
    gram = rows.T.astype(np.float64) @ rows + 0.01 * len(rows) * np.eye(rows.shape[1])
    return np.asarray(5.0 * np.linalg.solve(gram, rows.T @ target), dtype=np.float32)
