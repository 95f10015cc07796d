"""Soft alignment: maps between two sides whose rows have no evident partners, only like geometry.

Rows are described by profiles (how similarity falls off around them), which need no pairs; profiles
give a soft plan, the plan gives a linear map in each of several views, and views that agree are
read together. One round of refinement is made: more rounds drift towards whatever the two
geometries share by accident, except where most rows turn out to have a mutual partner.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from joblib import Parallel, delayed

from unpaired.matching.anchored import HELD_WEIGHT, drop_worse, grow_plan, known_score
from unpaired.matching.committee import ask_member, draw_members, heard
from unpaired.matching.profiles import pair_score, profile_score
from unpaired.matching.self_learning import csls, self_learn
from unpaired.matching.soft_plan import (
    FINAL_POWER,
    View,
    anchor_score,
    build_view,
    joined,
    mean_of,
    scaled,
    subsets_of,
    two_plans,
    with_extra,
)
from unpaired.matching.soft_readout import HUB_SHARE, HUB_WEIGHT, Placed, embedders
from unpaired.matching.soft_refine import (
    Array,
    Coords,
    Index,
    Single,
    crosses_of,
    dependence,
    disagreement,
    joint_score,
    pin,
    refine,
    sinkhorn,
    standardise,
)
from unpaired.matching.views import gaussian_side, smoothed_side, unit_rows
from unpaired.types import FloatArray, IntArray

VIEWS = ("half", "geo_correlation", "geo_euclidean")
SEARCH_ROWS = 1000
SEARCH_TEMPERATURES = (0.25,) * 5
PAIR_TEMPERATURES = (0.3, 0.2, 0.15, 0.15)
PAIR_WEIGHT = 2.0
"""Weight of neighbourhoods of known pairs beside profiles."""
PAIR_ANCHOR = 0.3
"""Weight of profiles and known pairs' neighbourhoods in each round, when pairs are known."""
LEAST_ANCHORS = 8
"""Known pairs from which on maps fitted on them alone are a start; fewer join the profiles."""
ENOUGH_PAIRS = 20
"""With fewer known pairs, profiles count for more in proportion."""
UNSTEADY = 0.4
"""A view is read when its own and the joint profile lead to maps less than this apart."""
MOSTLY_CONFIRMED = 0.5
"""Self-learning is kept where more than this share of rows has a confirmed partner."""
MAYBE_MUTUAL = 0.42
TRUSTED_GAP = 0.28
TRUSTED_AGREEMENT = 0.8
"""Soft alignments are trusted from this gap and this agreement on."""


@dataclass(frozen=True, eq=False)
class SoftAlignment:
    """Embeddings of any rows, the scores of the rows given, and label-free quality."""

    embed_x: Callable[[FloatArray], FloatArray]
    embed_y: Callable[[FloatArray], FloatArray]
    """Maps of raw rows into one space; the inner product is the score, hubs corrected."""
    scores: Single
    """(n_x, n_y), larger = better pair."""
    plan: Single
    agreement: float
    gap: float
    reached: dict[str, float]
    """Dependence (matched CKA) that each view and profile reached."""
    kind: str
    """"one round", "known pairs" or "self-learned"."""


@dataclass(frozen=True, eq=False)
class _Entry:
    view: str
    kind: str
    dependence: float
    gap: float
    scores: Single


def align_soft(
    x: FloatArray,
    y: FloatArray,
    rng: np.random.Generator,
    *,
    known: IntArray | None = None,
    similarity: FloatArray | None = None,
    starts: Mapping[str, FloatArray] | None = None,
    same_items: bool = True,
) -> SoftAlignment:
    """Align the rows of x (n_x, d_x) and y (n_y, d_y), with no or few known pairs.

    ``similarity`` (n_x, n_y) is side information that joins the profiles. ``starts`` are plans
    (n_x, n_y) tried beside the profiles: one is used if it reaches the largest dependence. Without
    ``same_items`` rows have no partners on the other side, and none are looked for by
    self-learning. Cost O(n^2 (d + log n)).
    """
    pool = {name: build_view(name, x, y, rng) for name in VIEWS}
    pairs = known if known is not None and len(known) else None
    extra = None if similarity is None else standardise(similarity.astype(np.float32))
    rx, ry, local_pairs = _search_rows(len(x), len(y), pairs, rng)
    local_extra = None if extra is None else extra[np.ix_(rx, ry)]
    plans = _scaled_plans(starts or {})
    local = {name: plan[np.ix_(rx, ry)] for name, plan in plans.items()}
    entries = _search(pool, rx, ry, local_pairs, local_extra, rng, local)
    winner, chosen = _choose(entries)
    searched = [pool[name] for name in chosen]
    given = plans.get(winner.kind)
    enough = pairs is not None and len(pairs) >= LEAST_ANCHORS
    anchors = pairs if enough and given is None and "half" in chosen else None
    if anchors is not None:
        both = {name: view.coords for name, view in pool.items()}
        chosen = drop_worse(chosen, VIEWS[1:], both, anchors)
    views: list[Placed] = [pool[name] for name in chosen]
    if "half" in chosen:
        views += _companions(pool["half"], x, y, rng)
    coords = [view.coords for view in views]
    if pairs is None and given is None:
        plan = _mean_plan(searched, extra)
        crosses = crosses_of(coords, plan)
    elif anchors is not None:
        near = known_score(coords, anchors)
        few = max(1.0, ENOUGH_PAIRS / len(anchors))
        anchor = standardise(anchor_score(searched) + np.float32(PAIR_WEIGHT / few) * near)
        held = with_extra(anchor, extra)
        plan = pin(grow_plan(coords, anchors, held, HELD_WEIGHT * few), anchors)
        crosses = crosses_of(coords, plan, anchors)
    else:
        anchor = with_extra(anchor_score(searched), extra)
        schedule, weight = ((0.25,), 0.5) if pairs is None else (PAIR_TEMPERATURES, PAIR_ANCHOR)
        if pairs is not None:
            near = pair_score([_directions(pool, name) for name in VIEWS], pairs)
            anchor = standardise(anchor + np.float32(PAIR_WEIGHT) * near)
        first = sinkhorn(anchor.copy(), 0.25) if given is None else given
        start = crosses_of(coords, pin(first, pairs), pairs)
        crosses, plan = refine(coords, start, schedule, FINAL_POWER, anchor, weight, pairs)
    scores = joint_score(coords, crosses, FINAL_POWER)
    agreement = _agreement(scores[np.ix_(rx, ry)], _peers(entries, winner), chosen)
    reached = {
        f"{e.view}, {e.kind}" + ("" if e.kind in plans else " profile"): e.dependence
        for e in entries
    }
    kind = "one round" if pairs is None else "known pairs"

    linear = pool["half"]
    if same_items:
        rough = crosses_of([linear.coords], plan)[0]
        learned = self_learn(*linear.coords, rough, rng, known=pairs, least_mutual=MAYBE_MUTUAL)
        if learned.confirmed > MOSTLY_CONFIRMED:
            views, crosses, kind = [linear], [learned.cross], "self-learned"
            scores = joint_score([linear.coords], crosses, FINAL_POWER)
            plan = pin(sinkhorn(standardise(scores.copy()), 0.1), pairs)
    if kind == "one round" and given is None and not vouched(winner.gap, agreement):
        crosses = _steadied(x, y, chosen, coords, crosses, rng, extra)
        scores = joint_score(coords, crosses, FINAL_POWER)
    # the linear and the Gaussian view: rows that were never seen gain most
    steady = () if len(views) == 1 or "half" not in chosen else (chosen.index("half"), len(chosen))
    embed_x, embed_y = embedders(views, crosses, FINAL_POWER, steady)
    scores = csls(scores, -(-len(y) // HUB_SHARE), HUB_WEIGHT)
    return SoftAlignment(embed_x, embed_y, scores, plan, agreement, winner.gap, reached, kind)


def _directions(pool: dict[str, View], name: str) -> tuple[Array, Array]:
    """Coordinates in which distances are read: unit rows in the linear view."""
    x, y = pool[name].coords
    return (unit_rows(x), unit_rows(y)) if name == "half" else (x, y)


def _companions(half: View, x: Array, y: Array, rng: np.random.Generator) -> list[Placed]:
    """A Gaussian kernel and smoothed rows: read with "half", they play no part in the search."""
    pairs = [
        (gaussian_side(x, rng), gaussian_side(y, rng)),
        (smoothed_side(half.x), smoothed_side(half.y)),
    ]
    return [Placed(a, b, (scaled(a), scaled(b))) for a, b in pairs]


def _mean_plan(views: Sequence[View], extra: Single | None) -> Single:
    """What ``soft_plan.mean_plan`` returns; its parts may run at once."""
    parallel = Parallel(require="sharedmem", return_as="generator")
    return mean_of(parallel(delayed(two_plans)(subset, extra) for subset in subsets_of(views)))


def _steadied(
    x: Array,
    y: Array,
    names: Sequence[str],
    coords: Coords,
    crosses: list[Array],
    rng: np.random.Generator,
    extra: Single | None,
) -> list[Array]:
    """The mean of ``crosses`` and of those that members of a committee find.

    Members may run at once (``joblib.parallel_config``); all that is random is drawn first.
    """
    members = draw_members(x.shape, y.shape, rng)
    scores = joint_score(coords, crosses, FINAL_POWER)
    ask = delayed(ask_member)
    answers = Parallel(require="sharedmem")(
        ask(x, y, names, coords, scores, member, extra) for member in members
    )
    return heard(crosses, answers)


def _search_rows(
    n_x: int, n_y: int, pairs: IntArray | None, rng: np.random.Generator
) -> tuple[Index, Index, IntArray | None]:
    """The rows searched on either side, and the known pairs counted within them."""
    rx = np.sort(rng.permutation(n_x)[:SEARCH_ROWS])
    ry = np.sort(rng.permutation(n_y)[:SEARCH_ROWS])
    if pairs is None:
        return rx, ry, None
    rx, ry = np.union1d(rx, pairs[:, 0]), np.union1d(ry, pairs[:, 1])
    places = [np.searchsorted(rx, pairs[:, 0]), np.searchsorted(ry, pairs[:, 1])]
    return rx, ry, np.stack(places, axis=1)


def _search(
    pool: dict[str, View],
    rx: Index,
    ry: Index,
    pairs: IntArray | None,
    extra: Single | None,
    rng: np.random.Generator,
    plans: Mapping[str, Single],
) -> list[_Entry]:
    """One refined finalist per view and profile or plan, with its dependence and its gap.

    They are independent of each other and may run at once (``joblib.parallel_config``); all that is
    random is drawn first, so that the result is the same.
    """
    union = joined(list(pool.values()))
    jobs, nulls = [], []
    for name, view in pool.items():
        small = [(view.coords[0][rx], view.coords[1][ry])]
        nulls += [delayed(_null_dependence)(small, draw) for draw in _random_maps(small, rng)]
        kinds = [("own", joined([view])), ("joint", union), *((kind, union) for kind in plans)]
        for kind, profile in kinds:
            anchor = with_extra(profile_score(profile[0][rx], profile[1][ry]), extra)
            jobs.append(delayed(_finalist)(name, kind, small, anchor, plans.get(kind), pairs))
    parallel = Parallel(require="sharedmem")
    found = np.reshape(parallel(nulls), (len(pool), -1)).mean(axis=1)
    null = dict(zip(pool, found.tolist(), strict=True))
    return [replace(e, gap=_above(e.dependence, null[e.view])) for e in parallel(jobs)]


def _above(reached: float, null: float) -> float:
    """What is reached beyond ``null``, as a share of what there is beyond it."""
    return (reached - null) / max(1.0 - null, 1e-9)


def _finalist(
    view: str,
    kind: str,
    coords: list[tuple[Array, Array]],
    anchor: Single,
    plan: Single | None,
    pairs: IntArray | None,
) -> _Entry:
    """What one start is refined to in one view; its gap is not known yet."""
    first = sinkhorn(anchor.copy(), 0.25) if plan is None else plan.copy()
    start = crosses_of(coords, pin(first, pairs), pairs)
    crosses, plan = refine(coords, start, SEARCH_TEMPERATURES, anchor=anchor, pairs=pairs)
    reached = dependence(coords, crosses_of(coords, plan))
    return _Entry(view, kind, reached, np.nan, joint_score(coords, crosses, FINAL_POWER))


def _scaled_plans(starts: Mapping[str, FloatArray]) -> dict[str, Single]:
    """Plans with a sum of one; those that hold nothing here are left out."""
    sums = {name: float(plan.sum()) for name, plan in starts.items()}
    return {name: (p / sums[name]).astype(np.float32) for name, p in starts.items() if sums[name]}


def _random_maps(
    coords: list[tuple[Array, Array]], rng: np.random.Generator, n_draws: int = 2
) -> list[list[Array]]:
    """Maps that know nothing."""
    return [
        [rng.normal(size=(zx.shape[1], zy.shape[1])) for zx, zy in coords] for _ in range(n_draws)
    ]


def _null_dependence(coords: list[tuple[Array, Array]], start: list[Array]) -> float:
    """The dependence that random maps reach under the same refinement."""
    return dependence(coords, refine(coords, start, SEARCH_TEMPERATURES[:3])[0])


def _choose(entries: Sequence[_Entry]) -> tuple[_Entry, list[str]]:
    """The entry with the largest dependence among steady views, and all steady views.

    A view is steady when its own profile and the joint one lead to the same map; if none is, all
    that is left is the entry with the largest dependence.
    """
    chosen = []
    profiles = [entry for entry in entries if entry.kind in ("own", "joint")]
    for name in dict.fromkeys(entry.view for entry in profiles):
        own, joint = (entry.scores for entry in profiles if entry.view == name)
        if disagreement(own, joint) + disagreement(joint, own) < 2 * UNSTEADY:
            chosen.append(name)
    steady = [entry for entry in profiles if entry.view in chosen]
    winner = max(steady or profiles, key=lambda entry: entry.dependence)
    best = max(entries, key=lambda entry: entry.dependence)
    if best.kind not in ("own", "joint") and best.dependence > winner.dependence:
        winner = best  # a start that was given
    return winner, list(dict.fromkeys([winner.view, *chosen]))


def _peers(entries: Sequence[_Entry], winner: _Entry) -> list[_Entry]:
    """The entries that may speak: starts that were given and did not win have no say."""
    return [e for e in entries if e.kind in ("own", "joint", winner.kind)]


def _agreement(scores: Single, entries: Sequence[_Entry], chosen: Sequence[str]) -> float:
    """How well the result agrees with the finalists of the chosen views, 0 to 1."""
    best = {name: max(e.dependence for e in entries if e.view == name) for name in chosen}
    peers = [e for e in entries if e.view in best and e.dependence >= 0.95 * best[e.view]]
    apart = float(np.mean([disagreement(scores, e.scores) for e in peers]))
    return max(0.0, 1.0 - 2.0 * apart)


def vouched(gap: float, agreement: float) -> bool:
    """Whether gap and agreement are such as wrong or unrelated geometries did not reach."""
    return gap >= TRUSTED_GAP and agreement >= TRUSTED_AGREEMENT
