"""Data that nothing was tuned on: the engine beside its peers, on the same rows, in one run.

    python -m benchmarks.unseen --out unseen.csv                      no pairs, three seeds
    python -m benchmarks.unseen --out unseen.csv --methods DMAE       the learner as well (slower)
    python -m benchmarks.unseen --out unseen.csv --pairs 10 50        known pairs, and their rivals
    python -m benchmarks.unseen --out words.csv --part translation    between text encoders
    python -m benchmarks.unseen --out unseen.csv --summary            the file as Markdown tables
    python -m benchmarks.unseen --out unseen.csv --page docs/will-it-work.md    its page

The tasks are every file of ``collection`` and pairs of encoders of ``glosses`` in the folder named
by UNPAIRED_DATA. Rows are cut to --rows and both sides are shuffled by the seed. FOSCTTM and the
share of exact partners are counted over the rows whose partner is not given. A run that is in the
file already is not repeated, so a stopped run is taken up where it was. Seconds are the CPU's.
"""

from __future__ import annotations

import argparse
import csv
import subprocess
import time
from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
from scipy.optimize import linear_sum_assignment

from benchmarks import unseen_tables
from benchmarks.mini_vec2vec import unit
from benchmarks.peers import quiet
from benchmarks.problems import DATA, ROOT, Array, Problem
from benchmarks.unseen_methods import (
    METHODS,
    SCOT_ROWS,
    TAKES_PAIRS,
    WITH_PAIRS,
    WITHOUT_PAIRS,
    Fitted,
    rotation,
)
from unpaired.evaluation.retrieval import foscttm

GLOSSES = ("minilm-mpnet", "use-gte", "wink-mpnet", "gte-minilm", "minilm-wordllama")
TRANSLATED = ("minilm-mpnet", "gte-minilm", "use-gte", "use-mpnet", "wink-mpnet")
N_TEST, N_NEAR = 1000, 10
KEYS = ("task", "n", "method", "seed", "pairs")
COLUMNS = (
    *("task", "kind", "n", "method", "seed", "pairs", "foscttm", "right", "cpu_seconds"),
    *("level", "probability", "expected_rank", "trusted", "agreement", "gap"),
    *("mean_confidence", "sure", "sure_right", "found_by"),
    *("p_at_1", "p_at_1_back", "median_cosine", "commit", "error"),
)
ROTATION = "rotation on true pairs"
MARKS = "<!-- table -->", "<!-- end of table -->"


@cache
def _glosses(encoder: str) -> Array:
    """All glosses by one encoder, both parts."""
    parts = []
    for path in sorted((DATA / "glosses").glob("part*.npz")):
        with np.load(path) as file:
            parts.append(file[encoder].astype(float))
    return np.concatenate(parts)


def tasks() -> dict[str, str]:
    """Names of the tasks whose data are at hand, and their kind."""
    found = {path.stem: "collection" for path in sorted((DATA / "collection").glob("*.npz"))}
    if (DATA / "glosses").is_dir():
        found |= {f"glosses {name}": "glosses" for name in GLOSSES}
    return found


def views(task: str) -> tuple[Array, Array]:
    """Both sides of a task, row i of both the same item."""
    if task.startswith("glosses "):
        first, second = task.removeprefix("glosses ").split("-")
        return _glosses(first), _glosses(second)
    with np.load(DATA / "collection" / f"{task}.npz") as file:
        return file["x"].astype(float), file["y"].astype(float)


def draw(task: str, n_rows: int, seed: int, n_pairs: int = 0) -> Problem:
    """At most ``n_rows`` of the items, both sides in an order of their own."""
    x, y = views(task)
    rng = np.random.default_rng([seed, 81])
    rows = rng.permutation(len(x))[:n_rows]
    order = rng.permutation(len(rows))
    truth = np.argsort(order)
    known = rng.permutation(len(rows))[:n_pairs]
    pairs = np.column_stack([known, truth[known]]) if n_pairs else None
    x, y = x[rows], y[rows[order]]
    return Problem(task, x, y, truth, x, y[truth], pairs=pairs)


def draw_halves(task: str, n_rows: int, seed: int) -> Problem:
    """Different glosses on the two sides, and N_TEST others by both encoders."""
    x, y = views(f"glosses {task}")
    rng = np.random.default_rng([seed, 82])
    order = rng.permutation(len(x))
    rows_x, rows_y, test = np.split(order[: 2 * n_rows + N_TEST], [n_rows, 2 * n_rows])
    if len(test) < N_TEST:
        raise SystemExit(f"--rows {n_rows} leaves no {N_TEST} of {len(x)} glosses to test on.")
    return Problem(task, x[rows_x], y[rows_y], np.full(n_rows, -1), x[test], y[test])


def true_pairs(task: str, n_rows: int, seed: int) -> tuple[Array, Array]:
    """The rows of x of the same draw, and the same glosses by the encoder of y."""
    x, y = views(f"glosses {task}")
    rows = np.random.default_rng([seed, 82]).permutation(len(x))[:n_rows]
    return x[rows], y[rows]


def told(fitted: Fitted, free: np.ndarray, truth: np.ndarray) -> dict[str, object]:
    """What the method says of itself over the rows whose partner was not given."""
    found: dict[str, object] = {"found_by": fitted.found_by}
    if fitted.match is None:
        return found
    confidence = fitted.match.confidence[free]
    sure = confidence >= 0.9
    found |= {"mean_confidence": float(confidence.mean()), "sure": int(sure.sum())}
    if (truth[free] >= 0).any():
        found["sure_right"] = int((fitted.match.partner == truth)[free][sure].sum())
    if fitted.match.verdict is not None:
        said = fitted.match.verdict
        found |= {"level": said.level, "probability": said.probability}
        found |= {"expected_rank": said.expected_rank, "trusted": int(said.trusted)}
        found |= {"agreement": fitted.match.agreement, "gap": fitted.match.gap}
    return found


def measure(method: str, problem: Problem, seed: int) -> dict[str, object]:
    """One method on one draw, scored against the truth, which it does not see."""
    begin = time.process_time()
    fitted = quiet(METHODS[method], problem.x, problem.y, problem.pairs, seed)
    spent = time.process_time() - begin
    given = [] if problem.pairs is None else problem.pairs[:, 0]
    free = np.setdiff1d(np.arange(len(problem.x)), given)
    truth = problem.truth
    scores = np.asarray(fitted.scores(problem.x, problem.y), dtype=float)
    scores = scores[np.ix_(free, truth[free])]
    if fitted.partner is None:
        rows, columns = linear_sum_assignment(-scores)
        right = float((rows == columns).mean())
    else:
        right = float((fitted.partner == truth)[free].mean())
    found = {"foscttm": foscttm(scores), "right": right, "cpu_seconds": spent}
    return found | told(fitted, free, truth)


def translate(method: str, task: str, n_rows: int, seed: int) -> dict[str, object]:
    """One method on different glosses of two encoders, scored on glosses it has not seen."""
    problem = draw_halves(task, n_rows, seed)
    begin = time.process_time()
    if method == ROTATION:
        known = np.column_stack([np.arange(n_rows)] * 2)
        fitted = rotation(*true_pairs(task, n_rows, seed), known, seed)
    else:
        fitted = quiet(METHODS[method], problem.x, problem.y, None, seed)
    spent = time.process_time() - begin
    scores = np.asarray(fitted.scores(problem.test_x, problem.test_y), dtype=float)
    own = np.arange(N_TEST)
    found = {
        "foscttm": foscttm(scores),
        "p_at_1": float((scores.argmax(1) == own).mean()),
        "p_at_1_back": float((scores.argmax(0) == own).mean()),
        "median_cosine": median_cosine(fitted, problem),
        "cpu_seconds": spent,
    }
    return found | told(fitted, np.arange(n_rows), problem.truth)


def median_cosine(fitted: Fitted, problem: Problem) -> float:
    """How near test rows of x come to their partners once translated into the space of y.

    The translation is the mean of the N_NEAR training rows of y that score highest: it needs
    scores alone, so all methods are read alike. (A rotation's own cosine is much the same: .54
    against .51 with 500 rows, .62 against .62 with 2,000.) Rows are centred, of unit length.
    """
    mean = problem.y.mean(0)
    scores = fitted.scores(problem.test_x, problem.y)
    near = np.argpartition(-scores, N_NEAR - 1, axis=1)[:, :N_NEAR]
    translated = unit(unit(problem.y - mean)[near].mean(1))
    return float(np.median((translated * unit(problem.test_y - mean)).sum(1)))


@cache
def warm_up(method: str) -> None:
    """Run a method once on noise, so that what it imports is not counted."""
    rows = np.random.default_rng(0).standard_normal((2, 60, 5))
    if method in METHODS:
        known = np.column_stack([np.arange(12)] * 2) if method in TAKES_PAIRS else None
        quiet(METHODS[method], *rows, known, 0)


def commit() -> str:
    """The commit of the code that runs, with a "+" where the working tree differs."""
    call = ["git", "-C", str(ROOT)]
    name = subprocess.run([*call, "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    state = subprocess.run([*call, "status", "--porcelain", "src"], capture_output=True, text=True)
    return name.stdout.strip() + ("+" if state.stdout.strip() else "")


def plan(options: argparse.Namespace) -> list[dict[str, object]]:
    """The runs that were asked for, seeds outermost, so that every task is seen early."""
    runs: list[dict[str, object]] = []
    if options.part == "translation":
        chosen = options.methods or ["match", "mini-vec2vec", ROTATION]
        for seed, task in product(range(options.seeds), options.tasks or TRANSLATED):
            run = {"task": task, "kind": "translation", "n": options.rows or 4000, "pairs": 0}
            runs += [run | {"method": method, "seed": seed} for method in chosen]
        return runs
    kinds = tasks()
    for seed, task, n_pairs in product(
        range(options.seeds), options.tasks or kinds, options.pairs or [0]
    ):
        size = min(options.rows or 500, len(views(task)[0]))
        for method in options.methods or (WITH_PAIRS if n_pairs else WITHOUT_PAIRS):
            if (method == "SCOT" and size > SCOT_ROWS) or 2 * n_pairs > size:
                continue
            if n_pairs and method not in TAKES_PAIRS:
                continue
            run = {"task": task, "kind": kinds[task], "n": size, "method": method}
            runs.append(run | {"seed": seed, "pairs": n_pairs})
    return runs


def write_page(path: Path, table: str) -> None:
    """Put the table between the marks of a page."""
    before, rest = path.read_text(encoding="utf-8").split(MARKS[0])
    after = rest.split(MARKS[1])[1]
    text = f"{before}{MARKS[0]}\n\n{table}\n\n{MARKS[1]}{after}"
    path.write_text(text, encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--part", choices=("tasks", "translation"), default="tasks")
    parser.add_argument("--tasks", nargs="+", help="some of the tasks, by name")
    parser.add_argument("--methods", nargs="+", choices=(*METHODS, ROTATION))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--pairs", nargs="+", type=int, help="numbers of known pairs")
    parser.add_argument("--rows", type=int, help="rows of a side: 500; translation 4,000")
    parser.add_argument("--out", type=Path, required=True, help="CSV to add to")
    parser.add_argument(
        "--summary", action="store_true", help="print tables of the file, run nothing"
    )
    parser.add_argument("--page", type=Path, help="put the table of verdicts into this page")
    options = parser.parse_args()
    done = unseen_tables.read(options.out)
    if options.page:
        write_page(options.page, unseen_tables.page(done))
        return
    if options.summary:
        print(unseen_tables.summary(done))
        return
    finished = {tuple(row[key] for key in KEYS) for row in done if not row["error"]}
    code = commit()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with options.out.open("a", newline="") as handle:
        writer = csv.DictWriter(handle, COLUMNS, restval="")
        if not done:
            writer.writeheader()
        for run in plan(options):
            if tuple(str(run[key]) for key in KEYS) in finished:
                continue
            name, task, seed, size = str(run["method"]), str(run["task"]), run["seed"], run["n"]
            try:
                warm_up(name)
                if options.part == "translation":
                    found = translate(name, task, int(size), int(seed))
                else:
                    problem = draw(task, int(size), int(seed), int(run["pairs"]))
                    found = measure(name, problem, int(seed))
            except Exception as error:  # a peer may fail in its own way; say so and go on
                found = {"error": f"{type(error).__name__}: {error}"[:200]}
            rounded = {k: round(v, 6) if isinstance(v, float) else v for k, v in found.items()}
            writer.writerow(run | rounded | {"commit": code})
            handle.flush()
            print(*run.values(), rounded, flush=True)


if __name__ == "__main__":
    main()
