"""The one registry: plain dicts, name -> callable. Adding a thing is one line here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from unpaired.datasets.sample import load_sample
from unpaired.matching.convex_sorting import convex_sorting, penalised_convex_sorting
from unpaired.matching.frank_wolfe import annealed_sinkhorn, frank_wolfe, semi_relaxed
from unpaired.matching.kernelized_sorting import kernelized_sorting, procrustes_hungarian
from unpaired.matching.lsom import lsom, penalised_lsom
from unpaired.math.dependence import MEASURES
from unpaired.models.loading import ESTIMATORS

datasets: dict[str, Callable[..., Any]] = {"cifar10-sample": load_sample}
measures: dict[str, Callable[..., Any]] = MEASURES
solvers: dict[str, Callable[..., Any]] = {
    "annealed-sinkhorn": annealed_sinkhorn,
    "convex-sorting": convex_sorting,
    "convex-sorting-penalised": penalised_convex_sorting,
    "frank-wolfe": frank_wolfe,
    "kernelized-sorting": kernelized_sorting,
    "lsom": lsom,
    "lsom-penalised": penalised_lsom,
    "procrustes-hungarian": procrustes_hungarian,
    "semi-relaxed": semi_relaxed,
}
models: dict[str, Callable[..., Any]] = dict(ESTIMATORS)
