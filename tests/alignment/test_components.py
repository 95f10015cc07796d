"""Independent components of both sides, paired: starts that need no alignment."""

import numpy as np
import pytest

from unpaired.alignment.components import (
    COMPONENTS,
    component_starts,
    independent_axes,
    pair_components,
    topic_gram,
)
from unpaired.math.rotations import nearest_rotation, overlap


def rotation_of(d, rng):
    return np.linalg.qr(rng.standard_normal((d, d)))[0]


def skewed(n, d, rng):
    """Independent columns of unit variance with a long tail upwards."""
    rows = rng.exponential(size=(n, d)) ** 1.3
    return (rows - rows.mean(0)) / rows.std(0)


def mixtures(n, rng, d=8):
    """Rows of topics, each with a tail of its own, that occur together in a pattern."""
    rows = rng.exponential(size=(n, d)) ** np.linspace(0.8, 2.0, d)
    rows = (rows - rows.mean(0)) / rows.std(0)
    return rows @ np.triu(np.full((d, d), 0.2) + 0.8 * np.eye(d))


def test_axes_are_those_that_were_mixed_and_point_to_the_tail(rng):
    rows, turn = skewed(2000, 6, rng), rotation_of(6, rng)
    white = rows - rows.mean(0)
    left, _, _ = np.linalg.svd(white, full_matrices=False)
    white = left * 2000**0.5 @ turn
    axes = independent_axes(white, rng)
    np.testing.assert_allclose(axes.T @ axes, np.eye(6), atol=1e-6)
    found = white @ axes
    assert ((found**3).mean(0) > 0).all()
    likeness = np.corrcoef(found.T, rows.T)[:6, 6:]
    assert (likeness.max(1) > 0.9).all()
    assert len(set(likeness.argmax(1))) == 6


def test_a_topic_is_the_mean_of_rows_far_out_and_the_diagonal_tells_skew(rng):
    components = skewed(500, 3, rng)
    rows = components @ rng.standard_normal((3, 5))
    gram = topic_gram(components, rows.astype(np.float32))
    np.testing.assert_allclose(gram, gram.T, atol=1e-5)
    skew = (components**3).mean(0)
    wanted = COMPONENTS.skew * (skew - skew.mean()) / skew.std()
    np.testing.assert_allclose(np.diag(gram), wanted, rtol=1e-6)
    others = gram[~np.eye(3, dtype=bool)]
    assert others.mean() == pytest.approx(0.0, abs=1e-6)
    assert others.std() == pytest.approx(1.0, rel=1e-6)


def test_components_are_paired_whatever_their_order_and_number(rng):
    gram = rng.standard_normal((9, 9))
    gram = gram + gram.T
    order = rng.permutation(9)
    np.testing.assert_array_equal(
        order[pair_components(gram, gram[np.ix_(order, order)], rng)], np.arange(9)
    )
    fewer = pair_components(gram, gram[:6, :6], rng)
    assert sorted(fewer[fewer >= 0]) == list(range(6))
    assert (fewer == -1).sum() == 3


def test_starts_find_a_rotation_that_no_one_told_and_random_pairings_do_not(rng):
    rows, turn = mixtures(1000, rng), rotation_of(8, rng)
    x = rows.astype(np.float32)
    y = (rng.permutation(rows) @ turn).astype(np.float32)  # in another order
    near = [overlap(nearest_rotation(c), turn) for c in component_starts(x, y, rng)]
    assert len(near) == COMPONENTS.n_starts
    assert np.median(near) > 0.7
    lost = [
        overlap(nearest_rotation(c), turn)
        for _ in range(3)
        for c in component_starts(x, y, rng, at_random=True)
    ]
    assert np.mean(lost) < np.median(near) - 0.2


def test_starts_are_finite_and_of_length_one_for_few_and_repeated_directions(rng):
    thin = np.repeat(rng.standard_normal((60, 1)), 4, axis=1)
    for x in (thin, rng.standard_normal((60, 1)), rng.standard_normal((60, 7))):
        for cross in component_starts(x.astype(np.float32), thin.astype(np.float32), rng):
            assert cross.shape == (x.shape[1], 4)
            assert np.linalg.norm(cross) == pytest.approx(1.0, rel=1e-4)
