"""Seeds: one number in, independent generators out."""

from __future__ import annotations

import numbers
import zlib

import numpy as np

from unpaired.errors import InputError

RandomState = int | np.random.Generator | np.random.RandomState | None


def resolve_seed(random_state: RandomState) -> int:
    """Return a non-negative integer seed; None draws one from the operating system.

    Raises:
        InputError: when ``random_state`` is none of None, a non-negative integer or a generator.
    """
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**32))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**32, dtype=np.uint64))
    if isinstance(random_state, numbers.Integral) and int(random_state) >= 0:
        return int(random_state)
    raise InputError(
        "random_state must be None, a non-negative integer or a NumPy generator: "
        f"got {random_state!r}. Pass an integer such as 0 for repeatable results."
    )


def derive_rng(seed: int, name: str) -> np.random.Generator:
    """Return the generator that belongs to ``name`` under ``seed``.

    Children of one seed do not depend on the order in which they are asked for.
    """
    return np.random.default_rng([seed, zlib.crc32(name.encode())])


def derive_seed(seed: int, name: str) -> int:
    """Return the integer seed (below 2**31) that belongs to ``name`` under ``seed``."""
    return int(derive_rng(seed, name).integers(2**31))
