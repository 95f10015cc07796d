"""The scheme of mini-vec2vec (Dar 2025, arXiv 2510.02348), written anew from its description.

Both sides are centred and scaled to unit length. Several times, a part of the rows of each side is
clustered and the centres are matched by quadratic assignment on their inner products; all matched
centres are anchors. Rows described by their cosines to the anchors find neighbours on the other
side, whose mean is their provisional partner; an orthogonal map is fitted. Rounds of nearest
neighbours in the space of y refine it, smoothed, and one last step uses clusters of y started from
the mapped clusters of x. Numbers of neighbours and clusters shrink with the rows: the paper has
tens of thousands.
"""

from __future__ import annotations

import numpy as np
from sklearn.cluster import KMeans

N_ANCHOR_CLUSTERS, N_RUNS, N_CLIMBS, N_ROUNDS = 20, 30, 30, 50
PART, SMOOTHING = 0.33, 0.5


class MiniVec2Vec:
    """A linear map from x to y found without pairs."""

    def __init__(self, random_state: int = 0) -> None:
        self.random_state = random_state

    def fit(self, x, y) -> MiniVec2Vec:
        """Learn the map from unpaired rows."""
        rng = np.random.default_rng([self.random_state, 31])
        self._means = x.mean(0), y.mean(0)
        x, y = unit(x - self._means[0]), unit(y - self._means[1])
        self._axes = _axes(x), _axes(y)
        x, y = x @ self._axes[0], y @ self._axes[1]
        n_near = min(50, max(5, len(y) // 40))
        runs = [_matched_centres(x, y, rng) for _ in range(N_RUNS)]
        anchors_x, anchors_y = (np.concatenate(side) for side in zip(*runs, strict=True))
        found = _mean_of_nearest(
            unit(x @ unit(anchors_x).T), unit(y @ unit(anchors_y).T), y, n_near
        )
        self.weights_ = orthogonal(x, found)
        for _ in range(N_ROUNDS):
            rows = x[rng.permutation(len(x))[: _part(len(x))]]
            found = _mean_of_nearest(unit(rows @ self.weights_), y, y, n_near)
            self._step(orthogonal(rows, found))
        n_clusters = min(500, max(2, min(len(x), len(y)) // 8))
        centres = _centres(x, n_clusters, rng)
        self._step(orthogonal(centres, _centres(y, n_clusters, rng, centres @ self.weights_)))
        return self

    def _step(self, new) -> None:
        self.weights_ = (1.0 - SMOOTHING) * self.weights_ + SMOOTHING * new

    def embed_x(self, rows):
        """Rows of x in the space of y, centred, unit length."""
        return unit(unit(rows - self._means[0]) @ self._axes[0] @ self.weights_)

    def embed_y(self, rows):
        """Rows of y, centred, unit length."""
        return unit(rows - self._means[1]) @ self._axes[1]


def unit(rows):
    """Rows at unit length; a row of zeros stays."""
    return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)


def _axes(rows):
    """Axes of the space that the rows span: nothing is lost, and wide rows cost less."""
    n_rows, width = rows.shape
    return np.eye(width) if width <= n_rows else np.linalg.qr(rows.T)[0]


def orthogonal(x, y):
    """The (d_x, d_y) map with orthonormal rows or columns that takes x nearest to y."""
    left, _, right = np.linalg.svd(x.T @ y, full_matrices=False)
    return left @ right


def _part(n_rows: int) -> int:
    """Rows that a run or a round sees: a third, but ten for each cluster at least."""
    return min(n_rows, max(int(PART * n_rows), 10 * N_ANCHOR_CLUSTERS))


def _centres(rows, n_clusters, rng, start="k-means++"):
    seed = int(rng.integers(2**31))
    found = KMeans(n_clusters, init=start, n_init=1, random_state=seed).fit(rows)
    return found.cluster_centers_


def _matched_centres(x, y, rng):
    """Centres of clusters of a part of each side, those of y in the order of those of x."""
    size = max(2, min(N_ANCHOR_CLUSTERS, len(x) // 4, len(y) // 4))
    sides = [
        _centres(rows[rng.permutation(len(rows))[: _part(len(rows))]], size, rng) for rows in (x, y)
    ]
    grams = [(side - side.mean(0)) @ (side - side.mean(0)).T for side in sides]
    climbed = [climb(*grams, rng.permutation(size)) for _ in range(N_CLIMBS)]
    best = max(climbed, key=lambda order: (grams[0] * grams[1][np.ix_(order, order)]).sum())
    return sides[0], sides[1][best]


def climb(gram_x, gram_y, order):
    """The order after the best exchange of two places, repeated until none improves (2-opt)."""
    order = order.copy()
    for _ in range(100 * len(order)):
        moved = gram_y[np.ix_(order, order)]
        product = gram_x @ moved
        own, diagonal_x, diagonal_y = (np.diag(part) for part in (product, gram_x, moved))
        gain = product + product.T - own[:, None] - own[None, :]
        wrong = (diagonal_x[:, None] - gram_x) * (diagonal_y[:, None] - moved)
        gain = 2.0 * (gain + wrong + wrong.T)  # an exchange treats the terms of both places apart
        gain -= (diagonal_x[:, None] - diagonal_x) * (diagonal_y[:, None] - diagonal_y)
        np.fill_diagonal(gain, 0.0)
        i, j = np.unravel_index(int(gain.argmax()), gain.shape)
        if gain[i, j] <= 1e-10 * max(1.0, float(np.abs(product).max())):
            break
        order[[i, j]] = order[[j, i]]
    return order


def _mean_of_nearest(rows_x, rows_y, values_y, n_near):
    """For each row of x the mean of ``values_y`` over its nearest rows of y."""
    near = np.argpartition(-(rows_x @ rows_y.T), n_near - 1, axis=1)[:, :n_near]
    return values_y[near].mean(1)
