"""Reading saved estimators back."""

from __future__ import annotations

import os

from unpaired._checks import check_choice
from unpaired.models.base import SavedEstimator, read_saved
from unpaired.models.classifier import UnsupervisedClassifier
from unpaired.models.dmae import DMAE

ESTIMATORS: dict[str, type[SavedEstimator]] = {
    "DMAE": DMAE,
    "UnsupervisedClassifier": UnsupervisedClassifier,
}


def load(directory: str | os.PathLike[str]) -> SavedEstimator:
    """The estimator that ``save`` wrote to ``directory``, fitted as it was."""
    config, arrays = read_saved(directory)
    kind = ESTIMATORS[check_choice(config["estimator"], "saved estimator", ESTIMATORS)]
    return kind._load(config, arrays)
