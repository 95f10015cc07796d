"""What a run tells while it goes on: the logger "unpaired", silent unless someone listens.

>>> import logging
>>> logging.getLogger("unpaired").setLevel(logging.INFO)  # and a handler of your own
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sized
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")

log = logging.getLogger("unpaired")
log.addHandler(logging.NullHandler())

_around: ContextVar[tuple[tuple[int, int], ...]] = ContextVar("around", default=())
"""The loops that a step lies in, outermost first: rounds behind, and rounds in all."""


def step(text: str, done: float | None = None, total: int | None = None) -> None:
    """Tell listeners what is being done, and how many steps of how many are behind."""
    log.info(text, extra={"done": done, "total": total})


def track(items: Iterable[T], text: str, total: int | None = None) -> Iterator[T]:
    """The items one by one, while listeners hear how many of how many are behind.

    Inside another tracked loop the outer one is what counts, moved on by a part of a round.

    >>> [2 * number for number in track(range(3), "Doubling")]
    [0, 2, 4]
    """
    if total is None and isinstance(items, Sized):
        total = len(items)
    outer = _around.get()
    try:
        for number, item in enumerate(items):
            if total:
                _around.set((*outer, (number, total)))
            step(text, *_where())
            yield item
    finally:
        _around.set(outer)
    if total and not outer:
        step(text, total, total)


def _where() -> tuple[float | None, int | None]:
    """Rounds of the outermost loop that are behind, parts of rounds included, and its total."""
    around = _around.get()
    if not around:
        return None, None
    done, part = 0.0, 1.0
    for number, total in around:
        done += part * number / total
        part /= total
    whole = around[0][1]
    return done * whole, whole
