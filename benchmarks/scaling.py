"""Cost against n: our default, each solver and other packages on the same rows in one run.

    python -m benchmarks.scaling                        both problems, up to 100,000 rows
    python -m benchmarks.scaling --only gaussian --limit 20

Every run has a process of its own, on one thread. Seconds are CPU seconds, so a busy machine does
not count; peak memory is that process's. A method that needs more than --limit seconds, or would at
the next size by the growth so far, is not tried on larger problems. Writes scaling.csv, scaling.md
and scaling.png into --out, after every run.
"""

from __future__ import annotations

import argparse
import csv
import multiprocessing
import resource
import time
from pathlib import Path

import numpy as np

from benchmarks import problems
from benchmarks.peers import PEERS, SOLVERS, quiet

OURS = "unpaired.match"
SIZES = (200, 500, 1000, 2000, 5000, 12_500, 25_000, 50_000, 100_000)
KINDS = {"gaussian": problems.rotated_gaussian, "clusters": problems.rotated_clusters}
SMALL = 200
"""Up to so many rows three draws are made, above one."""
SHOWN = ("right", "seconds", "peak_gib")
MODULES = ("ot", "torchgw", "torch", "unpaired.matching")
"""Imported before the clock starts."""


def _child(connection, method: str, kind: str, n: int, seed: int, limit: float) -> None:
    """Draw, run and report; the system ends a run that goes beyond the limit."""
    problem = KINDS[kind](n, np.random.default_rng([seed, 77]))
    used = int(time.process_time())
    resource.setrlimit(resource.RLIMIT_CPU, (used + int(limit) + 1, used + int(limit) + 2))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    try:
        begin = time.process_time()
        if method == OURS:
            from unpaired.matching import match

            partner = match(problem.x, problem.y, random_state=seed).partner
        else:
            partner = quiet({**PEERS, **SOLVERS}[method], problem.x, problem.y, seed)
        found = {
            "seconds": time.process_time() - begin,
            "right": float((np.asarray(partner) == problem.truth).mean()),
            "peak_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
        }
    except Exception as error:  # a peer may fail in its own way; say so and go on
        found = {"note": f"{type(error).__name__}: {error}"[:100]}
    connection.send(found)


def run_apart(method: str, kind: str, n: int, seed: int, limit: float) -> dict:
    """The figures of one run in a process of its own, or a note that it was stopped."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["benchmarks.peers", "benchmarks.problems", *MODULES])
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(theirs, method, kind, n, seed, limit))
    process.start()
    theirs.close()
    try:
        found = ours.recv()
    except EOFError:
        found = {"note": f"stopped after {limit:.0f} s"}
    process.join()
    return found


def too_slow(rows: list[dict], n: int, limit: float) -> bool:
    """Whether a method's runs so far say that n rows would take longer than the limit."""
    if any("note" in row for row in rows):
        return True
    times = {row["n"]: row["seconds"] for row in rows}
    if len(times) < 2:
        return False
    (n_1, t_1), (n_2, t_2) = sorted(times.items())[-2:]
    power = max(1.0, np.log(t_2 / t_1) / np.log(n_2 / n_1)) if t_1 > 0 else 1.0
    return bool(t_2 * (n / n_2) ** power > 1.5 * limit)


def run(kinds: list[str], methods: list[str], limit: float, out: Path, largest: int) -> list[dict]:
    """All runs, ours first, then smallest problems first, written down as they come."""
    rows: list[dict] = []
    sizes = [size for size in SIZES if size <= largest]
    ours, others = ([m for m in methods if (m == OURS) == own] for own in (True, False))
    plan = [(n, kind, method) for n in sizes for kind in kinds for method in ours]
    plan += [(n, kind, method) for n in sizes for kind in kinds for method in others]
    for n, kind, method in plan:
        before = [r for r in rows if (r["problem"], r["method"]) == (kind, method)]
        if too_slow(before, n, limit):
            continue
        for seed in range(3 if n <= SMALL else 1):
            found = run_apart(method, kind, n, seed, limit)
            rows.append({"problem": kind, "n": n, "method": method, "seed": seed, **found})
            print(rows[-1], flush=True)
            if "note" in found:
                break
        write(rows, out)
    return rows


def write(rows: list[dict], out: Path) -> None:
    """Write all runs as CSV, one line per method and size as Markdown, and a picture."""
    out.mkdir(parents=True, exist_ok=True)
    columns = ["problem", "n", "method", "seed", *SHOWN, "note"]
    with (out / "scaling.csv").open("w", newline="") as handle:
        writer = csv.DictWriter(handle, columns)
        writer.writeheader()
        for row in rows:
            writer.writerow({k: round(v, 4) if isinstance(v, float) else v for k, v in row.items()})
    text = [
        "Right rows (mean over draws), CPU seconds and peak GiB by `python -m benchmarks.scaling`,",
        "one thread; three draws at 200 rows, one above.",
        "",
    ]
    for kind in dict.fromkeys(row["problem"] for row in rows):
        mine = [row for row in rows if row["problem"] == kind]
        sizes = sorted({row["n"] for row in mine})
        text += [f"## {kind}", "", "| method | " + " | ".join(f"n = {n:,}" for n in sizes) + " |"]
        text += ["|---" * (len(sizes) + 1) + "|"]
        for method in dict.fromkeys(row["method"] for row in mine):
            own = [row for row in mine if row["method"] == method]
            cells = [_cell([row for row in own if row["n"] == n]) for n in sizes]
            text.append(f"| {method} | " + " | ".join(cells) + " |")
        text.append("")
    (out / "scaling.md").write_text("\n".join(text).rstrip() + "\n")
    draw(rows, out / "scaling.png")


def _cell(rows: list[dict]) -> str:
    """What one cell of the table says."""
    done = [row for row in rows if "seconds" in row]
    if not done:
        return rows[0]["note"] if rows else ""
    mean = {name: np.mean([row[name] for row in done]) for name in SHOWN}
    return f"{mean['right']:.0%}, {mean['seconds']:.1f} s, {mean['peak_gib']:.2f}"


def draw(rows: list[dict], path: Path) -> None:
    """Rows right, seconds and memory against n, one line per method, one row of plots a problem."""
    from matplotlib.figure import Figure

    kinds = list(dict.fromkeys(row["problem"] for row in rows))
    methods = list(dict.fromkeys(row["method"] for row in rows))
    figure = Figure(figsize=(12, 3.4 * len(kinds)), layout="constrained")
    axes = figure.subplots(len(kinds), len(SHOWN), squeeze=False)
    titles = {"right": "share of rows right", "seconds": "CPU seconds", "peak_gib": "peak GiB"}
    for kind, line in zip(kinds, axes, strict=True):
        for metric, axis in zip(SHOWN, line, strict=True):
            for k, method in enumerate(methods):
                own = [
                    r for r in rows if (r["problem"], r["method"]) == (kind, method) and metric in r
                ]
                sizes = sorted({row["n"] for row in own})
                values = [np.mean([r[metric] for r in own if r["n"] == n]) for n in sizes]
                style = "-" if method == OURS else ":" if method.startswith("solver") else "--"
                axis.plot(
                    sizes,
                    values,
                    style,
                    color="black" if method == OURS else f"C{k % 10}",
                    marker="o",
                    markersize=3,
                    lw=2.5 if method == OURS else 1,
                    label=method,
                )
            axis.set(xscale="log", xlabel="rows", title=f"{kind}: {titles[metric]}")
            if metric != "right":
                axis.set_yscale("log")
    figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside right", fontsize=7)
    figure.savefig(path, dpi=90)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--only", action="append", choices=sorted(KINDS), help="problems to run")
    parser.add_argument("--methods", action="append", help="methods to run (may be repeated)")
    parser.add_argument("--limit", type=float, default=60.0, help="CPU seconds a run may take")
    parser.add_argument("--largest", type=int, default=max(SIZES), help="rows at most")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    options = parser.parse_args()
    methods = options.methods or [OURS, *PEERS, *SOLVERS]
    run(options.only or list(KINDS), methods, options.limit, options.out, options.largest)
    print((options.out / "scaling.md").read_text())


if __name__ == "__main__":
    main()
