"""The learner beside its simple rivals, on the same rows in the same run.

Run: python -m benchmarks.learner [--part retrieval single halves ...] [--seeds 3] [--out FOLDER]

retrieval: Flickr8k with 0.5 to 100% of the pairs, R@1 on 1,000 unseen images and their 5,000
captions: CCA and DMAE on the known rows alone, DMAE on all rows, InfoNCE with all pairs; by the
scores as they are, and ("csls") with hubs corrected among the rows that are scored.
single: the same with each unpaired caption as an item of its own.
halves: no pairs, FOSCTTM of the matching engine alone and of DMAE. cells: SNARE-seq without pairs
and with a tenth of them, beside ridge and CCA. cost: seconds of an epoch beside InfoNCE, and the
memory of a fit at 50,000 rows.
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from torch.nn.functional import cross_entropy, normalize

import unpaired
from benchmarks import problems
from unpaired._random import derive_seed
from unpaired.baselines.closed_form import cca_fit
from unpaired.baselines.inputs import pair_moments
from unpaired.bench.outcome import read_outs
from unpaired.bench.tables import mean_and_spread
from unpaired.evaluation.hubness import csls_scores
from unpaired.evaluation.retrieval import foscttm
from unpaired.learning.learner import LearnerConfig
from unpaired.learning.towers import TowerConfig, train_towers
from unpaired.matching import align
from unpaired.naming.smooth_space import unit_rows
from unpaired.nets.residual import ResidualTower

PARTS = ("retrieval", "single", "halves", "cells", "cost")
SHARES = (0.005, 0.02, 0.05, 0.2, 0.4, 1.0)
Record = dict[str, object]


def cca_scores(x, y, pairs, test_x, test_y, *, ridge_x, ridge_y) -> np.ndarray:
    """Cosines after regularised CCA (power 1/2) of centred unit rows."""
    mean_x, mean_y = x.mean(0), y.mean(0)
    left, right = unit_rows(x - mean_x), unit_rows(y - mean_y)
    maps = cca_fit(256, 0.5)(pair_moments(left, right, pairs), ridge_x, ridge_y)
    embed_x = unit_rows(unit_rows(test_x - mean_x) @ maps.map_x)
    embed_y = unit_rows(unit_rows(test_y - mean_y) @ maps.map_y)
    return embed_x @ embed_y.T


def cca_ridges(share: float) -> dict[str, float]:
    """Ridges of the opponent, in units of the mean variance, chosen on dev rows for each share."""
    if share < 0.1:
        return {"ridge_x": 10.0, "ridge_y": 10.0}
    return {"ridge_x": 2.0, "ridge_y": 0.64}


def single(seed: int, split: str, shares: tuple[float, ...]) -> Iterator[Record]:
    """R@1 both ways where each unpaired caption is an item of its own."""
    for share in (share for share in shares if share < 1.0):
        draw = problems.flickr8k_retrieval(share, seed, split=split, single=True)
        begin = time.perf_counter()
        model = unpaired.DMAE(random_state=seed).fit(draw.x, draw.y, draw.pairs)
        recall = read_outs(model.score_matrix(draw.test_x, draw.test_y), draw.owner, ks=(1, 5))
        seconds = time.perf_counter() - begin
        name = "DMAE, all rows, single captions"
        yield {"part": "retrieval", "share": share, "method": name, **recall, "s": seconds}


def retrieval(seed: int, split: str, shares: tuple[float, ...]) -> Iterator[Record]:
    """R@1 both ways at each share of known pairs."""
    for share in shares:
        draw = problems.flickr8k_retrieval(share, seed, split=split)
        known = draw.known_only()

        def supervised(known=known, draw=draw) -> np.ndarray:
            model = unpaired.DMAE(random_state=seed).fit(*known)
            return model.score_matrix(draw.test_x, draw.test_y)

        def semi(draw=draw) -> np.ndarray:
            model = unpaired.DMAE(random_state=seed).fit(draw.x, draw.y, draw.pairs)
            return model.score_matrix(draw.test_x, draw.test_y)

        def cca(known=known, draw=draw, share=share) -> np.ndarray:
            return cca_scores(*known, draw.test_x, draw.test_y, **cca_ridges(share))

        methods: dict[str, Callable[[], np.ndarray]] = {"CCA, known pairs": cca}
        methods["DMAE, known pairs"] = supervised
        if share < 1.0:
            methods["DMAE, all rows"] = semi
        else:
            methods["InfoNCE"] = lambda draw=draw: infonce(draw, seed)
        for name, method in methods.items():
            begin = time.perf_counter()
            scores = method()
            seconds = time.perf_counter() - begin
            recall = read_outs(scores, draw.owner, ks=(1, 5))
            yield {"part": "retrieval", "share": share, "method": name, **recall, "s": seconds}


def infonce(draw: problems.Retrieval, seed: int) -> np.ndarray:
    """Scores of the two-tower opponent of equal size."""
    model = unpaired.registry.methods["infonce"](random_state=seed)
    model.fit(draw.x, draw.y, draw.pairs)
    return model.score_matrix(draw.test_x, draw.test_y)


def halves(seed: int, names: tuple[str, ...]) -> Iterator[Record]:
    """FOSCTTM without pairs: the engine alone, and the learner that starts from that very run."""
    for name in names:
        problem = problems.draw(name, seed)
        for method in ("match", "DMAE"):
            begin = time.perf_counter()
            model = (
                align(problem.x, problem.y, random_state=derive_seed(seed, "match"))
                if method == "match"
                else unpaired.DMAE(random_state=seed).fit(problem.x, problem.y)
            )
            seconds = time.perf_counter() - begin
            error = foscttm(model.score_matrix(problem.test_x, problem.test_y))
            yield {"part": name, "method": method, "FOSCTTM": error, "s": seconds}


def cells(seed: int) -> Iterator[Record]:
    """SNARE-seq with a tenth of the pairs; FOSCTTM on the cells without a known pair."""
    problem = problems.draw("snare", seed)
    rows = np.random.default_rng(seed).permutation(len(problem.x))
    known, rest = rows[: len(rows) // 10], rows[len(rows) // 10 :]
    pairs = np.column_stack([known, problem.truth[known]])
    test_x, test_y = problem.x[rest], problem.y[problem.truth[rest]]

    def ridge(strength: float) -> np.ndarray:
        left, right = problem.x - problem.x.mean(0), problem.y - problem.y.mean(0)
        x, y = left[pairs[:, 0]], right[pairs[:, 1]]
        gram = x.T @ x
        penalty = strength * np.trace(gram) / len(gram) * np.eye(len(gram))
        linear = np.linalg.solve(gram + penalty, x.T @ y)
        mapped = unit_rows((test_x - problem.x.mean(0)) @ linear)
        return csls_scores(mapped @ unit_rows(test_y - problem.y.mean(0)).T)

    def cca(strength: float) -> np.ndarray:
        ridges = {"ridge_x": strength, "ridge_y": strength}
        return csls_scores(cca_scores(problem.x, problem.y, pairs, test_x, test_y, **ridges))

    def dmae() -> np.ndarray:
        model = unpaired.DMAE(random_state=seed).fit(problem.x, problem.y, pairs)
        return model.score_matrix(test_x, test_y)

    methods: dict[str, Callable[[], np.ndarray]] = {}
    for strength in (0.01, 0.1, 1.0):
        methods[f"ridge {strength}"] = lambda s=strength: ridge(s)
        methods[f"CCA {strength}"] = lambda s=strength: cca(s)
    methods["DMAE"] = dmae
    for name, method in methods.items():
        begin = time.perf_counter()
        error = foscttm(method())
        seconds = time.perf_counter() - begin
        yield {"part": "snare 10% of pairs", "method": name, "FOSCTTM": error, "s": seconds}


def epochs(seed: int, n_epochs: int = 3) -> Iterator[Record]:
    """Seconds of an epoch over Flickr8k's 30,000 pairs: ours, and the same networks with InfoNCE.

    InfoNCE is the plain loop: towers, a symmetric softmax, Adam; no noise, mask or mean of weights.
    """
    rng = np.random.default_rng(seed)
    n, width, latent = 30_000, LearnerConfig().max_rank, LearnerConfig().tower_latent
    x, y = (torch.as_tensor(rng.normal(size=(n, width)), dtype=torch.float32) for _ in "xy")
    pairs = torch.arange(n)[:, None].repeat(1, 2)
    start = torch.linalg.qr(torch.randn(width, latent)).Q
    config = TowerConfig()

    def ours() -> None:
        spread = torch.ones(width)
        one = replace(config, n_epochs=1)
        train_towers(x, y, pairs, (start, start), (spread, spread), one)

    def plain() -> None:
        towers = [ResidualTower(start, config.hidden) for _ in "xy"]
        optimizer = torch.optim.Adam([p for t in towers for p in t.parameters()], lr=1e-3)
        for batch in torch.randperm(n).split(config.batch_size):
            z_x, z_y = (normalize(t(v[batch])) for t, v in zip(towers, (x, y), strict=True))
            logits, truth = z_x @ z_y.T / config.temperature, torch.arange(len(batch))
            loss = cross_entropy(logits, truth) + cross_entropy(logits.T, truth)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    for _ in range(n_epochs):
        seconds = []
        for method in (ours, plain):
            begin = time.perf_counter()
            method()
            seconds.append(time.perf_counter() - begin)
        yield {"part": "epoch", "method": "DMAE / InfoNCE", "ratio": seconds[0] / seconds[1]}


def large(seed: int, n: int) -> Iterator[Record]:
    """Seconds and peak memory of a fit with 1% of the pairs at n rows."""
    problem = problems.rotated_clusters(n, np.random.default_rng(seed))
    rows = np.arange(n // 100)
    pairs = np.column_stack([rows, problem.truth[rows]])
    begin = time.perf_counter()
    model = unpaired.DMAE(random_state=seed).fit(problem.x, problem.y, pairs)
    seconds = time.perf_counter() - begin
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    right = float((model.match_.partner == problem.truth).mean())
    yield {"part": f"{n} rows", "method": "DMAE", "right": right, "s": seconds, "GiB": memory}


def summarise(records: list[Record]) -> str:
    """A table of mean ± sample standard deviation over seeds."""
    groups: dict[tuple[object, ...], list[Record]] = {}
    for record in records:
        groups.setdefault((record["part"], record.get("share", ""), record["method"]), []).append(
            record
        )
    lines = []
    for key, group in groups.items():
        numbers = [
            f"{name} {mean_and_spread(values)}"
            for name in group[0]
            if name not in ("part", "share", "method", "seed")
            and (values := [float(str(record[name])) for record in group])
        ]
        lines.append("  ".join([*(f"{part!s:20}" for part in key), *numbers, f"({len(group)})"]))
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--part", nargs="*", default=list(PARTS), choices=PARTS)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--split", default="test", choices=("dev", "test"))
    parser.add_argument("--shares", nargs="*", type=float, default=list(SHARES))
    parser.add_argument("--halves", nargs="*", default=["flickr8k", "snare"])
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    records: list[Record] = []
    for seed in range(options.first_seed, options.first_seed + options.seeds):
        sources: list[Iterator[Record]] = []
        if "retrieval" in options.part:
            sources.append(retrieval(seed, options.split, tuple(options.shares)))
        if "single" in options.part:
            sources.append(single(seed, options.split, tuple(options.shares)))
        if "halves" in options.part:
            sources.append(halves(seed, tuple(options.halves)))
        if "cells" in options.part:
            sources.append(cells(seed))
        if "cost" in options.part and seed == options.first_seed:
            sources += [epochs(seed), large(seed, options.rows)]
        for source in sources:
            for record in source:
                records.append({**record, "seed": seed})
                print(json.dumps(records[-1]), flush=True)
    print(summarise(records))
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "learner.json").write_text(json.dumps(records, indent=1))
        (options.out / "learner.txt").write_text(summarise(records) + "\n")


if __name__ == "__main__":
    main()
