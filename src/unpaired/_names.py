"""Names that people type, checked without loading anything."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import Any

from unpaired.errors import InputError


def check_choice(value: Any, name: str, known: Iterable[str]) -> str:
    """Return ``value`` when it is one of ``known``.

    Raises:
        InputError: otherwise, with the nearest known name.
    """
    options = sorted(known)
    if isinstance(value, str) and value in options:
        return value
    near = difflib.get_close_matches(str(value), options, n=1)
    guess = f' Did you mean "{near[0]}"?' if near else ""
    raise InputError(f'Unknown {name} "{value}".{guess} Known: {", ".join(options)}.')
