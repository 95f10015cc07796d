"""From which partners a translation is learned best, given the right space.

    python -m benchmarks.translation GLOSSES --seeds 0 1 2

GLOSSES is a folder of part*.npz with one array per text encoder, row i the same text in each. The
space is the rotation fitted on 3,000 true pairs of other texts; rows to learn from are 2,000 a side
of different texts; 1,000 other texts are translated and looked for among their 1,000 partners.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
import torch
from scipy.special import softmax

from unpaired.math.ridge import choose_ridge, ridge_map
from unpaired.spaces.translation import HEAT, N_SOFT, RIDGES, fit_map


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def plain(source, target):
    ridge = choose_ridge(source, target, RIDGES)
    matrix, offset = ridge_map(source, target, ridge)
    return matrix.numpy(), offset.numpy()


def towards_a_rotation(source, target):
    return fit_map(source, target, torch.ones(len(source)))


def corrected(left, right, k=10):
    scores = left @ right.T
    rows = np.partition(scores, -k, 1)[:, -k:].mean(1)
    columns = np.partition(scores, -k, 0)[-k:].mean(0)
    return scores - 0.5 * (rows[:, None] + columns[None])


def soft(scores, rows):
    near = np.argsort(-scores, axis=1)[:, :N_SOFT]
    shares = softmax(np.take_along_axis(scores, near, 1) / (HEAT * scores.std()), axis=1)
    return np.einsum("nk,nkd->nd", shares, rows[near])


def cases(a, b, seed, n=2000):
    order = np.random.default_rng(seed).permutation(len(a))
    test, ix, iy, true = order[:1000], order[1000:][:n], order[1000 + n :][:n], order[-3000:]
    x, y = a[ix], b[iy]
    moments = unit(a[true] - x.mean(0)).T @ unit(b[true] - y.mean(0))
    u, _, v = np.linalg.svd(moments, full_matrices=False)
    scores = corrected(unit(x - x.mean(0)) @ u @ v, unit(y - y.mean(0)))
    best, back = scores.argmax(1), scores.argmax(0)
    mutual = np.flatnonzero(back[best] == np.arange(n))
    there, here = soft(scores, y), soft(scores.T, x)
    both = np.concatenate([x, here]), np.concatenate([there, y])
    given = {
        "true partners": (a[true[:n]], b[true[:n]]),
        "mutual best": (x[mutual], y[best[mutual]]),
        "soft": (x, there),
        "soft, both ways": both,
    }
    for name, (source, target) in given.items():
        for fit in (plain, towards_a_rotation):
            matrix, offset = fit(torch.as_tensor(source), torch.as_tensor(target))
            found = unit(a[test] @ matrix + offset) @ unit(b[test]).T
            own = np.diag(found)
            first = (found.argmax(1) == np.arange(len(found))).mean()
            yield name, fit.__name__, float(np.median(own)), float(first)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("glosses", type=Path)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--pairs", nargs="+", default=["minilm-mpnet", "use-gte"])
    options = parser.parse_args()
    parts = [np.load(file) for file in sorted(options.glosses.glob("part*.npz"))]
    print("encoders,partners,fit,cosine,cosine_sd,p1,p1_sd,seeds")
    for pair in options.pairs:
        sides = [np.concatenate([p[name] for p in parts]).astype(float) for name in pair.split("-")]
        figures = {}
        for seed in options.seeds:
            for name, fit, *values in cases(*sides, seed):
                figures.setdefault((name, fit), []).append(values)
        for (name, fit), values in figures.items():
            mean, spread = np.mean(values, axis=0), np.std(values, axis=0, ddof=1)
            cells = ",".join(f"{m:.4f},{s:.4f}" for m, s in zip(mean, spread, strict=True))
            print(f'{pair},"{name}",{fit},{cells},{len(values)}', flush=True)


if __name__ == "__main__":
    main()
