"""Matching with no pairs: quality on problems with a known answer, and cost against n.

    python -m benchmarks.matching                 everything that is at hand (hours: peers are slow)
    python -m benchmarks.matching --only snare    one problem
    python -m benchmarks.matching --part size     cost against n only

Every method runs in a process of its own on the same rows; peak memory is that process's. A method
that takes longer than --limit seconds is stopped and not tried on larger problems. Writes
matching.csv, matching.md and matching.png into --out.
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
SIZES = (100, 300, 1000, 3000, 12_500, 25_000, 50_000, 100_000)
METRICS = (
    *("right", "orphans_out", "foscttm", "same_type", "sure", "sure_right"),
    *("agreement", "gap", "trusted"),
)
COSTS = ("seconds", "cpu_seconds", "peak_gib")


def measure(method: str, problem: problems.Problem, seed: int) -> dict[str, float]:
    """Run one method on one draw and score it against the truth, which it does not see."""
    found: dict[str, float] = {}
    if method == OURS:
        from unpaired.evaluation.retrieval import foscttm
        from unpaired.matching import align

        begin, begin_cpu = time.perf_counter(), time.process_time()
        alignment = align(
            problem.x,
            problem.y,
            problem.pairs,
            random_state=seed,
            leave_out="orphans" in problem.name,
        )
        found["seconds"] = time.perf_counter() - begin
        found["cpu_seconds"] = time.process_time() - begin_cpu
        match = alignment.match
        partner = match.partner
        scores = alignment.score_matrix(problem.test_x, problem.test_y)
        found["foscttm"] = foscttm(scores)
        sure = match.confidence >= 0.9
        found["sure"] = float(sure.mean())
        if sure.any() and (problem.truth >= 0).any():
            found["sure_right"] = float((partner == problem.truth)[sure].mean())
        found |= {"agreement": match.agreement, "gap": match.gap, "trusted": float(match.trusted)}
    else:
        run = {**PEERS, **SOLVERS}[method]
        begin, begin_cpu = time.perf_counter(), time.process_time()
        partner = np.asarray(quiet(run, problem.x, problem.y, seed))
        found["seconds"] = time.perf_counter() - begin
        found["cpu_seconds"] = time.process_time() - begin_cpu
    real, matched = problem.truth >= 0, partner >= 0
    if real.any():
        if (~real).any():
            found["right"] = float((partner == problem.truth)[matched].mean())
            found["orphans_out"] = float((~matched)[~real].mean())
        else:
            found["right"] = float((partner == problem.truth).mean())
    if problem.label_x is not None and problem.label_y is not None:
        found["same_type"] = float(
            (problem.label_x[matched] == problem.label_y[partner[matched]]).mean()
        )
    return found


def _child(connection, method, name, seed) -> None:
    """Draw, run and report; peak memory is counted above what the drawn problem itself takes."""
    if name.startswith("clusters "):
        problem = problems.rotated_clusters(int(name.split()[1]), np.random.default_rng([seed, 77]))
    else:
        problem = problems.draw(name, seed)
    try:
        found = measure(method, problem, seed)
        found["peak_gib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        connection.send(found)
    except Exception as error:  # a peer may fail in its own way; say so and go on
        connection.send({"error": f"{type(error).__name__}: {error}"[:200]})


def run_apart(method: str, name: str, seed: int, limit: float) -> dict[str, float] | None:
    """The figures of one run in a process of its own, or None when it took longer than limit."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(theirs, method, name, seed))
    process.start()
    found = ours.recv() if ours.poll(limit) else None
    process.kill()
    process.join()
    return found


def summarise(rows: list[dict]) -> list[dict]:
    """Mean, spread and worst over seeds for every problem and method."""
    table = []
    for key in dict.fromkeys((row["problem"], row["method"]) for row in rows):
        group = [row for row in rows if (row["problem"], row["method"]) == key]
        line = {"problem": key[0], "method": key[1], "seeds": len(group)}
        for metric in (*METRICS, *COSTS):
            values = np.array([row[metric] for row in group if row.get(metric) is not None])
            if len(values):
                spread = values.std(ddof=1) if len(values) > 1 else 0.0
                line[metric] = f"{values.mean():.3f} ± {spread:.3f}"
                if metric == "right":
                    line["worst right"] = f"{values.min():.3f}"
                if metric == "foscttm":
                    line["worst foscttm"] = f"{values.max():.3f}"
        errors = {row["error"] for row in group if row.get("error")}
        if errors:
            line["note"] = "; ".join(sorted(errors))
        table.append(line)
    return table


def judge_quality(rows: list[dict], good: float = 0.2) -> list[str]:
    """How well agreement and gap tell, without labels, whether FOSCTTM is below ``good``."""
    from scipy.stats import mannwhitneyu, spearmanr

    own = [row for row in rows if row["method"] == OURS and "foscttm" in row]
    own = [row for row in own if "pairs" not in row["problem"] and "clusters" not in row["problem"]]
    error = np.array([row["foscttm"] for row in own])
    lines = []
    for which, mask in (("all runs", error >= 0), ("runs that are not exact", error > 0.001)):
        is_good = error[mask] < good
        if is_good.all() or not is_good.any():
            continue
        for name in ("agreement", "gap"):
            value = np.array([row[name] for row in own])[mask]
            auc = mannwhitneyu(value[is_good], value[~is_good]).statistic
            auc /= is_good.sum() * (~is_good).sum()
            rank = spearmanr(value, error[mask]).statistic
            lines.append(
                f"- {name}, {which} ({mask.sum()}): AUC {auc:.2f} for FOSCTTM < {good}, "
                f"rank correlation with FOSCTTM {rank:.2f}"
            )
    return lines


def write(rows: list[dict], out: Path) -> None:
    """Write all runs as CSV, the summary as Markdown, and cost against n as a picture."""
    out.mkdir(parents=True, exist_ok=True)
    columns = ["problem", "method", "seed", *METRICS, *COSTS, "error"]
    with (out / "matching.csv").open("w", newline="") as handle:
        writer = csv.DictWriter(handle, columns, extrasaction="ignore")
        writer.writeheader()
        writer.writerows(rows)
    table = summarise(rows)
    names = list(dict.fromkeys(key for line in table for key in line))
    text = ["| " + " | ".join(names) + " |", "|" + "---|" * len(names)]
    text += ["| " + " | ".join(str(line.get(name, "")) for name in names) + " |" for line in table]
    text += ["", *judge_quality(rows)]
    (out / "matching.md").write_text("\n".join(text) + "\n")
    draw_sizes(rows, out / "matching.png")


def draw_sizes(rows: list[dict], path: Path) -> None:
    """Rows right, seconds and memory against n, one line per method."""
    from matplotlib.figure import Figure

    sized = [row for row in rows if row["problem"].startswith("clusters ") and "seconds" in row]
    if not sized:
        return
    figure = Figure(figsize=(12, 4), layout="constrained")
    for axis, metric in zip(figure.subplots(1, 3), ("right", "seconds", "peak_gib"), strict=True):
        for method in dict.fromkeys(row["method"] for row in sized):
            sizes = sorted({int(r["problem"].split()[1]) for r in sized if r["method"] == method})
            values = [
                np.median([r[metric] for r in sized
                           if r["method"] == method and r["problem"] == f"clusters {n}"])
                for n in sizes
            ]  # fmt: skip
            axis.plot(sizes, values, marker="o", lw=3 if method == OURS else 1, label=method)
        axis.set(
            xscale="log", xlabel="rows", title={"right": "share of rows right"}.get(metric, metric)
        )
        if metric != "right":
            axis.set_yscale("log")
    figure.axes[0].legend(fontsize=6)
    figure.savefig(path, dpi=110)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--limit", type=float, default=120.0, help="seconds a run may take")
    parser.add_argument("--only", action="append", help="problems to run (may be repeated)")
    parser.add_argument("--methods", action="append", help="methods to run (may be repeated)")
    parser.add_argument("--part", choices=("quality", "size", "all"), default="all")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results"))
    options = parser.parse_args()
    methods = options.methods or [OURS, *PEERS, *SOLVERS]
    rows: list[dict] = []
    names = options.only or problems.available()
    plan = [] if options.part == "size" else [(n, m) for n in names for m in methods]
    if options.part != "quality" and not options.only:
        plan += [(f"clusters {n}", m) for m in methods for n in SIZES]
    too_slow: set[tuple[str, str]] = set()
    for name, method in plan:
        if (name.split()[0], method) in too_slow:
            continue
        for seed in range(3 if name.startswith("clusters ") else options.seeds):
            found = run_apart(method, name, seed, options.limit)
            if found is None:
                found = {"error": f"stopped after {options.limit:.0f} s"}
                too_slow.add((name.split()[0], method))
            rows.append({"problem": name, "method": method, "seed": seed, **found})
            shown = {k: round(v, 3) if isinstance(v, float) else v for k, v in found.items()}
            print(f"{name:20} {method:24} seed {seed}: {shown}", flush=True)
            write(rows, options.out)
            if "error" in found:
                break
    print((options.out / "matching.md").read_text())


if __name__ == "__main__":
    main()
