"""The front door as a caller sees it: match, align and solve on problems that take every way."""

from __future__ import annotations

import copy
import os
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.optimize import linear_sum_assignment

import unpaired
from unpaired import matching
from unpaired._random import resolve_seed
from unpaired.datasets.toy import jittered_digits, rotated_clusters
from unpaired.datasets.two_views import TwoViews
from unpaired.evaluation.retrieval import foscttm
from unpaired.matching import align, solve, solve_softly
from unpaired.problem.problem import check_problem

ARRAYS = ("partner", "confidence", "runner_up", "margin")


def drawn(*numbers: int) -> np.random.Generator:
    """A generator of its own for each problem, moved by the seed of the tests."""
    return np.random.default_rng([int(os.environ.get("UNPAIRED_TEST_SEED", "0")), *numbers])


def same(one, two):
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    assert one.objective.per_start == two.objective.per_start
    assert one.verdict == two.verdict


def groups(rng, n_groups=5, n_each=16, d=6):
    """Two views that share groups and nothing finer: no row has an evident partner."""
    centres = rng.standard_normal((n_groups, d)) * np.linspace(4.0, 2.0, n_groups)[:, None]
    rotation = np.linalg.qr(rng.standard_normal((d, d)))[0]
    group = rng.permutation(np.repeat(np.arange(n_groups), n_each))
    order = rng.permutation(len(group))
    x, y = (centres[group] + rng.standard_normal((len(group), d)) for _ in "xy")
    return x, (y @ rotation)[order], group, group[order]


def mirrored(n, rng):
    """A line and its mirror image, which geometry cannot tell apart from the line itself."""
    x = np.sort(rng.standard_normal((n, 1)), axis=0)
    order = rng.permutation(n)
    return x, -x[order], np.argsort(order)


def one_to_one(partner, n_y):
    used = partner[partner >= 0]
    return len(set(used.tolist())) == len(used) == min(len(partner), n_y)


@pytest.fixture(scope="module")
def easy() -> TwoViews:
    return rotated_clusters(120, drawn(0), d_x=8, d_y=10, n_clusters=8)


@pytest.fixture(scope="module")
def found(easy):
    return align(easy.x, easy.y)


@pytest.fixture(scope="module")
def soft():
    return groups(drawn(1))


@pytest.fixture(scope="module")
def softly(soft):
    return align(*soft[:2])


# What is found


def test_evident_partners_are_right_and_relied_on(easy, found):
    match = found.match
    assert found.solution.kind == "evident"
    assert (match.partner == easy.truth).mean() >= 0.99
    assert match.trusted
    assert match.verdict.level == "reliable"
    sure = match.confidence >= 0.8
    assert sure.mean() > 0.8
    assert (match.partner == easy.truth)[sure].all()
    assert (match.margin[sure] > 0).all()
    assert (match.runner_up != match.partner).all()
    assert match.partner.dtype == np.int64
    assert match.objective == max(match.objective.per_start.values())


def test_digits_and_a_bent_projection_of_them_are_found():
    right, relied = [], []
    for draw in range(3):
        problem = jittered_digits(150, drawn(2, draw))
        match = unpaired.match(problem.x, problem.y)
        right.append((match.partner == problem.truth).mean())
        relied.append(match.verdict.level == "reliable")
    assert np.median(right) >= 0.99
    assert sum(relied) >= 2


def test_groups_are_found_where_partners_are_not_and_none_is_claimed(soft, softly):
    x, y, group_x, group_y = soft
    match = softly.match
    assert softly.solution.kind != "evident"
    assert sorted(match.partner.tolist()) == list(range(len(x)))
    assert (match.confidence < 0.5).all()
    assert not match.trusted
    assert 0.0 <= match.agreement <= 1.0
    assert np.isfinite(match.gap)
    shares = [(group_x == group_y[match.partner]).mean()]
    for draw in range(2):
        x, y, group_x, group_y = groups(drawn(1, draw))
        shares.append((group_x == group_y[unpaired.match(x, y).partner]).mean())
    assert np.median(shares) >= 0.5  # chance is 0.2


def test_unrelated_views_claim_nothing():
    for draw, (n_x, n_y) in enumerate([(80, 90), (90, 60), (70, 70)]):
        rng = drawn(3, draw)
        x, y = rng.standard_normal((n_x, 5)), rng.standard_t(3, (n_y, 7))
        match = unpaired.match(x, y)
        assert not match.trusted
        assert match.verdict.level == "unreliable"
        assert (match.confidence < 0.5).all()
        assert one_to_one(match.partner, n_y)


def test_nothing_is_kept_of_unrelated_views_but_the_known_pairs():
    rng = drawn(4)
    x, y = rng.standard_normal((70, 5)), rng.standard_normal((70, 6))
    left = unpaired.match(x, y, [[3, 5]], leave_out="auto")
    assert np.flatnonzero(left.partner >= 0).tolist() == [3]
    assert left.partner[3] == 5
    assert (left.confidence[left.partner < 0] == 0).all()
    assert np.isnan(left.margin[left.partner < 0]).all()


def test_sides_of_unequal_size():
    """Over six draws: at this size the verdict, and so what is kept, varies from draw to draw."""
    right, kept_right, partners_kept, strangers_left = [], [], [], []
    for draw in range(2):
        for extra_x, extra_y in [(30, 0), (0, 30), (25, 15)]:
            problem = rotated_clusters(
                *(100, drawn(5, draw, extra_x)),
                **{"d_x": 8, "d_y": 9, "n_clusters": 8, "extra_x": extra_x, "extra_y": extra_y},
            )
            match = unpaired.match(problem.x, problem.y)
            has = problem.truth >= 0
            assert one_to_one(match.partner, len(problem.y))
            right.append((match.partner == problem.truth)[has])
            left = unpaired.match(problem.x, problem.y, leave_out=True)
            kept = left.partner >= 0
            np.testing.assert_array_equal(kept, match.confidence >= 0.5)
            kept_right.append((left.partner == problem.truth)[kept])
            partners_kept.append(kept[has])
            strangers_left.append(~kept[~has])
    assert np.concatenate(right).mean() >= 0.97
    assert np.concatenate(kept_right).mean() >= 0.97
    assert np.concatenate(partners_kept).mean() >= 0.5
    assert np.concatenate(strangers_left).mean() >= 0.9


def test_rows_that_were_not_seen_are_placed(easy):
    part = align(easy.x[:90], easy.y)
    scores = part.score_matrix(easy.x[90:], easy.y[easy.truth[90:]])
    assert foscttm(scores) < 0.02
    np.testing.assert_allclose(
        scores, part.embed_x(easy.x[90:]) @ part.embed_y(easy.y[easy.truth[90:]]).T
    )
    with pytest.raises(unpaired.InputError, match="^x must"):
        part.embed_x(np.full((2, 8), np.nan))


# Order, seed and kind of array must not decide


def test_the_order_of_the_rows_does_not_decide(easy, found):
    rng = drawn(6)
    order_x, order_y = rng.permutation(120), rng.permutation(120)
    moved = unpaired.match(easy.x[order_x], easy.y[order_y])
    np.testing.assert_array_equal(order_y[moved.partner], found.match.partner[order_x])
    np.testing.assert_array_equal(order_y[moved.runner_up], found.match.runner_up[order_x])
    np.testing.assert_allclose(moved.margin, found.match.margin[order_x], rtol=0.02, atol=0.02)


def test_swapped_views_invert_the_matching(easy, found):
    back = unpaired.match(easy.y, easy.x).partner
    assert (back[found.match.partner] == np.arange(120)).mean() >= 0.98


def test_evident_partners_are_the_same_from_every_seed(easy, found):
    for seed in (1, 2):
        other = unpaired.match(easy.x, easy.y, random_state=seed)
        np.testing.assert_array_equal(other.partner, found.match.partner)


def test_scale_shift_and_rotation_of_a_side_say_nothing(easy, found):
    turn = np.linalg.qr(drawn(7).standard_normal((10, 10)))[0]
    moved = unpaired.match(easy.x + 5.0, 1e3 * easy.y @ turn - 2.0)
    np.testing.assert_array_equal(moved.partner, found.match.partner)


def test_every_kind_of_array_is_the_same_problem(easy, found):
    same(unpaired.match(torch.as_tensor(easy.x), easy.y.tolist()), found.match)
    before = easy.x.copy(), easy.y.copy()
    solve(check_problem(easy.x, easy.y), 3)
    np.testing.assert_array_equal(easy.x, before[0])
    np.testing.assert_array_equal(easy.y, before[1])


def test_the_three_doors_lead_to_one_answer(easy, found, soft, softly):
    same(unpaired.match(easy.x, easy.y), found.match)
    same(solve(check_problem(easy.x, easy.y), resolve_seed(0)).match, found.match)
    same(unpaired.match(*soft[:2]), softly.match)


def test_the_same_seed_gives_the_same_bits_with_everything_given(soft):
    x, y, group_x, group_y = soft
    rng = drawn(8)
    arguments = {
        "pairs": [[0, 1], [2, 7]],
        "forbidden": [[1, 1]],
        "weights": (rng.random(80) + 0.1, rng.random(80) + 0.1),
        "shared": (np.eye(5)[group_x], np.eye(5)[group_y]),
        "similarity": rng.standard_normal((80, 80)),
        "start": rng.permutation(80),
        "leave_out": "auto",
        "random_state": 4,
    }
    one, two = (unpaired.match(x, y, **arguments) for _ in range(2))
    same(one, two)
    assert copy.deepcopy(one.objective).per_start == two.objective.per_start


def test_starts_refined_at_once_give_the_same_bits(soft, softly):
    many = align(*soft[:2], n_jobs=2)
    same(many.match, softly.match)
    np.testing.assert_array_equal(many.score_matrix(*soft[:2]), softly.score_matrix(*soft[:2]))


# One score


def test_a_soft_match_is_read_from_the_scores(soft, softly):
    x, y = soft[:2]
    scores = softly.score_matrix(x, y).astype(np.float64)
    match = softly.match
    np.testing.assert_array_equal(match.partner, linear_sum_assignment(-scores)[1])
    rows = np.arange(len(x))
    own = scores[rows, match.partner]
    others = scores.copy()
    others[rows, match.partner] = -np.inf
    np.testing.assert_array_equal(match.runner_up, others.argmax(1))
    unit = scores.std()
    np.testing.assert_allclose(match.margin, (own - others.max(1)) / unit, rtol=1e-3, atol=1e-3)
    shares = np.exp(scores / unit / softly.solution.temperature)
    shares = shares[rows, match.partner] / shares.sum(1)
    factor = match.confidence / shares
    low = shares < 0.8  # above, what a row may claim is cut off
    assert factor[low].max() == pytest.approx(factor[low].min(), rel=1e-3)


def test_an_evident_match_is_read_from_the_scores(easy, found):
    scores = found.score_matrix(easy.x, easy.y).astype(np.float64)
    match = found.match
    rows = np.arange(120)
    best = scores.argmax(1)
    free = match.partner == best  # others had to leave their best to another row
    assert free.mean() >= 0.95
    others = scores.copy()
    others[rows, match.partner] = -np.inf
    np.testing.assert_array_equal(match.runner_up, others.argmax(1))
    gap = scores[rows, match.partner] - others.max(1)
    np.testing.assert_allclose(match.margin, gap, rtol=1e-3, atol=1e-3 * np.abs(gap).max())


def test_partners_of_a_handful_are_read_from_the_scores():
    rng = drawn(9)
    x = rng.standard_normal((14, 4))
    y = x[rng.permutation(14)] @ rng.standard_normal((4, 5))
    tiny = align(x, y)
    scores = tiny.score_matrix(x, y).astype(np.float64)
    np.testing.assert_array_equal(tiny.match.partner, linear_sum_assignment(-scores)[1])
    assert (tiny.match.confidence < 0.5).all()
    assert tiny.solution.kind == "tiny"


# What a caller adds


def test_known_pairs_stay_even_where_they_are_wrong(easy):
    rows = np.array([4, 9, 30])
    wrong = np.column_stack([rows, np.roll(easy.truth[rows], 1)])
    match = unpaired.match(easy.x, easy.y, wrong)
    np.testing.assert_array_equal(match.partner[rows], wrong[:, 1])
    np.testing.assert_array_equal(match.confidence[rows], 1.0)
    rest = np.setdiff1d(np.arange(120), rows)
    assert (match.partner == easy.truth)[rest].mean() >= 0.98


def test_known_pairs_help_the_other_rows():
    """Fifteen pairs of two views without evident partners; ranks of the rest, over four draws."""
    gained = []
    for draw in range(4):
        rng = drawn(10, draw)
        factors = rng.standard_normal((80, 6))
        x, y = (
            factors @ rng.standard_normal((6, 9)) + 0.6 * rng.standard_normal((80, 9)) for _ in "xy"
        )
        known = np.column_stack([np.arange(15)] * 2)
        rows = [torch.as_tensor(side[15:], dtype=torch.float32) for side in (x, y)]
        without, with_pairs = (
            foscttm(solve_softly(check_problem(x, y, pairs), drawn(10)).space.scores(*rows).numpy())
            for pairs in (None, known)
        )
        gained.append(without - with_pairs)
    assert np.mean(gained) > 0.05


@pytest.mark.parametrize("kind", ["evident", "soft", "tiny"])
def test_forbidden_pairs_are_not_made(kind, easy, found, soft, softly):
    x, y, first = {
        "evident": lambda: (easy.x, easy.y, found.match.partner),
        "soft": lambda: (*soft[:2], softly.match.partner),
        "tiny": lambda: (
            easy.x[:20],
            easy.y[:25],
            unpaired.match(easy.x[:20], easy.y[:25]).partner,
        ),
    }[kind]()
    barred = np.column_stack([np.arange(len(x)), first])[:: 1 if kind == "soft" else 3]
    again = unpaired.match(x, y, forbidden=barred)
    assert (again.partner[barred[:, 0]] != barred[:, 1]).all()
    assert one_to_one(again.partner, len(y))


def test_side_information_decides_between_mirror_images():
    x, y, truth = mirrored(80, drawn(11))
    hint = np.zeros((80, 80))
    hint[np.arange(80), truth] = 1.0
    match = unpaired.match(x, y, similarity=hint + 0.3 * drawn(12).standard_normal((80, 80)))
    assert (match.partner == truth).mean() > 0.5


def test_shared_columns_decide_between_mirror_images():
    x, y, truth = mirrored(80, drawn(13))
    age = np.linspace(20.0, 80.0, 80)[:, None]
    columns = age + 10.0 * drawn(14).standard_normal((80, 1)), age[np.argsort(truth)]
    match = unpaired.match(x, y, shared=columns)
    apart = np.abs(np.argsort(truth)[match.partner] - np.arange(80))  # places on the line
    assert np.median(apart) <= 10  # of a random matching 27, of the wrong image 40


def test_evident_partners_that_shared_columns_contradict_are_not_taken(easy):
    columns = np.eye(5)[drawn(15).integers(0, 5, 120)]
    agreeing = columns[np.argsort(easy.truth)]
    taken = align(easy.x, easy.y, shared=(columns, agreeing))
    assert taken.solution.kind == "evident"
    assert (taken.match.partner == easy.truth).mean() >= 0.99
    shuffled = agreeing[drawn(16).permutation(120)]
    assert align(easy.x, easy.y, shared=(columns, shuffled)).solution.kind != "evident"


@pytest.mark.parametrize("kind", ["evident", "soft", "tiny"])
def test_equal_weights_change_no_bit(kind, easy, found, soft, softly):
    x, y = soft[:2] if kind == "soft" else (easy.x, easy.y)
    if kind == "tiny":
        x, y = x[:12], y[:12]
    plain = {"evident": found, "soft": softly}.get(kind) or align(x, y)
    same(plain.match, unpaired.match(x, y, weights=(np.full(len(x), 3.0), np.ones(len(y)))))


@pytest.mark.parametrize("kind", ["evident", "soft", "tiny"])
def test_rows_of_weight_zero_do_not_change_the_others(kind, easy, found, soft, softly):
    rng = drawn(17)
    x, y = soft[:2] if kind == "soft" else (easy.x, easy.y)
    if kind == "tiny":
        x, y = x[:20], y[:20]
    plain = ({"evident": found, "soft": softly}.get(kind) or align(x, y)).match
    wide, weights, places = [], [], []
    for view, extra in ((x, 9), (y, 7)):
        rows = np.sort(rng.permutation(len(view) + extra)[: len(view)])
        full = 1e3 * rng.standard_normal((len(view) + extra, view.shape[1]))  # far outliers
        full[rows] = view
        wide.append(full)
        weights.append(np.isin(np.arange(len(full)), rows).astype(float))
        places.append(rows)
    match = unpaired.match(*wide, weights=weights)
    np.testing.assert_array_equal(match.partner[places[0]], places[1][plain.partner])
    np.testing.assert_array_equal(match.confidence[places[0]], plain.confidence)
    assert match.verdict == plain.verdict
    rest = np.setdiff1d(np.arange(len(wide[0])), places[0])
    assert (match.confidence[rest] == 0).all()
    assert one_to_one(match.partner, len(wide[1]))
    if kind == "evident":
        left = unpaired.match(*wide, weights=weights, leave_out=True)
        assert (left.partner[rest] == -1).all()


def test_a_good_start_is_told_and_a_wrong_one_does_no_harm(easy, found):
    half = np.where(np.arange(120) % 2, easy.truth, -1)
    for start, share in ((half, 0.7), (drawn(18).permutation(120), 0.0)):
        match = unpaired.match(easy.x, easy.y, start=start)
        reached = match.objective.per_start
        (told,) = [value for name, value in reached.items() if "given start" in name]
        assert told >= share * max(reached.values())
        assert (told < 0.5 * max(reached.values())) == (share == 0.0)
        np.testing.assert_array_equal(match.partner, found.match.partner)


def test_a_start_as_a_plan_of_groups_is_used(soft):
    x, y, group_x, group_y = soft
    plan = (group_x[:, None] == group_y[None, :]).astype(float)
    match = unpaired.match(x, y, start=plan)
    assert any("given start" in name for name in match.objective.per_start)
    assert (group_x == group_y[match.partner]).mean() >= 0.7


def test_copies_and_zero_rows_claim_no_more_than_one_of_so_many(easy):
    """A tenth of the rows of x is zero and a tenth repeats others; the rest hardly suffers."""
    x = easy.x.copy()
    rows = drawn(19).permutation(120)
    zero, copied, originals = rows[:12], rows[12:24], rows[24:36]
    x[zero] = 0.0
    x[copied] = x[originals]
    match = unpaired.match(x, easy.y)
    rest = rows[36:]
    assert (match.partner == easy.truth)[rest].mean() >= 0.95
    assert (match.confidence[zero] <= 1 / 12).all()
    assert (match.confidence[np.concatenate([copied, originals])] <= 0.5).all()
    assert one_to_one(match.partner, 120)
    left = unpaired.match(x, easy.y, leave_out="auto")
    assert (left.partner[np.concatenate([zero, copied, originals])] == -1).all()
    assert (left.partner[rest] == easy.truth[rest]).mean() >= 0.7


def test_more_rows_than_the_soft_sample(monkeypatch):
    monkeypatch.setattr(matching, "SOFT_ROWS", 70)
    x, y, group_x, group_y = groups(drawn(20), n_groups=3, n_each=40)
    group_y = group_y[:110]
    rows = np.array([5, 60, 119])
    known = np.column_stack(
        [rows, [np.flatnonzero(group_y == g)[k] for k, g in enumerate(group_x[rows])]]
    )
    match = unpaired.match(x, y[:110], known, shared=(np.eye(3)[group_x], np.eye(3)[group_y]))
    assert one_to_one(match.partner, 110)
    np.testing.assert_array_equal(match.partner[rows], known[:, 1])
    placed = np.flatnonzero(match.partner >= 0)
    assert (group_x[placed] == group_y[match.partner[placed]]).mean() >= 0.8


def test_a_refined_map_ends_with_rounds_on_all_rows(monkeypatch):
    monkeypatch.setattr(matching, "SOFT_ROWS", 300)
    rng = drawn(21)
    x = rng.gamma(1.0, size=(600, 8)) * np.linspace(2.0, 0.7, 8)
    y = x @ np.linalg.qr(rng.standard_normal((8, 8)))[0] + 0.05 * rng.standard_normal((600, 8))
    found = matching.solve_softly(matching.check_problem(x, y), rng)
    assert found.kind == matching.REFINED
    assert [len(side) for side in found.space.references] == [600, 600]


@pytest.mark.parametrize(
    ("surprise", "kept", "n_searched"), [(1.0, 9, 1), (3.0, 9, 4), (3.0, 1, 2)]
)
def test_other_samples_are_searched_where_the_first_is_promising(
    monkeypatch, surprise, kept, n_searched
):
    monkeypatch.setattr(matching, "SOFT_ROWS", 60)
    align, seen = matching.align_softly, []

    def searched(x, y, rng, **options):
        assert options["n_searches"] == 1  # another sample is another chance
        found = align(x, y, rng, **options | {"n_searches": 0})
        kind = matching.REFINED if len(seen) == kept else found.kind
        seen.append(x)
        return replace(found, kind=kind, evidence=replace(found.evidence, surprise=surprise))

    monkeypatch.setattr(matching, "align_softly", searched)
    monkeypatch.setattr(matching, "settled", lambda space, *_: space)
    x, y = drawn(22).standard_normal((2, 90, 4))
    found = matching.solve_softly(matching.check_problem(x, y), drawn(23))
    assert len(seen) == n_searched
    assert (found.kind == matching.REFINED) == (n_searched > kept)
    assert n_searched == 1 or not np.array_equal(seen[0], seen[1])


# Many to one


def photos(rng):
    """120 rows of four classes of the same size, and a vector per class."""
    centres = rng.standard_normal((4, 6)) * np.array([[6.0], [4.5], [3.5], [3.0]])
    truth = rng.permutation(np.repeat(np.arange(4), 30))
    rotation = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    return centres[truth] + 0.3 * rng.standard_normal((120, 6)), centres @ rotation, truth


def test_many_to_one_respects_sizes_and_pairs():
    x, y, truth = photos(drawn(21))
    rows = np.concatenate([np.flatnonzero(truth == cls)[:2] for cls in range(4)])
    known = np.column_stack([rows, truth[rows]])
    match = unpaired.match(x, y, known, "many-to-one", class_sizes=[30] * 4)
    assert np.bincount(match.partner, minlength=4).tolist() == [30] * 4
    assert (match.partner == truth).mean() >= 0.95
    np.testing.assert_array_equal(match.confidence[rows], 1.0)
    assert match.relation == "many-to-one"
    contrary = unpaired.match(x, y, [[0, (truth[0] + 1) % 4]], "many-to-one")
    assert contrary.partner[0] == (truth[0] + 1) % 4


def test_many_to_one_takes_rows_in_any_order():
    x, y, _ = photos(drawn(22))
    order = drawn(23).permutation(4)
    plain = unpaired.match(x, y, relation="many-to-one")
    moved = unpaired.match(x, y[order], relation="many-to-one")
    groups_of = [
        [np.flatnonzero(m.partner == k).tolist() for k in range(4)] for m in (plain, moved)
    ]
    assert sorted(groups_of[0]) == sorted(groups_of[1])


def test_many_to_one_names_rows_that_do_not_count():
    x, y, _ = photos(drawn(24))
    weight = np.ones(120)
    weight[:30] = 0.0
    match = unpaired.match(x, y, relation="many-to-one", weights=(weight, None))
    plain = unpaired.match(x[30:], y, relation="many-to-one")
    np.testing.assert_array_equal(match.partner[30:], plain.partner)
    nearest = ((x[:30, None] - x[None, 30:]) ** 2).sum(2).argmin(1)
    np.testing.assert_array_equal(match.partner[:30], plain.partner[nearest])


# What is refused, at every door


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"class_sizes": [1] * 10}, "class_sizes must be None for one-to-one"),
        ({"leave_out": 0.1}, 'leave_out must be "auto", True or False: got 0.1'),
        ({"leave_out": True, "relation": "many-to-one"}, "leave_out must be left out"),
        ({"start": np.full(10, 0.5)}, "start must hold whole row numbers"),
        ({"pairs": [[0, 1], [0, 2]]}, "pairs must be one to one: row 0 of x is paired with rows"),
        ({"pairs": [[0, 1]], "forbidden": [[0, 1]]}, "pairs and forbidden must not share a pair"),
        ({"relation": "many2one"}, 'Unknown relation "many2one". Did you mean "many-to-one"?'),
        ({"x": np.zeros((10, 2))}, "x must have rows that differ: all 10 rows are equal"),
        ({"n_jobs": 0}, "n_jobs must be a whole number of at least 1: got 0. Pass -1 for as many"),
        ({"min_confidence": 7}, "min_confidence must be a number from 0 to 1: got 7. Pass 0.5 to"),
        ({"random_state": "one"}, "random_state must be"),
    ],
)
def test_what_cannot_be_used_is_refused_with_a_sentence(change, message):
    rows = np.random.default_rng(0).random((10, 3))
    arguments = {"x": rows, "y": rows, **change}
    for door in (unpaired.match, align):
        if door is align and {"class_sizes", "relation"} & set(change):
            continue
        with pytest.raises(unpaired.InputError) as caught:
            door(**arguments)
        assert message in str(caught.value)


@pytest.mark.parametrize("n_known", [60, 59])
def test_rows_that_are_all_known_are_matched_as_known_and_new_rows_are_placed(n_known, rng):
    x = rng.standard_normal((90, 6))
    y = np.tanh(x @ rng.standard_normal((6, 8))) + 0.3 * rng.standard_normal((90, 8))
    pairs = np.column_stack([np.arange(n_known)] * 2)
    found = unpaired.align(x[:60], y[:60], pairs)
    np.testing.assert_array_equal(found.match.partner, np.arange(60))
    assert foscttm(found.score_matrix(x[60:], y[60:])) < 0.3
