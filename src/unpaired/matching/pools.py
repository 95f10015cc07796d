"""Unpaired pools of images and texts as evidence for names: maps learned between the pools."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from unpaired.matching.clustering import mean_by
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
    """Return the log-likelihood (m, m) of class j for group i, averaged over the maps.

    Each map's scores are centred both ways and scaled alike, so maps that disagree cancel out.
    """
    total = np.zeros((size, size))
    for rows, names in placed:
        score = mean_by(rows, group, size) @ names.T
        score = score - score.mean(axis=0) - score.mean(axis=1)[:, None] + score.mean()
        total += score / max(float(score.std()), 1e-12)
    return POOL_WEIGHT * total / max(1, len(placed))


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
