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
    Sides,
    change_signs,
    compare_with_flips,
    directions,
    first_starts,
    mix,
    null_starts,
    refine,
    search,
    settle,
    sides_of,
    starts_near,
    widen,
)
from unpaired.math.rotations import nearest_rotation, overlap
from unpaired.plans.plan import make_pairs
from unpaired.spaces.space import Part
from unpaired.views.view import View

CPU = torch.device("cpu")


def rotation_of(d, rng):
    return np.linalg.qr(rng.standard_normal((d, d)))[0].astype(np.float32)


def copies(n, d, rng, noise=0.2):
    """Rows and a rotated noisy copy of them, row by row; and that rotation."""
    x, turn = rng.standard_normal((n, d)), rotation_of(d, rng)
    y = x @ turn + noise * rng.standard_normal((n, d))
    return *(torch.tensor(side).float() for side in (x, y)), turn


def as_view(x, y):
    """Rows that are their own coordinates."""
    return View(None, None, x, y)


def as_sides(x, y, known=None):
    return sides_of(as_view(x, y), make_pairs(known, len(x), len(y), CPU))


def as_part(rotation):
    return [Part(0, (torch.as_tensor(rotation), torch.eye(rotation.shape[1])))]


def share_right(sides, rotation):
    scores = sides.x @ rotation @ sides.y.T
    return float((scores.argmax(1) == np.arange(len(sides.x))).mean())


def test_one_run_climbs_from_a_rough_rotation_to_the_right_one(rng):
    x, y, turn = copies(300, 12, rng)
    sides = as_sides(x, y)
    rough = (turn + 0.25 * rng.standard_normal((12, 12))).astype(np.float32)
    found = sides.climb(rough, 60, rng)
    np.testing.assert_allclose(found @ found.T, np.eye(12), atol=1e-4)
    assert share_right(sides, found) > max(0.75, share_right(sides, rough) + 0.3)
    assert overlap(found, turn) > 0.95


def test_signs_change_for_the_share_that_was_asked_for(rng):
    turn = rotation_of(400, rng)
    changed = change_signs(turn, 0.2, rng)
    signs = changed[:, 0] / turn[:, 0]
    np.testing.assert_allclose(changed, signs[:, None] * turn, rtol=1e-6)
    assert 0.1 < float((signs < 0).mean()) < 0.3
    np.testing.assert_array_equal(change_signs(turn, 0.0, rng), turn)


def test_a_mixture_sends_each_component_as_one_of_two_does(rng, monkeypatch):
    monkeypatch.setattr(refinement, "REFINEMENT", replace(REFINEMENT, later_signs=0.0))
    one, other = (rotation_of(200, rng) for _ in range(2))
    mixed = mix([one, other], rng)
    from_one = (mixed == one).all(1)
    np.testing.assert_array_equal(mixed[~from_one], other[~from_one])
    assert 60 < int(from_one.sum()) < 140


def test_many_runs_find_what_one_does_not_from_wrong_signs(rng):
    found_by_one, found_by_many = 0, 0
    for _ in range(4):
        centres = rng.standard_normal((40, 12))
        rows = centres[rng.integers(40, size=300)] + 0.4 * rng.standard_normal((300, 12))
        x, turn = torch.tensor(rows * 0.85 ** np.arange(12)).float(), rotation_of(12, rng)
        sides = as_sides(x, x @ torch.tensor(turn))
        start = turn.copy()
        start[[0, 2, 4]] *= -1
        found_by_one += share_right(sides, sides.climb(start, REFINEMENT.n_steady, rng)) > 0.9
        found_by_many += share_right(sides, search(sides, starts_near(start, rng), rng)) > 0.9
    assert found_by_many >= found_by_one + 2  # 3 or 4 against none, most times


def topics(n, d, rng):
    """Rows in which few components at a time stand out, as in text."""
    return rng.exponential(size=(n, d)) * (rng.random((n, d)) < 0.15)


def test_a_search_begins_at_an_alignment_at_components_and_at_both(rng):
    rows, turn = topics(400, 10, rng), rotation_of(10, rng)
    sides = as_sides(*(torch.tensor(side).float() for side in (rows, rows @ turn)))
    wrong = rotation_of(10, rng)
    starts = first_starts(sides, wrong, rng)
    assert len(starts) == REFINEMENT.n_near
    np.testing.assert_allclose(starts[0], wrong, atol=1e-4)
    near = [overlap(start, turn) for start in starts]
    assert np.median(near[7:]) > 0.5  # components know the way
    assert near[0] < np.median(near[1:7]) < np.median(near[7:])  # half of it
    assert overlap(search(sides, starts, rng), turn) > 0.9


def test_starts_of_a_second_search_are_as_many_and_know_nothing(rng):
    rows, turn = topics(400, 10, rng), rotation_of(10, rng)
    sides = as_sides(*(torch.tensor(side).float() for side in (rows, rows @ turn)))
    starts = null_starts(sides, turn, rng)
    assert len(starts) == REFINEMENT.n_near
    assert abs(np.mean([overlap(start, turn) for start in starts])) < 0.5
    assert np.mean([overlap(start, turn) for start in starts[7:]]) < 0.5


def test_a_search_ends_where_runs_come_back_to_one_answer(rng, monkeypatch):
    x, y, turn = copies(200, 6, rng, noise=0.0)
    begun = []

    def counted(self, *arguments):
        begun.append(arguments[1])
        return climb(self, *arguments)

    climb = Sides.climb
    monkeypatch.setattr(refinement.Sides, "climb", counted)
    search(as_sides(x, y), starts_near(turn, rng), rng)
    assert REFINEMENT.n_back < len(begun) < REFINEMENT.n_runs
    assert set(begun[: REFINEMENT.n_near]) == {REFINEMENT.n_steady}


def test_leading_components_teach_the_others(rng):
    x = torch.tensor(rng.standard_normal((300, 40)) * 0.97 ** np.arange(40)).float()
    turn = torch.block_diag(
        *(torch.tensor(rotation_of(d, rng)) for d in (10, 10, 20))
    )  # leading components go to leading ones
    view, pairs = as_view(x, x @ turn), make_pairs(None, 300, 300, CPU)
    narrow = view.leading(10)
    assert narrow.x.shape == narrow.y.shape == (300, 10)
    (part,) = widen(view, pairs, as_part(turn[:10, :10]), rng)
    wide = part.maps[0] @ part.maps[1].T
    assert wide.shape == (40, 40)
    assert overlap(wide.numpy(), turn.numpy()) > 0.9


def test_rounds_on_all_rows_tell_more_partners_apart(rng):
    x, y, turn = copies(1500, 60, rng, noise=0.8)
    view, pairs = as_view(x, y), make_pairs(None, 1500, 1500, CPU)
    rough = nearest_rotation((turn + 0.15 * rng.standard_normal((60, 60))).astype(np.float32))
    right = []
    for parts in (as_part(rough), settle(view, pairs, as_part(rough), rng)):
        left, there = place_free(CanonicalCritic([view], pairs), parts)
        right.append(float(((left @ there.T).argmax(1) == torch.arange(1500)).float().mean()))
    assert right[1] > right[0] + 0.05


def test_known_pairs_pull_a_run(rng):
    x, y, turn = copies(200, 6, rng, noise=0.0)
    known = np.column_stack([np.arange(40), np.arange(40)])
    sides = as_sides(x, y, known)
    assert len(sides.x) == len(sides.y) == 160
    found = sides.climb(rotation_of(6, rng), 60, rng)
    assert share_right(sides, found) > 0.9
    assert overlap(found, turn) > 0.98


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
    refined = refine(x, y, make_pairs(None, 250, 250, CPU), placed, 1, rng)
    assert not refined.accepted
    assert refined.confirmed == 0.0


def test_a_right_map_surprises_where_no_row_has_a_partner(rng):
    centres = rng.standard_normal((60, 30))
    rows = centres[rng.integers(60, size=1000)] + 0.3 * rng.standard_normal((1000, 30))
    turn = rotation_of(30, rng)
    sides = as_sides(torch.tensor(rows[:500]).float(), torch.tensor(rows[500:] @ turn).float())
    found, accepted = compare_with_flips(sides, turn, rng)
    assert found > REFINEMENT.surprise
    assert accepted
    found, accepted = compare_with_flips(sides, rotation_of(30, rng), rng)
    assert found < REFINEMENT.surprise
    assert not accepted


def test_what_another_search_reaches_as_well_is_not_accepted(rng):
    """Independent columns that are not normal have axes of their own, close in any order."""
    turn_x, turn_y = (torch.tensor(rotation_of(25, rng)) for _ in "xy")
    x, y = (torch.tensor(rng.random((800, 25)) < 0.3).float() for _ in "xy")
    sides = as_sides((x - x.mean(0)) @ turn_x, (y - y.mean(0)) @ turn_y)
    found, accepted = compare_with_flips(sides, (turn_x.T @ turn_y).numpy(), rng)
    assert found > REFINEMENT.surprise  # closer than one run from random signs ends
    assert not accepted


@pytest.mark.parametrize(
    ("verdicts", "n_made"),
    [
        ([(1.0, False), (9.0, True)], 1),  # nothing spoke for the first
        ([(3.0, False), (9.0, True), (9.0, True)], 2),
        ([(3.0, False)] * 4, 3),
    ],
)
def test_another_search_is_made_where_the_last_one_was_promising(
    verdicts, n_made, rng, monkeypatch
):
    x, y, _ = copies(100, 10, rng)
    searches, said = [], iter(verdicts)

    def searched(*given):
        searches.append(given)
        return np.eye(10, dtype=np.float32)

    monkeypatch.setattr(refinement, "search", searched)
    monkeypatch.setattr(refinement, "compare_with_flips", lambda *_: next(said))
    refined = refine(x, y, make_pairs(None, 100, 100, CPU), (x, x), 3, rng)
    assert len(searches) - refined.accepted == n_made  # what is kept begins one more
    assert (refined.surprise, refined.accepted) == verdicts[n_made - 1]


def test_refinement_is_accepted_where_both_sides_are_one_geometry(rng):
    x, y, _ = copies(300, 40, rng)
    pairs = make_pairs(None, 300, 300, CPU)
    blurred = x + 3.0 * torch.tensor(rng.standard_normal((300, 40))).float()
    refined = refine(x, y, pairs, (blurred, x), 1, rng)  # scores that know partners only roughly
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
    begin = x @ torch.tensor(turn), y
    one, two = (refine(x, y, pairs, begin, 1, np.random.default_rng(3)) for _ in range(2))
    assert torch.equal(one.parts[0].maps[0], two.parts[0].maps[0])
    assert one.surprise == two.surprise
