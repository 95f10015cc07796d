"""Every error this package raises on purpose."""

from collections.abc import Iterator
from contextlib import contextmanager


class UnpairedError(Exception):
    """Base of all errors raised on purpose; catching it catches them all."""


class InputError(UnpairedError, ValueError):
    """An argument breaks a rule; the message names it, the rule, what came and what to do."""


class ConvergenceError(UnpairedError, RuntimeError):
    """A computation left the finite numbers and cannot go on."""


class DataError(UnpairedError, OSError):
    """A file, a data set or an optional package is missing or not what it should be."""


class CollapseWarning(UserWarning):
    """Latents of a view lie almost in one point or on one line: the result is not to be used."""


@contextmanager
def extra(name: str) -> Iterator[None]:
    """Import what an extra brings inside this block: a missing package becomes one sentence.

    Raises:
        DataError: naming the package and the extra.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise DataError(f"This needs {error.name}: pip install 'unpaired[{name}]'.") from error
