"""Task "matching": two sets of rows that belong together one to one, some pairs known.

Both sides are shuffled. Known pairs are drawn at random; all measures are over the rows whose pair
was not told. "semi" fits all rows, "sup" the known pairs only; at 0 pairs "semi" is unsupervised.
Option ``max_rows = 800`` draws so many rows of x that have a partner, and their partners.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from unpaired.bench.config import MethodSpec
from unpaired.bench.methods import make_method
from unpaired.bench.outcome import Outcome, amount, matching_shares, read_outs
from unpaired.datasets.two_views import TwoViews
from unpaired.errors import InputError
from unpaired.evaluation.retrieval import foscttm
from unpaired.experiment import timed


def run_matching(
    data: TwoViews,
    method: MethodSpec,
    setting: str,
    row: str,
    seed: int,
    options: dict[str, Any],
) -> Outcome:
    """Fit one method and measure how well it finds the pairs it was not told."""
    rng = np.random.default_rng([seed, 7])
    if "max_rows" in options:
        data = _some_rows(data, int(options["max_rows"]), np.random.default_rng([seed, 9]))
    has_partner = np.flatnonzero(data.truth >= 0)
    order_x, order_y = rng.permutation(len(data.x)), rng.permutation(len(data.y))
    place_y = np.empty(len(order_y), dtype=np.int64)
    place_y[order_y] = np.arange(len(order_y))
    x, y = data.x[order_x], data.y[order_y]
    truth = np.where(data.truth >= 0, place_y[data.truth], -1)[order_x]
    n_known = amount(row, len(has_partner))
    known = rng.permutation(np.flatnonzero(truth >= 0))[:n_known]
    pairs = np.column_stack([known, truth[known]]).astype(np.int64)
    held = np.setdiff1d(np.flatnonzero(truth >= 0), known)
    if len(held) < 2:
        raise InputError(f'Row "{row}" leaves {len(held)} rows to test on. Tell fewer pairs.')
    seconds: dict[str, float] = {}
    model = make_method(method, seed)
    with timed(seconds, "fit"):
        if setting == "sup":
            aligned = np.repeat(np.arange(n_known)[:, None], 2, axis=1)
            model.fit(x[pairs[:, 0]], y[pairs[:, 1]], pairs=aligned, **method.fit)
        else:
            model.fit(x, y, pairs=pairs if n_known else None, **method.fit)
    with timed(seconds, "score"):
        scores = np.asarray(model.score_matrix(x[held], y[truth[held]]))
        metrics = read_outs(scores, np.arange(len(held)))
        metrics["foscttm"] = foscttm(scores)
    shares: dict[str, float] = {}
    history: list[dict[str, float]] = []
    if setting == "semi":
        shares, history = matching_shares(model, len(x), held, truth)
    sizes = {"x": len(x), "y": len(y), "pairs": n_known, "tested": len(held)}
    return Outcome(type(model).__name__, metrics | shares, sizes, seconds, history)


def _some_rows(data: TwoViews, n_rows: int, rng: np.random.Generator) -> TwoViews:
    """``n_rows`` rows of x that have a partner, and these partners."""
    kept = rng.permutation(np.flatnonzero(data.truth >= 0))[:n_rows]
    partners, place = np.unique(data.truth[kept], return_inverse=True)
    return TwoViews(data.x[kept], data.y[partners], place.astype(np.int64))
