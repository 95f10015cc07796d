"""Run the tutorials in examples/ and write what they say, print and draw as pages of the docs.

Run: python scripts/gallery.py [NAME ...]; `make docs` runs all of them.

A tutorial is a script `examples/plot_<name>.py`. Its docstring is the head of the page. A line
`# %%` begins a cell of comments, which are prose, and of code, which is run; `# %% [bash]` one
whose comments are commands, run by bash. Cells share one namespace and one empty folder.
"""

from __future__ import annotations

import ast
import contextlib
import io
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGES = ROOT / "docs" / "tutorials"


@dataclass(frozen=True)
class Cell:
    """A piece of a tutorial: prose, then code or commands."""

    prose: str
    code: str
    is_bash: bool = False


def read_cells(source: str) -> tuple[str, list[Cell]]:
    """The docstring of a tutorial, and its cells."""
    tree = ast.parse(source)
    head = ast.get_docstring(tree) or ""
    pieces = re.split(r"^# %%(.*)\n", source, flags=re.MULTILINE)[1:]
    cells = []
    for kind, body in zip(pieces[::2], pieces[1::2], strict=True):
        lines = body.strip("\n").splitlines()
        n_prose = next((i for i, line in enumerate(lines) if not line.startswith("#")), len(lines))
        prose = "\n".join(line.removeprefix("#").removeprefix(" ") for line in lines[:n_prose])
        code = "\n".join(lines[n_prose:]).strip("\n")
        is_bash = kind.strip() == "[bash]"
        cells.append(Cell("", prose, True) if is_bash else Cell(prose, code))
    return head, cells


def run_cell(cell: Cell, names: dict[str, Any], label: str) -> str:
    """What a cell prints; it runs in the working folder."""
    if cell.is_bash:
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", cell.code],
            capture_output=True,
            text=True,
            env={**os.environ, "PATH": path, "COLUMNS": "100"},
        )
        if done.returncode:
            raise SystemExit(f"{label}: {cell.code}\n{done.stdout}{done.stderr}")
        return done.stdout
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(cell.code, label, "exec"), names)
    return printed.getvalue()


def drawn(pictures: Path, name: str) -> list[str]:
    """Names of the figures that are open, saved and closed."""
    import matplotlib.pyplot as plt

    files = []
    for number in plt.get_fignums():
        count = len(list(pictures.glob(f"{name}-*.png")))
        files.append(f"{name}-{count + 1}.png")
        plt.figure(number).savefig(pictures / files[-1], dpi=90, metadata={"Software": None})
        plt.close(number)
    return files


def page_of(example: Path, pictures: Path) -> str:
    """The page of one tutorial, run in an empty folder."""
    name = example.stem.removeprefix("plot_")
    for old in pictures.glob(f"{name}-*.png"):
        old.unlink()
    head, cells = read_cells(example.read_text(encoding="utf-8"))
    parts = [f"<!-- made by scripts/gallery.py from examples/{example.name} -->", head]
    names: dict[str, Any] = {"__name__": "__main__"}
    for cell in cells:
        parts.append(cell.prose)
        if cell.code:
            parts.append(f"```{'bash' if cell.is_bash else 'python'}\n{cell.code}\n```")
            printed = run_cell(cell, names, example.name).rstrip()
            if printed:
                parts.append(f"```text\n{printed}\n```")
            parts += [f"![](images/{file})" for file in drawn(pictures, name)]
    source = f"*Run when this page was made: `examples/{example.name}`.*"
    return "\n\n".join(part for part in [*parts, source] if part) + "\n"


def main(wanted: list[str]) -> None:
    """Make the pages of some tutorials, or of all."""
    os.environ["MPLBACKEND"] = "agg"
    pictures = PAGES / "images"
    pictures.mkdir(parents=True, exist_ok=True)
    for example in sorted((ROOT / "examples").glob("plot_*.py")):
        name = example.stem.removeprefix("plot_")
        if wanted and name not in wanted:
            continue
        print(f"tutorial: {name}", flush=True)
        with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
            page = page_of(example, pictures)
        (PAGES / f"{name}.md").write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
