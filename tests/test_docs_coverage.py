"""Every public name has a docstring and an entry in docs/."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
from pathlib import Path

import pytest

import unpaired

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "unpaired"
NOT_FOR_CALLERS = {"commands"}  # what is typed; --help documents it
ROOMS = sorted(
    path.parent.name
    for path in SOURCE.glob("*/__init__.py")
    if path.parent.name not in NOT_FOR_CALLERS
)

DIRECTIVES = {
    match.group(1)
    for page in (ROOT / "docs").rglob("*.md")
    for match in re.finditer(r"^::: ([\w.]+)", page.read_text(encoding="utf-8"), re.MULTILINE)
}


def is_public(name: str) -> bool:
    return not name.startswith("_")


def public_modules() -> list[str]:
    """Dotted names of the public modules in the documented rooms, read from the tree."""
    modules = []
    for room in ROOMS:
        for path in sorted((SOURCE / room).rglob("*.py")):
            parts = path.relative_to(SOURCE).with_suffix("").parts
            parts = parts[:-1] if parts[-1] == "__init__" else parts
            if all(map(is_public, parts)):
                modules.append(".".join(["unpaired", *parts]))
    return modules


def definitions(module: str) -> dict[str, ast.AST]:
    """Public functions and classes of a module, and the public methods of those classes."""
    path = SOURCE.joinpath(*module.split(".")[1:])
    file = path.with_suffix(".py")  # datasets/sample.py has a folder of the same name beside it
    path = file if file.is_file() else path / "__init__.py"
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
    found: dict[str, ast.AST] = {}
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, kinds) and is_public(node.name):
            found[node.name] = node
            for child in node.body if isinstance(node, ast.ClassDef) else ():
                if isinstance(child, kinds) and is_public(child.name):
                    found[f"{node.name}.{child.name}"] = child
    return found


def is_documented(dotted: str) -> bool:
    """Whether the name or its module stands in a ``:::`` line of docs/."""
    module = dotted.rpartition(".")[0]
    return dotted in DIRECTIVES or (module in DIRECTIVES and module != "unpaired")


@pytest.mark.parametrize("module", public_modules())
def test_public_definitions_are_documented(module):
    names = definitions(module)
    undocumented = [n for n in names if "." not in n and not is_documented(f"{module}.{n}")]
    assert undocumented == [], f'add the line "::: {module}" to docs/api.md'
    assert [name for name, node in names.items() if not ast.get_docstring(node)] == []


@pytest.mark.parametrize("name", sorted(set(unpaired.__all__) - {"__version__"}))
def test_the_public_face_is_documented(name):
    value = getattr(unpaired, name)
    assert inspect.getdoc(value), f"unpaired.{name} has no docstring"
    is_module = inspect.ismodule(value)
    home = value.__name__ if is_module else f"{value.__module__}.{value.__qualname__}"
    assert is_documented(f"unpaired.{name}") or is_documented(home), f"{home} is not in docs/api.md"


@pytest.mark.parametrize("directive", sorted(DIRECTIVES))
def test_the_docs_name_only_what_exists(directive):
    try:
        importlib.import_module(directive)
    except ModuleNotFoundError:
        module, _, name = directive.rpartition(".")
        assert hasattr(importlib.import_module(module), name)


def test_the_reference_page_and_the_bibliography_hold_the_same_keys():
    bibliography = (ROOT / "docs" / "references.bib").read_text(encoding="utf-8")
    page = (ROOT / "docs" / "references.md").read_text(encoding="utf-8")
    keys = re.findall(r"^@\w+\{(\w+),", bibliography, re.MULTILINE)
    anchors = re.findall(r'<a id="(\w+)"', page)
    assert sorted(keys) == sorted(anchors)
