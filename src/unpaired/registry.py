"""The one registry: plain dicts, name -> callable. Adding a thing is one line here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from unpaired.datasets.sample import load_sample
from unpaired.matching.frank_wolfe import frank_wolfe
from unpaired.math.dependence import MEASURES
from unpaired.models.loading import ESTIMATORS

datasets: dict[str, Callable[..., Any]] = {"cifar10-sample": load_sample}
measures: dict[str, Callable[..., Any]] = MEASURES
solvers: dict[str, Callable[..., Any]] = {"frank-wolfe": frank_wolfe}
models: dict[str, Callable[..., Any]] = dict(ESTIMATORS)
