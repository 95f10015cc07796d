"""Results into a folder: checked before the work, whole after it, and never lost."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import platform
import tempfile
from collections.abc import Callable, Iterable
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from unpaired import __version__
from unpaired.errors import DataError, InputError, UnpairedError

RUN_DEPENDS_ON = ("torch", "numpy", "scipy", "scikit-learn")


def check_extra(package: str, extra: str, what: str) -> None:
    """Accept when ``package`` is installed, without loading it.

    Raises:
        DataError: otherwise, naming the extra that brings it.
    """
    if importlib.util.find_spec(package) is None:
        raise DataError(f"{what} needs {package}: pip install 'unpaired[{extra}]'.")


def check_unmixed(out: Path, command: str) -> None:
    """Accept a folder that holds no run, or an earlier one of the same command.

    Raises:
        InputError: when results of another command, or what is not ours, would be mixed with new.
    """
    file = out / "run.json"
    if not file.exists():
        return
    try:
        words = json.loads(file.read_text(encoding="utf-8"))["command"]
        earlier = " ".join(words[:2]) if words[0] == "unpaired" else None
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        earlier = None
    if earlier != f"unpaired {command}":
        found = f"results of {earlier}" if earlier else "a run.json that unpaired did not write"
        raise InputError(
            f"--out must be new, or hold an earlier run of unpaired {command}: {out} holds "
            f"{found}. Name another folder."
        )


def deliver(out: Path, write: Callable[[Path], object]) -> None:
    """Have ``write`` fill ``out``, all of it or nothing; when that fails, a folder that works.

    Raises:
        UnpairedError: telling where the results are when they could not go to ``out``.
    """
    from unpaired._files import staged_folder  # brings NumPy, which `unpaired info` does without

    try:
        with staged_folder(out) as place:
            write(place)
    except OSError as error:
        if isinstance(error, UnpairedError):
            raise
        rescue = Path(tempfile.mkdtemp(prefix="unpaired-"))
        write(rescue)
        raise UnpairedError(
            f"--out {out} could not be written after all ({error.strerror or error}). "
            f"Nothing is lost: the results are in {rescue}. Move them from there."
        ) from error


def describe_inputs(files: dict[str, str | None]) -> dict[str, dict[str, Any]]:
    """Argument -> path, size and SHA-256 of each file that was given."""
    from unpaired.files.reading import split_part

    described = {}
    for argument, path in files.items():
        if path is None:
            continue
        file, _ = split_part(path)
        size = file.stat().st_size
        described[argument] = {"path": path, "bytes": size, "sha256": file_digest(file)}
    return described


def file_digest(file: Path) -> str:
    """SHA-256 of what a file holds."""
    with file.open("rb") as handle:
        return hashlib.file_digest(handle, "sha256").hexdigest()


def run_record(
    command: str, arguments: Iterable[str], options: dict[str, Any], seed: int, **facts: Any
) -> dict[str, Any]:
    """Enough to repeat a run exactly: what was called, by which versions, on which machine."""
    return {
        "unpaired": __version__,
        "command": command_line(command, arguments, {**options, "seed": seed}),
        "options": options,
        "seed": seed,
        **facts,
        "versions": {"python": platform.python_version(), **versions(RUN_DEPENDS_ON)},
        "machine": f"{platform.system()} {platform.machine()}",
    }


def verdict_record(verdict: Any) -> dict[str, Any] | None:
    """A verdict as it stands in run.json; None where nothing was judged."""
    if verdict is None:
        return None
    return {
        "level": verdict.level,
        "probability": verdict.probability,
        "expected_rank": verdict.expected_rank,
        "interval": list(verdict.interval),
        "reasons": list(verdict.reasons),
        "trusted": verdict.trusted,
    }


def command_line(command: str, arguments: Iterable[str], options: dict[str, Any]) -> list[str]:
    """The command as typed, every option that is set written out.

    >>> command_line("match", ["x.csv", "y.csv"], {"leave_out": True, "pairs": None, "seed": 0})
    ['unpaired', 'match', 'x.csv', 'y.csv', '--leave-out', '--seed', '0']
    """
    words = ["unpaired", command, *arguments]
    for name, value in options.items():
        flag = f"--{name.replace('_', '-')}"
        if name == "header" and value is not None:
            words.append(flag if value else "--no-header")
        elif value is True:
            words.append(flag)
        elif value is not None and value is not False:
            words += [flag, str(value)]
    return words


def versions(packages: Iterable[str]) -> dict[str, str]:
    """Package -> version of those that are installed."""
    found = {}
    for package in packages:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
