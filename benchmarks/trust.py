"""Is the verdict right? Evidence and truth of many runs, and the calibration that follows.

``python -m benchmarks.trust collect`` appends one line per run to the file of results (runs that
are there are not run again); ``fit`` prints the coefficients for ``trust/calibration.py``;
``judge`` prints how good the verdict is, leaving one source out at a time. There are two lists of
runs: ``--runs hold-out`` takes the sources of ``trust_hold_out.py``, which had no part in the first
calibrations. ``fit`` and ``judge`` take both; ``judge --runs hold-out`` judges the one list by what
is fitted to the other.
"""

from __future__ import annotations

import argparse
import csv
import json
import time
from dataclasses import replace
from datetime import date
from pathlib import Path

import numpy as np

from benchmarks.trust_fit import Case, case_of, fit, leave_sources_out, report, transfer
from benchmarks.trust_runs import Run, draw, hold_out_runs, runs
from unpaired.evaluation.retrieval import foscttm
from unpaired.matching import solve
from unpaired.problem.problem import check_problem
from unpaired.spaces.readout import read_match
from unpaired.trust.evidence import shape_of

RESULTS = Path(__file__).parent / "results"
FILES = {"calibration": RESULTS / "trust.csv", "hold-out": RESULTS / "trust-hold-out.csv"}
RUNS = {"calibration": runs, "hold-out": hold_out_runs}
N_BINS = 20
"""Bins of the shares from which confidence is made."""


def measure(run: Run) -> dict[str, object]:
    """The evidence and the truth of a run."""
    drawn = draw(run)
    problem = check_problem(drawn.x, drawn.y, drawn.pairs)
    begin = time.process_time()
    found = solve(problem, run.seed)
    seconds = time.process_time() - begin
    evidence, shape = found.solution.evidence, shape_of(problem)
    truth = 0.5
    if drawn.test is not None:
        truth = foscttm(found.score_matrix(*(side[run.n_pairs :] for side in drawn.test)))
    raw = read_match(problem, replace(found.solution, certainty=1.0))
    free = np.setdiff1d(np.arange(len(drawn.x)), problem.known[:, 0])
    share, right = raw.confidence[free], (raw.partner == drawn.truth)[free]
    place = np.minimum((share * N_BINS).astype(int), N_BINS - 1)
    bins = [[int((place == b).sum()), int(right[place == b].sum())] for b in range(N_BINS)]
    held = [[round(p.rank, 4), round(p.share, 4), int(p.right)] for p in evidence.held_out]
    return {
        "key": run.key,
        "kind": run.kind,
        "source": run.source,
        "name": run.name,
        "n": shape.n,
        "pairs": run.n_pairs,
        "way": found.solution.kind,
        "repeated": evidence.repeated,
        "agreement": evidence.agreement,
        "gap": evidence.gap,
        "flips": evidence.flips,
        "confirmed": evidence.confirmed,
        "finer": evidence.finer,
        "rank": shape.rank,
        "repeats": shape.repeats,
        "surprise": evidence.surprise,
        "held_out": json.dumps(held),
        "foscttm": truth,
        "right": float(right.mean()),
        "bins": json.dumps(bins),
        "seconds": round(seconds, 2),
    }


def collect(which: str, minutes: float, part: tuple[int, int]) -> None:
    """Run what has not been run, one line each, until the time is over.

    ``part`` (i, k) takes every k-th run from the i-th on, so that several processes share the work.
    """
    file = FILES[which]
    done = {row["key"] for row in read(file)}
    end = time.monotonic() + 60 * minutes
    RESULTS.mkdir(exist_ok=True)
    for run in RUNS[which]()[part[0] :: part[1]]:
        if run.key in done:
            continue
        if time.monotonic() > end:
            break
        append(file, measure(run))


def append(file: Path, row: dict[str, object]) -> None:
    """Write one line more, with a header where the file is new."""
    new = not file.exists()
    with file.open("a", newline="", encoding="utf-8") as handle:
        writer = csv.DictWriter(handle, list(row))
        if new:
            writer.writeheader()
        writer.writerow(row)


def read(file: Path) -> list[dict[str, str]]:
    """The runs that were collected."""
    if not file.exists():
        return []
    with file.open(newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))


def cases_of(which: str) -> list[Case]:
    """The collected runs of a list."""
    return [case_of(row) for row in read(FILES[which])]


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", choices=["collect", "fit", "judge"])
    parser.add_argument("--runs", choices=list(FILES), default=None)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--part", type=int, nargs=2, default=(0, 1), metavar=("I", "K"))
    options = parser.parse_args()
    if options.task == "collect":
        collect(options.runs or "calibration", options.minutes, tuple(options.part))
        return
    cases = {which: cases_of(which) for which in FILES}
    every = [case for own in cases.values() for case in own]
    if options.task == "fit":
        made = f"{date.today()}, python -m benchmarks.trust fit, {len(every)} runs"
        print(fit(every, made))
        return
    if options.runs is None:
        judged = leave_sources_out(every)
    else:
        others = [case for which in FILES if which != options.runs for case in cases[which]]
        judged = transfer(others, cases[options.runs])
    for name, figure in report(judged):
        print(f"| {name} | {figure} |")


if __name__ == "__main__":
    main()
