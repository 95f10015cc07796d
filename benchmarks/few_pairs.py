"""Flickr8k with 10, 20 and 50 known pairs: maps fitted on the pairs alone.

Run: python -m benchmarks.few_pairs [--seeds 5]

FOSCTTM on the 1,000 test pairs of the same draws that ``benchmarks.matching`` gives to
``unpaired.match`` (problems "flickr8k 10 pairs", ...), read by cosine and with hubs corrected.
"""

from __future__ import annotations

import argparse

import numpy as np

from benchmarks import problems
from unpaired.baselines.closed_form import cca_fit
from unpaired.baselines.inputs import pair_moments
from unpaired.bench.tables import mean_and_spread
from unpaired.evaluation.hubness import csls_scores
from unpaired.evaluation.retrieval import foscttm
from unpaired.naming.smooth_space import unit_rows


def maps(x, y) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Maps of centred, unit rows of both sides, fitted on matched rows only."""
    left, _, right = np.linalg.svd(x.T @ y, full_matrices=False)
    found = {"orthogonal": (left, right.T)}
    gram = x @ x.T
    in_order = np.column_stack([np.arange(len(x))] * 2)
    for ridge in (0.1, 1.0):
        dual = np.linalg.solve(gram + ridge * np.trace(gram) / len(x) * np.eye(len(x)), y)
        found[f"ridge {ridge}"] = (x.T @ dual, np.eye(y.shape[1]))
    for ridge in (0.1, 1.0, 10.0):
        cca = cca_fit(len(x), 0.5)(pair_moments(x, y, in_order), ridge, ridge)
        found[f"CCA, ridge {ridge}"] = (cca.map_x, cca.map_y)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    seeds = range(parser.parse_args().seeds)
    for n_pairs in (10, 20, 50):
        results: dict[str, list[float]] = {}
        for seed in seeds:
            problem = problems.draw(f"flickr8k {n_pairs} pairs", seed)
            mean_x, mean_y = problem.x.mean(0), problem.y.mean(0)
            x = unit_rows(problem.x[problem.pairs[:, 0]] - mean_x)
            y = unit_rows(problem.y[problem.pairs[:, 1]] - mean_y)
            test_x = unit_rows(problem.test_x - mean_x)
            test_y = unit_rows(problem.test_y - mean_y)
            for name, (map_x, map_y) in maps(x, y).items():
                scores = unit_rows(test_x @ map_x) @ unit_rows(test_y @ map_y).T
                results.setdefault(name, []).append(foscttm(scores))
                results.setdefault(f"{name}, CSLS", []).append(
                    foscttm(csls_scores(scores, n_neighbours=67))
                )
        best = min(results, key=lambda name: np.mean(results[name]))
        for name, values in results.items():
            mark = "  <- best" if name == best else ""
            print(f"{n_pairs:3} pairs  {name:22} {mean_and_spread(values)}{mark}")


if __name__ == "__main__":
    main()
