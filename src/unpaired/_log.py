"""What a run tells while it goes on: the logger "unpaired", silent unless someone listens.

>>> import logging
>>> logging.getLogger("unpaired").setLevel(logging.INFO)  # and a handler of your own
"""

from __future__ import annotations

import logging

log = logging.getLogger("unpaired")
log.addHandler(logging.NullHandler())


def step(text: str, done: int | None = None, total: int | None = None) -> None:
    """Tell listeners what is being done, and how many steps of how many are behind."""
    log.info(text, extra={"done": done, "total": total})
