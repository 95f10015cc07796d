"""The solvers under `assignment` of candidate lists and of columns that hold many rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import min_weight_full_bipartite_matching

Float = NDArray[np.float64]
Index = NDArray[np.int64]


def fill_columns(costs: Float, room: Index) -> Index:
    """The cheapest column of every row when column j holds at most `room[j]` rows; exact.

    Successive shortest paths over the columns: while a column is over-full, one row leaves it along
    the cheapest chain of moves that ends in a column with room. O(n_columns ** 3) a move.
    """
    n_columns = len(room)
    every = np.arange(n_columns)
    chosen = costs.argmin(axis=1).astype(np.int64)
    load = np.bincount(chosen, minlength=n_columns)
    detour = np.full((n_columns, n_columns), np.inf)  # [a, b]: cheapest move of a row from a to b
    mover = np.zeros((n_columns, n_columns), dtype=np.int64)
    stale = every
    while (load > room).any():
        for column in stale:
            members = np.flatnonzero(chosen == column)
            detour[column] = np.inf
            if len(members):
                extra = costs[members] - costs[members, column][:, None]
                best = extra.argmin(axis=0)
                detour[column], mover[column] = extra[best, every], members[best]
                detour[column, column] = np.inf
        distance = np.where(load > room, 0.0, np.inf)
        before = np.full(n_columns, -1, dtype=np.int64)
        for _ in range(n_columns):  # Bellman-Ford: an optimum has no negative cycle
            through = distance[:, None] + detour
            step = through.argmin(axis=0)
            length = through[step, every]
            better = length < distance - 1e-12
            if not better.any():
                break
            distance[better], before[better] = length[better], step[better]
        target = int(np.where(load < room, distance, np.inf).argmin())
        touched = [target]
        while before[target] >= 0:
            source = int(before[target])
            chosen[mover[source, target]] = target
            load[target] += 1
            load[source] -= 1
            target = source
            touched.append(target)
        stale = np.asarray(touched)
    return np.asarray(chosen)


def sparse_exact(
    index: Index, weight: Float, n_columns: int, out: Float, *, maximal: bool
) -> Index:
    """The optimum over candidate lists with a private "out" column per row; +inf edges are absent.

    With `maximal` as many rows as possible are matched first.
    """
    n_rows, width = index.shape
    keep = np.isfinite(weight)
    if not maximal:
        keep &= weight < out[:, None]
    rows = np.repeat(np.arange(n_rows), width)[keep.ravel()]
    columns, values = index[keep], weight[keep]
    # A candidate listed twice would be summed by the sparse constructor: keep the cheaper one.
    order = np.lexsort((values, columns, rows))
    rows, columns, values = rows[order], columns[order], values[order]
    first = np.ones(len(rows), dtype=bool)
    first[1:] = (rows[1:] != rows[:-1]) | (columns[1:] != columns[:-1])
    rows, columns, values = rows[first], columns[first], values[first]
    if maximal and len(values):
        out = np.full(n_rows, values.max() + (np.ptp(values) + 1.0) * (n_rows + 1))
    everyone = np.arange(n_rows)
    # Only weights with a sign are edges for SciPy: shift all of them above zero.
    shift = 1.0 - min(float(values.min(initial=0.0)), float(out.min(initial=0.0)))
    graph = csr_matrix(
        (
            np.concatenate([values, out]) + shift,
            (np.concatenate([rows, everyone]), np.concatenate([columns, n_columns + everyone])),
        ),
        shape=(n_rows, n_columns + n_rows),
    )
    matched_rows, matched = min_weight_full_bipartite_matching(graph)
    partner = np.full(n_rows, -1, dtype=np.int64)
    partner[matched_rows] = np.where(matched < n_columns, matched, -1)
    return partner


def auction(
    index: Index, weight: Float, n_columns: int, out: Float, step: float, max_iter: int
) -> Index:
    """A matching within `n_rows * step` of the optimum over candidate lists, by parallel bids.

    All unmatched rows bid at once for their best column; the highest bid wins and the loser bids
    again (Bertsekas 1988, Jacobi form). Prices start at zero, so columns nobody took stay free of
    charge and the bound holds with unequal sides. A row priced out takes its own way out for good.
    """
    n_rows = len(index)
    price = np.zeros(n_columns)
    owner = np.full(n_columns, -1, dtype=np.int64)
    partner = np.full(n_rows, -1, dtype=np.int64)
    bidders = np.arange(n_rows)
    for _ in range(max_iter):
        if not len(bidders):
            break
        lists = index[bidders]
        value = weight[bidders] + price[lists]
        here = np.arange(len(bidders))
        best = value.argmin(axis=1)
        lowest = value[here, best]
        wanted = lists[here, best]
        value[lists == wanted[:, None]] = np.inf
        second = np.minimum(value.min(axis=1), out[bidders])
        stay = lowest < out[bidders]
        bidders, wanted = bidders[stay], wanted[stay]
        bid = price[wanted] + second[stay] - lowest[stay] + step
        order = np.lexsort((-bidders, bid))  # ties go to the lower row number
        wanted, bid, ranked = wanted[order], bid[order], bidders[order]
        columns = np.unique(wanted)
        losers = owner[columns]
        losers = losers[losers >= 0]
        price[wanted] = bid  # the last write of a column is its highest bid
        owner[wanted] = ranked
        partner[losers] = -1
        partner[owner[columns]] = columns
        bidders = np.concatenate([losers, bidders[partner[bidders] < 0]])
    return partner
