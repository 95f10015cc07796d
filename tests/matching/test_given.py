"""What a caller adds to a matching: weights, shared columns, a start; and what is refused."""

import numpy as np
import pytest
from unpaired.matching.multi_scale import match_scales
from unpaired.matching.spaces import principal_space
from unpaired.solvers.tiny import centred_gram

import unpaired
from unpaired.alignment.registration import search_sharp
from unpaired.datasets.toy import jittered_digits, rotated_clusters
from unpaired.matching import align, soft_match
from unpaired.problem.side_information import check_hint
from unpaired.problem.weights import check_weights, repeated


@pytest.fixture(scope="module")
def easy():
    return rotated_clusters(300, np.random.default_rng(0), d_x=12, d_y=15, n_clusters=10)


def groups(rng, n_groups=4, n_each=30, d=5):
    """Two views that share groups and nothing finer."""
    centres = rng.standard_normal((n_groups, d)) * np.linspace(4.0, 2.0, n_groups)[:, None]
    group = rng.permutation(np.repeat(np.arange(n_groups), n_each))
    order = rng.permutation(len(group))
    x, y = (centres[group] + rng.standard_normal((len(group), d)) for _ in "xy")
    rotation = np.linalg.qr(rng.standard_normal((d, d)))[0]
    return x, (y @ rotation)[order], group, group[order]


def mirrored(n, rng):
    """A line and its mirror image, which geometry cannot tell apart from the line itself."""
    x = np.sort(rng.standard_normal((n, 1)), axis=0)
    order = rng.permutation(n)
    return x, -x[order], np.argsort(order)


def same(one, two):
    for name in ("partner", "confidence", "runner_up", "margin"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    assert one.objective.per_start == two.objective.per_start


# Weights


@pytest.mark.parametrize("kind", ["sharp", "soft", "small", "many-to-one"])
def test_equal_weights_change_no_bit(easy, kind):
    relation, weights = "one-to-one", lambda x, y: (np.full(len(x), 3.0), np.ones(len(y)))
    if kind == "sharp":
        x, y = easy.x, easy.y
    elif kind == "small":
        x, y = easy.x[:12], easy.y[:12]
    else:
        x, y, *_ = groups(np.random.default_rng(0), n_groups=2)
    if kind == "many-to-one":
        relation, y = kind, y[:3]
        weights = lambda x, y: (np.full(len(x), 0.5), None)  # noqa: E731
    plain = unpaired.match(x, y, relation=relation)
    same(plain, unpaired.match(x, y, relation=relation, weights=weights(x, y)))


@pytest.mark.parametrize("kind", ["sharp", "soft", "small"])
def test_rows_of_weight_zero_do_not_change_the_others(easy, kind, seed):
    rng = np.random.default_rng([seed, 5])
    if kind == "soft":
        x, y, *_ = groups(rng, n_groups=2)
    else:
        x, y = (easy.x, easy.y) if kind == "sharp" else (easy.x[:20], easy.y[:20])
    plain = unpaired.match(x, y)
    rows_x = np.sort(rng.permutation(len(x) + 9)[: len(x)])
    rows_y = np.sort(rng.permutation(len(y) + 7)[: len(y)])
    wide = []
    for rows, view, extra in ((rows_x, x, 9), (rows_y, y, 7)):
        full = 1e3 * rng.standard_normal((len(view) + extra, view.shape[1]))  # far outliers
        full[rows] = view
        wide.append(full)
    weights = [np.zeros(len(full)) for full in wide]
    weights[0][rows_x] = weights[1][rows_y] = 1.0
    found = unpaired.match(*wide, weights=weights)
    np.testing.assert_array_equal(found.partner[rows_x], rows_y[plain.partner])
    np.testing.assert_array_equal(found.confidence[rows_x], plain.confidence)
    rest = np.setdiff1d(np.arange(len(wide[0])), rows_x)
    assert (found.confidence[rest] == 0).all()
    assert len(set(found.partner[found.partner >= 0].tolist())) == len(y) + 7  # all are placed
    left = unpaired.match(*wide, weights=weights, leave_out=True)
    assert (left.partner[rest] == -1).all()


def test_known_and_forbidden_pairs_of_rows_that_do_not_count(easy):
    weight = np.ones(300)
    weight[:5] = 0.0
    taken = easy.truth[100]
    found = unpaired.match(
        easy.x,
        easy.y,
        pairs=[[0, taken]],
        forbidden=[[1, easy.truth[1]]],
        weights=(weight, None),
    )
    assert found.partner[0] == taken
    assert found.confidence[0] == 1.0
    assert found.partner[1] != easy.truth[1]
    assert found.partner[100] not in (taken, -1)
    assert sorted(found.partner.tolist()) == list(range(300))


def test_whole_weights_are_repeated_rows_in_every_estimate(seed):
    rng = np.random.default_rng([seed, 8])
    rows, weight = rng.standard_normal((40, 5)), rng.integers(1, 4, 40).astype(float)
    copies = np.repeat(rows, weight.astype(int), axis=0)
    weighted, repeated_rows = principal_space(rows, 5, weight=weight), principal_space(copies, 5)
    np.testing.assert_allclose(
        np.abs(weighted.transform(rows)), np.abs(repeated_rows.transform(rows)), atol=1e-5
    )
    gram = centred_gram(rows, weight)
    index = np.repeat(np.arange(40), weight.astype(int))
    full = np.exp(-((rows[index][:, None] - rows[index][None]) ** 2).sum(2) / _width(rows))
    full = full - full.mean(0) - full.mean(1)[:, None] + full.mean()
    summed = np.zeros((40, 40))
    np.add.at(summed, (index[:, None], index[None, :]), full)
    np.testing.assert_allclose(gram, summed / np.linalg.norm(summed), atol=1e-10)


def _width(rows):
    distance = ((rows[:, None] - rows[None]) ** 2).sum(2)[np.triu_indices(len(rows), 1)]
    return 2.0 * np.median(distance)


def test_repeated_rows_are_exact_for_whole_weights_and_fair_for_others(seed):
    rng = np.random.default_rng(seed)
    assert repeated(np.array([0.5, 1.5, 0.0, 1.0]), 4, rng).tolist() == [0, 1, 1, 1, 3, 3]
    assert repeated(None, 4, rng) == slice(None)
    weight = rng.random(50)
    counts = np.bincount(repeated(weight, 1000, rng), minlength=50)
    assert counts.sum() <= 50
    assert np.abs(counts - counts.sum() * weight / weight.sum()).max() <= 1.0
    light = np.concatenate([np.ones(30), np.full(20, 1e-4)])
    assert (np.bincount(repeated(light, 50, rng), minlength=50)[:30] == 1).all()


def test_weights_of_evident_partners_shift_the_map_not_the_partners(easy, seed):
    rng = np.random.default_rng(seed)
    weight = rng.integers(1, 5, 300).astype(float)
    search = search_sharp(easy.x, easy.y, np.random.default_rng(0), weights=(weight, None))
    assert search.trusted
    found = unpaired.match(easy.x, easy.y, weights=(weight, rng.random(300) + 0.5))
    assert (found.partner == easy.truth).mean() >= 0.98


def test_light_rows_hardly_bend_a_soft_map(seed):
    rng = np.random.default_rng([seed, 9])
    x, y, group_x, group_y = groups(rng)
    noise = rng.standard_normal((60, 5)) * 12.0
    weight = np.concatenate([np.ones(120), np.full(60, 1e-4)])
    right = []
    for found in (align(x, y), align(np.vstack([x, noise]), y, weights=(weight, None))):
        assert found.kind != "sharp"
        right.append((group_y[found.score_matrix(x, y).argmax(1)] == group_x).mean())
    assert right[1] >= right[0] - 0.15


def test_many_to_one_names_rows_that_do_not_count(seed):
    rng = np.random.default_rng([seed, 3])
    centres = rng.standard_normal((3, 6)) * np.array([[5.0], [3.0], [2.0]])
    truth = np.tile(np.arange(3), 50)
    x = centres[truth] + 0.2 * rng.standard_normal((150, 6))
    y = centres @ np.linalg.qr(rng.standard_normal((6, 6)))[0]
    weight = np.ones(150)
    weight[:30] = 0.0
    found = unpaired.match(x, y, relation="many-to-one", weights=(weight, None))
    plain = unpaired.match(x[30:], y, relation="many-to-one")
    np.testing.assert_array_equal(found.partner[30:], plain.partner)
    assert (found.partner[:30] == found.partner[30:60]).all()  # rows of the same classes
    heavy = unpaired.match(x, y, [[0, 1]], "many-to-one", weights=(weight + 1.0, None))
    assert heavy.partner[0] == 1


# Shared columns


def test_shared_columns_tell_mirror_images_apart(seed):
    rng = np.random.default_rng([seed, 1])
    x, y, truth = mirrored(120, rng)
    age = np.linspace(20.0, 80.0, 120)[:, None]
    noisy = age + 10.0 * rng.standard_normal((120, 1)), age[np.argsort(truth)]
    found = unpaired.match(x, y, shared=noisy)
    near = np.abs(np.argsort(truth)[found.partner] - np.arange(120))  # places apart on the line
    assert np.median(near) <= 12
    assert any("side information" in name for name in found.objective.per_start)


def test_evident_partners_stay_evident_with_shared_columns(easy):
    labels = np.random.default_rng(0).integers(0, 5, 300)
    columns = np.eye(5)[labels]
    found = align(easy.x, easy.y, shared=(columns, columns[np.argsort(easy.truth)]))
    assert found.kind == "sharp"
    assert (found.match.partner == easy.truth).mean() >= 0.99
    contradicting = columns[np.random.default_rng(1).permutation(300)]
    assert align(easy.x, easy.y, shared=(columns, contradicting)).kind != "sharp"


def test_shared_columns_work_above_the_soft_sample(monkeypatch, seed):
    monkeypatch.setattr(soft_match, "SOFT_ROWS", 150)
    rng = np.random.default_rng([seed, 2])
    x, y, group_x, group_y = groups(rng, n_each=60)
    columns = [np.eye(4)[g] + 0.2 * rng.standard_normal((240, 4)) for g in (group_x, group_y)]
    found = unpaired.match(x, y, shared=columns)
    assert sorted(found.partner.tolist()) == list(range(240))
    assert (group_x == group_y[found.partner]).mean() >= 0.9
    matrix = unpaired.match(x, y, similarity=np.eye(4)[group_x] @ np.eye(4)[group_y].T)
    assert (group_x == group_y[matrix.partner]).mean() >= 0.9


def test_a_hint_is_the_same_for_blocks_pairs_and_vectors(rng):
    left, right = rng.standard_normal((9, 3)), rng.standard_normal((7, 3))
    matrix = rng.standard_normal((9, 7))
    hint = check_hint(matrix, (left, right), 9, 7)
    full = hint.block(np.arange(9), np.arange(7))
    part = hint.restrict(np.array([2, 5]), np.array([1, 3, 6]))
    np.testing.assert_allclose(part.block(np.arange(2), np.arange(3)), full[[2, 5]][:, [1, 3, 6]])
    np.testing.assert_allclose(part.at(np.array([1]), np.array([2])), full[5, 6])
    by_vectors = hint.parts[1].vectors[0] @ hint.parts[1].vectors[1].T
    np.testing.assert_allclose(by_vectors, hint.parts[1].block(np.arange(9), np.arange(7)))
    assert check_hint(None, (np.ones((9, 2)), np.ones((7, 2))), 9, 7) is None


# A start of one's own


def test_a_good_start_is_used_and_told(seed):
    problem = jittered_digits(200, np.random.default_rng([seed, 3]))
    half = np.where(np.arange(len(problem.x)) % 2, problem.truth, -1)
    found = align(problem.x, problem.y, start=half)
    assert found.kind == "sharp"
    assert next(iter(found.match.objective.per_start)) == "given start"
    assert (found.match.partner == problem.truth).mean() >= 0.99


def test_a_wrong_start_is_told_and_does_no_harm(easy, seed):
    wrong = np.random.default_rng(seed).permutation(300)
    found = unpaired.match(easy.x, easy.y, start=wrong)
    reached = found.objective.per_start
    assert reached["given start"] < 0.5 * max(reached.values())
    assert (found.partner == easy.truth).mean() >= 0.99


def test_a_start_decides_between_mirror_images_of_soft_groups(seed):
    x, y, group_x, group_y = groups(np.random.default_rng([seed, 4]))
    plan = (group_x[:, None] == group_y[None, :]).astype(float)
    found = unpaired.match(x, y, start=plan)
    tried = {name: v for name, v in found.objective.per_start.items() if "given" in name}
    assert len(tried) == 4  # three views, and the search for evident partners
    assert (group_x == group_y[found.partner]).mean() >= 0.7


def test_a_start_of_a_handful_of_rows(rng):
    x = rng.standard_normal((12, 3))
    order = rng.permutation(12)
    found = unpaired.match(x, x[order], start=np.argsort(order))
    assert found.objective.per_start["given start"] == pytest.approx(1.0)


def test_same_seed_same_bits_with_everything_given(seed):
    rng = np.random.default_rng([seed, 6])
    x, y, group_x, group_y = groups(rng, n_groups=3)
    arguments = {
        "weights": (rng.random(90) + 0.1, rng.random(90) + 0.1),
        "shared": (np.eye(3)[group_x], np.eye(3)[group_y]),
        "start": rng.permutation(90),
        "random_state": 4,
    }
    same(unpaired.match(x, y, **arguments), unpaired.match(x, y, **arguments))


# What is refused


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weights": np.ones(10)}, "weights must be a pair (weights of x, weights of y)"),
        ({"weights": (np.ones(9), None)}, "weights of x must hold one number per row: x has 10"),
        ({"weights": (None, -np.ones(10))}, "weights of y must not be negative: row 0 has -1"),
        ({"weights": (np.full(10, np.nan), None)}, "weights of x must be finite"),
        ({"weights": (np.eye(10)[0], None)}, "above 0 for at least two rows: 1 are"),
        (
            {"weights": (None, np.arange(10.0)), "relation": "many-to-one"},
            "weights of y must be None for many-to-one",
        ),
        (
            {"weights": (np.eye(10)[:2].sum(0), None), "relation": "many-to-one"},
            "at least one row that counts for each of the 10 rows of y: 2 do",
        ),
        ({"shared": np.ones((10, 2))}, "shared must be a pair (columns of x, columns of y)"),
        ({"shared": (np.ones((9, 2)), np.ones((10, 2)))}, "one row per row of x: x has 10"),
        ({"shared": (np.eye(10), np.ones((10, 2)))}, "the same columns on both sides: 10 for x"),
        ({"start": np.zeros(9, int)}, "start must hold a row of y, or -1, for each of the 10"),
        ({"start": np.zeros((10, 9))}, "start as a plan must have shape (10, 10)"),
        ({"start": -np.ones((10, 10))}, "start as a plan must hold weights >= 0"),
        ({"start": np.full(10, 10)}, "start must name rows of y between 0 and 9, or -1: row 0"),
        ({"start": np.full(10, 0.5)}, "start must hold whole row numbers"),
        ({"start": np.full(10, -1)}, "start must name at least one row of y"),
        ({"start": np.arange(10), "relation": "many-to-one"}, "start is for one-to-one"),
        ({"pairs": np.zeros((11, 2), int) + np.arange(11)[:, None]}, "pairs must name rows of x"),
        ({"x": np.ones((10, 3))}, "x must have rows that differ"),
        ({"y": np.ones((1, 3))}, "y must have at least 2 rows"),
    ],
)
def test_wrong_input_is_named(change, message):
    rows = np.random.default_rng(0).random((10, 3))
    with pytest.raises(unpaired.InputError) as caught:
        unpaired.match(**{"x": rows, "y": rows, **change})
    assert message in str(caught.value)


def test_weights_of_one_number_are_none():
    assert check_weights((np.full(3, 7.0), None), 3, 4) == (None, None)
    weight, _ = check_weights((np.array([0.0, 2.0, 4.0]), None), 3, 4)
    np.testing.assert_allclose(weight, [0.0, 2 / 3, 4 / 3])


# From coarse to fine


def test_multi_scale_start_finds_what_clusters_can_tell(seed):
    problem = jittered_digits(200, np.random.default_rng([seed, 3]))
    found = align(problem.x, problem.y, start="multi-scale")
    assert next(iter(found.match.objective.per_start)) == "multi-scale"
    assert (found.match.partner == problem.truth).mean() >= 0.99
    same(found.match, unpaired.match(problem.x, problem.y, start="multi-scale"))


def test_multi_scale_plan_gives_every_row_of_y_its_share(seed):
    rng = np.random.default_rng([seed, 7])
    x, y, *_ = groups(rng)
    start = match_scales(x, y, rng)
    assert start.n_clusters == 10
    plan = start.block(np.arange(120), np.arange(120))
    filled = np.isin(start.index_x, start.index_y)
    np.testing.assert_allclose(plan[filled].sum(1), 1.0)
    tiny = match_scales(x[:3], y[:3], rng)
    assert tiny.n_clusters == 1


def test_unknown_named_start():
    rows = np.random.default_rng(0).random((10, 3))
    with pytest.raises(unpaired.InputError, match='Unknown start "multiscale". Did you mean'):
        unpaired.match(rows, rows, start="multiscale")
    assert "multi-scale" in unpaired.match(rows, rows, start="multi-scale").objective.per_start
