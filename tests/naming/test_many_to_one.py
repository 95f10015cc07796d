"""Many rows to one: what is known, forbidden, alike or limited counts."""

import numpy as np
import pytest

from unpaired import match
from unpaired.errors import InputError
from unpaired.naming.many_to_one import match_many_to_one
from unpaired.naming.names import name_classes
from unpaired.problem.problem import check_problem

SEVEN = (30,) * 7


def blobs(seed, sizes=(40, 30, 20), spread=0.4):
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((len(sizes), 8)) * np.linspace(4.0, 2.0, len(sizes))[:, None]
    truth = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))
    rows = centres[truth] + spread * rng.standard_normal((len(truth), 8))
    return rows, centres @ np.linalg.qr(rng.standard_normal((8, 8)))[0], truth


def solve(x, y, pairs=None, seed=0, **options):
    problem = check_problem(x, y, pairs, relation="many-to-one", **options)
    return match_many_to_one(problem, np.random.default_rng(seed))


def test_the_match_is_what_naming_says(seed):
    x, y, _ = blobs(seed)
    found = solve(x, y)
    named = name_classes(x, y, labels=np.full(90, -1), rng=np.random.default_rng(0))
    np.testing.assert_array_equal(found.partner, named.labels)
    own = named.probabilities[np.arange(90), named.labels]
    assert found.verdict.level == "unreliable"  # three names have six orders
    np.testing.assert_allclose(found.confidence, own / 3, atol=1e-6)  # a third by chance
    scores = np.log(np.maximum(named.probabilities, 1e-12))
    ordered = np.sort(scores, axis=1)
    np.testing.assert_allclose(found.margin, ordered[:, -1] - ordered[:, -2], atol=1e-6)
    np.testing.assert_array_equal(found.runner_up, np.argsort(scores, axis=1)[:, -2])
    assert found.relation == "many-to-one"


def test_groups_get_the_names_that_their_geometry_tells(seed):
    x, y, truth = blobs(seed, SEVEN)  # three names leave too little geometry to tell them by
    assert (solve(x, y).partner == truth).mean() > 0.95


def test_known_pairs_are_kept_and_forbidden_ones_are_not_made(seed):
    x, y, truth = blobs(seed)
    free = solve(x, y).partner
    known = [[0, (free[0] + 1) % 3], [1, (free[1] + 2) % 3]]
    kept = solve(x, y, known)
    assert kept.partner[[0, 1]].tolist() == [known[0][1], known[1][1]]
    assert kept.confidence[[0, 1]].tolist() == [1.0, 1.0]
    barred = solve(x, y, forbidden=[[5, free[5]]])
    assert barred.partner[5] != free[5]
    rest = np.delete(np.arange(90), 5)
    np.testing.assert_array_equal(barred.partner[rest], free[rest])


def test_classes_take_no_more_rows_than_they_may(seed):
    x, y, _ = blobs(seed)
    sizes = [25, 35, 30]
    found = solve(x, y, class_sizes=sizes)
    assert (np.bincount(found.partner, minlength=3) <= sizes).all()
    assert len(found.partner) == 90


def test_side_information_is_added_to_the_log_probabilities(seed):
    x, y, _ = blobs(seed)
    free = solve(x, y)
    wanted = (free.partner + 1) % 3
    found = solve(x, y, similarity=50.0 * np.eye(3)[wanted])
    problem = check_problem(x, y, relation="many-to-one", similarity=50.0 * np.eye(3)[wanted])
    named = name_classes(x, y, labels=np.full(90, -1), rng=np.random.default_rng(0))
    scores = np.log(np.maximum(named.probabilities, 1e-12)) + problem.side.matrix
    np.testing.assert_array_equal(found.partner, scores.argmax(1))
    assert (found.partner != free.partner).any() or (found.margin != free.margin).any()


def test_rows_without_weight_do_not_shape_the_groups(seed):
    x, y, truth = blobs(seed, SEVEN)
    rng = np.random.default_rng(7)
    noise = 20.0 * rng.standard_normal((30, 8))
    weight = np.r_[np.ones(len(x)), np.zeros(30)]
    found = solve(np.r_[x, noise], y, weights=(weight, None))
    alone = solve(x, y)
    assert (found.partner[:-30] == alone.partner).mean() > 0.95
    assert (found.partner[:-30] == truth).mean() > 0.95


def test_too_few_rows_with_weight_are_told():
    x, y, _ = blobs(0)
    weight = np.zeros(90)
    weight[:2] = 1.0
    with pytest.raises(InputError, match="at least one row that counts for each of the 3"):
        solve(x, y, weights=(weight, None))


def test_the_front_door_gives_the_same_answer(seed):
    x, y, _ = blobs(seed)
    first, again = (match(x, y, relation="many-to-one", random_state=3) for _ in range(2))
    np.testing.assert_array_equal(first.partner, again.partner)
    np.testing.assert_array_equal(first.confidence, again.confidence)
