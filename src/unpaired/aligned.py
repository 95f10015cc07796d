"""A match with the space behind it: what ``align`` returns."""

from __future__ import annotations

import os
from dataclasses import asdict, dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import torch

from unpaired._checks import check_columns, check_view, column_names
from unpaired._random import derive_rng
from unpaired._threads import few_threads
from unpaired.errors import InputError
from unpaired.problem.problem import Problem
from unpaired.spaces.readout import numbered
from unpaired.spaces.solution import Evidence, HeldPair, Solution
from unpaired.types import FloatArray, Match

if TYPE_CHECKING:  # matching alone needs neither: they are loaded when asked for
    from unpaired._saving import Columns
    from unpaired.spaces.translation import Translation


@dataclass(frozen=True, eq=False)
class Alignment:
    """A Match over the rows given, and the space that places unseen rows of both sides."""

    match: Match
    solution: Solution
    columns: Columns = field(default_factory=dict)
    """How many columns each side has, and their names where it came as a frame."""
    problem: Problem | None = field(default=None, repr=False)
    """What it was learned from; not saved."""
    seed: int = 0
    maps: tuple[Translation, Translation] | None = field(default=None, repr=False)
    """Translations that were saved with it; ``translations`` has them in any case."""

    def embed_x(self, x: Any) -> FloatArray:
        """Rows of x so that inner products with embedded rows of y are scores."""
        return self._placed(x, 0)

    def embed_y(self, y: Any) -> FloatArray:
        """Rows of y so that inner products with embedded rows of x are scores."""
        return self._placed(y, 1)

    def score_matrix(self, x: Any, y: Any) -> FloatArray:
        """How well each row of x goes with each row of y, (n_x, n_y); larger = better."""
        return self.embed_x(x) @ self.embed_y(y).T

    def translate_x(self, x: Any) -> FloatArray:
        """Rows of x in y's own columns, (n, d_y): a linear guess at what y's model would give."""
        return self._translated(x, 0)

    def translate_y(self, y: Any) -> FloatArray:
        """Rows of y in x's own columns, (n, d_x): a linear guess at what x's model would give."""
        return self._translated(y, 1)

    @cached_property
    def translations(self) -> tuple[Translation, Translation]:
        """Maps from x's columns into y's, and back; learned when first asked for."""
        from unpaired.spaces.translation import MOST_COLUMNS, learn_translations

        if self.maps is not None:
            return self.maps
        if self.problem is None:
            raise InputError(
                "translations must have been saved with an alignment that was loaded: x and y "
                f"had more than {MOST_COLUMNS} columns. Reduce them first, and align again."
            )
        rows_x, rows_y = self.problem.counted
        inner, place = self.problem.restrict(rows_x, rows_y), np.full(len(self.problem.y), -1)
        place[rows_y] = np.arange(len(rows_y))
        with few_threads(len(rows_x)):
            return learn_translations(
                self.solution.space,
                inner.x,
                inner.y,
                derive_rng(self.seed, "translation"),
                known=inner.known,
                partner=numbered(self.match.partner[rows_x], place),
            )

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Write config.json and arrays.safetensors to ``directory``; ``unpaired.load`` reads it.

        The translations are among them where both sides have at most 4,096 columns; the rows that
        it was learned from are not.

        Raises:
            InputError: when ``directory`` cannot be written, or holds other files.
        """
        from unpaired._saving import write_saved
        from unpaired.spaces.stored import space_to_arrays
        from unpaired.spaces.translation import translations_to_arrays

        solution = self.solution
        arrays = space_to_arrays(solution.space)
        if self._narrow:
            arrays |= translations_to_arrays(self.translations)
        values = {
            "seed": self.seed,
            "kind": solution.kind,
            "certainty": solution.certainty,
            "temperature": solution.temperature,
            "history": solution.history,
            "notes": solution.notes,
            "evidence": asdict(solution.evidence),
        }
        write_saved(
            directory,
            type(self).__name__,
            arrays,
            values=values,
            columns=self.columns,
            match=self.match,
        )

    @property
    def _narrow(self) -> bool:
        """Whether there are, or can be, translations."""
        from unpaired.spaces.translation import MOST_COLUMNS

        if self.problem is None:
            return self.maps is not None
        return max(self.problem.x.shape[1], self.problem.y.shape[1]) <= MOST_COLUMNS

    @classmethod
    def _load(cls, config: dict[str, Any], arrays: dict[str, np.ndarray]) -> Self:
        from unpaired._saving import saved_columns, saved_match
        from unpaired.spaces.stored import space_from_arrays
        from unpaired.spaces.translation import translations_from_arrays

        values = dict(config["values"])
        seed, told = values.pop("seed"), dict(values.pop("evidence"))
        held = tuple(HeldPair(**pair) for pair in told.pop("held_out"))
        evidence = Evidence(**told, held_out=held)
        space = space_from_arrays(arrays, torch.device("cpu"))
        return cls(
            saved_match(config, arrays),
            Solution(space, evidence, **values),
            saved_columns(config),
            seed=seed,
            maps=translations_from_arrays(arrays),
        )

    def _translated(self, rows: Any, side: int) -> FloatArray:
        if not isinstance(rows, np.ndarray):  # arrays are checked a block at a time
            rows = self._checked(rows, side)
        return self.translations[side](rows)

    def _placed(self, rows: Any, side: int) -> FloatArray:
        tensor = torch.as_tensor(self._checked(rows, side), dtype=torch.float32)
        return self.solution.space.place(tensor, side).numpy()

    def _checked(self, rows: Any, side: int) -> FloatArray:
        """Rows that have the columns that ``align`` saw, in the same order."""
        name = "xy"[side]
        checked = check_view(rows, name, min_rows=1)
        if name in self.columns:
            check_columns(column_names(rows), checked.shape[1], name, *self.columns[name])
        return checked
