"""What speaks for names: much where both geometries are one, little where they have nothing."""

from __future__ import annotations

import numpy as np
import pytest

from unpaired.naming.evidence import (
    MOST_HELD,
    MOST_IN_TURN,
    agreement_of_kernels,
    gap_above_turned,
    held_out_labels,
    naming_evidence,
)
from unpaired.naming.names import group_means, name_classes


@pytest.fixture
def blobs():
    """Rows around six centres of unlike length, and the centres turned."""
    rng = np.random.default_rng(0)
    centres = rng.standard_normal((6, 10)) * np.linspace(4.0, 1.5, 6)[:, None]
    truth = rng.permutation(np.repeat(np.arange(6), 60))
    rows = centres[truth] + 0.3 * rng.standard_normal((360, 10))
    return rows.astype(np.float32), centres @ np.linalg.qr(rng.standard_normal((10, 10)))[0], truth


@pytest.fixture
def named(blobs):
    rows, vectors, _ = blobs
    return name_classes(rows, [vectors], rng=np.random.default_rng(1))


def measures(rows, vectors, named):
    means = group_means(rows, named.space, named.groups, 6)
    rng = np.random.default_rng(2)
    return (
        agreement_of_kernels(means, [vectors], named.groups, rng),
        gap_above_turned(means, [vectors], rng),
    )


def test_one_geometry_is_told_from_two(blobs, named):
    rows, vectors, truth = blobs
    assert (named.labels == truth).all()
    agreement, gap = measures(rows, vectors, named)
    assert agreement > 0.9
    assert gap > 0.5
    drawn = np.random.default_rng(3).standard_normal(vectors.shape)
    agreement, gap = measures(rows, drawn, named)
    assert agreement < 0.9
    assert gap < 0.3


def test_labels_are_held_out_of_the_names_they_judge(blobs, named):
    rows, vectors, truth = blobs
    rng = np.random.default_rng(4)
    labels = np.where(np.arange(360) < 30, truth, -1)
    held = held_out_labels(rows, [vectors], named, labels, rng, "kernel")
    assert len(held) == 30
    assert np.mean([pair.right for pair in held]) > 0.95
    assert max(pair.rank for pair in held if pair.right) == 0.0
    wrong = np.where(labels >= 0, rng.permutation(truth), -1)  # as if somebody labelled blindly
    held = held_out_labels(rows, [vectors], named, wrong, rng, "kernel")
    assert np.mean([pair.right for pair in held]) < 0.5


def test_of_many_labels_one_part_is_held_out(blobs, named):
    rows, vectors, truth = blobs
    held = held_out_labels(rows, [vectors], named, truth, np.random.default_rng(5), "kernel")
    assert len(truth) > MOST_IN_TURN
    assert len(held) == min(120, MOST_HELD)


def test_labels_take_the_place_of_geometry(blobs, named):
    rows, vectors, truth = blobs
    few = np.where(np.arange(360) < 3, truth, -1)
    found = naming_evidence(rows, [vectors], named, np.random.default_rng(6), labels=few)
    assert found.held_out == ()
    assert np.isfinite([found.agreement, found.gap]).all()
    some = np.where(np.arange(360) < 12, truth, -1)
    found = naming_evidence(rows, [vectors], named, np.random.default_rng(6), labels=some)
    assert len(found.held_out) == 12
    assert np.isnan(found.gap)
    assert found.reached == {"groups": named.assignments.score}
