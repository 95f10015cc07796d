"""Soft plans from profiles: views with a profile of every row, and what these say of pairs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from unpaired.matching.profiles import joint_profile, profile_score, raw_profile
from unpaired.matching.soft_readout import Placed
from unpaired.matching.soft_refine import Array, Single, crosses_of, refine, sinkhorn, standardise
from unpaired.matching.views import Side, geodesic_side, linear_side, unit_rows

FINAL_POWER = 0.25
"""Power of the singular values in the maps that are read."""
SIMILARITY_WEIGHT = 1.0
ROUND_TEMPERATURE = 0.25
"""Temperature of plans from profiles, and of rounds without known pairs."""


@dataclass(frozen=True, eq=False)
class View(Placed):
    """Both sides in one view, with the profile of every row."""

    profile: tuple[Array, Array]


def build_view(name: str, x: Array, y: Array, rng: np.random.Generator) -> View:
    """Return both sides in the view ``name``: scaled coordinates and profiles."""
    if name == "half":
        sides = [linear_side(rows) for rows in (x, y)]
        grams = [unit_rows(side.coords).astype(np.float32) for side in sides]
    else:
        sides = [geodesic_side(rows, name.removeprefix("geo_"), rng) for rows in (x, y)]
        grams = [side.coords.astype(np.float32) for side in sides]
    profiles = [raw_profile(gram @ gram.T) for gram in grams]
    coords = (scaled(sides[0]), scaled(sides[1]))
    return View(sides[0], sides[1], coords, (profiles[0], profiles[1]))


def scaled(side: Side) -> Array:
    """Return coordinates whose rows have a mean squared length of one."""
    return side.coords / max(float(np.sqrt((side.coords**2).sum(axis=1).mean())), 1e-300)


def joined(views: Sequence[View], dims: int = 12) -> tuple[Array, Array]:
    """Return the profiles of several views in one common basis."""
    return joint_profile(
        np.concatenate([view.profile[0] for view in views], axis=1),
        np.concatenate([view.profile[1] for view in views], axis=1),
        dims,
    )


def anchor_score(views: Sequence[View]) -> Single:
    """Return profile scores (n_x, n_y) averaged over a coarse and a fine profile."""
    coarse, fine = (profile_score(*joined(views, dims)) for dims in (8, 16))
    return standardise(coarse + fine)


def with_extra(anchor: Single, extra: Single | None) -> Single:
    """Return profile scores joined by the caller's similarities."""
    return anchor if extra is None else standardise(anchor + np.float32(SIMILARITY_WEIGHT) * extra)


def mean_plan(views: Sequence[View], extra: Single | None) -> Single:
    """Return the mean plan before and after one round, over all views and all but one.

    Their errors differ, and are less in the mean.
    """
    return mean_of(two_plans(subset, extra) for subset in subsets_of(views))


def subsets_of(views: Sequence[View]) -> list[list[View]]:
    """Return all views, and if there are several, all but each of them."""
    subsets = [list(views)]
    if len(views) > 1:
        subsets += [[view for view in views if view is not left_out] for left_out in views]
    return subsets


def two_plans(views: Sequence[View], extra: Single | None) -> Single:
    """Return the sum of the plans before and after one round."""
    anchor = with_extra(anchor_score(views), extra)
    coords = [view.coords for view in views]
    before = sinkhorn(anchor.copy(), ROUND_TEMPERATURE)
    start = crosses_of(coords, before)
    _, after = refine(coords, start, (ROUND_TEMPERATURE,), FINAL_POWER, anchor)
    after += before
    return after


def mean_of(sums: Iterable[Single]) -> Single:
    """Return the mean plan of sums of two plans each; overwrites the first."""
    total: Single | None = None
    count = 0
    for part in sums:
        total = part if total is None else np.add(total, part, out=total)
        count += 2
    assert total is not None  # there is always a view
    total /= np.float32(count)
    return total
