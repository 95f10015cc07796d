"""What a command says: results to stdout, decisions and progress to stderr."""

from __future__ import annotations

import json
import logging
import math
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any

import typer

from unpaired.errors import InputError

Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Say nothing but errors.")]
Json = Annotated[bool, typer.Option("--json", help="Print the run as JSON and nothing else.")]


TYPED = {"similarity": "side-info", "n_jobs": "jobs", "class_vectors": "NAMES", "images": "PHOTOS"}
"""What arguments of Python are called where they were typed."""


@contextmanager
def as_typed() -> Iterator[None]:
    """Have errors about arguments of Python name what was typed.

    Raises:
        InputError: the same, its first word exchanged.
    """
    try:
        yield
    except InputError as error:
        first, blank, rest = str(error).partition(" ")
        raise InputError(TYPED.get(first, first) + blank + rest) from error


@dataclass(frozen=True)
class Console:
    """Where a command's words go: to people, to a program, or nowhere."""

    quiet: bool = False
    as_json: bool = False

    def tell(self, text: object = "") -> None:
        """Print a line of the result."""
        if not (self.quiet or self.as_json):
            typer.echo(text)

    def note(self, text: str) -> None:
        """Print what was decided, beside the result."""
        if not (self.quiet or self.as_json):
            typer.echo(f"note: {text}", err=True)

    def finish(self, record: dict[str, Any]) -> None:
        """Print the record of the run when a program asked for it."""
        if self.as_json:
            typer.echo(to_json(record))

    @contextmanager
    def progress(self, text: str) -> Iterator[None]:
        """Show on a terminal that ``text`` is going on, how far, and how long it may take.

        What the package logs meanwhile replaces the text; ``unpaired._log.track`` moves the bar.
        """
        if self.quiet or self.as_json or not sys.stderr.isatty():
            yield
            return
        try:
            import rich.console
            import rich.progress
            import rich.text
        except ImportError:  # the run is the same without it
            yield
            return

        class Left(rich.progress.ProgressColumn):
            """The time left, once the pace is known."""

            def render(self, task: rich.progress.Task) -> rich.text.Text:
                seconds = task.time_remaining
                known = "" if seconds is None else f"{timedelta(seconds=int(seconds))} left"
                return rich.text.Text(known, style="progress.remaining")

        columns = (
            rich.progress.SpinnerColumn(),
            rich.progress.TextColumn("{task.description}", markup=False),
            rich.progress.BarColumn(bar_width=24),
            rich.progress.TimeElapsedColumn(),
            Left(),
        )
        screen = rich.console.Console(stderr=True)
        with rich.progress.Progress(*columns, console=screen, transient=True) as bars:
            listener = _Listener(bars, text)
            log = logging.getLogger("unpaired")
            level = log.level
            log.addHandler(listener)
            log.setLevel(logging.INFO)
            try:
                yield
            finally:
                log.removeHandler(listener)
                log.setLevel(level)


class _Listener(logging.Handler):
    """Moves a bar by what is logged in the thread that made it; a new loop gets a new bar."""

    def __init__(self, bars: Any, text: str) -> None:
        super().__init__(logging.INFO)
        self.bars, self.task = bars, bars.add_task(text, total=None)
        self.thread, self.done, self.total = threading.get_ident(), 0.0, None

    def emit(self, record: logging.LogRecord) -> None:
        """Show the message, and where the step stands when the record says so."""
        if record.thread != self.thread:
            return
        total, done = getattr(record, "total", None), getattr(record, "done", None) or 0.0
        if total is not None and (total != self.total or done < self.done):
            # Time left is told from the pace of this loop, not of the one before.
            self.bars.remove_task(self.task)
            self.task = self.bars.add_task(record.getMessage(), total=total, completed=done)
        elif total is not None:
            self.bars.update(self.task, description=record.getMessage(), completed=done)
        else:
            self.bars.update(self.task, description=record.getMessage())
        if total is not None:
            self.total, self.done = total, done


def to_json(record: dict[str, Any]) -> str:
    """A record as strict JSON: numbers that are not finite become null."""
    return json.dumps(_finite(record), indent=1, allow_nan=False, default=str)


def _finite(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, dict):
        return {str(key): _finite(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(inner) for inner in value]
    return value
