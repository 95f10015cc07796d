"""Starts compared without labels: what they reach, who wins, and which views are read."""

import numpy as np
import pytest
import torch
from joblib import parallel_config

from unpaired.alignment import finalists
from unpaired.alignment.alternation import alternate
from unpaired.alignment.critics import CanonicalCritic
from unpaired.alignment.finalists import (
    Comparison,
    Finalist,
    SearchConfig,
    choose,
    compare_starts,
    disagreement,
    matched_cka,
)
from unpaired.alignment.profiles import joined, profile_score, profiles_of
from unpaired.alignment.starts import JOINT, OWN
from unpaired.math.dependence import cka
from unpaired.plans.plan import DensePlan, hard_plan, make_pairs
from unpaired.views.view import GEODESICS, LINEAR, View, fit_view

CPU = torch.device("cpu")
CONFIG = SearchConfig(n_rows=60)


def finalist(view, start, dependence, scores=None, gap=0.5):
    return Finalist(view, start, dependence, gap, torch.eye(4) if scores is None else scores)


def test_disagreement_is_a_mean_rank(rng):
    scores = torch.tensor([[1.0, 0.0, 0.0, 0.0]])
    assert disagreement(scores, torch.tensor([[4.0, 3.0, 2.0, 1.0]])) == 0.0
    assert disagreement(scores, torch.tensor([[2.0, 3.0, 2.5, 1.0]])) == 0.5
    one, other = (torch.tensor(rng.random((200, 200))) for _ in range(2))
    assert disagreement(one, one) == 0.0
    assert disagreement(one, other) == pytest.approx(0.5, abs=0.05)


def test_matched_cka_is_cka_of_the_matched_rows(rng):
    x, y = (torch.tensor(rng.standard_normal((30, d))).float() for d in (4, 3))
    x, y = x - x.mean(0), y - y.mean(0)
    partner = rng.permutation(30)
    critic = CanonicalCritic([View(None, None, x, y)], make_pairs(None, 30, 30, CPU))
    expected = cka(x @ x.T, y @ y.T, torch.tensor(partner))
    found = matched_cka(critic, hard_plan(partner, 30, CPU))
    assert found == pytest.approx(float(expected), rel=1e-4)
    flat = DensePlan(torch.full((30, 30), 1 / 30))
    assert matched_cka(critic, flat) == pytest.approx(0.0, abs=1e-6)


def test_the_largest_dependence_of_a_steady_view_wins():
    moved = torch.eye(4).roll(1, 1)
    finalists = [
        finalist("a", OWN, 0.4),
        finalist("a", JOINT, 0.5),
        finalist("b", OWN, 0.9),
        finalist("b", JOINT, 0.8, moved),  # its two starts disagree
        finalist("c", OWN, 0.3),
        finalist("c", JOINT, 0.2),
    ]
    winner, views = choose(finalists, 0.2)
    assert winner is finalists[1]
    assert views == ["a", "c"]
    winner, views = choose(finalists[2:4], 0.2)  # nothing is steady
    assert winner is finalists[2]
    assert views == ["b"]


def test_a_view_whose_two_maps_are_unrelated_is_not_read(rng):
    same, other = (torch.tensor(rng.random((200, 200))) for _ in range(2))
    near = same + 0.3 * other
    finalists = [
        finalist("a", OWN, 0.4, same),
        finalist("a", JOINT, 0.4, near),
        finalist("b", OWN, 0.9, same),
        finalist("b", JOINT, 0.9, other),
    ]
    winner, views = choose(finalists, SearchConfig().unsteady)
    assert winner.view == "a"
    assert views == ["a"]


def test_a_given_start_wins_only_above_all_profiles():
    finalists = [
        finalist("a", OWN, 0.4),
        finalist("a", JOINT, 0.5),
        finalist("b", OWN, 0.3),
        finalist("b", JOINT, 0.3),
    ]
    better, worse = finalist("b", "mine", 0.6), finalist("b", "mine", 0.45)
    winner, views = choose([*finalists, better], 0.2)
    assert winner is better
    assert views == ["b", "a"]
    assert choose([*finalists, worse], 0.2)[0] is finalists[1]


def test_agreement_is_with_finalists_that_reach_nearly_the_best_of_their_view():
    moved = torch.eye(4).roll(1, 1)
    near, far = finalist("a", OWN, 0.98, moved), finalist("a", JOINT, 1.0)
    low = finalist("a", "mine", 0.5, moved)
    rows = torch.arange(4), torch.arange(4)
    found = Comparison([near, far, low], far, ["a"], rows)
    apart = disagreement(torch.eye(4), moved)
    assert found.agreement(torch.eye(4), CONFIG) == pytest.approx(1.0 - apart)
    alone = Comparison([finalist("a", OWN, 0.5, moved), far, low], far, ["a"], rows)
    assert alone.agreement(torch.eye(4), CONFIG) == 1.0


def test_agreement_is_never_below_zero(rng):
    scores = torch.tensor(rng.random((9, 9)))
    only = finalist("a", OWN, 1.0, scores)
    found = Comparison([only], only, ["a"], (torch.arange(9), torch.arange(9)))
    assert found.agreement(scores, CONFIG) == 1.0
    assert found.agreement(-scores, CONFIG) == 0.0  # the worst of all


def three_groups(rng):
    """Three clusters of unequal size in two orders and rotations, with their views and profiles."""
    centres = rng.standard_normal((3, 5)) * [[5.0], [3.0], [2.0]]
    group = rng.choice(3, 80, p=[0.5, 0.3, 0.2])
    x, y = (centres[group] + 0.5 * rng.standard_normal((80, 5)) for _ in "xy")
    y = y @ np.linalg.qr(rng.standard_normal((5, 5)))[0]
    sides = torch.tensor(x).float(), torch.tensor(y).float()
    views = {name: fit_view(name, *sides, rng) for name in (LINEAR, GEODESICS[1])}
    profiles = {n: profiles_of(v, directions=n == LINEAR) for n, v in views.items()}
    return views, profiles, group


@pytest.fixture
def problem(rng):
    return three_groups(rng)


def compare(problem, known=None, given=None, side=None, seed=0):
    views, profiles, _ = problem
    pairs = make_pairs(known, 80, 80, CPU)
    rng = np.random.default_rng(seed)
    return compare_starts(views, profiles, pairs, side, given or {}, rng, CONFIG)


def test_one_finalist_for_each_view_and_start(problem):
    truth = {"mine": DensePlan(torch.eye(80))}
    found = compare(problem, given=truth)
    names = [(f.view, f.start) for f in found.finalists]
    assert names == [(v, s) for v in (LINEAR, GEODESICS[1]) for s in (OWN, JOINT, "mine")]
    assert found.winner in found.finalists


def test_what_finalists_reach_is_a_cka_and_the_gap_a_share(problem):
    for found in compare(problem).finalists:
        assert 0.0 <= found.dependence <= 1.0
        assert found.gap <= 1.0


def test_starts_are_compared_on_a_sample_that_holds_the_known_pairs(problem):
    known = np.array([[3, 3], [70, 70], [79, 79]])
    found = compare(problem, known=known)
    rows_x, rows_y = found.rows
    for rows, side in ((rows_x, 0), (rows_y, 1)):
        assert (rows.diff() > 0).all()
        assert not set(rows.tolist()) & set(known[:, side].tolist())
        assert 60 - 3 <= len(rows) <= 60
    assert found.winner.scores.shape == (len(rows_x), len(rows_y))


def test_finalists_find_groups_and_beat_random_maps(rng):
    right, gaps = [], []
    for _ in range(7):
        problem = three_groups(rng)
        group, found = problem[2], compare(problem)
        best = found.rows[1][found.winner.scores.argmax(1)]
        right.append((group[found.rows[0]] == group[best]).mean())
        gaps.append(found.winner.gap)
    assert np.median(right) > 0.8
    assert np.median(gaps) > 0.1


def test_threads_change_no_bit(problem):
    one = compare(problem)
    with parallel_config(backend="threading", n_jobs=2):
        two = compare(problem)
    for a, b in zip(one.finalists, two.finalists, strict=True):
        assert (a.view, a.start, a.dependence, a.gap) == (b.view, b.start, b.dependence, b.gap)
        assert torch.equal(a.scores, b.scores)


def test_side_information_joins_the_profiles(problem):
    side = torch.eye(80) * 9.0
    plain, told = compare(problem), compare(problem, side=side)
    places = [f.winner.scores.argmax(1) for f in (plain, told)]
    right = [
        (f.rows[1][p] == f.rows[0]).float().mean()
        for f, p in zip((plain, told), places, strict=True)
    ]
    assert float(right[1]) > float(right[0])


def test_profiles_are_held_through_the_rounds_of_every_start_but_random_maps(problem, monkeypatch):
    views, profiles, _ = problem
    seen = []

    def spy(critic, schedule, plan, held=None):
        seen.append((schedule, held))
        return alternate(critic, schedule, plan, held=held)

    monkeypatch.setattr(finalists, "alternate", spy)
    config = SearchConfig(n_rows=80)
    pairs = make_pairs(None, 80, 80, CPU)
    compare_starts(views, profiles, pairs, None, {}, np.random.default_rng(0), config)
    with_profiles = [(schedule, held) for schedule, held in seen if held is not None]
    assert len(with_profiles) == 4  # two views, two profiles
    assert len(seen) == 4 + 2 * config.n_null  # random maps once in each of two views
    for schedule, _ in with_profiles:
        assert len(schedule) == config.n_rounds
        assert all(step.held > 0.1 for step in schedule)
    own = profile_score(*joined([profiles[LINEAR]]))
    torch.testing.assert_close(with_profiles[0][1], own)
    assert all(step.held == 0.0 for schedule, held in seen if held is None for step in schedule)
