"""The methods of ``benchmarks.unseen`` behind one face: (x, y, pairs, seed) -> Fitted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment
from scipy.sparse.csgraph import dijkstra
from scipy.spatial.distance import cdist
from sklearn.neighbors import kneighbors_graph

import unpaired
from benchmarks.mini_vec2vec import MiniVec2Vec, orthogonal, unit
from benchmarks.peers import _structure
from benchmarks.problems import Array
from unpaired.registry import methods

align = getattr(unpaired, "align", None) or import_module("unpaired.matching").align
SCOT_ROWS = 300


@dataclass
class Fitted:
    """What a method found."""

    scores: Callable[[Array, Array], Array]
    """Of rows of x against rows of y, larger = better; any rows, where the method has maps."""
    partner: np.ndarray | None = None
    """(n_x,) row of y for each row of x; None where the scores are all there is."""
    match: Any = None
    """What the method says of itself, a ``unpaired.Match``."""
    found_by: str = ""


def run_match(x, y, pairs, seed) -> Fitted:
    """The engine; ``unpaired.match`` returns the ``match`` of this alignment."""
    found = align(x, y, pairs, random_state=seed)
    return Fitted(found.score_matrix, found.match.partner, found.match, found.solution.kind)


def run_dmae(x, y, pairs, seed) -> Fitted:
    """The learner with its defaults."""
    model = unpaired.DMAE(random_state=seed).fit(x, y, pairs)
    return Fitted(model.score_matrix, model.match_.partner, model.match_)


def registered(name: str) -> Callable[..., Fitted]:
    """A baseline of the registry; one that learns from pairs alone infers no partners."""

    def run(x, y, pairs, seed) -> Fitted:
        model = methods[name](random_state=seed).fit(x, y, pairs)
        if name in RIVALS:
            return Fitted(model.score_matrix)
        return Fitted(model.score_matrix, model.match_.partner, model.match_)

    return run


def pot_gw(x, y, pairs, seed) -> Fitted:
    """POT's Gromov-Wasserstein from the uniform plan."""
    import ot

    return from_plan(ot.gromov.gromov_wasserstein(_structure(x), _structure(y)), y)


def scot(x, y, pairs, seed) -> Fitted:
    """SCOT's recipe and its defaults: steps in a k-NN graph of correlations, entropic GW.

    Where the entropy is too small to be computed, the next larger one is tried, as it advises.
    """
    import ot

    x, y = unit(x), unit(y)
    n_near = min(len(x) // 5, len(y) // 5, 50)
    steps = [_graph_steps(rows, n_near) for rows in (x, y)]
    for epsilon in (1e-3, 5e-3, 1e-2, 5e-2, 1e-1):
        plan = np.asarray(ot.gromov.entropic_gromov_wasserstein(*steps, epsilon=epsilon))
        if np.isfinite(plan).all() and plan.sum() > 0.95 and plan.sum(1).min() > 0:
            return from_plan(plan, y)
    raise ArithmeticError("no entropy up to 0.1 gave a plan")


def _graph_steps(rows, n_near):
    graph = kneighbors_graph(rows, n_near, metric="correlation", include_self=True)
    steps = dijkstra(graph, directed=False)
    largest = steps[np.isfinite(steps)].max()
    return np.minimum(steps, largest) / largest


def from_plan(plan, y) -> Fitted:
    """Rows of x put at the mean of their partners in y, as SCOT reads a plan."""
    placed = (plan @ y) / np.maximum(plan.sum(1, keepdims=True), 1e-300)
    scores = -cdist(placed, y)
    partner = np.full(len(plan), -1)
    rows, columns = linear_sum_assignment(-plan)
    partner[rows] = columns
    return Fitted(lambda *_: scores, partner)


def mini_vec2vec(x, y, pairs, seed) -> Fitted:
    """Clusters, anchors, relative rows and a smoothed rotation."""
    model = MiniVec2Vec(random_state=seed).fit(x, y)
    return Fitted(lambda x, y: model.embed_x(x) @ model.embed_y(y).T)


def rotation(x, y, pairs, seed) -> Fitted:
    """The rotation fitted on true pairs, centred rows of unit length: what there is to find."""
    mean_x, mean_y = x[pairs[:, 0]].mean(0), y[pairs[:, 1]].mean(0)
    weights = orthogonal(unit(x[pairs[:, 0]] - mean_x), unit(y[pairs[:, 1]] - mean_y))
    return Fitted(lambda x, y: unit(x - mean_x) @ weights @ unit(y - mean_y).T)


RIVALS = ("cca", "ridge", "procrustes", "infonce")
METHODS: dict[str, Callable[..., Fitted]] = {
    "match": run_match,
    "DMAE": run_dmae,
    "wasserstein-procrustes": registered("wasserstein-procrustes"),
    "POT GW": pot_gw,
    "SCOT": scot,
    "mini-vec2vec": mini_vec2vec,
    **{name: registered(name) for name in RIVALS},
}
WITHOUT_PAIRS = ("match", "wasserstein-procrustes", "POT GW", "SCOT", "mini-vec2vec")
WITH_PAIRS = ("match", "wasserstein-procrustes", *RIVALS)
TAKES_PAIRS = (*WITH_PAIRS, "DMAE")
