"""Sharp matching: two sets of rows in which each has one evident partner, up to a smooth map.

Rotations, linear maps and smooth warps of the same rows, with noise, at any size: no n x n array is
made anywhere and time is close to linear in n. Where no start stands out against wrong rotations,
the answer is not trusted, and says so.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from unpaired.matching.assignment import assign_sparse, complete
from unpaired.matching.neighbors import Float32, Index, search_cells
from unpaired.matching.partial import fit_chooser
from unpaired.matching.sharp_refine import Fitted, Pairing, fit_map, pair_spaces, refine_rotation
from unpaired.matching.sharp_starts import axis_start, profile_start, soft_refine
from unpaired.matching.spaces import Float, nystrom_space, principal_space, weighted_rotation
from unpaired.types import FloatArray, IntArray

MIN_ROWS = 50
"""Fewer rows cannot tell a sharp answer from an accident."""
CLEAR = 0.3
"""A start is taken at once when its mean contrast (nearest against runner-up) exceeds this."""
STAND_OUT = 4.0
"""Otherwise it must exceed by this factor what a random rotation and other starts reach."""
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
    query = rng.permutation(len(x))
    few, many = np.sort(query[:N_QUERIES]), query[: 4 * N_QUERIES]
    tried: dict[str, float] = {}
    best: tuple[Pairing, Fitted] | None = None
    null: float | None = None
    trusted = False
    for name, pairing, guess in _starts(x, y, rng, known):
        rotation, contrast = refine_rotation(pairing, guess, few)
        if contrast > CLEAR:
            fitted = fit_map(pairing, rotation, few, rng, min_gain=0.01)
        else:
            null = _null_contrast(pairing, few, rng) if null is None else null
            promising = contrast > 1.2 * null  # of what wrong rotations reach
            fitted = fit_map(pairing, rotation, many if promising else few, rng, min_gain=0.002)
        if best is None or fitted.contrast > best[1].contrast:
            best = (pairing, fitted)
        trusted = _stands_out(fitted.contrast, null, list(tried.values()))
        tried[name] = fitted.contrast
        if trusted:
            break
    assert best is not None  # there is always a first start
    pairing, fitted = best
    moved = fitted.apply(pairing.x)
    near, square = search_cells(
        pairing.cells, moved, max(3, min(N_CANDIDATES, len(y))), n_probes=N_PROBES
    )
    distance = np.sqrt(np.where(near < 0, np.inf, square).astype(np.float64))
    # Sure rows first: a row bids only as far as its match stays more probable than a stranger.
    chooser = fit_chooser(distance)
    second = np.where(np.isfinite(distance[:, 1]), distance[:, 1], 0.0)
    partner = assign_sparse(
        near,
        np.where(near < 0, 0.0, np.square(distance)),
        len(y),
        known=known,
        forbidden=forbidden,
        skip_cost=np.square(chooser.limit(second)),
    )
    if leave_out and not trusted:
        partner = np.full(len(x), -1, dtype=np.int64)
    elif not leave_out:
        partner = _complete(partner, moved, pairing.y, forbidden)
    runner_up, matched, other = _compare(partner, near, distance, moved, pairing.y)
    rows = np.flatnonzero(np.isfinite(matched) & np.isfinite(other))
    confidence = np.zeros(len(x))
    confidence[rows] = trusted * chooser.probability(matched[rows], other[rows])
    return SharpMatch(
        partner=partner,
        confidence=confidence,
        runner_up=runner_up,
        margin=np.where(partner >= 0, other - matched, np.nan),
        embed_x=lambda rows: fitted.apply(pairing.transform_x(rows)),
        embed_y=lambda rows: pairing.transform_y(rows),
        tried=tried,
        null_contrast=null,
        stranger_share=chooser.stranger_share,
        trusted=trusted,
    )


def _starts(
    x: FloatArray, y: FloatArray, rng: np.random.Generator, known: IntArray | None
) -> Iterator[tuple[str, Pairing, Float]]:
    """Named rotations to refine, cheapest first; later ones are computed only when asked for."""
    linear = pair_spaces(principal_space(x, RANK), principal_space(y, RANK), rng)
    if known is not None and len(known) >= 4:
        pairs = (linear.x[known[:, 0]], linear.y[known[:, 1]], np.ones(len(known)))
        yield "known pairs", linear, weighted_rotation(*pairs)
    yield "axes", linear, axis_start(linear.x, linear.y)
    for trial, heat in enumerate((0.05, 0.02)):
        guess = profile_start(linear.x, linear.y, rng, temperature=heat)
        yield f"profiles {trial}", linear, soft_refine(linear.x, linear.y, guess, rng)
    kernel = pair_spaces(nystrom_space(x, RANK, rng), nystrom_space(y, RANK, rng), rng)
    for trial, heat in enumerate((0.05, 0.02)):
        guess = profile_start(kernel.x, kernel.y, rng, temperature=heat)
        yield f"kernel {trial}", kernel, soft_refine(kernel.x, kernel.y, guess, rng)


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
    return max(contrast, fit_map(pairing, rotation, query, rng, min_gain=0.002).contrast)


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
        block = _block(moved[rows], target[columns])
        for row, column in barred:
            block[np.ix_(rows == row, columns == column)] = 1e12
        return block

    full = complete(partner, len(target), cost)
    for row, column in barred:  # nothing else was free for it
        if full[row] == column:
            full[row] = -1
    return full


def _block(a: Float32, b: Float32) -> Float:
    """Squared distances of one block."""
    square = (a * a).sum(axis=1)[:, None] + (b * b).sum(axis=1) - 2 * (a @ b.T)
    return np.asarray(np.maximum(square, 0), dtype=np.float64)
