"""Small sabotages that the tests must notice: one at a time, in a copy of the repository.

    python scripts/mutants.py                 all of them
    python scripts/mutants.py hidden seed     those with one of these words in their name
    python scripts/mutants.py --list          what there is
    python scripts/mutants.py --done FILE     those not in the file; it then holds the noticed

Each entry of mutants.toml names a file, a text that stands in it once, what to put in its place,
the tests to run, and what is broken by it. The tests run first on the copy as it is: they must
pass. A mutant whose tests still pass has survived; then the exit code is 1. An entry whose text is
not found, or found twice, ends the run before it begins: when code moves, the list moves with it.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
COPIED = ("src", "tests", "scripts", "docs", "pyproject.toml", "README.md")
LIST = ROOT / "scripts" / "mutants.toml"
PATIENCE = 5
"""A mutant that takes so many times as long as all tests took before may never end: noticed."""


@dataclass(frozen=True)
class Mutant:
    """One sabotage."""

    name: str
    file: str
    """Under src/unpaired."""
    old: str
    new: str
    tests: tuple[str, ...]
    """Arguments of pytest."""
    breaks: str
    """What is no longer true."""


def read_list(path: Path = LIST) -> list[Mutant]:
    """The mutants that a list names."""
    entries = tomllib.loads(path.read_text(encoding="utf-8"))["mutant"]
    return [Mutant(**{**entry, "tests": tuple(entry["tests"])}) for entry in entries]


def misplaced(mutants: Sequence[Mutant], root: Path = ROOT) -> list[str]:
    """One sentence for each entry that cannot be made of the code as it is."""
    found = []
    for mutant in mutants:
        path = root / "src" / "unpaired" / mutant.file
        count = path.read_text(encoding="utf-8").count(mutant.old) if path.is_file() else 0
        if count != 1:
            found.append(f"{mutant.name}: its text stands {count} times in {mutant.file}")
        if mutant.old == mutant.new:
            found.append(f"{mutant.name}: it changes nothing")
        missing = [t for t in mutant.tests if not (root / t.split("::")[0]).exists()]
        found += [f"{mutant.name}: there is no {test}" for test in missing]
    return found


def copy_of(root: Path, folder: Path) -> Path:
    """The copy of what the tests need, without anything built."""
    ignored = shutil.ignore_patterns("__pycache__", "*.egg-info", ".*_cache")
    for name in COPIED:
        source = root / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=ignored)
        elif source.is_file():
            shutil.copy(source, folder / name)
    return folder


def run_tests(folder: Path, tests: Sequence[str], timeout: float | None = None) -> int:
    """The exit code of pytest in the copy; 1 = a test failed, or none ended in time (seconds)."""
    threads = {name: "1" for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")}
    environment = os.environ | threads | {"PYTHONPATH": str(folder / "src")}
    environment["PYTHONDONTWRITEBYTECODE"] = "1"
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, timeout=timeout, check=False
        )
    except subprocess.TimeoutExpired:
        return 1
    if done.returncode not in (0, 1):
        print(done.stdout.decode()[-2000:], done.stderr.decode()[-2000:])
    return done.returncode


def survivors(
    mutants: Sequence[Mutant], root: Path = ROOT, noticed: Callable[[str], None] = lambda name: None
) -> list[str]:
    """Names of the mutants that no test noticed, or that could not be run.

    ``noticed`` is told the names of the others, one by one.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = copy_of(root, Path(name))
        every = sorted({test for mutant in mutants for test in mutant.tests})
        began = time.monotonic()
        if run_tests(folder, every) != 0:
            raise SystemExit("The tests do not pass on the code as it is: mend that first.")
        timeout = PATIENCE * (time.monotonic() - began)
        found = []
        for mutant in mutants:
            path = folder / "src" / "unpaired" / mutant.file
            whole = path.read_text(encoding="utf-8")
            path.write_text(whole.replace(mutant.old, mutant.new), encoding="utf-8")
            began = time.monotonic()
            code = run_tests(folder, mutant.tests, timeout)
            path.write_text(whole, encoding="utf-8")
            verdict = {0: "SURVIVED", 1: "noticed"}.get(code, f"COULD NOT BE RUN ({code})")
            print(f"{verdict:10} {time.monotonic() - began:5.0f} s  {mutant.name}", flush=True)
            if code == 1:
                noticed(mutant.name)
            else:
                found.append(mutant.name)
    return found


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("words", nargs="*", help="only mutants with one of these in their name")
    parser.add_argument("--list", action="store_true", help="what there is")
    parser.add_argument("--done", type=Path, help="goes on where a run with this file was cut off")
    given = parser.parse_args(arguments)
    every = read_list()
    chosen = [m for m in every if not given.words or any(w in m.name for w in given.words)]
    if given.list:
        for mutant in chosen:
            print(f"{mutant.name}: {mutant.file}; breaks: {mutant.breaks}")
        return 0
    done = []
    if given.done is not None and given.done.is_file():
        done = given.done.read_text(encoding="utf-8").splitlines()
        chosen = [m for m in chosen if m.name not in done]
    if done and not chosen:
        print("all of them are in the file: noticed")
        return 0
    wrong = misplaced(every)
    if wrong or not chosen:
        print("\n".join(wrong or ["no mutant has such a word in its name"]), file=sys.stderr)
        return 2

    def keep(name: str) -> None:
        if given.done is not None:
            with given.done.open("a", encoding="utf-8") as file:
                file.write(f"{name}\n")

    left = survivors(chosen, noticed=keep)
    print(f"{len(chosen) - len(left)} of {len(chosen)} mutants noticed")
    for name in left:
        print(f"survived: {name}")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main())
