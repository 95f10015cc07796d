"""What every data set is loaded as."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from unpaired.types import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class TwoViews:
    """Two sets of rows and, for evaluation only, which belong together."""

    x: FloatArray
    y: FloatArray
    truth: IntArray
    """(n_x,) row of y that belongs to each row of x, -1 where there is none."""
    owner: IntArray | None = None
    """(n_y,) row of x that each row of y belongs to, where one row of x has several (captions)."""
    split: NDArray[np.str_] | None = None
    """(n_x,) "train", "val" or "test", as the data set says; None when it says nothing."""
    names_x: tuple[str, ...] = ()
    names_y: tuple[str, ...] = ()
    """What each row is called: file names, words, classes; empty when unknown."""
