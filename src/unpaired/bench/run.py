"""Runs the cells of a benchmark in processes and writes them in one; finished ones are skipped."""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from unpaired.bench.cells import append_cell, cells_file, identity, read_cells, rewrite_cells
from unpaired.bench.config import BenchConfig, Cell
from unpaired.bench.matching import run_matching
from unpaired.bench.methods import get_method, least_pairs
from unpaired.bench.outcome import Outcome
from unpaired.bench.provenance import cell_digest, is_stale, repository_state
from unpaired.bench.retrieval import run_retrieval
from unpaired.bench.sources import DataSource
from unpaired.bench.tables import row_value
from unpaired.bench.ucl import run_ucl
from unpaired.datasets.two_views import TwoViews
from unpaired.errors import InputError, UnpairedError
from unpaired.experiment import package_versions

Tell = Callable[[str], None]
TASK_FUNCTIONS: dict[str, Callable[..., Outcome]] = {
    "retrieval": run_retrieval,
    "ucl": run_ucl,
    "matching": run_matching,
}


@dataclass(frozen=True)
class RunSummary:
    """How a run of a benchmark ended."""

    n_run: int
    n_skipped: int
    failures: tuple[str, ...]


def run_bench(
    config: BenchConfig,
    out: Path,
    *,
    data_root: str | None = None,
    n_jobs: int = 1,
    redo_stale: bool = False,
    tell: Tell = lambda line: None,
) -> RunSummary:
    """Run every cell that is not finished yet and say how it went.

    Each cell is appended to ``out``/cells.jsonl by this process as soon as it is done, so that
    stopping at any time loses at most the cells at work. A cell that fails is told and tried
    again by the next run. ``redo_stale`` runs those cells instead that are finished and were run
    by other code than today's.

    Raises:
        InputError: when no method of the configuration is known.
        DataError: when the data cannot be read.
    """
    config = with_known_methods(config, tell)
    file = cells_file(out)
    cells = {identity(cell.key): cell for cell in config.cells() if _can_begin(cell)}
    finished = {key: value for key, value in read_cells(file)[0].items() if key in cells}
    stale = {key for key, record in finished.items() if is_stale(record)}
    _rename(file, config, cells, finished)
    todo = [cells[key] for key in cells if (key in stale if redo_stale else key not in finished)]
    skipped = len(cells) - len(todo)
    if skipped:
        reason = "not stale" if redo_stale else "finished"
        tell(f"{skipped} of {len(cells)} cells are {reason} and skipped")
    if stale and not redo_stale:
        tell(f"{len(stale)} of them are stale, run by other code than today's: see --redo-stale")
    if not todo:
        return RunSummary(0, skipped, ())
    begin = time.perf_counter()
    data = _load(_Frozen(config.data), data_root, str(out))  # fails early, and fills the cache
    tell(
        f"data: x {data.x.shape}, y {data.y.shape}, read in {time.perf_counter() - begin:.1f} s; "
        f"{len(todo)} cells to run, {n_jobs} at a time"
    )
    # The code as it is now, at the start, is what this process and its helpers run to the end.
    code = repository_state()
    digests = {identity(c.key): cell_digest(c.task, c.key["method"]) for c in todo}
    failures = []
    for done, (cell, record) in enumerate(_results(todo, out, data_root, n_jobs), 1):
        where = f"{cell.setting} {cell.row} {cell.method.label} seed {cell.seed}"
        if "error" in record:
            failures.append(f"{where}: {record['error']}")
            tell(f"[{done}/{len(todo)}] {where}: FAILED, {record['error']}")
            continue
        stamp = {"commit": code.commit, "dirty": code.dirty, "digest": digests[identity(cell.key)]}
        names = {"heading": config.heading, "label": cell.method.label}
        append_cell(file, {"key": cell.key, **names, **record, **stamp})
        figures = [(n, record["metrics"][n]) for n in config.columns if n in record["metrics"]]
        text = ", ".join(f"{name} {value:.3f}" for name, value in figures[:3])
        tell(f"[{done}/{len(todo)}] {where}: {text} ({record['seconds']['total']:.0f} s)")
    if redo_stale:
        rewrite_cells(file)  # the lines that were superseded go
    return RunSummary(len(todo) - len(failures), skipped, tuple(failures))


def _rename(
    file: Path, config: BenchConfig, cells: dict[str, Cell], finished: dict[str, dict[str, Any]]
) -> None:
    """Give finished cells the heading and label that the configuration has now."""

    def renamed(record: dict[str, Any]) -> dict[str, Any]:
        cell = cells.get(identity(record["key"]))
        if cell is None:
            return record
        return {**record, "heading": config.heading, "label": cell.method.label}

    if any(renamed(record) != record for record in finished.values()):
        rewrite_cells(file, renamed)


def with_known_methods(config: BenchConfig, tell: Tell) -> BenchConfig:
    """The configuration without methods that this version does not have; each is told."""
    kept = []
    for method in config.methods:
        try:
            get_method(method.name)
            kept.append(method)
        except InputError as error:
            tell(f"left out {method.label}: {error}")
    if not kept:
        raise InputError("None of the configuration's methods is known; see the lines above.")
    return replace(config, methods=tuple(kept))


def _can_begin(cell: Cell) -> bool:
    """Whether a method that learns from pairs gets any in this cell."""
    needs = least_pairs(cell.method.name)
    return cell.setting == "zero-shot" or not needs or row_value(cell.row) > 0


def _results(
    todo: list[Cell], out: Path, data_root: str | None, n_jobs: int
) -> Iterator[tuple[Cell, dict[str, Any]]]:
    """Cells with their records as they get done, in this process or in others."""
    jobs = ((cell, data_root, str(out)) for cell in todo)
    if n_jobs == 1 or len(todo) == 1:
        yield from (execute(*job) for job in jobs)
        return
    yield from _parallel(jobs, n_jobs)


def _parallel(
    jobs: Iterable[tuple[Cell, str | None, str]], n_jobs: int
) -> Iterator[tuple[Cell, dict[str, Any]]]:
    from joblib import Parallel, delayed, parallel_config

    threads = max(1, (os.cpu_count() or 1) // n_jobs)
    with parallel_config("loky", n_jobs=n_jobs, inner_max_num_threads=threads):
        pool = Parallel(return_as="generator_unordered", batch_size=1, pre_dispatch="2*n_jobs")
        yield from pool(delayed(execute)(*job) for job in jobs)


def execute(cell: Cell, data_root: str | None, out: str) -> tuple[Cell, dict[str, Any]]:
    """Run one cell and return what it measured; a failure is a record with "error"."""
    begin = time.perf_counter()
    try:
        data = _load(_Frozen(cell.data), data_root, out)
        loaded = time.perf_counter()
        found = TASK_FUNCTIONS[cell.task](
            data, cell.method, cell.setting, cell.row, cell.seed, cell.options
        )
    except UnpairedError as error:
        return cell, {"error": str(error)}
    except Exception as error:  # a method of the user's may raise anything; the others go on
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(last.filename).name}:{last.lineno}"
        return cell, {"error": f"{type(error).__name__}: {error} ({where})"}
    seconds = {**found.seconds, "load": loaded - begin, "total": time.perf_counter() - begin}
    return cell, {
        "estimator": found.estimator,
        "metrics": found.metrics,
        "sizes": found.sizes,
        "history": found.history,
        "seconds": seconds,
        "versions": package_versions(),
    }


class _Frozen(dict[str, Any]):
    """A dict that can be a key of a cache."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(repr(sorted(self.items(), key=lambda item: item[0])))


@lru_cache(maxsize=1)
def _load(spec: _Frozen, data_root: str | None, out: str) -> TwoViews:
    """The data of a benchmark, read once in each process."""
    return DataSource(dict(spec), data_root, Path(out) / "cache").load()
