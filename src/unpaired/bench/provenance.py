"""Which code a cell was run by: the commit, and a digest of the modules its method is made of.

The digest follows import statements in the source, from the method's module on. What
``sys.modules`` holds after a cell would depend on the cells that ran in the same process before it;
the source does not, and today's digest of a cell that ran long ago can be had without running
anything. Only the syntax counts: comments, docstrings and layout may change without making a
result stale.
"""

from __future__ import annotations

import ast
import hashlib
import subprocess
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from unpaired.bench.methods import method_file

PACKAGE = "unpaired"
SOURCE = Path(__file__).parents[1]
TASK_MODULES = {
    "retrieval": ("unpaired.bench.retrieval", "unpaired.bench.outcome"),
    "ucl": ("unpaired.bench.ucl", "unpaired.bench.namers"),
    "matching": ("unpaired.bench.matching", "unpaired.bench.outcome"),
}
"""The modules of a task itself. What they import is not followed: they know every method."""


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
    return digest is None or digest != cell_digest(
        record["key"]["task"], record["key"]["method"]["name"]
    )


def cell_digest(task: str, name: str) -> str | None:
    """Today's digest of a method in a task; None for a method that this version does not have."""
    found = method_file(name)
    return None if found is None else source_digest(*found, TASK_MODULES[task])


@cache
def source_digest(module: str, file: Path, others: tuple[str, ...] = ()) -> str:
    """SHA-256 of ``file``, of all modules of the package it leads to, and of ``others``."""
    files = {name: module_file(name) for name in import_closure(file) | set(others)}
    files[module] = file
    total = hashlib.sha256()
    for name in sorted(files):
        total.update(f"{name} {_syntax(files[name])}\n".encode())
    return total.hexdigest()


def import_closure(file: Path) -> set[str]:
    """Names of the package's modules that ``file`` imports, at once or through others."""
    found: set[str] = set()
    waiting = set(_imports(file))
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting |= _imports(module_file(name)) - found
    return found


def module_file(name: str) -> Path:
    """The file of a module of the package."""
    place = SOURCE.joinpath(*name.split(".")[1:])
    return place / "__init__.py" if place.is_dir() else place.with_suffix(".py")


@cache
def _imports(file: Path) -> frozenset[str]:
    """Modules of the package that a file imports itself, also inside functions."""
    found: set[str] = set()
    for node in ast.walk(_tree(file)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found |= {_home(node.module or "", alias.name) for alias in node.names}
    return frozenset(name for name in found if name.split(".")[0] == PACKAGE)


def _home(module: str, name: str) -> str:
    """The module that "from module import name" needs: a package's face is looked through."""
    if module.split(".")[0] != PACKAGE:
        return module
    if module_file(f"{module}.{name}").is_file():
        return f"{module}.{name}"
    face = module_file(module)
    if face.name == "__init__.py":
        for node in ast.walk(_tree(face)):
            if isinstance(node, ast.ImportFrom) and name in {
                a.asname or a.name for a in node.names
            }:
                return _home(node.module or "", name)
    return module


@cache
def _tree(file: Path) -> ast.Module:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)):
            node.body = [part for part in node.body if not _is_text(part)]
    return tree


def _is_text(node: ast.AST) -> bool:
    """Whether a statement is a bare string: a docstring, or a note below a constant."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


@cache
def _syntax(file: Path) -> str:
    return _written(_tree(file))


def _written(node: Any) -> str:
    """A syntax tree as text. ``ast.dump`` differs between versions of Python; this does not."""
    if isinstance(node, ast.AST):
        fields = ((name, value) for name, value in ast.iter_fields(node) if value not in (None, []))
        return f"{type(node).__name__}({','.join(f'{n}={_written(v)}' for n, v in fields)})"
    if isinstance(node, list):
        return f"[{','.join(map(_written, node))}]"
    return repr(node)
