"""The method as published on real data: classes where its objective helps, items where it does not.

Run: python -m benchmarks.published labels|names|piles|retrieval [--seeds 3] [--images N] [--out F]

``labels``: CIFAR-10 (EfficientNet-Lite0), 1,000 and 5,000 labelled training images matched to
their class vectors (MiniLM prompts, mean of 8), many to one; accuracy on the 10,000 test images of
a linear SVM on the latents (C = 1, or the best C of three by 5-fold cross-validation on the
training images) and of the read-out. ``names``: what the objective is worth at the end when 1,000
images have their own class vectors as partners, and when the ten names are exchanged at random.
``piles``: 1-4-10 beside 1-0-10 (1,000 labelled, 4,000 or no unlabelled images), and 0-5-10 from
the matching engine; matching accuracy at the start and at the end. ``retrieval``: Flickr8k, all
pairs of the training images, or of N drawn ones in more epochs; R@1 of 1,000 test images and 5,000
captions, hubs corrected, for each read-out. Lines are added to F.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
import torch
from sklearn.model_selection import GridSearchCV
from sklearn.svm import LinearSVC

from benchmarks.problems import DATA
from unpaired.errors import CollapseWarning
from unpaired.evaluation.classifier import classifier_scores
from unpaired.evaluation.retrieval import both_ways
from unpaired.models.published_dmae import PublishedDMAE
from unpaired.published.readout import fit_readout

STRENGTHS = (0.1, 1.0, 10.0)
LABELS = {
    "lambda = 0": {"lam": 0.0},
    "SMI": {},
    "uKTA": {"dependence": "ukta"},
    "Deep-SMI": {"reconstruction_weight": 0.0},
    "Deep-uKTA": {"dependence": "ukta", "reconstruction_weight": 0.0},
    "SMI, sigma2 = 1, 1": {"sigma2_x": 1.0, "sigma2_y": 1.0},
}


def cifar10() -> dict[str, np.ndarray]:
    """Training and test features and labels, and the class vectors."""
    found = {}
    for part in ("train", "test"):
        with np.load(DATA / f"cifar10/{part}.npz") as file:
            found[part] = file["features"].astype(np.float32)
            found[f"{part}_label"] = file["label"].astype(np.int64)
    with np.load(DATA / "cifar10/classes.npz") as file:
        found["classes"] = file["minilm_prompts"].astype(np.float32).mean(1)
    return found


def svm_accuracy(model, data, rows, labels) -> float:
    """Test accuracy of a linear SVM on the latents, its C chosen on the training images."""
    if len(np.unique(labels)) == 1:  # a collapsed matching: there is nothing to train on
        return float((data["test_label"] == labels[0]).mean())
    latents = model.transform_x(data["train"][rows])
    search = GridSearchCV(LinearSVC(dual=False), {"C": STRENGTHS}, cv=5)
    search.fit(latents, labels)
    predicted = search.predict(model.transform_x(data["test"]))
    return float((predicted == data["test_label"]).mean())


def nearest_accuracy(model, data) -> float:
    scores = model.score_matrix(data["test"], data["classes"])
    return float((scores.argmax(1) == data["test_label"]).mean())


def labels_bar(seed: int, names, images) -> list[dict]:
    data, found = cifar10(), []
    for n_labels, n_epochs in ((1000, 40), (5000, 12)):
        rows = np.random.default_rng([seed, 1]).permutation(len(data["train"]))[:n_labels]
        labels = data["train_label"][rows]
        pairs = np.column_stack([np.arange(n_labels), labels])
        for name in names or LABELS:
            begin = time.perf_counter()
            model = PublishedDMAE(
                **{"relation": "many-to-one", "n_rounds": 1, "n_epochs": n_epochs, **LABELS[name]},
                random_state=seed,
            ).fit(data["train"][rows], data["classes"], pairs)
            found.append(
                {
                    "bar": "labels",
                    "method": name,
                    "n_labels": n_labels,
                    "seed": seed,
                    "svm": svm_accuracy(model, data, rows, labels),
                    "readout": nearest_accuracy(model, data),
                    "dependence": model.history_[-1]["dependence_known"],
                    "near_x": model.history_[-1]["near_x"],
                    "seconds": time.perf_counter() - begin,
                }
            )
            print(json.dumps(found[-1]), flush=True)
    return found


def names_bar(seed: int, names, images) -> list[dict]:
    data, found = cifar10(), []
    rows = np.random.default_rng([seed, 1]).permutation(len(data["train"]))[:1000]
    labels = data["train_label"][rows]
    others = np.random.default_rng([seed, 4]).permutation(10)
    for name, named in {"own": np.arange(10), "exchanged": others}.items():
        pairs = np.column_stack([np.arange(1000), named[labels]])
        model = PublishedDMAE(relation="many-to-one", n_rounds=1, n_epochs=40, random_state=seed)
        model.fit(data["train"][rows], data["classes"], pairs)
        kept = ("loss", "dependence_known", "reconstruction_x", "reconstruction_y")
        ends = {key: float(np.mean([s[key] for s in model.history_[-5:]])) for key in kept}
        found.append({"bar": "names", "method": name, "seed": seed, **ends})
        print(json.dumps(found[-1]), flush=True)
    return found


def piles_bar(seed: int, names, images) -> list[dict]:
    data, found = cifar10(), []
    order = np.random.default_rng([seed, 2]).permutation(len(data["train"]))[:5000]
    truth = data["train_label"][order]
    settings = {"1-0-10": (1000, 1000), "1-4-10": (1000, 5000), "0-5-10 engine": (0, 5000)}
    for dependence in ("smi", "ukta"):
        for row, (n_known, n_rows) in settings.items():
            name = f"{dependence} {row}"
            if names and name not in names:
                continue
            begin = time.perf_counter()
            pairs = np.column_stack([np.arange(n_known), truth[:n_known]])
            model = PublishedDMAE(dependence, relation="many-to-one", random_state=seed)
            start = "engine" if n_known == 0 else None
            model.fit(data["train"][order[:n_rows]], data["classes"], pairs, start=start)
            named = [np.full(n_rows, -1) for _ in model.trace_]
            for labels, matched in zip(named, model.trace_, strict=True):
                labels[matched[:, 0]] = matched[:, 1]
            curve = [
                classifier_scores(labels[n_known:], truth[n_known:n_rows], 10) for labels in named
            ]
            rows = order[:n_rows]
            found.append(
                {
                    "bar": "piles",
                    "method": name,
                    "seed": seed,
                    "svm": svm_accuracy(model, data, rows, named[-1]),
                    "readout": nearest_accuracy(model, data),
                    "precision": [step["precision"] for step in curve],
                    "recall": [step["recall"] for step in curve],
                    "accuracy": [step["accuracy"] for step in curve],
                    "seconds": time.perf_counter() - begin,
                }
            )
            print(json.dumps(found[-1]), flush=True)
    return found


def retrieval_bar(seed: int, names, images_at_most) -> list[dict]:
    with np.load(DATA / "flickr8k/images.npz") as file:
        images, split = file["features"].astype(np.float32), file["split"].astype(str)
    with np.load(DATA / "flickr8k/captions.npz") as file:
        captions, owner = file["features"].astype(np.float32), file["image"]
    train, test = np.flatnonzero(split == "train"), np.flatnonzero(split == "test")
    train = np.sort(np.random.default_rng([seed, 3]).permutation(train)[:images_at_most])
    n_epochs = 8 if images_at_most is None else 25
    kept = np.isin(owner, train)
    pairs = np.column_stack([np.searchsorted(train, owner[kept]), np.arange(kept.sum())])
    tested = np.isin(owner, test)
    found = []
    variants = {"lambda = 0": {"lam": 0.0}, "SMI": {}, "uKTA": {"dependence": "ukta"}}
    for name in names or variants:
        begin = time.perf_counter()
        model = PublishedDMAE(
            **{"n_rounds": 1, "n_epochs": n_epochs, "batch_size": 512, **variants[name]},
            random_state=seed,
        )
        model.fit(images[train], captions[kept], pairs)
        z_x = torch.as_tensor(model.transform_x(images[train]))
        z_y = torch.as_tensor(model.transform_y(captions[kept]))
        test_x = torch.as_tensor(model.transform_x(images[test]))
        test_y = torch.as_tensor(model.transform_y(captions[tested]))
        for readout in ("density-ratio", "cosine", "linear-map"):
            config = PublishedDMAE(**{**variants[name], "readout": readout})
            fitted = fit_readout(z_x, z_y, pairs, config_of(config), np.random.default_rng(seed))
            scores = fitted.scores(test_x, test_y).double().numpy()
            recall = both_ways(
                scores, np.searchsorted(test, owner[tested]), ks=(1,), readout="csls"
            )
            found.append(
                {
                    "bar": "retrieval",
                    "method": name,
                    "readout": readout,
                    "images": len(train),
                    "seed": seed,
                    **recall,
                    "dependence": model.history_[-1]["dependence_known"],
                    "seconds": time.perf_counter() - begin,
                }
            )
            print(json.dumps(found[-1]), flush=True)
    return found


def config_of(model: PublishedDMAE):
    """The constants a model would fit with."""
    from unpaired.published.config import NAMES, resolve

    return resolve({name: getattr(model, name) for name in NAMES})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("bar", choices=("labels", "names", "piles", "retrieval"))
    parser.add_argument("--methods", nargs="*", default=None)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--images", type=int, default=None)
    parser.add_argument("--out", type=Path, default=None)
    args = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", CollapseWarning)  # the figures tell
    bars = {"labels": labels_bar, "names": names_bar, "piles": piles_bar}
    run = {**bars, "retrieval": retrieval_bar}[args.bar]
    found = [line for seed in range(args.seeds) for line in run(seed, args.methods, args.images)]
    if args.out is not None:
        with args.out.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(line) + "\n" for line in found)


if __name__ == "__main__":
    main()
