"""What each part of the learner is worth, on data of several kinds.

Run: python -m benchmarks.ablation [--data snare "handwritten 0-4" ...] [--seeds 3] [--out FOLDER]

A tenth of the pairs is known (Flickr8k: 5%, CIFAR-10: five labels a class); every variant sees the
same rows and pairs. Cells and digits: FOSCTTM on the rows without a known pair. Flickr8k: R@1 both
ways on unseen images. CIFAR-10, many to one: share of 2,000 unseen training images whose class
vector scores highest.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from unpaired.models.presets import PRESETS, learner_config
from unpaired.training.closed_form import Rows, pair_weights

import unpaired
from benchmarks import problems
from unpaired.bench.tables import mean_and_spread
from unpaired.evaluation.retrieval import both_ways, foscttm
from unpaired.learning.learner import LearnerConfig, learn

Scores = np.ndarray
DATA = ("snare", "handwritten 0-4", "handwritten 1-5", "cifar10", "flickr8k")
N_IMAGES, N_UNSEEN, N_LABELS = 4000, 2000, 5


def default(dependence="smi", *, closed_form=(), **settings) -> LearnerConfig:
    """The default's constants with some of them changed."""
    config = learner_config(dependence, replace(PRESETS["default"], **settings))
    return replace(config, closed_form=replace(config.closed_form, **dict(closed_form)))


VARIANTS: dict[str, Callable[[], LearnerConfig]] = {
    "default": default,
    "networks on uKTA": lambda: default("ukta"),
    "networks on HSIC": lambda: default("hsic"),
    "networks on CKA": lambda: default("cka"),
    "with reconstruction, weight 0.1": lambda: default(reconstruction_weight=0.1),
    "with reconstruction, weight 1": lambda: default(reconstruction_weight=1.0),
    "uKTA with reconstruction, weight 1": lambda: default("ukta", reconstruction_weight=1.0),
    "linear networks": lambda: default(hidden=()),
    "closed forms alone": lambda: default(n_epochs=0),
    "directions by the root of their correlation": lambda: default(closed_form={"belief": 0.0}),
    "hard plan": lambda: default(closed_form={"temperatures": (0.01, 0.01)}),
    "known pairs alone": lambda: default(soft_weight=0.0, n_rounds=1),
}
PUBLISHED = {
    "paper, SMI": {"dependence": "smi"},
    "paper, uKTA": {"dependence": "ukta"},
    "paper, SMI, no pre-training": {"dependence": "smi", "n_pretrain_epochs": 0},
}


def fit_scores(config: LearnerConfig, x, y, pairs, test_x, test_y, seed: int, many) -> Scores:
    """Scores of unseen rows by the learner with these constants; ``many`` rows of x to one of y."""
    known = torch.as_tensor(pairs)
    taken = pairs[:0, 1] if many else pairs[:, 1]
    rows = Rows(
        known,
        pair_weights(known, len(x), len(y), many_to_one=many),
        torch.as_tensor(np.setdiff1d(np.arange(len(x)), pairs[:, 0])),
        torch.as_tensor(np.setdiff1d(np.arange(len(y)), taken)),
    )
    views = [torch.as_tensor(np.asarray(view), dtype=torch.float32) for view in (x, y)]
    space = learn(views[0], views[1], rows, config, seed, balanced=not many).space
    tests = [torch.as_tensor(np.asarray(view), dtype=torch.float32) for view in (test_x, test_y)]
    return space.scores(tests[0], tests[1]).numpy()


def draw(name: str, seed: int):
    """Rows, known pairs, rows to score, and what measures the scores."""
    if name == "flickr8k":
        data = problems.flickr8k_retrieval(0.05, seed, split="dev")

        def recall(scores: Scores) -> dict[str, float]:
            return both_ways(scores, data.owner, ks=(1,))

        return (data.x, data.y, data.pairs, data.test_x, data.test_y), recall
    if name == "cifar10":
        with np.load(problems.DATA / "cifar10/train.npz") as file:
            images, label = file["features"].astype(float), file["label"].astype(np.int64)
        with np.load(problems.DATA / "cifar10/classes.npz") as file:
            classes = file["minilm_prompts"].astype(float).mean(1)
        order = np.random.default_rng([seed, 5]).permutation(len(images))
        seen, unseen = order[:N_IMAGES], order[N_IMAGES : N_IMAGES + N_UNSEEN]
        labelled = np.concatenate([np.flatnonzero(label[seen] == c)[:N_LABELS] for c in range(10)])
        pairs = np.column_stack([labelled, label[seen][labelled]])

        def accuracy(scores: Scores) -> dict[str, float]:
            return {"accuracy": float((scores.argmax(1) == label[unseen]).mean())}

        return (images[seen], classes, pairs, images[unseen], classes), accuracy
    problem = problems.draw(name, seed)
    rows = np.random.default_rng([seed, 3]).permutation(len(problem.x))
    known, rest = rows[: len(rows) // 10], rows[len(rows) // 10 :]
    pairs = np.column_stack([known, problem.truth[known]])
    tests = problem.x[rest], problem.y[problem.truth[rest]]
    return (problem.x, problem.y, pairs, *tests), lambda scores: {"FOSCTTM": foscttm(scores)}


def summarise(records: list[dict[str, object]]) -> str:
    """A Markdown table: variants down, data across, mean ± standard deviation over seeds."""
    columns = list(
        dict.fromkeys(
            (r["data"], key)
            for r in records
            for key in r
            if key not in ("data", "variant", "seed", "s")
        )
    )
    lines = ["| | " + " | ".join(f"{data} {key}" for data, key in columns) + " |"]
    lines.append("|---" * (len(columns) + 1) + "|")
    for variant in dict.fromkeys(r["variant"] for r in records):
        cells = []
        for data, key in columns:
            values = [
                float(str(r[key]))
                for r in records
                if r["variant"] == variant and r["data"] == data and key in r
            ]
            cells.append(mean_and_spread(values) if values else "–")
        lines.append(f"| {variant} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", nargs="*", default=list(DATA), choices=DATA)
    parser.add_argument("--variants", nargs="*", default=[*VARIANTS, *PUBLISHED])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    records: list[dict[str, object]] = []
    for seed in range(options.seeds):
        for name in options.data:
            inputs, measure = draw(name, seed)
            for variant in options.variants:
                begin = time.perf_counter()
                many = name == "cifar10"
                if variant in VARIANTS:
                    scores = fit_scores(VARIANTS[variant](), *inputs, seed, many)
                else:
                    settings = {"relation": "many-to-one"} if many else {}
                    settings |= {"preset": "paper", "random_state": seed, **PUBLISHED[variant]}
                    model = unpaired.DMAE(**settings)
                    scores = model.fit(*inputs[:3]).score_matrix(*inputs[3:])
                records.append({"data": name, "variant": variant, "seed": seed, **measure(scores)})
                records[-1]["s"] = round(time.perf_counter() - begin, 1)
                print(json.dumps(records[-1]), flush=True)
    print(summarise(records))
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "ablation.json").write_text(json.dumps(records, indent=1))


if __name__ == "__main__":
    main()
