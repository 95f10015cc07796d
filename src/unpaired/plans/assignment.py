"""Linear assignment in every shape the matching engine needs; all costs are minimised.

One family of signatures: a cost comes in (dense, or as candidate lists), keyword-only structure
(`known`, `forbidden`, `skip_cost`) narrows the answer, and `partner` comes out: `partner[i]` is the
column of row i, or -1 where the row is left out.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import linear_sum_assignment

Float = NDArray[np.float64]
Index = NDArray[np.int64]

EXACT_ROWS = 1500
"""Contested rows up to which sparse problems are solved exactly; above, by auction."""


def assign(
    cost: ArrayLike,
    *,
    known: ArrayLike | None = None,
    forbidden: ArrayLike | None = None,
    skip_cost: ArrayLike | None = None,
) -> Index:
    """The cheapest one-to-one matching of the rows of a dense cost matrix to its columns.

    As many rows as possible are matched (with `skip_cost`: as many as pay), then the sum is least.
    Rows beyond the number of columns, and rows that only forbidden columns could serve, get -1.

    Args:
        cost: (n_rows, n_columns), finite or +inf; +inf forbids a pair.
        known: (p, 2) pairs (row, column) kept whatever they cost.
        forbidden: (q, 2) pairs that must not be matched.
        skip_cost: Price of leaving a row out, one number or one per row; leaving a column out is
            free. None: rows are left out only when no allowed column remains.

    >>> assign([[1.0, 2.0], [1.0, 5.0]]).tolist()
    [1, 0]
    >>> assign([[1.0, 2.0], [1.0, 5.0]], skip_cost=1.5).tolist()
    [0, -1]
    """
    costs = forbid(cost, forbidden)
    n_rows, n_columns = costs.shape
    partner, rows, columns = keep_known(known, n_rows, n_columns)
    if not len(rows):
        return partner
    inner = costs[np.ix_(rows, columns)]
    allowed = np.isfinite(inner)
    if skip_cost is None:
        span = float(np.ptp(inner[allowed])) if allowed.any() else 0.0
        top = float(inner[allowed].max()) if allowed.any() else 0.0
        ceiling = top + (span + 1.0) * (min(inner.shape) + 1)
        chosen_rows, chosen = linear_sum_assignment(np.where(allowed, inner, ceiling))
    else:
        # A pair dearer than the row's price is never worth it, so it can stand for "out" at
        # gain 0: any partial matching extends to a full one by such pairs.
        price = np.broadcast_to(skip_cost, n_rows)[rows][:, None]
        useful = allowed & (inner < price)
        gain = np.where(useful, inner - price, 0.0)
        chosen_rows, chosen = linear_sum_assignment(gain)
        allowed = useful
    good = allowed[chosen_rows, chosen]
    partner[rows[chosen_rows[good]]] = columns[chosen[good]]
    return partner


def spare_copies(scores: ArrayLike, group: ArrayLike) -> Index:
    """The later copies of columns that no row asks for, sorted.

    Copies can serve the rows whose best column is one of them; what is over, such as columns of
    zeros, is for whoever is left. Charged alike, they push no row from the column that suits it.

    Args:
        scores: (n_rows, n_columns), larger = better.
        group: (n_columns,) a number that copies of each other share.

    >>> spare_copies([[2.0, 0.0, 0.0], [0.0, 1.0, 1.0], [3.0, 0.0, 0.0]], [0, 1, 1]).tolist()
    [2]
    """
    table, groups = np.asarray(scores), np.asarray(group)
    order = np.argsort(groups, kind="stable")
    first = np.searchsorted(groups[order], groups[order])
    place = np.empty(len(groups), dtype=np.int64)
    place[order] = np.arange(len(groups)) - first  # 0 for the first of its copies
    asked = np.bincount(groups[table.argmax(axis=1)], minlength=int(groups.max()) + 1)
    return np.flatnonzero(place >= np.maximum(asked[groups], 1)).astype(np.int64)


def assign_many(
    cost: ArrayLike,
    *,
    capacity: ArrayLike | None = None,
    known: ArrayLike | None = None,
    forbidden: ArrayLike | None = None,
) -> Index:
    """The cheapest many-to-one matching: every row gets a column, a column may serve many rows.

    Without `capacity` each row takes its cheapest allowed column (the semi-relaxed step). With it,
    column j serves at most `capacity[j]` rows, known pairs included; the result is the exact
    optimum, found by shortest paths over the columns (cheap for few columns and many rows).

    >>> assign_many([[0.0, 1.0], [0.0, 3.0], [0.0, 2.0]], capacity=[2, 1]).tolist()
    [1, 0, 0]
    """
    from unpaired.plans._auction import fill_columns

    costs = forbid(cost, forbidden)
    n_rows, n_columns = costs.shape
    partner, rows, _ = keep_known(known, n_rows, n_columns)
    inner = costs[rows]
    finite = inner[np.isfinite(inner)]
    span = float(np.ptp(finite)) if finite.size else 0.0
    out = (float(finite.max()) if finite.size else 0.0) + (span + 1.0) * (n_columns + 1)
    inner = np.column_stack([inner, np.full(len(rows), out)])  # "out" is dearer than any detour
    room = np.full(n_columns + 1, n_rows, dtype=np.int64)
    if capacity is not None:
        room[:-1] = np.asarray(capacity) - np.bincount(partner[partner >= 0], minlength=n_columns)
    chosen = fill_columns(inner, room)
    partner[rows] = np.where(chosen == n_columns, -1, chosen)
    return partner


def assign_sparse(
    candidates: ArrayLike,
    costs: ArrayLike,
    n_columns: int,
    *,
    known: ArrayLike | None = None,
    forbidden: ArrayLike | None = None,
    skip_cost: ArrayLike | None = None,
    max_iter: int = 20_000,
) -> Index:
    """A cheap one-to-one matching that uses only each row's candidate columns.

    Rows whose cheapest column nobody else wants are settled by one pass. If at most `EXACT_ROWS`
    rows exist the optimum is exact; above, an auction reaches a sum within `n_rows` times
    its smallest bid (3% of the spread of costs) of the optimum, in time that grows almost linearly.
    A row whose candidates are all taken at lower prices is left out (-1): `complete` serves it.

    Args:
        candidates: (n_rows, k) column numbers, -1 where a row has fewer than k candidates.
        costs: (n_rows, k), finite; entries at -1 are ignored.
        n_columns: Number of columns in all.
        known: (p, 2) pairs (row, column) kept whatever they cost.
        forbidden: (q, 2) pairs that must not be matched.
        skip_cost: Price of leaving a row out, one number or one per row. None: a little above
            twice the dearest candidate.
        max_iter: Rounds of bidding; rows still bidding then are left out.

    >>> assign_sparse([[0, 1], [0, -1]], [[1.0, 2.0], [1.0, 0.0]], 2).tolist()
    [1, 0]
    """
    from unpaired.plans._auction import auction, sparse_exact

    index = np.array(candidates, dtype=np.int64)
    weight = np.array(costs, dtype=np.float64)
    n_rows = len(index)
    partner, rows, columns = keep_known(known, n_rows, n_columns)
    taken = np.ones(n_columns + 1, dtype=bool)
    taken[columns] = False  # index -1 reads the last entry, which stays taken
    weight[taken[index]] = np.inf
    for row, column in as_pairs(forbidden):
        weight[row, index[row] == column] = np.inf
    index, weight = index[rows], weight[rows]
    finite = weight[np.isfinite(weight)]
    if not finite.size:
        return partner
    out = np.full(len(rows), 2.0 * finite.max() - finite.min() + 1e-9 + 0.1 * np.ptp(finite))
    if skip_cost is not None:
        out = np.broadcast_to(skip_cost, n_rows)[rows]
    index = np.where(index < 0, 0, index)
    if len(rows) <= EXACT_ROWS:
        partner[rows] = sparse_exact(index, weight, n_columns, out, maximal=skip_cost is None)
    else:
        step = 0.03 * float(finite.std()) or 1e-12
        partner[rows] = auction(index, weight, n_columns, out, step, max_iter)
    return partner


def complete(
    partner: Index,
    n_columns: int,
    cost_block: Callable[[Index, Index], Float],
    *,
    block: int = 2000,
) -> Index:
    """The matching with its left-out rows given the free columns, cheapest first in blocks.

    `cost_block(rows, columns)` returns the dense costs of a block; at most `block` squared numbers
    exist at a time. With at most `block` free rows the completion is optimal.
    """
    full = np.array(partner, dtype=np.int64)
    rows = np.flatnonzero(full < 0)
    used = np.zeros(n_columns, dtype=bool)
    used[full[full >= 0]] = True
    free = np.flatnonzero(~used)
    while len(rows) and len(free):
        now_rows, now = rows[:block], free[: max(block, 1)]
        chosen_rows, chosen = linear_sum_assignment(cost_block(now_rows, now))
        full[now_rows[chosen_rows]] = now[chosen]
        rows = np.concatenate([np.setdiff1d(now_rows, now_rows[chosen_rows]), rows[block:]])
        free = np.setdiff1d(free, now[chosen])
    return full


def keep_known(known: ArrayLike | None, n_rows: int, n_columns: int) -> tuple[Index, Index, Index]:
    """The matching with the known pairs in it, and the rows and columns they leave."""
    pairs = as_pairs(known)
    partner = np.full(n_rows, -1, dtype=np.int64)
    partner[pairs[:, 0]] = pairs[:, 1]
    rows = np.setdiff1d(np.arange(n_rows), pairs[:, 0])
    return partner, rows, np.setdiff1d(np.arange(n_columns), pairs[:, 1])


def forbid(cost: ArrayLike, forbidden: ArrayLike | None) -> Float:
    """The costs (n_rows, n_columns) with +inf at the forbidden pairs."""
    costs, pairs = np.asarray(cost, dtype=np.float64), as_pairs(forbidden)
    if len(pairs):
        costs = costs.copy()
        costs[pairs[:, 0], pairs[:, 1]] = np.inf
    return costs


def as_pairs(pairs: ArrayLike | None) -> Index:
    """The pairs as (p, 2) integers; None is no pairs."""
    return np.asarray([] if pairs is None else pairs, dtype=np.int64).reshape(-1, 2)
