"""Every assignment primitive against brute force on problems of at most seven rows."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from unpaired.plans import assignment
from unpaired.plans._auction import auction
from unpaired.plans.assignment import (
    EXACT_ROWS,
    assign,
    assign_many,
    assign_sparse,
    complete,
    spare_copies,
)


def brute(cost, *, known=(), skip=None, capacity=None, one_to_one=True):
    """All assignments by enumeration: (rows matched, cost) of the best, most rows first."""
    n, m = cost.shape
    known = dict(known)
    room = np.full(m, 1 if one_to_one else n) if capacity is None else np.asarray(capacity)
    best = None
    for choice in itertools.product(range(-1, m), repeat=n):
        if any(choice[r] != c for r, c in known.items()):
            continue
        load = np.bincount([c for c in choice if c >= 0], minlength=m)
        if (load > room).any():
            continue
        total, out = 0.0, 0
        for r, c in enumerate(choice):
            if r in known:
                continue
            if c < 0:
                out += 1
                total += 0.0 if skip is None else np.broadcast_to(skip, n)[r]
            else:
                total += cost[r, c]
        if not np.isfinite(total):
            continue
        key = (out, total) if skip is None else (0, total)
        if best is None or key < best:
            best = key
    return best


def value(cost, partner, *, known=(), skip=None):
    known = dict(known)
    total, out = 0.0, 0
    for r, c in enumerate(partner):
        if r in known:
            assert c == known[r]
        elif c < 0:
            out += 1
            total += 0.0 if skip is None else np.broadcast_to(skip, len(cost))[r]
        else:
            total += cost[r, c]
    return (out, total) if skip is None else (0, total)


def same(got, want):
    assert got[0] == want[0]
    assert got[1] == pytest.approx(want[1], abs=1e-9)


SHAPES = [(1, 1), (3, 3), (5, 5), (4, 6), (5, 3), (2, 7), (6, 2)]


def dense_lists(cost):
    n, m = cost.shape
    return np.tile(np.arange(m), (n, 1)), cost


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("skip", [None, 0.3, -0.2, "each"])
def test_one_to_one_is_the_optimum(shape, seed, sparse, skip):
    rng = np.random.default_rng(seed)
    cost = rng.normal(size=shape)
    price = rng.normal(size=shape[0]) if skip == "each" else skip
    known = [(0, shape[1] - 1)] if seed == 1 else []
    forbidden = [(r, c) for r in range(shape[0]) for c in range(shape[1]) if rng.random() < 0.4]
    forbidden = [p for p in forbidden if p not in known] if seed >= 2 else []
    blocked = cost.copy()
    for r, c in forbidden:
        blocked[r, c] = np.inf
    options = {"known": known or None, "forbidden": forbidden or None, "skip_cost": price}
    if sparse:
        partner = assign_sparse(*dense_lists(cost), shape[1], **options)
    else:
        partner = assign(cost, **options)
    used = partner[partner >= 0]
    assert len(np.unique(used)) == len(used)
    same(value(blocked, partner, known=known, skip=price), brute(blocked, known=known, skip=price))


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("n", [3, 6])
def test_many_to_one_is_the_optimum(seed, n):
    rng = np.random.default_rng(seed)
    m = 3
    cost = rng.normal(size=(n, m)) + np.array([0.0, 1.0, 2.0])
    capacity = None if seed == 0 else rng.multinomial(n + seed % 3, [0.3, 0.3, 0.4])
    known = [(1, 2)] if seed in (1, 2) and (capacity is None or capacity[2] > 0) else []
    forbidden = [(0, 0), (2, 1)] if seed >= 3 else None
    blocked = cost.copy()
    for r, c in forbidden or []:
        blocked[r, c] = np.inf
    partner = assign_many(cost, capacity=capacity, known=known or None, forbidden=forbidden)
    want = brute(blocked, known=known, capacity=capacity, one_to_one=False)
    same(value(blocked, partner, known=known), want)
    if capacity is not None:
        assert (np.bincount(partner[partner >= 0], minlength=m) <= capacity).all()


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("skip", [0.5, 3.0])
def test_auction_keeps_its_bound(seed, skip):
    rng = np.random.default_rng(seed)
    cost = rng.random((6, 5))
    index, weight = dense_lists(cost)
    step = 0.01
    partner = auction(index, weight, 5, np.full(6, skip), step, 10_000)
    assert value(cost, partner, skip=skip)[1] <= brute(cost, skip=skip)[1] + 6 * step


def test_auction_path_is_taken_above_the_limit_and_repeats(monkeypatch):
    rng = np.random.default_rng(0)
    monkeypatch.setattr(assignment, "EXACT_ROWS", 10)
    assert EXACT_ROWS > 10
    points = rng.random((300, 2))
    far = ((points[:, None] - points[rng.permutation(300)] - 0.01) ** 2).sum(2)
    lists = np.argsort(far, axis=1)[:, :20]
    costs = np.take_along_axis(far, lists, 1)
    one = assign_sparse(lists, costs, 300)
    two = assign_sparse(lists, costs, 300)
    assert (one == two).all()
    full = complete(one, 300, lambda r, c: far[np.ix_(r, c)])
    assert sorted(full) == list(range(300))
    exact = assign(far)
    assert (
        far[np.arange(300), full].sum()
        <= far[np.arange(300), exact].sum() + 300 * 0.04 * costs.std()
    )


def test_duplicate_and_empty_candidates():
    partner = assign_sparse([[0, 0], [0, 1], [-1, -1]], [[1.0, 1.0], [0.5, 9.0], [0, 0]], 2)
    assert partner.tolist() == [0, 1, -1]


def test_no_rows_no_columns():
    assert assign(np.empty((0, 3))).tolist() == []
    assert assign(np.empty((2, 0))).tolist() == [-1, -1]


def test_copies_that_rows_ask_for_are_not_spare(rng):
    group = np.array([0, 0, 0, 1, 2, 2])
    scores = rng.standard_normal((5, 6))
    scores[:, 1] = scores[:, 2] = scores[:, 0]
    scores[:, 5] = scores[:, 4]
    scores[:2, :3] += 10.0  # two rows ask for the first, three for the second, nobody for the last
    scores[2:, 3] += 10.0
    assert spare_copies(scores, group).tolist() == [2, 5]
    assert spare_copies(scores, np.arange(6)).tolist() == []


def test_completion_is_optimal_among_free_rows_and_columns(rng):
    cost = rng.random((5, 6))
    partner = np.array([2, -1, -1, 0, -1])
    full = complete(partner, 6, lambda r, c: cost[np.ix_(r, c)])
    assert full[[0, 3]].tolist() == [2, 0]
    free = [1, 3, 4, 5]
    best = min(
        itertools.permutations(free, 3),
        key=lambda p: sum(cost[r, c] for r, c in zip([1, 2, 4], p, strict=True)),
    )
    assert full[[1, 2, 4]].tolist() == list(best)


def test_completion_in_blocks_gives_every_row_a_column_of_its_own(rng):
    cost = rng.random((30, 25))
    full = complete(np.full(30, -1), 25, lambda r, c: cost[np.ix_(r, c)], block=7)
    used = full[full >= 0]
    assert sorted(used.tolist()) == list(range(25))
