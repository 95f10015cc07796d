"""Sharp matching: two sets of rows in which each has one evident partner, up to a smooth map.

Rotations, linear maps and smooth warps of the same rows, with noise, at any size: no n x n array is
made anywhere and time is close to linear in n. Where no start stands out against wrong rotations,
the answer is not trusted, and says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from unpaired.matching.assignment import assign_sparse, complete
from unpaired.matching.neighbors import Float32, Index, search_cells
from unpaired.matching.partial import fit_chooser
from unpaired.matching.sharp_refine import (
    Fitted,
    Pairing,
    draw_landmarks,
    fit_map,
    pair_spaces,
    refine_rotation,
    rotation_map,
)
from unpaired.matching.sharp_starts import axis_start, profile_start, rotation_between, soft_refine
from unpaired.matching.spaces import (
    Float,
    nystrom_space,
    principal_space,
    square_distances,
    weighted_rotation,
)
from unpaired.matching.weighing import Weights, repeated
from unpaired.types import FloatArray, IntArray

MIN_ROWS = 50
"""Fewer rows cannot tell a sharp answer from an accident."""
CLEAR = 0.3
"""A start is taken at once when its mean contrast (nearest against runner-up) exceeds this."""
STAND_OUT = 4.0
"""Otherwise it must exceed by this factor what a random rotation and other starts reach."""
HOPELESS = 2.0
"""A later start is given up when it stays below this many times a random rotation's contrast."""
RANK = 64
N_QUERIES = 2000
N_CANDIDATES = 6
N_PROBES = 6


@dataclass(frozen=True, eq=False)
class SharpMatch:
    """A matching, how probable each pair is, and how it was found."""

    partner: IntArray
    """(n_x,), -1 for rows left out."""
    confidence: FloatArray
    """(n_x,) posterior of each match; 0 everywhere when the answer is not trusted."""
    runner_up: IntArray
    margin: FloatArray
    """Distance to the nearest other row minus the distance to the partner."""
    embed_x: Callable[[FloatArray], FloatArray]
    embed_y: Callable[[FloatArray], FloatArray]
    """Maps of raw rows into one space in which partners are near each other."""
    tried: dict[str, float]
    """Contrast that each start reached."""
    null_contrast: float | None
    """Contrast that a refined random rotation reached; None when the first start was clear."""
    stranger_share: float
    """Estimated share of rows of x that have no partner."""
    trusted: bool


@dataclass(frozen=True, eq=False)
class SharpSearch:
    """The best start after refinement, what every start reached, and whether it can be trusted."""

    pairing: Pairing
    fitted: Fitted
    tried: dict[str, float]
    null_contrast: float | None
    trusted: bool


@dataclass(frozen=True, eq=False)
class Guess:
    """Rows of x and of y that may belong together, to start from: never more than tried."""

    name: str
    left: FloatArray
    """(k, d_x) raw rows of x, or means of such rows."""
    right: FloatArray
    """(k, d_y) their partners, likewise."""
    weight: FloatArray


def match_sharp(
    x: FloatArray,
    y: FloatArray,
    rng: np.random.Generator,
    *,
    known: IntArray | None = None,
    forbidden: IntArray | None = None,
    leave_out: bool = False,
) -> SharpMatch:
    """Partner in y of every row of x when partners are evident, with no or some pairs known.

    Both sides are reduced to principal (or Nystrom kernel) scores; a start gives a rotation between
    the score spaces; alternating nearest rows and least squares refines it on growing samples, the
    map becoming linear or kernel-linear where held-out rows say so; nearest candidates and a sparse
    assignment give the one-to-one answer. Memory O(n rank).

    Args:
        x: (n_x, d_x), at least 50 rows.
        y: (n_y, d_y), at least 50 rows.
        rng: Source of all randomness; the same state gives the same answer.
        known: (k, 2) pairs that are kept; four or more also give a start.
        forbidden: (k, 2) pairs that must not be made.
        leave_out: Leave rows out (-1) whose match is more probably a stranger than a partner; all
            of them when the answer is not trusted.
    """
    found = search_sharp(x, y, rng, known=known)
    return read_sharp(found, known=known, forbidden=forbidden, leave_out=leave_out)


def search_sharp(
    x: FloatArray,
    y: FloatArray,
    rng: np.random.Generator,
    *,
    known: IntArray | None = None,
    guesses: Sequence[Guess] = (),
    weights: Weights = (None, None),
) -> SharpSearch:
    """The map between the sides that makes partners most evident, from the first start that does.

    After the first failure every later start is tried on a quarter of the queries first, and given
    up when it stays near what a random rotation reaches on them.
    """
    query = rng.permutation(len(x))
    few, many = np.sort(query[:N_QUERIES]), query[: 4 * N_QUERIES]
    fewest = few[::4] if len(few) >= 4 * MIN_ROWS else few
    tried: dict[str, float] = {}
    best: tuple[Pairing, Fitted] | None = None
    null: float | None = None
    floors: dict[int, float] = {}
    trusted = False
    for name, pairing, guess in _starts(x, y, rng, known, guesses, weights):
        hopeless = False
        if null is not None and len(fewest) < len(few):
            if id(pairing) not in floors:
                floors[id(pairing)] = _floor(pairing, fewest)
            rotation, contrast = refine_rotation(pairing, guess, fewest, n_rounds=10)
            hopeless = contrast < HOPELESS * floors[id(pairing)]
        if not hopeless:
            rotation, contrast = refine_rotation(pairing, guess, few)
        if contrast <= CLEAR and null is None:
            null = _null_contrast(pairing, few, rng)
        landmarks = draw_landmarks(pairing, rng)
        if hopeless and null is not None:  # fewer queries read higher: told in units of all
            contrast *= null / max(floors[id(pairing)], 1e-12)
            fitted = rotation_map(rotation, contrast)
        elif contrast > CLEAR or null is None:
            fitted = fit_map(pairing, rotation, few, landmarks, min_gain=0.01)
        else:
            promising = contrast > 1.2 * null  # of what wrong rotations reach
            rows = many if promising else few
            fitted = fit_map(pairing, rotation, rows, landmarks, min_gain=0.002)
        if best is None or fitted.contrast > best[1].contrast:
            best = (pairing, fitted)
        trusted = not hopeless and _stands_out(fitted.contrast, null, list(tried.values()))
        tried[name] = fitted.contrast
        if trusted:
            break
    assert best is not None  # there is always a first start
    return SharpSearch(*best, tried, null, trusted)


def read_sharp(
    found: SharpSearch,
    *,
    known: IntArray | None = None,
    forbidden: IntArray | None = None,
    leave_out: bool = False,
) -> SharpMatch:
    """Partners, confidence and maps of a search; arguments as for ``match_sharp``."""
    pairing, fitted, trusted = found.pairing, found.fitted, found.trusted
    n_x, n_y = len(pairing.x), len(pairing.y)
    moved = fitted.apply(pairing.x)
    near, square = search_cells(
        pairing.cells, moved, max(3, min(N_CANDIDATES, n_y)), n_probes=N_PROBES
    )
    distance = np.sqrt(np.where(near < 0, np.inf, square).astype(np.float64))
    # Sure rows first: a row bids only as far as its match stays more probable than a stranger.
    chooser = fit_chooser(distance)
    second = np.where(np.isfinite(distance[:, 1]), distance[:, 1], 0.0)
    partner = assign_sparse(
        near,
        np.where(near < 0, 0.0, np.square(distance)),
        n_y,
        known=known,
        forbidden=forbidden,
        skip_cost=np.square(chooser.limit(second)),
    )
    if leave_out and not trusted:
        partner = np.full(n_x, -1, dtype=np.int64)
    elif not leave_out:
        partner = _complete(partner, moved, pairing.y, forbidden)
    runner_up, matched, other = _compare(partner, near, distance, moved, pairing.y)
    rows = np.flatnonzero(np.isfinite(matched) & np.isfinite(other))
    confidence = np.zeros(n_x)
    confidence[rows] = trusted * chooser.probability(matched[rows], other[rows])
    return SharpMatch(
        partner=partner,
        confidence=confidence,
        runner_up=runner_up,
        margin=np.where(partner >= 0, other - matched, np.nan),
        embed_x=lambda rows: fitted.apply(pairing.transform_x(rows)),
        embed_y=lambda rows: pairing.transform_y(rows),
        tried=found.tried,
        null_contrast=found.null_contrast,
        stranger_share=chooser.stranger_share,
        trusted=trusted,
    )


def _starts(
    x: FloatArray,
    y: FloatArray,
    rng: np.random.Generator,
    known: IntArray | None,
    guesses: Sequence[Guess],
    weights: Weights,
) -> Iterator[tuple[str, Pairing, Float]]:
    """Named rotations to refine, cheapest first; later ones are computed only when asked for."""
    weight_x, weight_y = weights
    linear = pair_spaces(
        principal_space(x, RANK, weight=weight_x),
        principal_space(y, RANK, weight=weight_y),
        rng,
        weight_x,
        weight_y,
    )
    if known is not None and len(known) >= 4:
        pairs = (linear.x[known[:, 0]], linear.y[known[:, 1]], np.ones(len(known)))
        yield "known pairs", linear, weighted_rotation(*pairs)
    for guess in guesses:
        points = [
            np.asarray(place(rows), dtype=np.float32)
            for place, rows in (
                (linear.transform_x, guess.left),
                (linear.transform_y, guess.right),
            )
        ]
        yield (
            guess.name,
            linear,
            rotation_between(points[0], points[1], guess.weight.astype(np.float64)),
        )
    # A row of weight w stands w times among the rows that starts are made from.
    counted_x, counted_y = repeated(weight_x, len(x), rng), repeated(weight_y, len(y), rng)
    left, right = linear.x[counted_x], linear.y[counted_y]
    yield "axes", linear, axis_start(left, right)
    for trial, heat in enumerate((0.05, 0.02)):
        rotation = profile_start(left, right, rng, temperature=heat)
        yield f"profiles {trial}", linear, soft_refine(left, right, rotation, rng)
    kernel = pair_spaces(
        nystrom_space(x, RANK, rng, weight=weight_x),
        nystrom_space(y, RANK, rng, weight=weight_y),
        rng,
        weight_x,
        weight_y,
    )
    left, right = kernel.x[counted_x], kernel.y[counted_y]
    for trial, heat in enumerate((0.05, 0.02)):
        rotation = profile_start(left, right, rng, temperature=heat)
        yield f"kernel {trial}", kernel, soft_refine(left, right, rotation, rng)


def _stands_out(contrast: float, null: float | None, others: list[float]) -> bool:
    """Whether a contrast is out of reach of wrong answers: a random rotation, the other starts."""
    if contrast > CLEAR or null is None:
        return True
    return contrast > STAND_OUT * max(null, float(np.median(others or [0.0])))


def _null_contrast(pairing: Pairing, query: Index, rng: np.random.Generator) -> float:
    """The contrast reached from a random rotation: what wrong answers look like."""
    size = pairing.x.shape[1]
    rotation = np.linalg.qr(rng.normal(size=(size, size)))[0]
    rotation, contrast = refine_rotation(pairing, rotation, query)
    landmarks = draw_landmarks(pairing, rng)
    return max(contrast, fit_map(pairing, rotation, query, landmarks, min_gain=0.002).contrast)


def _floor(pairing: Pairing, fewest: Index) -> float:
    """The contrast that a random rotation, always the same, reaches on the fewest queries."""
    size = pairing.x.shape[1]
    rotation = np.linalg.qr(np.random.default_rng(0).normal(size=(size, size)))[0]
    return refine_rotation(pairing, rotation, fewest, n_rounds=10)[1]


def _compare(
    partner: Index, near: Index, distance: Float, moved: Float32, target: Float32
) -> tuple[Index, Float, Float]:
    """Nearest other row, distance to the partner and distance to that other row, per row of x."""
    is_match = (near == partner[:, None]) & (partner[:, None] >= 0)
    others = np.where(is_match, np.inf, distance)
    place = others.argmin(axis=1)
    every = np.arange(len(partner))
    other = others[every, place]
    matched = np.full(len(partner), np.inf)
    rows = np.flatnonzero(partner >= 0)
    matched[rows] = np.linalg.norm(moved[rows] - target[partner[rows]], axis=1)
    return np.where(np.isfinite(other), near[every, place], -1), matched, other


def _complete(partner: Index, moved: Float32, target: Float32, forbidden: IntArray | None) -> Index:
    """The matching with left-out rows given the rows of y that are free, forbidden pairs apart."""
    barred = set(map(tuple, forbidden.tolist())) if forbidden is not None else set()

    def cost(rows: Index, columns: Index) -> Float:
        block = square_distances(moved[rows], target[columns])
        for row, column in barred:
            block[np.ix_(rows == row, columns == column)] = 1e12
        return block

    full = complete(partner, len(target), cost)
    for row, column in barred:  # nothing else was free for it
        if full[row] == column:
            full[row] = -1
    return full
