"""DMAE by the names of the paper's tables: with either measure, with and without reconstruction."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, TypeVar

from unpaired.models.dmae import DMAE

Model = TypeVar("Model", bound=type[DMAE])

# Reconstruction neither helps nor hurts the default learner beyond noise, so `DMAE` leaves it out;
# under the paper's names it is there, or not, as the name says.
WITH_RECONSTRUCTION: dict[str, Any] = {"reconstruction_weight": 0.1}
WITHOUT_RECONSTRUCTION: dict[str, Any] = {"reconstruction_weight": 0.0}


def with_defaults(**defaults: Any) -> Callable[[Model], Model]:
    """A class decorator: the same constructor as the parent's, with other defaults."""

    def decorate(model: Model) -> Model:
        parent: Any = model.__init__
        signature = inspect.signature(parent)
        changed = signature.replace(
            parameters=[
                part.replace(default=defaults.get(name, part.default))
                for name, part in signature.parameters.items()
            ]
        )

        def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
            bound = changed.bind(self, *args, **kwargs)
            bound.apply_defaults()
            parent(*bound.args, **bound.kwargs)

        __init__.__signature__ = changed  # type: ignore[attr-defined]
        __init__.__doc__ = parent.__doc__
        model.__init__ = __init__  # type: ignore[method-assign]
        return model

    return decorate


@with_defaults(dependence="smi", **WITH_RECONSTRUCTION)
class DMAESMI(DMAE):
    """DMAE with squared-loss mutual information. References: mukherjee2017, suzuki2009."""


@with_defaults(dependence="ukta", **WITH_RECONSTRUCTION)
class DMAEUKTA(DMAE):
    """DMAE with unnormalised kernel target alignment. References: mukherjee2017, cortes2012."""


@with_defaults(dependence="smi", **WITHOUT_RECONSTRUCTION)
class DeepSMI(DMAE):
    """DMAE-SMI without reconstruction. References: mukherjee2017."""


@with_defaults(dependence="ukta", **WITHOUT_RECONSTRUCTION)
class DeepUKTA(DMAE):
    """DMAE-uKTA without reconstruction: nothing holds the latents apart. See mukherjee2017."""
