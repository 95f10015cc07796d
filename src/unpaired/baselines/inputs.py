"""What the methods see of a view, and moments over pairs that repeat rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from unpaired.types import FloatArray, IntArray

EXACT_COLUMNS = 3000
"""Columns up to which principal axes come from the whole covariance matrix."""


@dataclass(frozen=True)
class Principal:
    """Centre (d,), axes (d, p) and variances (p,) of a view; no direction without variance."""

    centre: FloatArray
    axes: FloatArray
    variances: FloatArray

    def apply(self, rows: FloatArray) -> FloatArray:
        """Rows (n, d) as principal components (n, p)."""
        return (rows - self.centre) @ self.axes


def principal(rows: FloatArray, n_components: int, seed: int) -> Principal:
    """The first principal components of a view, at most ``n_components``.

    Constant and repeated columns vanish here, so nothing after it divides by zero. Exact up to
    3,000 columns or rows, randomised above. Cost O(n d^2 + d^3) when exact.
    """
    centre = rows.mean(0)
    centred = rows - centre
    n_rows, n_columns = rows.shape
    if n_columns <= min(EXACT_COLUMNS, 4 * n_rows):
        values, vectors = np.linalg.eigh(centred.T @ centred / n_rows)
        values, axes = values[::-1], vectors[:, ::-1]
    elif n_rows <= EXACT_COLUMNS:
        _, singular, right = np.linalg.svd(centred, full_matrices=False)
        values, axes = singular**2 / n_rows, right.T
    else:
        from sklearn.decomposition import PCA

        pca = PCA(min(n_components, n_rows, n_columns), random_state=seed).fit(centred)
        values, axes = pca.explained_variance_, pca.components_.T
    kept = np.flatnonzero(values > 1e-10 * values[0])[:n_components]
    return Principal(centre, np.ascontiguousarray(axes[:, kept]), values[kept])


@dataclass(frozen=True)
class Moments:
    """Mean products over pairs: xx (d_x, d_x), xy (d_x, d_y), yy (d_y, d_y)."""

    xx: FloatArray
    xy: FloatArray
    yy: FloatArray


def pair_moments(x: FloatArray, y: FloatArray, pairs: IntArray) -> Moments:
    """The moments of paired rows; a row in several pairs is multiplied once, with its count."""
    from scipy.sparse import coo_matrix

    rows_x, place_x = np.unique(pairs[:, 0], return_inverse=True)
    rows_y, place_y = np.unique(pairs[:, 1], return_inverse=True)
    share = np.full(len(pairs), 1.0 / len(pairs))
    links = coo_matrix((share, (place_x, place_y)), shape=(len(rows_x), len(rows_y))).tocsr()
    part_x, part_y = x[rows_x], y[rows_y]
    weight_x, weight_y = np.asarray(links.sum(1)), np.asarray(links.sum(0)).T
    return Moments(
        part_x.T @ (part_x * weight_x),
        part_x.T @ (links @ part_y),
        part_y.T @ (part_y * weight_y),
    )


def hold_out(
    pairs: IntArray, rng: np.random.Generator, *, share: float = 0.2, max_rows: int = 1000
) -> tuple[IntArray, IntArray]:
    """The pairs to fit on and those to judge by; no row of x is in both."""
    rows = rng.permutation(np.unique(pairs[:, 0]))
    judged = rows[: min(max_rows, int(np.ceil(share * len(rows))))]
    held = np.isin(pairs[:, 0], judged)
    return pairs[~held], pairs[held]


def mean_reciprocal_rank(embed_x: FloatArray, embed_y: FloatArray, owner: IntArray) -> float:
    """How high partners rank in both directions, 0 to 1; row j of y belongs to row owner[j] of x.

    >>> mean_reciprocal_rank(np.eye(2), np.eye(2), np.array([0, 1]))
    1.0
    """
    scores = embed_x @ embed_y.T
    own = scores[owner, np.arange(len(owner))]
    to_x = 1.0 + (scores > own[None, :]).sum(0)
    best = np.full(len(embed_x), -np.inf)
    np.maximum.at(best, owner, own)
    to_y = 1.0 + (scores > best[:, None]).sum(1)
    return float((np.mean(1.0 / to_x) + np.mean(1.0 / to_y)) / 2.0)
