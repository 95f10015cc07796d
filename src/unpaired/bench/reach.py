"""Which definitions of the package a definition needs, read from the source.

Functions, classes and constants at the top of a module are followed by the names they use, through
imports and the faces of packages. What ``sys.modules`` holds after a run would depend on what ran
in the same process before it; the source does not, and nothing has to be run to read it. Docstrings
and comments do not count, nor what an error says, the names in annotations, or where an import
statement stands.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

PACKAGE = "unpaired"
SOURCE = Path(__file__).parents[1]
REST = ""
"""In the place of a name: the statements at the top of a module that define nothing."""
ALL = "*"
"""In the place of a name: all of a module."""
Definition = tuple[str, str]
"""A module and a name at its top."""
Imported = dict[str, Definition]
"""What a module calls what it imports -> where it lives."""


@dataclass(frozen=True, eq=False)
class Module:
    """A module as its syntax tells it."""

    bodies: dict[str, list[ast.stmt]]
    imported: Imported


def reached(
    start: Definition, file: Path, cut: frozenset[str] = frozenset()
) -> dict[Definition, str]:
    """What ``start``, a definition in ``file``, needs of the package, itself too, with its syntax.

    Modules in ``cut`` are not followed.
    """
    found: dict[Definition, str] = {}
    waiting = {start}
    while waiting:
        module, name = waiting.pop()
        place = file if module == start[0] else module_file(module)
        read = read_module(place)
        names = [*read.bodies] if name == ALL else [name, REST]
        for part in names:
            if (module, part) in found or part not in read.bodies:
                continue
            found[module, part] = _written(read.bodies[part])
            needed = {d for node in read.bodies[part] for d in _uses(node, module, read)}
            waiting |= {d for d in needed if d[0] == start[0] or _is_ours(d[0], cut)} - set(found)
    return found


def module_text(name: str) -> str:
    """The syntax of a whole module of the package."""
    bodies = read_module(module_file(name)).bodies
    return "\n".join(f"{part} {_written(bodies[part])}" for part in sorted(bodies))


def module_file(name: str) -> Path:
    """The file of a module of the package."""
    place = SOURCE.joinpath(*name.split(".")[1:])
    return place / "__init__.py" if place.is_dir() else place.with_suffix(".py")


@cache
def read_module(file: Path) -> Module:
    """The definitions at the top of a file, and what its imports, wherever they stand, bring."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    imported = dict(_imports(tree))
    bodies: dict[str, list[ast.stmt]] = {REST: []}
    for node in _plain(tree).body:
        for name in _defined(node):
            bodies.setdefault(name, []).append(node)
    return Module(bodies, imported)


def _is_ours(module: str, cut: frozenset[str]) -> bool:
    return module.split(".")[0] == PACKAGE and module not in cut and module_file(module).is_file()


def _imports(tree: ast.Module) -> Iterator[tuple[str, Definition]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.asname or alias.name.split(".")[0], (alias.name, ALL)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                yield alias.asname or alias.name, (node.module, alias.name)


def _plain(tree: ast.Module) -> ast.Module:
    """The tree without docstrings, imports, and what its errors say."""
    for node in ast.walk(tree):
        for field in ("body", "orelse", "finalbody"):
            if isinstance(part := getattr(node, field, None), list):
                setattr(node, field, [inner for inner in part if not _says_nothing(inner)])
        if isinstance(node, ast.Raise):
            node.exc = node.cause = None
    return tree


def _says_nothing(node: ast.AST) -> bool:
    """Whether a statement is a bare string (a docstring), an import, or for type checkers alone."""
    if isinstance(node, ast.If):
        return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return True
    value = node.value if isinstance(node, ast.Expr) else None
    return isinstance(value, ast.Constant) and isinstance(value.value, str)


def _defined(node: ast.stmt) -> list[str]:
    """The names a statement at the top defines; REST where it defines none."""
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return [node.name]
    targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
    names = [part.id for target in targets if target is not None for part in ast.walk(target)
             if isinstance(part, ast.Name)]  # fmt: skip
    return names if names and isinstance(node, (ast.Assign, ast.AnnAssign)) else [REST]


def _uses(node: ast.AST, module: str, read: Module) -> Iterator[Definition]:
    """What a node names: definitions of its own module, and what was imported."""
    for part in _running(node):
        if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name):
            home = _home(read.imported.get(part.value.id))
            if home is not None and home[1] == ALL:
                yield home[0], part.attr
        elif isinstance(part, ast.Name):
            if part.id in read.bodies:
                yield module, part.id
            home = _home(read.imported.get(part.id))
            if home is not None and not (home[1] == ALL and _only_attributes(node, part.id)):
                yield home


def _only_attributes(node: ast.AST, name: str) -> bool:
    """Whether a module is only used as ``name.something``, one dot deep."""
    bare = sum(isinstance(part, ast.Name) and part.id == name for part in _running(node))
    dotted = sum(
        isinstance(part, ast.Attribute)
        and isinstance(part.value, ast.Name)
        and part.value.id == name
        for part in _running(node)
    )
    return bare == dotted


def _running(node: ast.AST) -> Iterator[ast.AST]:
    """The node and all below it, annotations left out."""
    yield node
    for field, value in ast.iter_fields(node):
        if field not in ("annotation", "returns"):
            for part in value if isinstance(value, list) else [value]:
                if isinstance(part, ast.AST):
                    yield from _running(part)


def _home(imported: Definition | None) -> Definition | None:
    """Where an imported name lives: packages' faces are looked through; None if not in ours."""
    if imported is None or imported[0].split(".")[0] != PACKAGE:
        return None
    module, name = imported
    if name != ALL and module_file(f"{module}.{name}").is_file():
        return f"{module}.{name}", ALL
    file = module_file(module)
    if name == ALL or not file.is_file():
        return module, ALL
    read = read_module(file)
    if name not in read.bodies and name in read.imported:
        return _home(read.imported[name])
    return module, name


def _written(node: Any) -> str:
    """A syntax tree as text. ``ast.dump`` differs between versions of Python; this does not."""
    if isinstance(node, ast.AST):
        fields = ((name, value) for name, value in ast.iter_fields(node) if value not in (None, []))
        return f"{type(node).__name__}({','.join(f'{n}={_written(v)}' for n, v in fields)})"
    if isinstance(node, list):
        return f"[{','.join(map(_written, node))}]"
    return repr(node)
