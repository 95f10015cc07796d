"""Registration: evident partners on draws with known truth, and nothing where there are none."""

import numpy as np
import pytest
import torch

from unpaired.alignment import registration as module
from unpaired.alignment.registration import CLEAR, register
from unpaired.datasets.toy import jittered_digits, rotated_clusters
from unpaired.math.neighbours import top_k
from unpaired.plans.assignment import assign
from unpaired.problem.problem import check_problem
from unpaired.spaces.readout import read_match

OPTIONS = [{}, {"anisotropy": 0.0}, {"d_y": 96, "uneven": True}, {"d_x": 40, "scale_y": 7.0}]


def registered(draw, seed=0, **given):
    problem = check_problem(draw.x, draw.y, given.pop("pairs", None), **given)
    return problem, register(problem, np.random.default_rng(seed))


def matched(draw, seed=0, **given):
    problem, found = registered(draw, seed, **given)
    assert found.stands_out
    return read_match(problem, found.solution()), found


@pytest.mark.parametrize("options", OPTIONS)
def test_rotated_clusters_are_matched(options, seed):
    draw = rotated_clusters(2000, np.random.default_rng([seed, 0]), **options)
    match, found = matched(draw, seed)
    assert (match.partner == draw.truth).mean() >= 0.99
    assert (match.confidence >= 0.9).mean() >= 0.95
    assert max(found.tried.values()) > CLEAR


def test_a_smooth_warp_is_followed_by_a_linear_map(seed):
    draw = jittered_digits(800, np.random.default_rng([seed, 1]))
    match, _ = matched(draw, seed)
    assert (match.partner == draw.truth).mean() >= 0.97


def test_strangers_on_both_sides_are_left_out(seed):
    draw = jittered_digits(800, np.random.default_rng([seed, 1]), extra_x=200, extra_y=150)
    match, _ = matched(draw, seed, leave_out=True)
    has = draw.truth >= 0
    assert (match.partner[has] == draw.truth[has]).mean() >= 0.95
    assert (match.partner[~has] < 0).mean() >= 0.80
    strangers = np.setdiff1d(np.arange(len(draw.y)), draw.truth[has])
    assert 1 - np.isin(strangers, match.partner).mean() >= 0.80


def test_no_strangers_no_row_left_out(seed):
    draw = jittered_digits(1000, np.random.default_rng([seed, 3]))
    match, _ = matched(draw, leave_out=True)
    assert (match.partner < 0).mean() <= 0.02


def test_a_fit_of_the_same_kind_on_half_of_the_rows(seed):
    draw = jittered_digits(600, np.random.default_rng([seed, 1]))
    problem, found = registered(draw, seed)
    assert found.stands_out
    half = problem.restrict(np.arange(0, 600, 2), np.arange(600))
    again = found.again(half, np.random.default_rng(seed))
    assert (read_match(half, again).partner == draw.truth[::2]).mean() >= 0.97


def test_unrelated_sides_do_not_stand_out(rng):
    x, y = rng.normal(size=(500, 10)), rng.normal(size=(500, 10))
    found = register(check_problem(x, y), rng)
    assert not found.stands_out
    assert found.null_contrast is not None
    assert max(found.tried.values()) < module.STAND_OUT * found.null_contrast
    assert list(found.tried) == ["axes", "profiles", "kernel"]


def test_known_pairs_are_the_first_start_even_when_some_are_wrong(seed):
    draw = rotated_clusters(1000, np.random.default_rng([seed, 2]))
    known = np.column_stack([np.arange(30), draw.truth[:30]])
    known[:6, 1] = known[[1, 0, 3, 2, 5, 4], 1]  # six wrong ones, kept all the same
    forbidden = np.column_stack([np.arange(40, 50), draw.truth[40:50]])
    match, found = matched(draw, pairs=known, forbidden=forbidden)
    assert list(found.tried) == ["known pairs"]
    assert (match.partner[:30] == known[:, 1]).all()
    assert (match.partner[40:50] != draw.truth[40:50]).all()
    assert (match.partner[50:] == draw.truth[50:]).mean() > 0.98


def test_guesses_of_the_problem_come_before_its_own_starts(seed):
    draw = rotated_clusters(400, np.random.default_rng([seed, 4]), d_x=12, d_y=12)
    half = np.where(np.arange(400) % 2, draw.truth, -1)
    _, found = registered(draw, start=half)
    assert list(found.tried) == ["given start"]
    wrong = np.random.default_rng(seed).permutation(400)
    _, found = registered(draw, start=wrong)
    assert next(iter(found.tried)) == "given start"
    assert found.stands_out
    assert found.tried["given start"] < 0.5 * max(found.tried.values())


def test_scores_of_the_space_are_minus_squared_distances_of_moved_rows(seed):
    draw = rotated_clusters(300, np.random.default_rng([seed, 5]), d_x=12, d_y=15, n_clusters=10)
    _, found = registered(draw)
    space = found.solution().space
    x, y = (torch.tensor(side).float() for side in (draw.x, draw.y))
    moved = found.found(found.pairing.x)
    expected = -(
        torch.cdist(torch.tensor(moved).double(), torch.tensor(found.pairing.y).double()) ** 2
    )
    torch.testing.assert_close(space.scores(x, y).double(), expected, atol=1e-4, rtol=1e-4)
    assert (assign(-space.scores(x, y).numpy()) == draw.truth).mean() >= 0.99


def test_unseen_rows_land_near_their_partners(seed):
    draw = rotated_clusters(1500, np.random.default_rng([seed, 3]))
    problem = check_problem(draw.x[:1000], draw.y)
    found = register(problem, np.random.default_rng(0))
    assert found.stands_out
    space = found.solution().space
    unseen = space.embed(torch.tensor(draw.x[1000:]).float(), 0).numpy()
    near = top_k(unseen, space.embed(torch.tensor(draw.y).float(), 1).numpy(), 1)[0][:, 0]
    assert (near == draw.truth[1000:]).mean() > 0.98


def test_the_same_generator_gives_the_same_answer():
    draw = rotated_clusters(600, np.random.default_rng(1), extra_x=30)
    one, two = (registered(draw, 5)[1] for _ in range(2))
    assert one.tried == two.tried
    np.testing.assert_array_equal(one.found.matrix, two.found.matrix)


@pytest.mark.parametrize("sides", [(True, False), (False, True), (True, True)])
def test_weights_shift_the_map_not_the_partners(seed, sides):
    draw = rotated_clusters(300, np.random.default_rng([seed, 6]), d_x=12, d_y=15, n_clusters=10)
    rng = np.random.default_rng(seed)
    drawn = rng.integers(1, 5, 300).astype(float), rng.random(300) + 0.5
    weights = tuple(w if used else None for w, used in zip(drawn, sides, strict=True))
    match, found = matched(draw, weights=weights)
    assert (match.partner == draw.truth).mean() >= 0.98
    plain = registered(draw)[1]
    assert not np.array_equal(found.found.matrix, plain.found.matrix)


def test_the_gap_is_the_contrast_above_a_random_rotation(seed, monkeypatch):
    draw = rotated_clusters(300, np.random.default_rng([seed, 7]), d_x=12, d_y=12, n_clusters=10)
    _, found = registered(draw)
    if found.null_contrast is None:
        assert found.solution().evidence.gap == max(found.tried.values())
    monkeypatch.setattr(module, "CLEAR", 2.0)  # nothing is clear at once
    _, asked = registered(draw)
    contrast, null = max(asked.tried.values()), asked.null_contrast
    assert asked.solution().evidence.gap == pytest.approx((contrast - null) / (1 - null))
    assert asked.stands_out
