"""The reliability diagram: what the verdict claimed against what was so.

``python -m benchmarks.trust_diagram`` draws ``docs/images/trust.png`` from the collected runs. On
the left a point is a group of runs, on the right a group of rows, of like claims. Filled: every run
judged leaving its source out; open: runs of each list judged by what is fitted to the other.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from benchmarks.problems import ROOT
from benchmarks.trust import FILES, cases_of
from benchmarks.trust_fit import Judged, leave_sources_out, transfer

EDGES = np.array([0.0, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.9, 1.0])
"""Of the claims that stand together; most are small."""
LEAST = 4
"""Runs, or rows, without which a group is not shown."""


def of_runs(judged: Sequence[Judged]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Probability, whether it was so, and weight, of each run."""
    claimed = np.array([verdict.probability for _, verdict, _ in judged])
    return claimed, np.array([float(case.good) for case, _, _ in judged]), np.ones(len(judged))


def of_rows(judged: Sequence[Judged]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Confidence, share right, and number, of the rows of each bin of each run."""
    claimed = np.concatenate([confidence for _, _, confidence in judged])
    counts, right = np.concatenate([case.bins for case, _, _ in judged]).astype(float).T
    return claimed, right / np.maximum(counts, 1.0), counts


def curve(claimed: np.ndarray, true: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Mean claim, share that was so, and number, of groups of like claims: (groups, 3)."""
    place = np.clip(np.searchsorted(EDGES, claimed, side="right") - 1, 0, len(EDGES) - 2)
    found = []
    for number in np.unique(place):
        own = place == number
        total = weight[own].sum()
        if total >= LEAST:
            mean = [float((v[own] * weight[own]).sum() / total) for v in (claimed, true)]
            found.append([*mean, float(total)])
    return np.array(found).reshape(-1, 3)


def draw(path: Path) -> None:
    """Write the diagram."""
    figure = Figure(figsize=(9, 4.4), layout="constrained")
    axes = figure.subplots(1, 2)
    first, second = (cases_of(which) for which in FILES)
    judged = {
        "source left out": leave_sources_out(first + second),
        "by the other list": transfer(first, second) + transfer(second, first),
    }
    for axis, measure, title in zip(
        axes,
        (of_runs, of_rows),
        ("probability of a run: FOSCTTM < .2", "confidence of a row: partner is right"),
        strict=True,
    ):
        axis.plot([0, 1], [0, 1], color="0.7", lw=1)
        for which, runs in judged.items():
            for color, pairs in (("C0", False), ("C1", True)):
                own = [j for j in runs if (j[0].n_pairs > 0) == pairs]
                points = curve(*measure(own))
                told = "10 or 50 known pairs" if pairs else "no pairs"
                axis.plot(
                    *points[:, :2].T,
                    "o-" if which == "source left out" else "s--",
                    color=color,
                    markerfacecolor=color if which == "source left out" else "white",
                    label=f"{told}, {which}",
                )
        axis.set(xlabel="claimed", ylabel="was so", title=title, xlim=(0, 1), ylim=(0, 1))
    axes[0].legend(fontsize=8)
    figure.savefig(path, dpi=90, metadata={"Software": None})


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "docs" / "images" / "trust.png")
    draw(parser.parse_args().out)


if __name__ == "__main__":
    main()
