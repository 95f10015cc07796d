"""Refinement on random samples: it climbs where partners exist, and says when there is nothing."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from unpaired.alignment import refinement
from unpaired.alignment.alternation import place_free
from unpaired.alignment.critics import CanonicalCritic
from unpaired.alignment.refinement import (
    REFINEMENT,
    change_signs,
    climb,
    closeness,
    confirmed_share,
    directions,
    judge,
    leading,
    mix,
    mutual,
    overlap,
    refine,
    search,
    widen,
)
from unpaired.plans.plan import make_pairs
from unpaired.spaces.space import Part
from unpaired.views.view import View

CPU = torch.device("cpu")


def rotation_of(d, rng):
    return np.linalg.qr(rng.standard_normal((d, d)))[0]


def copies(n, d, rng, noise=0.2):
    """Rows and a rotated noisy copy of them, row by row; and that rotation."""
    x, turn = rng.standard_normal((n, d)), rotation_of(d, rng)
    y = x @ turn + noise * rng.standard_normal((n, d))
    return *(torch.tensor(side).float() for side in (x, y)), torch.tensor(turn).float()


def as_view(x, y):
    """Rows that are their own coordinates."""
    return View(None, None, x, y)


def as_part(rotation):
    return [Part(0, (rotation, torch.eye(rotation.shape[1])))]


def share_right(view, rotation):
    scores = (
        torch.nn.functional.normalize(view.x @ rotation) @ torch.nn.functional.normalize(view.y).T
    )
    return float((scores.argmax(1) == torch.arange(len(view.x))).float().mean())


def test_mutual_partners_by_hand():
    scores = torch.tensor([[3.0, 1.0, 0.0], [2.0, 1.0, 0.0], [0.0, 5.0, 0.0]])
    rows, partners = mutual(scores)
    assert rows.tolist() == [0, 2]
    assert partners.tolist() == [0, 1]


def test_overlap_is_one_for_the_same_and_none_for_unrelated_rotations(rng):
    one, other = (torch.tensor(rotation_of(60, rng)) for _ in range(2))
    half = one.clone()
    half[:30] *= -1
    assert overlap(one, one) == pytest.approx(1.0)
    assert overlap(one, half) == pytest.approx(0.0, abs=1e-9)
    assert overlap(one, -one) == pytest.approx(-1.0)
    assert overlap(one, other) == pytest.approx(0.0, abs=5 / 60)
    assert overlap(one[:, :20], one[:, :20]) == pytest.approx(1.0)


def test_one_run_climbs_from_a_rough_rotation_to_the_right_one(rng):
    x, y, turn = copies(300, 12, rng)
    view, pairs = as_view(x, y), make_pairs(None, 300, 300, CPU)
    rough = turn + 0.25 * torch.tensor(rng.standard_normal((12, 12))).float()
    found = climb(view, pairs, rough, rng, 80)
    torch.testing.assert_close(found @ found.T, torch.eye(12), atol=1e-4, rtol=0)
    assert share_right(view, found) > max(0.75, share_right(view, rough) + 0.3)
    assert overlap(found, turn) > 0.95


def test_signs_change_for_the_share_that_was_asked_for(rng):
    turn = torch.tensor(rotation_of(400, rng))
    changed = change_signs(turn, 0.2, rng)
    signs = changed[:, 0] / turn[:, 0]
    torch.testing.assert_close(changed, signs[:, None] * turn)
    assert 0.1 < float((signs < 0).double().mean()) < 0.3
    assert torch.equal(change_signs(turn, 0.0, rng), turn)


def test_a_mixture_sends_each_component_as_one_of_two_does(rng, monkeypatch):
    monkeypatch.setattr(refinement, "REFINEMENT", replace(REFINEMENT, later_signs=0.0))
    one, other = (torch.tensor(rotation_of(200, rng)) for _ in range(2))
    mixed = mix([one, other], rng)
    from_one = (mixed == one).all(1)
    assert torch.equal(mixed[~from_one], other[~from_one])
    assert 60 < int(from_one.sum()) < 140


def test_many_runs_find_what_one_does_not_from_wrong_signs(rng):
    found_by_one, found_by_many = 0, 0
    for _ in range(4):
        centres = rng.standard_normal((40, 12))
        rows = centres[rng.integers(40, size=300)] + 0.4 * rng.standard_normal((300, 12))
        x, turn = torch.tensor(rows * 0.85 ** np.arange(12)).float(), rotation_of(12, rng)
        turn = torch.tensor(turn).float()
        view, pairs = as_view(x, x @ turn), make_pairs(None, 300, 300, CPU)
        start = turn.clone()
        start[[0, 2, 4]] *= -1
        found_by_one += share_right(view, climb(view, pairs, start, rng, 80)) > 0.9
        found_by_many += share_right(view, search(view, pairs, start, rng)) > 0.9
    assert found_by_many >= found_by_one + 2  # 3 or 4 against none, most times


def test_a_search_ends_where_runs_come_back_to_one_answer(rng, monkeypatch):
    x, y, turn = copies(200, 6, rng, noise=0.0)
    begun = []

    def counted(*arguments):
        begun.append(1)
        return climb(*arguments)

    monkeypatch.setattr(refinement, "climb", counted)
    search(as_view(x, y), make_pairs(None, 200, 200, CPU), turn, rng)
    assert REFINEMENT.n_back < len(begun) < REFINEMENT.n_runs


def test_leading_components_teach_the_others(rng):
    x = torch.tensor(rng.standard_normal((300, 40)) * 0.97 ** np.arange(40)).float()
    turn = torch.block_diag(
        *(torch.tensor(rotation_of(d, rng)).float() for d in (10, 10, 20))
    )  # leading components go to leading ones
    view, pairs = as_view(x, x @ turn), make_pairs(None, 300, 300, CPU)
    narrow = leading(view, 10)
    assert narrow.x.shape == narrow.y.shape == (300, 10)
    (part,) = widen(view, pairs, turn[:10, :10], rng)
    wide = part.maps[0] @ part.maps[1].T
    assert wide.shape == (40, 40)
    assert overlap(wide, turn) > 0.9


def test_known_pairs_pull_a_run(rng):
    x, y, turn = copies(200, 6, rng, noise=0.0)
    known = np.column_stack([np.arange(40), np.arange(40)])
    view = as_view(x, y)
    wrong = torch.tensor(rotation_of(6, rng)).float()
    found = climb(view, make_pairs(known, 200, 200, CPU), wrong, rng, 80)
    assert share_right(view, found) > 0.9
    assert overlap(found, turn) > 0.98


def test_partners_are_confirmed_where_they_exist_and_lost_where_they_are_accidents(rng):
    x, y, turn = copies(300, 40, rng)
    critic = CanonicalCritic([as_view(x, y)], make_pairs(None, 300, 300, CPU))
    assert confirmed_share(critic, as_part(turn), rng) > 0.95
    other = torch.tensor(rng.standard_normal((300, 40))).float()
    view = as_view(x, other)
    strangers = CanonicalCritic([view], make_pairs(None, 300, 300, CPU))
    accident = climb(
        view, strangers.pairs, turn, rng, 80
    )  # fits what two strangers share by chance
    left, right = place_free(strangers, as_part(accident))
    assert len(mutual(left @ right.T)[0]) > 60  # many are mutual ...
    assert confirmed_share(strangers, as_part(accident), rng) < 0.75


def test_rows_are_as_close_as_their_nearest_by_hand():
    view = as_view(torch.tensor([[1.0, 0.0], [0.0, 2.0]]), torch.tensor([[3.0, 0.0]]))
    pairs = make_pairs(None, 2, 1, CPU)
    turned = torch.tensor([[0.0, 1.0], [-1.0, 0.0]])
    assert closeness(view, pairs, torch.eye(2)) == pytest.approx((0.5 * (1 + 0) + 1) / 2)
    assert closeness(view, pairs, turned) == pytest.approx((0.5 * (0 - 1) + 0) / 2)


STRANGERS = {
    "gaussian": lambda rng, n: rng.standard_normal((n, 40)),
    "lognormal": lambda rng, n: np.exp(1.5 * rng.standard_normal((n, 20))),
    "student": lambda rng, n: rng.standard_t(2, (n, 20)),
    "clusters": lambda rng, n: (
        4 * rng.standard_normal((8, 20))[rng.integers(8, size=n)] + rng.standard_normal((n, 20))
    ),
    "falling": lambda rng, n: rng.standard_normal((n, 60)) * 0.85 ** np.arange(60),
    "one column": lambda rng, n: rng.standard_normal((n, 1)),
}


@pytest.mark.parametrize("kind", STRANGERS)
def test_strangers_do_not_surprise(kind, rng):
    x, y = (torch.tensor(STRANGERS[kind](rng, 250)).float() for _ in "xy")
    placed = tuple(torch.tensor(rng.standard_normal((250, 5))).float() for _ in "xy")
    refined = refine(x, y, make_pairs(None, 250, 250, CPU), placed, rng)
    assert not refined.accepted
    assert refined.confirmed == 0.0


def test_a_right_map_surprises_where_no_row_has_a_partner(rng):
    centres = rng.standard_normal((60, 30))
    rows = centres[rng.integers(60, size=1000)] + 0.3 * rng.standard_normal((1000, 30))
    turn = rotation_of(30, rng)
    x, y = torch.tensor(rows[:500]).float(), torch.tensor(rows[500:] @ turn).float()
    right = torch.tensor(turn).float()
    pairs = make_pairs(None, 500, 500, CPU)
    found, accepted = judge(as_view(x, y), pairs, right, rng)
    assert found > REFINEMENT.surprise
    assert accepted
    other = torch.tensor(rotation_of(30, rng)).float()
    found, accepted = judge(as_view(x, y), pairs, other, rng)
    assert found < REFINEMENT.surprise
    assert not accepted


def test_what_another_search_reaches_as_well_is_not_accepted(rng):
    """Independent columns that are not normal have axes of their own, close in any order."""
    turn_x, turn_y = (torch.tensor(rotation_of(25, rng)).float() for _ in "xy")
    x, y = (torch.tensor(rng.random((800, 25)) < 0.3).float() for _ in "xy")
    view = as_view((x - x.mean(0)) @ turn_x, (y - y.mean(0)) @ turn_y)
    axes_to_axes = turn_x.T @ turn_y
    found, accepted = judge(view, make_pairs(None, 800, 800, CPU), axes_to_axes, rng)
    assert found > REFINEMENT.surprise  # closer than one run from random signs ends
    assert not accepted


def test_refinement_is_accepted_where_both_sides_are_one_geometry(rng):
    x, y, _ = copies(300, 40, rng)
    pairs = make_pairs(None, 300, 300, CPU)
    blurred = x + 3.0 * torch.tensor(rng.standard_normal((300, 40))).float()
    refined = refine(x, y, pairs, (blurred, x), rng)  # scores that know partners only roughly
    assert refined.accepted
    assert refined.confirmed > 0.9
    critic = CanonicalCritic([refined.view], pairs)
    left, right = place_free(critic, refined.parts)
    assert float(((left @ right.T).argmax(1) == torch.arange(300)).float().mean()) > 0.9
    rough = float(((blurred @ x.T).argmax(1) == torch.arange(300)).float().mean())
    assert rough < 0.6


def test_directions_are_principal_components_of_unit_rows_as_they_are(rng):
    x, y, _ = copies(80, 6, rng)
    view = directions(x, y, 4, rng)
    assert view.x.shape == (80, 4)
    assert float(view.y.square().sum(1).mean()) == pytest.approx(1.0, rel=1e-4)
    assert torch.equal(view.map_x(x), view.x)
    units = torch.nn.functional.normalize(x - x.mean(0))
    variances = torch.linalg.svdvals(units - units.mean(0))[:4] ** 2
    torch.testing.assert_close(
        view.x.square().mean(0), variances / variances.sum(), atol=1e-4, rtol=0
    )


def test_the_same_generator_gives_the_same_bits(rng):
    x, y, turn = copies(100, 6, rng)
    pairs = make_pairs(None, 100, 100, CPU)
    one, two = (refine(x, y, pairs, (x @ turn, y), np.random.default_rng(3)) for _ in range(2))
    assert torch.equal(one.parts[0].maps[0], two.parts[0].maps[0])
    assert one.surprise == two.surprise
