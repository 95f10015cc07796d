"""Runs the cells of a benchmark in processes; what is finished is skipped."""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from unpaired.bench.cells import cell_path, is_finished, write_cell
from unpaired.bench.config import BenchConfig, Cell
from unpaired.bench.matching import run_matching
from unpaired.bench.methods import get_method, least_pairs
from unpaired.bench.outcome import Outcome
from unpaired.bench.retrieval import run_retrieval
from unpaired.bench.sources import DataSource
from unpaired.bench.tables import row_value
from unpaired.bench.ucl import run_ucl
from unpaired.errors import InputError, UnpairedError
from unpaired.experiment import package_versions
from unpaired.types import TwoViews

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
    tell: Tell = lambda line: None,
) -> RunSummary:
    """Run every cell that is not finished yet and say how it went.

    Each cell is written to ``out``/cells by the process that ran it, as soon as it is done, so that
    stopping at any time loses at most the cells at work. A cell that fails is told and tried
    again by the next run.

    Raises:
        InputError: when no method of the configuration is known.
        DataError: when the data cannot be read.
    """
    config = with_known_methods(config, tell)
    cells = [cell for cell in config.cells() if _can_begin(cell)]
    todo = [cell for cell in cells if not is_finished(out, cell)]
    skipped = len(cells) - len(todo)
    if skipped:
        tell(f"{skipped} of {len(cells)} cells are finished and skipped")
    if not todo:
        return RunSummary(0, skipped, ())
    begin = time.perf_counter()
    data = _load(_Frozen(config.data), data_root, str(out))  # fails early, and fills the cache
    tell(
        f"data: x {data.x.shape}, y {data.y.shape}, read in {time.perf_counter() - begin:.1f} s; "
        f"{len(todo)} cells to run, {n_jobs} at a time"
    )
    failures = []
    for done, (cell, record) in enumerate(_results(todo, config, out, data_root, n_jobs), 1):
        where = f"{cell.setting} {cell.row} {cell.method.label} seed {cell.seed}"
        if "error" in record:
            failures.append(f"{where}: {record['error']}")
            tell(f"[{done}/{len(todo)}] {where}: FAILED, {record['error']}")
        else:
            figures = [(n, record["metrics"][n]) for n in config.columns if n in record["metrics"]]
            text = ", ".join(f"{name} {value:.3f}" for name, value in figures[:3])
            tell(f"[{done}/{len(todo)}] {where}: {text} ({record['seconds']['total']:.0f} s)")
    return RunSummary(len(todo) - len(failures), skipped, tuple(failures))


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
    todo: list[Cell], config: BenchConfig, out: Path, data_root: str | None, n_jobs: int
) -> Iterator[tuple[Cell, dict[str, Any]]]:
    """Cells with their records as they get done, in this process or in others."""
    jobs = ((cell, config.heading, data_root, str(out)) for cell in todo)
    if n_jobs == 1 or len(todo) == 1:
        yield from (execute(*job) for job in jobs)
        return
    yield from _parallel(jobs, n_jobs)


def _parallel(
    jobs: Iterable[tuple[Cell, dict[str, Any], str | None, str]], n_jobs: int
) -> Iterator[tuple[Cell, dict[str, Any]]]:
    from joblib import Parallel, delayed, parallel_config

    threads = max(1, (os.cpu_count() or 1) // n_jobs)
    with parallel_config("loky", n_jobs=n_jobs, inner_max_num_threads=threads):
        pool = Parallel(return_as="generator_unordered", batch_size=1, pre_dispatch="2*n_jobs")
        yield from pool(delayed(execute)(*job) for job in jobs)


def execute(
    cell: Cell, heading: dict[str, Any], data_root: str | None, out: str
) -> tuple[Cell, dict[str, Any]]:
    """Run one cell, write its file, and return its record; a failure is a record with "error"."""
    begin = time.perf_counter()
    try:
        data = _load(_Frozen(cell.data), data_root, out)
        loaded = time.perf_counter()
        found = TASK_FUNCTIONS[cell.task](
            data,
            cell.method.name,
            cell.method.params,
            cell.setting,
            cell.row,
            cell.seed,
            cell.options,
        )
    except UnpairedError as error:
        return cell, {"error": str(error)}
    except Exception as error:  # a method of the user's may raise anything; the others go on
        last = traceback.extract_tb(error.__traceback__)[-1]
        where = f"{Path(last.filename).name}:{last.lineno}"
        return cell, {"error": f"{type(error).__name__}: {error} ({where})"}
    seconds = {**found.seconds, "load": loaded - begin, "total": time.perf_counter() - begin}
    record = {
        "finished": True,
        "key": cell.key,
        "heading": heading,
        "label": cell.method.label,
        "metrics": found.metrics,
        "sizes": found.sizes,
        "history": found.history,
        "seconds": seconds,
        "versions": package_versions(),
    }
    write_cell(cell_path(Path(out), cell), record)
    return cell, record


class _Frozen(dict[str, Any]):
    """A dict that can be a key of a cache."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(repr(sorted(self.items(), key=lambda item: item[0])))


@lru_cache(maxsize=1)
def _load(spec: _Frozen, data_root: str | None, out: str) -> TwoViews:
    """The data of a benchmark, read once in each process."""
    return DataSource(dict(spec), data_root, Path(out) / "cache").load()
