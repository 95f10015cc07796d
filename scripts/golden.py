"""What the package answers on tiny problems, kept in a file and compared with another run's.

    python scripts/golden.py --out golden.json         run all cases and keep the answers
    python scripts/golden.py --compare golden.json     run again; tell which differ, by how much
    python scripts/golden.py --only match --seeds 1    fewer cases, by the beginning of their names

Only public names are used, so the file outlives a change of the modules behind them. Bits depend
on the machine: compare files made on the same one, with one thread (OMP_NUM_THREADS=1).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import unpaired
from unpaired import DMAE, PublishedDMAE, UnsupervisedClassifier, match
from unpaired.registry import methods

align = getattr(unpaired, "align", None) or import_module("unpaired.matching").align

# ---- problems: x, y and the true partner of each row of x (-1 = none) ----


def shuffled(x, y, rng):
    """The rows of y in another order, and where each went."""
    order = rng.permutation(len(y))
    return x, y[order], np.argsort(order)


def rotated(rng, n=150, d=8, noise=0.02):
    x = rng.standard_normal((n, d)) * np.linspace(3.0, 1.0, d)
    rotation = np.linalg.qr(rng.standard_normal((d, d)))[0]
    return shuffled(x, x @ rotation + noise * rng.standard_normal((n, d)), rng)


def bent(rng, n=90, n_factors=6):
    """Two views of the same factors, one of them squashed; partners are not evident."""
    factors = rng.standard_normal((n, n_factors)) * np.linspace(1.5, 0.8, n_factors)
    x = np.tanh(0.3 * factors @ rng.standard_normal((n_factors, 12)))
    y = factors @ rng.standard_normal((n_factors, 10))
    x, y = (rows + 0.2 * rng.standard_normal(rows.shape) for rows in (x, y))
    return shuffled(x, y, rng)


def clusters(rng, n=120, n_clusters=8):
    centres = 3.0 * rng.standard_normal((n_clusters, 10))
    x = centres[rng.integers(n_clusters, size=n)] + rng.standard_normal((n, 10))
    rotation = np.linalg.qr(rng.standard_normal((10, 10)))[0]
    return shuffled(x, x @ rotation + 0.3 * rng.standard_normal(x.shape), rng)


def unrelated(rng, n=80):
    x, y = rng.standard_normal((n, 12)), rng.standard_normal((n, 9))
    return x, y, np.full(n, -1)


def overlapping(rng, n=130, n_common=100):
    """Sides of different sizes that share only some of their items."""
    x, y, truth = rotated(rng, n)
    keep = np.sort(truth[:n_common])
    place = {row: i for i, row in enumerate(keep.tolist())}
    return x[:120], y[keep], np.array([place.get(row, -1) for row in truth[:120].tolist()])


def with_zeros(rng, n=120):
    """A rotation in which some rows of y were lost and stand as zeros."""
    x, y, truth = rotated(rng, n)
    y[rng.permutation(n)[:6]] = 0.0
    return x, y, truth


def classes(rng, n=150, n_classes=6):
    """Images of some classes, one vector a class, and the class of each image."""
    names = rng.standard_normal((n_classes, 7))
    to_images = rng.standard_normal((7, 12))
    label = rng.integers(n_classes, size=n)
    return names[label] @ to_images + 0.8 * rng.standard_normal((n, 12)), names, label


def some(truth, n):
    """The first n pairs that exist."""
    rows = np.flatnonzero(truth >= 0)[:n]
    return np.column_stack([rows, truth[rows]])


# ---- cases: a seed to the arrays and numbers that are kept ----

Answer = dict[str, Any]


def facts(found, truth, scores=None) -> Answer:
    """What is kept of a Match and, where there are maps, of the scores they give."""
    kept: Answer = {
        "partner": found.partner,
        "confidence": found.confidence,
        "runner_up": found.runner_up,
        "margin": np.nan_to_num(found.margin),
        "objective": float(found.objective),
        "agreement": float(found.agreement),
        "gap": float(found.gap),
        "trusted": bool(found.trusted),
        "right": float((found.partner == truth)[truth >= 0].mean()) if (truth >= 0).any() else 0.0,
    }
    if scores is not None:
        kept["scores"] = np.asarray(scores, dtype=float)
        own = np.flatnonzero(truth >= 0)
        if len(own) and found.relation == "one-to-one":
            best = kept["scores"][own, truth[own]][:, None]
            kept["closer"] = float((kept["scores"][own] > best).mean())
    return kept


def matched(problem, n_pairs=0, **options) -> Callable[[int], Answer]:
    def run(seed):
        x, y, truth = problem(np.random.default_rng([seed, 5]))
        return facts(match(x, y, some(truth, n_pairs), random_state=seed, **options), truth)

    return run


def hinted(make_options) -> Callable[[int], Answer]:
    """``match`` on bent views with side information made from the truth."""

    def run(seed):
        rng = np.random.default_rng([seed, 5])
        x, y, truth = bent(rng)
        options = make_options(truth, rng)
        return facts(match(x, y, random_state=seed, **options), truth)

    return run


def similar(truth, rng):
    likeness = rng.standard_normal((len(truth), len(truth)))
    likeness[np.arange(len(truth)), truth] += 1.5
    return {"similarity": likeness}


def shared(truth, rng):
    common = rng.standard_normal((len(truth), 2))
    return {"shared": (common, common[np.argsort(truth)] + 0.3 * rng.standard_normal(common.shape))}


def weighted(truth, rng):
    return {"weights": (rng.integers(0, 3, len(truth)).astype(float), None)}


def started(truth, rng):
    return {"start": np.where(rng.random(len(truth)) < 0.5, truth, -1)}


def forbidden(truth, rng):
    rows = np.arange(0, len(truth), 3)
    return {"forbidden": np.column_stack([rows, truth[rows]])}


def aligned(problem, n_pairs=0) -> Callable[[int], Answer]:
    def run(seed):
        x, y, truth = problem(np.random.default_rng([seed, 5]))
        found = align(x, y, some(truth, n_pairs), random_state=seed)
        return facts(found.match, truth, found.score_matrix(x, y))

    return run


def fitted(make, problem, n_pairs) -> Callable[[int], Answer]:
    """An estimator fitted on some pairs, and its scores."""

    def run(seed):
        x, y, truth = problem(np.random.default_rng([seed, 5]))
        model = make(random_state=seed).fit(x, y, some(truth, n_pairs))
        return facts(model.match_, truth, model.score_matrix(x, y))

    return run


def named(share_known) -> Callable[[int], Answer]:
    def run(seed):
        rng = np.random.default_rng([seed, 5])
        images, names, label = classes(rng)
        labels = np.where(rng.random(len(label)) < share_known, label, -1)
        model = UnsupervisedClassifier(random_state=seed)
        model.fit(images, names, labels if share_known else None)
        return facts(model.match_, label, model.predict_proba(images))

    return run


SHORTER = {name: {"n_rounds": 4} for name in ("deep-ukta", "deep-smi", "dmae-ukta", "dmae-smi")}
SHORTER["wasserstein-procrustes"] = {"n_restarts": 4}


def all_cases() -> dict[str, Callable[[int], Answer]]:
    many = {"relation": "many-to-one"}
    cases = {
        "match/rotated": matched(rotated),
        "match/bent": matched(bent),
        "match/unrelated": matched(unrelated),
        "match/overlapping, left out": matched(overlapping, leave_out=True),
        "match/rows of zeros": matched(with_zeros),
        "match/9 rows": matched(lambda rng: rotated(rng, 9, 4)),
        "match/similarity": hinted(similar),
        "match/shared": hinted(shared),
        "match/weights": hinted(weighted),
        "match/start": hinted(started),
        "match/forbidden": hinted(forbidden),
        "match/many-to-one": matched(classes, **many),
        "match/many-to-one 12 pairs": matched(classes, 12, **many),
        "match/many-to-one sizes": matched(classes, class_sizes=np.full(6, 40), **many),
        "align/rotated": aligned(rotated),
        "align/overlapping": aligned(overlapping),
        "align/clusters": aligned(clusters),
        "align/bent 10 pairs": aligned(bent, 10),
        "classifier/no labels": named(0.0),
        "classifier/some labels": named(0.1),
        "DMAE/many-to-one": fitted(partial(DMAE, n_rounds=4, **many), classes, 12),
        "PublishedDMAE": fitted(partial(PublishedDMAE, "smi", n_rounds=2), bent, 30),
    }
    for n_pairs in (0, 5, 30, 80, 90):
        cases[f"DMAE/{n_pairs} of 90 pairs"] = fitted(DMAE, bent, n_pairs)
    for name in methods:
        n_pairs = 50 if methods.about[name].startswith("all pairs") else 10
        make = partial(methods[name], **SHORTER.get(name, {}))
        cases[f"method/{name}"] = fitted(make, bent, n_pairs)
    return cases


# ---- keeping and comparing ----


def digest(array: np.ndarray) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:16]


def condensed(answer: Answer) -> Answer:
    """The answer for a file: the partners, the bits of each array, rounded numbers."""
    numbers, bits = {}, {}
    for name, value in answer.items():
        if isinstance(value, np.ndarray):
            bits[name] = digest(value)
            numbers[f"sum of {name}"] = round(float(value.sum()), 9)
        else:
            bits[name] = repr(value)
            numbers[name] = round(float(value), 9)
    return {"partner": answer["partner"].tolist(), "numbers": numbers, "bits": bits}


def run_all(seeds: int, only: str) -> dict[str, Answer]:
    """Every case and seed; an error is an answer too."""
    results: dict[str, Answer] = {}
    for name, case in all_cases().items():
        if not name.startswith(only):
            continue
        for seed in range(seeds):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    results[f"{name} #{seed}"] = condensed(case(seed))
                except Exception as error:  # a case that fails must not hide the others
                    results[f"{name} #{seed}"] = {"error": f"{type(error).__name__}: {error}"[:300]}
    return results


def difference(before: Answer, after: Answer) -> str:
    """What differs between two answers to one case, "" when no bit does."""
    if "error" in before or "error" in after:
        told = [answer.get("error", "no error") for answer in (before, after)]
        return "" if told[0] == told[1] else f"{told[0]} -> {told[1]}"
    wrong = [key for key, bits in before["bits"].items() if after["bits"].get(key) != bits]
    if not wrong:
        return ""
    parts = [f"bits of {', '.join(wrong)}"]
    moved = np.asarray(before["partner"]) != np.asarray(after["partner"])
    if moved.any():
        parts.append(f"{int(moved.sum())} of {moved.size} partners")
    for key, old in before["numbers"].items():
        new = after["numbers"].get(key)
        if new is None or not (old == new or (np.isnan(old) and np.isnan(new))):
            parts.append(f"{key} {old:.6g} -> {'gone' if new is None else format(new, '.6g')}")
    return "; ".join(parts)


def compare(before: dict[str, Answer], after: dict[str, Answer]) -> int:
    """Print the cases that differ; the number of them."""
    n_different = 0
    for name, answer in after.items():
        told = difference(before[name], answer) if name in before else "not in the file"
        if told:
            n_different += 1
            print(f"{name}: {told}")
    print(f"{n_different} of {len(after)} runs differ")
    return n_different


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--out", type=Path, help="where to keep the answers (JSON)")
    parser.add_argument("--compare", type=Path, help="a file written with --out")
    parser.add_argument("--only", default="", help="the beginning of the names of the cases to run")
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    begin = time.process_time()
    results = run_all(options.seeds, options.only)
    n_failed = sum("error" in answer for answer in results.values())
    spent = time.process_time() - begin
    print(f"{len(results)} runs, {n_failed} ended in an error, {spent:.0f} CPU seconds")
    if options.out:
        options.out.write_text(json.dumps(results, indent=0) + "\n")
    if options.compare and compare(json.loads(options.compare.read_text()), results):
        sys.exit(1)


if __name__ == "__main__":
    main()
