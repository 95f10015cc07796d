"""Frames out of estimators of two sides, in scikit-learn's manner."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from sklearn import get_config

from unpaired._checks import check_choice
from unpaired.errors import extra
from unpaired.types import FloatArray

KINDS = ("default", "pandas", "polars")


class FrameOutput:
    """An estimator that gives rows as arrays, or as frames when asked to.

    scikit-learn's own ``set_output`` knows ``transform`` alone; this one is for methods that end
    in ``_x`` and ``_y``.
    """

    def set_output(self, *, transform: str | None = None) -> Self:
        """Have ``transform_x`` and ``transform_y`` give frames, and translations where there are.

        Args:
            transform: "pandas", "polars", or "default" for arrays; None leaves it as it is. Where
                it was never said, scikit-learn's setting ``transform_output`` decides.
        """
        if transform is not None:
            kind = check_choice(transform, "transform", KINDS)
            self._sklearn_output_config = {"transform": kind}  # sklearn.base.clone keeps this name
        return self

    def _as_asked(
        self, values: FloatArray, rows: Any, names: Sequence[str] | None = None
    ) -> FloatArray:
        """``values`` as they are, or as a frame with ``names`` and with the index of ``rows``."""
        own = getattr(self, "_sklearn_output_config", {})
        kind = own.get("transform", get_config()["transform_output"])
        if kind == "default":
            return values
        stem = type(self).__name__.lower()
        columns = [f"{stem}{k}" for k in range(values.shape[1])] if names is None else list(names)
        frame: Any
        with extra("frames"):
            if kind == "polars":
                import polars

                frame = polars.DataFrame(np.asarray(values), schema=columns, orient="row")
            else:
                import pandas

                index = rows.index if isinstance(rows, pandas.DataFrame) else None
                frame = pandas.DataFrame(values, columns=columns, index=index)
        return frame
