"""Unpaired pools of images and texts as evidence for names: maps learned between the pools."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from unpaired.matching.clustering import mean_by
from unpaired.matching.small_qap import Assignments
from unpaired.matching.soft import SoftAlignment, align_soft

Floats = NDArray[np.floating]
Ints = NDArray[np.integer]

N_MAPS = 8
"""Maps averaged; a single one is not reliable."""
MAP_ROWS = 1500
"""Rows of each pool that a map is learned from."""
PLACED_ROWS = 4000
"""Rows to be named that are placed by each map, at most."""
POOL_WEIGHT = 0.25
"""Log-likelihood of one standard deviation of the mean score. Maps tell coarse kinds apart
(animals, vehicles) and say little within them, so more weight adds bias, not knowledge."""
N_PARTS = 4
"""Parts of the maps that must name alike before the pools count."""


def learn_maps(
    images: Floats, texts: Floats, rng: np.random.Generator, *, n_maps: int = N_MAPS
) -> list[SoftAlignment]:
    """Return soft alignments of random parts of the two pools, whose rows are not paired.

    Args:
        images: Pool of images (n, d) in the feature space of the images to be named.
        texts: Pool of texts (k, q) in the vector space of the class vectors.
        rng: The source of randomness.
        n_maps: Number of maps.
    """
    found = []
    for _ in range(n_maps):
        x = rng.permutation(len(images))[:MAP_ROWS]
        y = rng.permutation(len(texts))[:MAP_ROWS]
        found.append(align_soft(images[x], texts[y], rng, same_items=False))
    return found


def place(
    maps: Sequence[SoftAlignment],
    pools: tuple[Floats, Floats],
    rows: Floats,
    class_vectors: Floats,
) -> list[tuple[Floats, Floats]]:
    """Return rows and classes in the space of each map, shifted to the means of the pools.

    The shift takes out what sets all rows apart from the pool, such as another camera.
    """
    near = rows - rows.mean(axis=0) + pools[0].mean(axis=0)
    names = class_vectors - class_vectors.mean(axis=0) + pools[1].mean(axis=0)
    return [(found.embed_x(near), found.embed_y(names)) for found in maps]


def pool_evidence(placed: Sequence[tuple[Floats, Floats]], group: Ints, size: int) -> Floats:
    """Return the log-likelihood (k, m, m) of class j for group i by each of k parts of the maps.

    Each map's scores are centred both ways and scaled alike, so maps that disagree cancel out.
    """
    scores = []
    for rows, names in placed:
        score = mean_by(rows, group, size) @ names.T
        score = score - score.mean(axis=0) - score.mean(axis=1)[:, None] + score.mean()
        scores.append(score / max(float(score.std()), 1e-12))
    n_parts = max(1, min(N_PARTS, len(placed)))
    return POOL_WEIGHT * np.stack([np.mean(scores[i::n_parts], axis=0) for i in range(n_parts)])


def consult(
    name: Callable[[Floats], Assignments], evidence: Floats, parts: Floats
) -> tuple[Assignments, str]:
    """Return the names with the pools if their parts agree, else without, and a sentence on it.

    Maps between pools can be wrong in their own ways, and a wrong map moves names between groups
    that the geometry can hardly tell apart. Names that each part of the maps gives on its own are
    not the accident of one.

    Args:
        name: Function from log-likelihood evidence (m, m) to assignments.
        evidence: What is known without the pools.
        parts: Evidence (k, m, m) of each part of the maps.
    """
    plain = name(evidence)
    together = name(evidence + parts.mean(axis=0))
    each = np.stack([name(evidence + part).best for part in parts])
    alike = (each == together.best).all(axis=0)
    size = len(together.best)
    if not alike.all():
        return plain, (
            f"The pools were ignored: maps learned from {len(parts)} parts of them agree on "
            f"{int(alike.sum())} of {size} names only."
        )
    changed = int((together.best != plain.best).sum())
    return together, (
        f"The pools were used: maps learned from {len(parts)} parts of them agree on all names, "
        f"{changed} of {size} other than without pools."
    )


def pool_anchors(
    features: Floats,
    class_vectors: Floats,
    pools: tuple[Floats, Floats],
    rng: np.random.Generator,
) -> Callable[[Ints], Floats]:
    """Return a function from the group of each row to the evidence of the pools for its name."""
    some = np.sort(rng.permutation(len(features))[:PLACED_ROWS])
    rows = np.asarray(features[some], dtype=np.float64)
    placed = place(learn_maps(*pools, rng), pools, rows, class_vectors)
    return lambda group: pool_evidence(placed, group[some], len(class_vectors))
