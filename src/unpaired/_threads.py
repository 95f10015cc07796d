"""One thread for small matrices, whatever the environment says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from threadpoolctl import threadpool_limits

SMALL = 20_000
"""Rows below which more threads only wait for each other."""


@contextmanager
def few_threads(n_rows: int) -> Iterator[None]:
    """Let linear algebra use one thread where there are few rows.

    Measured at 400 rows, two threads took seven times the CPU time of one; they also change the
    last digits, so that results would depend on the machine.
    """
    if n_rows >= SMALL:
        yield
        return
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with threadpool_limits(1):
            yield
    finally:
        torch.set_num_threads(before)
