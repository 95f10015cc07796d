"""Whole runs, from data to a RunResult."""

from __future__ import annotations

import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any

import numpy as np
import torch

from unpaired._random import derive_rng
from unpaired.aligned import Alignment
from unpaired.checking import advise
from unpaired.matching import align, match
from unpaired.math.principal import principal
from unpaired.problem.problem import ONE_TO_ONE
from unpaired.results import Place, RunResult
from unpaired.trust.evidence import shape_of
from unpaired.types import Match

ROWS_ON_MAP = 400
"""Matched pairs that a map shows, at most."""


def package_versions() -> dict[str, str]:
    """Versions of what the result depends on."""
    names = ("unpaired", "torch", "numpy", "scipy", "scikit-learn")
    return {"python": platform.python_version(), **{name: version(name) for name in names}}


@contextmanager
def timed(seconds: dict[str, float], name: str) -> Iterator[None]:
    """Note under ``name`` how long the block took."""
    begin = time.perf_counter()
    yield
    seconds[name] = time.perf_counter() - begin


def run_match(
    x: Any, y: Any, pairs: Any, settings: dict[str, Any], seed: int, **options: Any
) -> tuple[RunResult, Alignment | None]:
    """What the report shows of a match of two tables, and the space behind it, if there is one.

    ``options`` are further arguments of ``match``. Many-to-one has no space of its own.
    """
    seconds: dict[str, float] = {}
    aligned: Alignment | None = None
    with timed(seconds, "match"):
        if settings["relation"] == ONE_TO_ONE:
            aligned = align(x, y, pairs, random_state=seed, **options)
            found = aligned.match
        else:
            found = match(x, y, pairs, settings["relation"], seed, **options)
    result = RunResult(
        title="Matching two tables",
        headline={
            "Rows of x": float(len(found)),
            "Matched": float((found.partner >= 0).sum()),
            "Median confidence": float(np.median(found.confidence)),
            "Dependence": float(found.objective),
        },
        settings=settings,
        seed=seed,
        versions=package_versions(),
        seconds=seconds,
        match=found,
        places=() if aligned is None else lay_out(aligned, seed),
        advice=advice_on(found, aligned),
        notes=tuple(found.summary().splitlines()),
    )
    return result, aligned


def advice_on(found: Match, aligned: Alignment | None) -> tuple[str, ...]:
    """What to do next with a match, in sentences."""
    if found.verdict is None or aligned is None or aligned.problem is None:
        return ("look at a few rows of every class: a name is right or wrong for a whole group",)
    shape = shape_of(aligned.problem)
    return advise(found.verdict, shape.n, len(aligned.problem.known), shape.repeats)


def lay_out(aligned: Alignment, seed: int) -> tuple[Place, ...]:
    """Some matched rows and their partners on the two main axes of the space they share.

    Each side is centred, so that what sets the sides apart as a whole takes up no axis.
    """
    problem = aligned.problem
    pairs = aligned.match.pairs
    if problem is None or len(pairs) < 3:
        return ()
    kept = np.sort(derive_rng(seed, "map").permutation(len(pairs))[:ROWS_ON_MAP])
    rows = pairs[kept]
    sides = [
        aligned.solution.space.embed(torch.as_tensor(values, dtype=torch.float32), number).numpy()
        for number, values in enumerate((problem.x[rows[:, 0]], problem.y[rows[:, 1]]))
    ]
    joined = np.concatenate([side - side.mean(axis=0) for side in sides])
    axes = principal(torch.as_tensor(joined), 2).axes.numpy()
    spots = joined @ axes
    spots = np.pad(spots, ((0, 0), (0, 2 - spots.shape[1])))
    names = [("x", row) for row in rows[:, 0]] + [("y", row) for row in rows[:, 1]]
    return tuple(
        Place(side, int(row), float(across), float(up))
        for (side, row), (across, up) in zip(names, spots, strict=True)
    )
