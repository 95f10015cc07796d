"""``unpaired translate`` as a person types it: vectors of different texts in, a map out, judged.

    python -m benchmarks.translate_command GLOSSES --out benchmarks/results/translate_command.csv

GLOSSES is a folder of part*.npz with one array per text encoder, row i the same text in each. A
draw takes --rows texts for the old model, as many others for the new one, and 1,000 that neither
saw. Two commands run on files: learn a map from the first two, translate the third. Its rows are
then looked for by cosine among the new model's vectors of the same 1,000 texts.
"""

from __future__ import annotations

import argparse
import csv
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

COLUMNS = ("pair", "rows", "draw", "level", "probability", "p1", "p10", "cosine", "seconds")
N_TEST = 1000


def draw_rows(old, new, n_rows, draw):
    """Old vectors, new vectors of other texts, and both of 1,000 texts that neither side has."""
    order = np.random.default_rng(draw).permutation(len(old))
    test, mine, theirs = np.split(order[: N_TEST + 2 * n_rows], [N_TEST, N_TEST + n_rows])
    return old[mine], new[theirs], old[test], new[test]


def type_command(*words, cwd):
    """What the command prints."""
    done = subprocess.run(
        [sys.executable, "-m", "unpaired", *words], cwd=cwd, capture_output=True, text=True
    )
    if done.returncode:
        raise SystemExit(f"unpaired {' '.join(words)}: {done.stderr}")
    return done.stdout


def judge(moved, truth):
    """P@1, P@10 and the median cosine of translated rows among their partners."""
    moved, truth = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (moved, truth))
    scores = moved @ truth.T
    own = np.diag(scores)
    ranks = (scores > own[:, None]).sum(1)
    return float((ranks < 1).mean()), float((ranks < 10).mean()), float(np.median(own))


def run_one(old, new, n_rows, draw):
    """The verdict and how 1,000 other texts fare."""
    names = ("old", "new", "more")
    *given, truth = draw_rows(old, new, n_rows, draw)
    with tempfile.TemporaryDirectory() as folder:
        for name, rows in zip(names, given, strict=True):
            np.save(Path(folder) / f"{name}.npy", rows)
        begin = time.perf_counter()
        told = type_command(
            *("translate", "old.npy", "new.npy", "--out", "map", "--json"), cwd=folder
        )
        seconds = time.perf_counter() - begin
        type_command("translate", "map", "more.npy", "--out", "moved.npy", cwd=folder)
        moved = np.load(Path(folder) / "moved.npy")
    verdict = json.loads(told)["verdict"]
    first, ten, cosine = judge(moved, truth)
    return verdict["level"], verdict["probability"], first, ten, cosine, seconds


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("glosses", type=Path)
    parser.add_argument("--pairs", nargs="+", default=["minilm-mpnet", "gte-minilm"])
    parser.add_argument("--rows", type=int, nargs="+", default=[3000, 4000])
    parser.add_argument("--draws", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--out", type=Path, default=Path("translate_command.csv"))
    options = parser.parse_args()
    parts = [np.load(file) for file in sorted(options.glosses.glob("part*.npz"))]
    with options.out.open("w", newline="") as handle:
        writer = csv.writer(handle)
        writer.writerow(COLUMNS)
        for draw in options.draws:
            for n_rows in options.rows:
                for pair in options.pairs:
                    sides = [
                        np.concatenate([p[name] for p in parts]).astype(np.float32)
                        for name in pair.split("-")
                    ]
                    level, *numbers = run_one(*sides, n_rows, draw)
                    row = [pair, n_rows, draw, level, *(f"{v:.4g}" for v in numbers)]
                    writer.writerow(row)
                    handle.flush()
                    print(*row, flush=True)


if __name__ == "__main__":
    main()
