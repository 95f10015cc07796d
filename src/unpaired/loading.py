"""Reading saved estimators back."""

from __future__ import annotations

import os

from unpaired import __version__, registry
from unpaired._checks import check_choice
from unpaired.errors import DataError, UnpairedError
from unpaired.models.base import SavedEstimator, read_saved


def load(directory: str | os.PathLike[str]) -> SavedEstimator:
    """The estimator that ``save`` wrote to ``directory``, fitted as it was.

    Raises:
        DataError: when the folder holds none, was changed since, or was saved by a version that
            this one cannot read.
    """
    config, arrays = read_saved(directory)
    homes = {entry.partition(":")[2]: entry for entry in registry.estimator_homes()}
    name = check_choice(config["estimator"], "saved estimator", homes)
    kind: type[SavedEstimator] = registry.find(homes[name])
    try:
        return kind._load(config, arrays)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, RuntimeError) as error:
        if isinstance(error, UnpairedError):
            raise
        reason = f"{type(error).__name__}: {error}"
        raise DataError(
            f"{directory} holds a {name} of unpaired {config['unpaired']}, which this version, "
            f"{__version__}, cannot restore ({reason}). Load it with the version that wrote it."
        ) from error
