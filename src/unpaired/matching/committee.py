"""Committee: maps steadied by plans from random halves of the columns.

What profiles say depends on the columns that a side happens to have. Members see half of the
columns of each side (and at most MEMBER_ROWS rows), build the same views on it and find a plan of
their own; the cross-covariances of all plans, in the views of all columns, are averaged. Rounds of
refinement drift towards what two geometries share by accident, which differs from half to half:
members are refined further where that leaves them of one mind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from unpaired.matching.soft_plan import (
    FINAL_POWER,
    ROUND_TEMPERATURE,
    anchor_score,
    build_view,
    mean_plan,
    with_extra,
)
from unpaired.matching.soft_refine import (
    Array,
    Coords,
    Index,
    Single,
    crosses_of,
    disagreement,
    joint_score,
    refine,
)

N_SPLITS = 8
"""Random splits of the columns into halves; each half is a member."""
MEMBER_ROWS = 1000
"""Rows of each side that a member sees, at most."""
LEAST_COLUMNS = 16
"""With fewer columns on a side there is no committee: half of them would be another geometry."""
FEWEST = LEAST_COLUMNS // 2
"""Columns that must vary among the rows of a member; otherwise it is infinitely far apart."""
APART = 0.4
"""Members whose maps are this far from the map of all columns are not heard."""
LATER_ROUNDS = 6
"""Rounds by which members are refined further."""
STILL_COHERENT = 0.75
"""Share of its coherence that a committee must keep; otherwise later rounds are not heard."""


@dataclass(frozen=True, eq=False)
class Member:
    """The part of both sides that a member sees, and the seed of its own random numbers."""

    rows: tuple[Index, Index]
    columns: tuple[Index, Index]
    seed: int


@dataclass(frozen=True, eq=False)
class Answer:
    """How far a member is from the map of all columns, and its crosses, also after later rounds."""

    apart: float
    first: list[Array]
    later: list[Array]


def draw_members(
    shape_x: tuple[int, int], shape_y: tuple[int, int], rng: np.random.Generator
) -> list[Member]:
    """Return what members see of sides with these shapes; no members if columns are few.

    Two members in a row share out the columns between them.
    """
    if min(shape_x[1], shape_y[1]) < LEAST_COLUMNS:
        return []

    members = []
    for _ in range(N_SPLITS):
        halves_x, halves_y = _halves(shape_x[1], rng), _halves(shape_y[1], rng)
        for columns in zip(halves_x, halves_y, strict=True):
            rows = (_some(shape_x[0], rng), _some(shape_y[0], rng))
            members.append(Member(rows, columns, int(rng.integers(2**62))))
    return members


def _halves(n: int, rng: np.random.Generator) -> tuple[Index, Index]:
    """The numbers below n in two random parts, each in order."""
    shuffled = rng.permutation(n)
    return np.sort(shuffled[: n // 2]), np.sort(shuffled[n // 2 :])


def _some(n: int, rng: np.random.Generator) -> Index:
    """At most MEMBER_ROWS random numbers below n, in order."""
    return np.sort(rng.permutation(n)[:MEMBER_ROWS])


def ask_member(
    x: Array,
    y: Array,
    names: Sequence[str],
    coords: Coords,
    scores: Single,
    member: Member,
    extra: Single | None,
) -> Answer:
    """Return how far a member's map is from ``scores``, and its crosses in views of all columns.

    ``names`` are the views in which it looks for a plan, ``coords`` the coordinates of all rows in
    the views of all columns, ``scores`` (n_x, n_y) what these say, ``extra`` similarities that join
    the profiles.
    """
    (rows_x, rows_y), (columns_x, columns_y) = member.rows, member.columns
    here = np.ix_(rows_x, rows_y)
    part_x, part_y = x[np.ix_(rows_x, columns_x)], y[np.ix_(rows_y, columns_y)]
    if min(int(np.ptp(part, axis=0).astype(bool).sum()) for part in (part_x, part_y)) < FEWEST:
        return Answer(np.inf, [], [])
    rng = np.random.default_rng(member.seed)
    views = [build_view(name, part_x, part_y, rng) for name in names]
    local = None if extra is None else extra[here]
    plan = mean_plan(views, local)
    own_coords = [view.coords for view in views]
    own_crosses = crosses_of(own_coords, plan)
    own = joint_score(own_coords, own_crosses, FINAL_POWER)
    apart = (disagreement(own, scores[here]) + disagreement(scores[here], own)) / 2
    anchor = with_extra(anchor_score(views), local)
    temperatures = (ROUND_TEMPERATURE,) * LATER_ROUNDS
    _, later = refine(own_coords, own_crosses, temperatures, FINAL_POWER, anchor)
    seen = [(zx[rows_x], zy[rows_y]) for zx, zy in coords]
    return Answer(apart, crosses_of(seen, plan), crosses_of(seen, later))


def heard(crosses: Sequence[Array], answers: Sequence[Answer]) -> list[Array]:
    """Return the mean, view by view, of ``crosses`` and of answers less than APART from them.

    Answers after later rounds are taken if the committee is still coherent by then.
    """
    near = [answer for answer in answers if answer.apart < APART]
    first, later = [answer.first for answer in near], [answer.later for answer in near]
    kept = bool(near) and coherence(later) >= STILL_COHERENT * coherence(first)
    voices = [crosses, *(later if kept else first)]
    return [np.mean(parts, axis=0) for parts in zip(*voices, strict=True)]


def coherence(voices: Sequence[Sequence[Array]]) -> float:
    """Return the squared norm of the mean of unit crosses, averaged over views.

    1 where all say the same, 1 / len(voices) where they have nothing in common.
    """
    norms = []
    for parts in zip(*voices, strict=True):
        units = [part / max(float(np.linalg.norm(part)), 1e-300) for part in parts]
        norms.append(float((np.mean(units, axis=0) ** 2).sum()))
    return float(np.mean(norms))
