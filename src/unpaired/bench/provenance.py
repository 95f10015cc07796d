"""Which code a cell was run by: the commit, and a digest of the definitions its method needs.

The digest is of the syntax of all that the method's class leads to in this package (``reach``) and
of the task's own modules. What changes elsewhere does not make a result stale.
"""

from __future__ import annotations

import hashlib
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from unpaired.bench.methods import OWN, method_file, method_home
from unpaired.bench.reach import SOURCE, module_text, reached

TASK_MODULES = {
    "retrieval": ("unpaired.bench.retrieval", "unpaired.bench.outcome"),
    "ucl": ("unpaired.bench.ucl", "unpaired.bench.namers"),
    "matching": ("unpaired.bench.matching", "unpaired.bench.outcome"),
}
"""The modules of a task itself. What they import is not followed: they know every method."""
IDLE = frozenset(
    f"unpaired.{name}"
    for name in ("_files", "_log", "_saving", "_threads", "errors", "spaces.solution", "types")
)
"""Modules that carry, save, tell or refuse what others compute: no figure comes from them."""
ENGINE = frozenset({"unpaired.matching"})
"""What other people's methods ask for a start, when they are told to begin there."""


@dataclass(frozen=True)
class Code:
    """The state of the repository that holds this package; None where it is in none."""

    commit: str | None
    dirty: bool | None
    """Whether a file of the package differs from the commit."""


def repository_state(folder: Path = SOURCE) -> Code:
    """The commit of the repository that tracks ``folder``, and whether its files differ from it."""
    try:
        _git(folder, "ls-files", "--error-unmatch", "__init__.py")  # else it is somebody else's
        commit = _git(folder, "rev-parse", "HEAD").strip()
        return Code(commit, bool(_git(folder, "status", "--porcelain", "--", ".").strip()))
    except (OSError, subprocess.CalledProcessError):
        return Code(None, None)


def _git(folder: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=folder, capture_output=True, text=True, check=True
    ).stdout


def is_stale(record: dict[str, Any]) -> bool:
    """Whether a finished cell was run by other code than today's, or nobody knows by which."""
    digest = record.get("digest")
    return digest is None or digest != cell_digest(record["key"]["task"], record["key"]["method"])


def cell_digest(task: str, method: dict[str, Any]) -> str | None:
    """Today's digest of a method in a task; None for a method that this version does not have.

    ``method`` is that of a cell's key: a name, ``params`` and ``fit``. A rival, or the method as
    published, leads to the matching engine only where it is told to begin there.
    """
    name = method["name"]
    found = method_file(name)
    if found is None:
        return None
    told = {**method.get("params", {}), **method.get("fit", {})}
    asks = ":" in name or name in OWN.homes or "engine" in (told.get("start"), told.get("seeds"))
    place = (found[0], method_home(name).partition(":")[2])
    return source_digest(place, found[1], TASK_MODULES[task], IDLE if asks else IDLE | ENGINE)


@cache
def source_digest(
    start: tuple[str, str], file: Path, others: tuple[str, ...], cut: frozenset[str]
) -> str:
    """SHA-256 of all that ``start``, a class in ``file``, leads to, and of the modules ``others``.

    Modules in ``cut`` are not followed.
    """
    parts = reached(start, file, cut)
    lines = [f"{module} {name} {parts[module, name]}" for module, name in sorted(parts)]
    lines += [f"{name} {module_text(name)}" for name in others]
    return hashlib.sha256("\n".join(lines).encode()).hexdigest()
