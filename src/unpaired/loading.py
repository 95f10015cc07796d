"""Reading saved estimators back."""

from __future__ import annotations

import os

from unpaired import registry
from unpaired._checks import check_choice
from unpaired.models.base import SavedEstimator, read_saved


def load(directory: str | os.PathLike[str]) -> SavedEstimator:
    """The estimator that ``save`` wrote to ``directory``, fitted as it was."""
    config, arrays = read_saved(directory)
    homes = {entry.partition(":")[2]: entry for entry in registry.estimator_homes()}
    name = check_choice(config["estimator"], "saved estimator", homes)
    kind: type[SavedEstimator] = registry.find(homes[name])
    return kind._load(config, arrays)
