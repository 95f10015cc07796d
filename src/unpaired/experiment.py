"""Whole runs, from data to a RunResult."""

from __future__ import annotations

import platform
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from typing import Any

import numpy as np

from unpaired.matching import match
from unpaired.types import RunResult


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
) -> RunResult:
    """Match two tables by geometry and return what the report shows of it.

    ``options`` are further arguments of ``match``.
    """
    seconds: dict[str, float] = {}
    with timed(seconds, "match"):
        found = match(x, y, pairs, settings["relation"], seed, **options)
    return RunResult(
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
        notes=tuple(found.summary().splitlines()),
    )
