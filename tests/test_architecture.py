"""Imports point up the layout, never down; and the house rules a parser can check."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[1] / "src" / "unpaired"
MAX_LINES = 400

# room -> the rooms it may import, from the top of the layout to its foot. A room is a folder or a
# file directly under src/unpaired; a file in a folder may be a room of its own, named by its path.
# Inside a room imports are free. Only what is used is allowed: a new arrow is a decision.
MAY_IMPORT: dict[str, set[str]] = {
    "errors": set(),
    "_files": {"errors"},
    "_log": set(),
    "_text": {"errors"},
    "_names": {"errors"},
    "types": {"errors", "_files"},
    "results": {"types"},
    "_saving": {"errors", "_files", "types"},
    "_random": {"errors"},
    "_checks": {"errors", "_names", "types"},
    "_threads": set(),
    "math": {"errors", "_checks"},
    "nets": {"errors"},
    "views": {"math"},
    "problem": {"errors", "types", "_checks", "math"},
    "plans": {"errors", "types", "math"},
    "solvers": {"_checks", "errors", "types", "math", "plans"},
    "trust/false_discovery": {"errors"},
    "spaces": {"errors", "_files", "_log", "_saving", "types", "_checks", "math", "nets", "views"}
    | {"problem", "plans", "trust/false_discovery"},
    "alignment": {"_log", "types", "math", "views", "problem", "plans", "solvers", "spaces"},
    "naming": {"errors", "_log", "types", "math", "problem", "plans", "solvers", "spaces", "trust"},
    "learning": {
        "errors",
        "_log",
        "types",
        "math",
        "nets",
        "views",
        "plans",
        "spaces",
        "alignment",
    },
    "trust": {"types", "math", "problem", "plans", "spaces"},
    "aligned": {
        "errors",
        "types",
        "_random",
        "_saving",
        "_checks",
        "_threads",
        "problem",
        "spaces",
    },
    "matching": {"errors", "types", "_random", "_checks", "_threads", "math", "problem", "spaces"}
    | {"aligned", "alignment", "naming", "trust"},
    "checking": {"types", "_random", "_threads", "problem", "trust", "matching"},
    "translating": {"types", "_random", "_checks", "_saving", "_threads", "spaces", "matching"},
    "published": {"errors", "_log", "types", "_checks", "math", "nets", "plans"},
    "evaluation": {"errors", "types", "_checks"},
    "features": {"errors", "_files", "_log", "_names", "_text", "_checks"},
    "datasets": {"errors", "_files", "types", "_checks"},
    "models": {"errors", "_saving", "types", "_random", "_checks", "_threads", "nets"}
    | {"problem", "plans", "spaces", "alignment", "naming", "learning"}
    | {"trust", "matching", "published", "evaluation"},
    "baselines": {"errors", "types", "_random", "_checks", "math", "nets", "plans"}
    | {"solvers", "spaces", "naming", "matching", "models"},
    "registry": set(),  # it names homes; what is asked for is imported then
    "loading": {"errors", "_checks", "_saving", "registry"},
    "experiment": {"types", "results", "_random", "math", "problem", "aligned", "trust"}
    | {"matching", "checking"},
    "report": {"errors", "_files", "types", "results"},
    "files": {"errors", "_files", "_text", "types"},
    "anndata": {"errors", "types", "_random", "_checks", "math", "spaces", "matching", "files"},
    "demo": {"types", "results", "naming", "evaluation", "datasets", "models", "experiment"},
    "bench": {"errors", "_files", "types", "results", "_random", "_checks", "matching"}
    | {"evaluation", "features", "datasets", "registry", "experiment"},
    "commands": {"errors", "_files", "_log", "_names", "types", "results", "features", "datasets"}
    | {"models", "spaces", "checking", "translating", "registry", "loading", "experiment", "report"}
    | {"files", "bench"},
    "cli": {"errors", "_files", "report", "demo", "commands"},
    "__main__": {"cli"},
    "__init__": {"errors", "types", "aligned", "checking", "matching", "models", "loading"},
}

# room -> packages of other people it must not know.
FOR_PEOPLE = {"matplotlib", "typer", "rich", "jinja2"}
MUST_NOT_KNOW = dict.fromkeys(
    ["math", "nets", "views", "problem", "plans", "solvers", "spaces", "alignment", "naming"]
    + ["learning", "trust", "trust/false_discovery", "matching", "evaluation"],
    FOR_PEOPLE,
) | {"report": {"torch"}, "files": {"torch"}}
NEVER = {"pickle", "cloudpickle", "dill", "joblib", "marshal", "shelve"}  # nothing is pickled
# file -> what it alone may import of these, and why.
EXCEPT = {
    # CIFAR-10's official batches are pickles; read with stand-ins, no import, nothing run.
    "datasets/safe_pickle.py": {"pickle"},
    # Cells of a benchmark run in processes; joblib carries the arguments, no file is pickled.
    "bench/run.py": {"joblib"},
    # Starts are refined in threads that share memory (require="sharedmem"): nothing is pickled.
    "alignment/finalists.py": {"joblib"},
    # Says how many of those threads there are.
    "matching.py": {"joblib"},
}


def room_of(parts: tuple[str, ...]) -> str:
    """Return the room of a file or module by the parts of its name below ``unpaired``."""
    own = "/".join(parts[:2])
    return own if own in MAY_IMPORT else parts[0]


def imported_names(tree: ast.AST, package: str) -> Iterator[tuple[int, str]]:
    """Yield (line, dotted name) of every import, also in functions and TYPE_CHECKING blocks."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:  # relative: climb from the package of the importing file
                climbed = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*climbed, base] if base else climbed)
            yield from ((node.lineno, f"{base}.{alias.name}") for alias in node.names)
        elif isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            called = node.func.attr if isinstance(node.func, ast.Attribute) else None
            called = node.func.id if isinstance(node.func, ast.Name) else called
            if called in {"import_module", "__import__"} and isinstance(node.args[0].value, str):
                yield node.lineno, node.args[0].value


def violations(source: Path) -> list[str]:
    """Return one line for every import under ``source`` that breaks the tables above."""
    found = []
    for path in sorted(source.rglob("*.py")):
        parts = path.relative_to(source).with_suffix("").parts
        room = room_of(parts)
        where = f"unpaired/{path.relative_to(source)}"
        if room not in MAY_IMPORT:
            found.append(f"{where}: room {room!r} has no line in MAY_IMPORT")
            continue
        package = ".".join(["unpaired", *parts[:-1]])
        for line, name in imported_names(ast.parse(path.read_text(encoding="utf-8")), package):
            top, *rest = name.split(".")
            if top != "unpaired":
                allowed = EXCEPT.get(path.relative_to(source).as_posix(), set())
                if top in (NEVER - allowed) | MUST_NOT_KNOW.get(room, set()):
                    found.append(f"{where}:{line}: {room} must not import {top}")
                continue
            if rest == ["__version__"]:  # a constant, not a room
                continue
            target = room_of(tuple(rest)) if rest else "__init__"
            target = target if target in MAY_IMPORT else "__init__"
            if target != room and target not in MAY_IMPORT[room]:
                found.append(f"{where}:{line}: {room} must not import {name}")
    return found


def test_imports_point_up_the_layout():
    assert violations(SOURCE) == []


def test_the_layout_has_no_circle():
    done: set[str] = set()
    while len(done) < len(MAY_IMPORT):
        ready = {room for room, allowed in MAY_IMPORT.items() if allowed <= done} - done
        assert ready, f"these wait for each other: {sorted(set(MAY_IMPORT) - done)}"
        done |= ready


def test_every_line_of_the_table_is_a_room_that_exists():
    missing = [
        r for r in MAY_IMPORT if not any((SOURCE / r).with_suffix(e).exists() for e in ("", ".py"))
    ]
    assert missing == []


@pytest.mark.parametrize(
    ("file", "code"),
    [
        ("math/kernels.py", "from unpaired.solvers.signatures import spectral"),
        ("math/kernels.py", "import unpaired.solvers.signatures as starts"),
        ("math/kernels.py", "from unpaired import matching"),
        ("math/kernels.py", "from unpaired import match"),
        ("math/kernels.py", "import unpaired"),
        ("math/kernels.py", "def f():\n    from unpaired.types import Match"),
        ("math/deep/er.py", "from ...models import dmae"),
        ("math/kernels.py", "from ..models.dmae import DMAE"),
        ("solvers/lsom.py", "if TYPE_CHECKING:\n    from unpaired.models import DMAE"),
        ("problem/given_start.py", "from unpaired.plans.plan import DensePlan"),
        ("plans/plan.py", "from unpaired.problem.problem import Problem"),
        ("spaces/readout.py", "from unpaired.trust.verdict import trusted"),
        ("spaces/readout.py", "from unpaired.trust import verdict"),
        ("trust/false_discovery.py", "from unpaired.spaces.solution import Solution"),
        ("alignment/search.py", "from unpaired.matching import solve"),
        ("alignment/search.py", "from joblib import Parallel"),
        ("views/view.py", "import matplotlib.pyplot"),
        ("trust/false_discovery.py", "import matplotlib.pyplot"),
        ("models/dmae.py", "importlib.import_module('unpaired.report.html')"),
        ("report/html.py", "from unpaired.models.dmae import DMAE"),
        ("report/html.py", "def f():\n    import torch.nn"),
        ("errors.py", "from unpaired.types import Match"),
        ("learning/towers.py", "import pickle"),
        ("datasets/cifar10.py", "import pickle"),
        ("datasets/safe_pickle.py", "import marshal"),
        ("bench/cells.py", "from joblib import dump"),
        ("bench/run.py", "import pickle"),
        ("bench/tables.py", "from unpaired.report.html import write_report"),
        ("helpers.py", ""),
    ],
)
def test_a_planted_bad_import_is_caught(tmp_path, file, code):
    path = tmp_path / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(code)
    (found,) = violations(tmp_path)
    assert found.startswith(f"unpaired/{file}:")


@pytest.mark.parametrize(
    ("file", "code"),
    [
        ("math/dependence.py", "from unpaired.math.kernels import center_gram\nimport math, types"),
        ("math/dependence.py", "from .kernels import center_gram"),
        ("models/dmae.py", "from unpaired.learning.learner import learn\nimport torch"),
        ("experiment.py", "from unpaired import __version__, matching"),
        ("commands/run.py", "import unpaired.experiment"),
        ("cli.py", "from unpaired.commands import bench"),
        ("datasets/safe_pickle.py", "import pickle, pickletools"),
        ("bench/run.py", "from joblib import Parallel"),
        ("alignment/finalists.py", "from joblib import Parallel, delayed"),
        ("matching.py", "from joblib import parallel_config"),
        ("spaces/readout.py", "from unpaired.trust.false_discovery import fit_chooser"),
        ("spaces/readout.py", "from unpaired.trust import false_discovery"),
        ("__init__.py", "from unpaired.models.dmae import DMAE"),
    ],
)
def test_a_good_import_is_let_through(tmp_path, file, code):
    path = tmp_path / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(code)
    assert violations(tmp_path) == []


def test_every_file_can_be_read_in_one_sitting():
    lengths = {
        str(path.relative_to(SOURCE)): len(path.read_text(encoding="utf-8").splitlines())
        for path in SOURCE.rglob("*.py")
    }
    assert lengths, f"no source under {SOURCE}"
    assert {name: n for name, n in lengths.items() if n > MAX_LINES} == {}


def test_matching_loads_nothing_of_files_and_translations():
    # Who only matches arrays does not pay for saving, translating and exporting.
    code = (
        "import sys, unpaired; unpaired.match; unpaired.DMAE; "
        "print(*[m for m in sys.modules if m.startswith('unpaired.') or '.' not in m])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "unpaired.matching" in loaded
    unwanted = {"_files", "_saving", "spaces.translation", "spaces.onnx_export", "files", "report"}
    assert not loaded & {f"unpaired.{name}" for name in unwanted}
    assert not loaded & {"onnx", "safetensors", "anndata", "typer", "jinja2"}
