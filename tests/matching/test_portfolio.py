"""match and align as a caller sees them."""

import copy
from itertools import permutations

import numpy as np
import pytest
from unpaired.solvers.tiny import centred_gram

import unpaired
from unpaired.datasets.toy import jittered_digits, rotated_clusters
from unpaired.evaluation.retrieval import foscttm
from unpaired.matching import align, soft_match
from unpaired.solvers.quadratic import alignment


@pytest.fixture(scope="module")
def easy():
    return rotated_clusters(300, np.random.default_rng(0), d_x=12, d_y=15, n_clusters=10)


def noisy_groups(rng, n_groups=8, n_each=40, noise=1.0):
    """Two views that share groups and nothing finer: no row has an evident partner."""
    centres = rng.standard_normal((n_groups, 6)) * np.linspace(4.0, 2.0, n_groups)[:, None]
    rotation = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    group = np.repeat(np.arange(n_groups), n_each)
    x, y = (centres[group] + noise * rng.standard_normal((len(group), 6)) for _ in "xy")
    order = rng.permutation(len(group))
    return x, (y @ rotation)[order], group, group[order]


def test_partners_are_right_and_in_the_callers_order(easy, seed):
    found = unpaired.match(easy.x, easy.y, random_state=seed)
    assert (found.partner == easy.truth).mean() >= 0.99
    order = np.random.default_rng(1).permutation(300)
    moved = unpaired.match(easy.x[order], easy.y, random_state=seed)
    np.testing.assert_array_equal(moved.partner, found.partner[order])
    assert found.partner.dtype == np.int64
    assert ((found.confidence >= 0) & (found.confidence <= 1)).all()
    assert found.trusted
    sure = found.confidence >= 0.9
    assert sure.mean() > 0.8
    assert (found.partner == easy.truth)[sure].mean() >= 0.98
    assert (found.runner_up != found.partner).all()
    assert (found.margin[sure] > 0).all()
    assert found.objective == max(found.objective.per_start.values())


def test_swapping_the_views_inverts_the_matching(easy):
    forth = unpaired.match(easy.x, easy.y).partner
    back = unpaired.match(easy.y, easy.x).partner
    assert (back[forth] == np.arange(300)).mean() >= 0.98


def test_same_seed_same_bits():
    x, y, *_ = noisy_groups(np.random.default_rng(0))
    one, two = (unpaired.match(x, y, random_state=3) for _ in range(2))
    for name in ("partner", "confidence", "runner_up", "margin"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    assert copy.deepcopy(one.objective).per_start == two.objective.per_start


@pytest.mark.parametrize("pairs", [None, np.column_stack([np.arange(12), np.arange(12)])])
def test_starts_refined_at_once_give_the_same_bits(pairs):
    factors = np.random.default_rng(3).standard_normal((120, 6))
    noise = np.random.default_rng(4).standard_normal((2, 120, 9))
    x = factors @ np.random.default_rng(5).standard_normal((6, 9)) + noise[0]
    y = factors @ np.random.default_rng(6).standard_normal((6, 9)) + noise[1]
    one, two = (align(x, y, pairs, n_jobs=n_jobs) for n_jobs in (None, 2))
    assert one.kind not in ("sharp", "small")  # several starts were refined
    np.testing.assert_array_equal(one.match.partner, two.match.partner)
    np.testing.assert_array_equal(one.score_matrix(x, y), two.score_matrix(x, y))
    assert one.match.objective.per_start == two.match.objective.per_start


def test_groups_are_found_where_partners_are_not_and_nothing_is_claimed(seed):
    x, y, group_x, group_y = noisy_groups(np.random.default_rng([seed, 1]))
    found = align(x, y, random_state=seed)
    match = found.match
    assert found.kind != "sharp"
    assert sorted(match.partner.tolist()) == list(range(len(x)))
    assert (group_x == group_y[match.partner]).mean() >= 0.6  # chance is 1/8
    assert (match.confidence < 0.9).all()
    assert 0.0 <= match.agreement <= 1.0
    assert np.isfinite(match.gap)
    scores = found.score_matrix(x, y)
    assert (group_y[scores.argmax(1)] == group_x).mean() >= 0.6


def test_unrelated_views_claim_nothing(seed):
    rng = np.random.default_rng(seed)
    x, y = rng.standard_normal((120, 5)), rng.standard_normal((130, 7))
    found = unpaired.match(x, y)
    assert (found.confidence < 0.9).all()
    assert not found.trusted
    assert (unpaired.match(x, y, leave_out="auto").partner == -1).all()


def test_known_pairs_stay_and_help(seed):
    x, y, group_x, group_y = noisy_groups(np.random.default_rng([seed, 2]), n_groups=4)
    partner = np.array([np.flatnonzero(group_y == g)[k % 40] for k, g in enumerate(group_x)])
    rows = np.arange(0, 160, 8)
    pairs = np.column_stack([rows, partner[rows]])
    found = unpaired.match(x, y, pairs)
    np.testing.assert_array_equal(found.partner[rows], partner[rows])
    np.testing.assert_array_equal(found.confidence[rows], 1.0)
    assert (group_x == group_y[found.partner]).mean() >= 0.8


def test_forbidden_pairs_are_not_made(easy):
    forbidden = np.column_stack([np.arange(50), easy.truth[:50]])
    found = unpaired.match(easy.x, easy.y, forbidden=forbidden)
    assert (found.partner[:50] != easy.truth[:50]).all()
    x, y, *_ = noisy_groups(np.random.default_rng(5), n_groups=3)
    first = unpaired.match(x, y).partner
    again = unpaired.match(x, y, forbidden=np.column_stack([np.arange(len(x)), first]))
    assert (again.partner != first).all()


def test_side_information_decides_between_mirror_images(seed):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(
        (100, 1)
    )  # a line has no direction: only the hint tells which end is which
    y = -x[rng.permutation(100)]
    order = np.array([np.flatnonzero(y[:, 0] == -value)[0] for value in x[:, 0]])
    hint = np.zeros((100, 100))
    hint[np.arange(100), order] = 1.0
    found = unpaired.match(x, y, similarity=hint + 0.3 * rng.standard_normal((100, 100)))
    assert (found.partner == order).mean() > 0.5


def test_orphans_are_left_out(seed):
    problem = jittered_digits(400, np.random.default_rng([seed, 3]), extra_x=100, extra_y=80)
    found = unpaired.match(problem.x, problem.y, leave_out="auto")
    has = problem.truth >= 0
    matched = found.partner >= 0
    assert (found.partner == problem.truth)[matched].mean() >= 0.95
    assert (~matched)[~has].mean() >= 0.8


def test_unseen_rows_can_be_scored(easy):
    found = align(easy.x[:200], easy.y)
    scores = found.score_matrix(easy.x[200:], easy.y[easy.truth[200:]])
    assert foscttm(scores) < 0.01


def test_more_rows_than_the_soft_sample(monkeypatch):
    monkeypatch.setattr(soft_match, "SOFT_ROWS", 200)
    x, y, group_x, group_y = noisy_groups(np.random.default_rng(1), n_each=60)
    found = unpaired.match(x, y[:450])
    used = found.partner[found.partner >= 0]
    assert len(used) == 450 == len(set(used.tolist()))
    rows = np.flatnonzero(found.partner >= 0)
    assert (group_x[rows] == group_y[found.partner[rows]]).mean() >= 0.6


@pytest.mark.parametrize(("n_x", "n_y"), [(6, 6), (5, 6), (6, 4), (2, 2)])
def test_a_handful_of_rows_gets_the_best_matching_of_all(n_x, n_y, seed):
    rng = np.random.default_rng([seed, n_x, n_y])
    x, y = rng.standard_normal((n_x, 3)), rng.standard_normal((n_y, 4))
    found = unpaired.match(x, y)
    grams = centred_gram(x), centred_gram(y)
    trials = []
    for chosen in permutations(range(max(n_x, n_y)), min(n_x, n_y)):
        trial = np.full(n_x, -1)
        if n_x <= n_y:
            trial[:] = chosen
        else:
            trial[list(chosen)] = np.arange(n_y)
        trials.append(alignment(*grams, trial))
    assert alignment(*grams, found.partner) == pytest.approx(max(trials))
    assert (found.confidence == 0).all()


def test_small_sets_keep_known_and_avoid_forbidden_pairs():
    rng = np.random.default_rng(0)
    x = rng.standard_normal((20, 4))
    found = unpaired.match(x, x, pairs=[[0, 1]], forbidden=[[2, 2]])
    assert found.partner[0] == 1
    assert found.partner[2] != 2


def test_many_to_one_respects_class_sizes_and_pairs(seed):
    rng = np.random.default_rng(seed)
    centres = rng.standard_normal((4, 6)) * np.array([[4.0], [3.0], [2.5], [2.0]])
    truth = rng.permutation(np.repeat(np.arange(4), 30))
    x = centres[truth] + 0.3 * rng.standard_normal((120, 6))
    rotation = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    known = np.column_stack([np.arange(6), truth[:6]])
    found = unpaired.match(x, centres @ rotation, known, "many-to-one", class_sizes=[30] * 4)
    assert np.bincount(found.partner, minlength=4).tolist() == [30] * 4
    assert (found.partner == truth).mean() >= 0.95
    assert found.relation == "many-to-one"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"pairs": [[0, 1], [0, 2]]}, "pairs must be one to one: row 0 of x is paired with rows"),
        ({"pairs": [[0, 1], [5, 1]]}, "pairs must be one to one: row 1 of y is paired with rows"),
        ({"pairs": [[0, 99]]}, "pairs must name rows of y between 0 and 9: pair 0 names 99."),
        ({"pairs": [[0, 1]], "forbidden": [[0, 1]]}, "pairs and forbidden must not share a pair"),
        ({"n_jobs": 0}, "n_jobs must be a whole number of at least 1: got 0"),
        ({"similarity": np.zeros((3, 3))}, "similarity must have shape (10, 10)"),
        ({"forbidden": "aligned"}, "forbidden must be a (k, 2) integer array"),
        ({"relation": "many2one"}, 'Unknown relation "many2one". Did you mean "many-to-one"?'),
        ({"x": np.zeros((10, 2))}, "x must have rows that differ: all 10 rows are equal"),
        ({"x": np.zeros((1, 2))}, "x must have at least 2 rows"),
        ({"y": np.eye(11), "relation": "many-to-one"}, "many-to-one needs at least as many rows"),
    ],
)
def test_wrong_input_is_named(change, message):
    rows = np.random.default_rng(0).random((10, 3))
    with pytest.raises(unpaired.InputError) as caught:
        unpaired.match(**{"x": rows, "y": rows, **change})
    assert message in str(caught.value)
