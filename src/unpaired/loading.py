"""Reading back what was saved."""

from __future__ import annotations

import os
from typing import Any

from unpaired import __version__, registry
from unpaired._checks import check_choice
from unpaired._saving import read_saved
from unpaired.errors import DataError, UnpairedError


def load(directory: str | os.PathLike[str]) -> Any:
    """The estimator, alignment or translation that ``save`` wrote to ``directory``, as it was.

    Raises:
        DataError: when the folder holds none, was changed since, or was saved by a version that
            this one cannot read.
    """
    config, arrays = read_saved(directory)
    homes = {entry.partition(":")[2]: entry for entry in registry.saved_homes()}
    name = check_choice(config["estimator"], "saved estimator", homes)
    kind = registry.find(homes[name])
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
