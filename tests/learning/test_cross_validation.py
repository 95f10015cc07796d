"""What held-out pairs choose, and that they leave the default where nothing is clear."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from torch.nn.functional import cosine_similarity

from unpaired.alignment.critics import moments_of
from unpaired.learning import cross_validation
from unpaired.learning.cross_validation import (
    N_FOLDS,
    RIDGE_FACTORS,
    TEMPERATURES,
    HeldOut,
    choose_ridge_factor,
    choose_temperature,
    choose_values,
    clearly_best,
    held_out_pairs,
    hold_out,
    placing_errors,
)
from unpaired.math.canonical import Maps, Moments, canonical_maps
from unpaired.plans.plan import Pairs, make_pairs
from unpaired.views.features import fit_features
from unpaired.views.view import View

CPU = torch.device("cpu")


def generator():
    return np.random.default_rng(0)


def pairs_of(n: int, n_known: int) -> Pairs:
    """Row i belongs to row i; the first are known."""
    known = np.column_stack([np.arange(n_known)] * 2)
    return make_pairs(known, n, n, CPU)


def tensor(array) -> torch.Tensor:
    return torch.tensor(array, dtype=torch.float32)


def linear_view(x: torch.Tensor, y: torch.Tensor) -> View:
    map_x, map_y = (fit_features(side, generator(), max_rank=50) for side in (x, y))
    return View(map_x, map_y, map_x(x), map_y(y))


def noisy_view(rng, n: int, size: int, noise: float) -> View:
    """Rows and noisy copies of them, row i of both belongs together."""
    x = tensor(rng.standard_normal((n, size)))
    return linear_view(x, x + noise * tensor(rng.standard_normal((n, size))))


def solver(ridge: float):
    def solve(view: int, moments: Moments) -> Maps:
        size = ridge / max(moments.n_pairs, 1.0)
        return canonical_maps(moments, (size, size), width=50, belief=0.9)

    return solve


def test_pairs_of_one_row_are_held_out_together():
    known = np.array([[i // 3, i] for i in range(30)])
    pairs = make_pairs(known, 14, 31, CPU)
    held = hold_out(pairs, generator())
    assert held is not None
    assert len(held.folds) == N_FOLDS
    owners = [set(part[:, 0].tolist()) for part, _ in held.folds]
    assert sum(map(len, owners)) == len(set().union(*owners)) == 10
    together = torch.cat([part for part, _ in held.folds])
    assert sorted(together.tolist()) == known.tolist()
    for part, weights in held.folds:
        assert weights.tolist() == pytest.approx([1 / 3] * len(part))
    assert [sorted(decoys.tolist()) for decoys in held.decoys] == [[10, 11, 12, 13], [30]]


def test_too_few_pairs_cannot_be_held_out():
    assert hold_out(pairs_of(20, 2 * N_FOLDS - 1), generator()) is None
    assert hold_out(pairs_of(20, 2 * N_FOLDS), generator()) is not None


def test_only_rows_that_are_used_are_numbered():
    known = np.array([[i, 30 - i] for i in range(0, 30, 3)])
    pairs = Pairs(torch.tensor(known), torch.ones(10), torch.tensor([1, 40]), torch.tensor([50]))
    held = hold_out(pairs, generator())
    assert held is not None
    used_x, used_y = held.used
    numbered = held.renumber((used_x, used_y))
    assert used_x.tolist() == sorted([*range(0, 30, 3), 1, 40])
    assert used_y.tolist() == sorted([*range(3, 31, 3), 50])
    for (before, _), (after, _) in zip(held.folds, numbered.folds, strict=True):
        again = torch.stack([used_x[after[:, 0]], used_y[after[:, 1]]], 1)
        assert again.tolist() == before.tolist()
    assert used_x[numbered.decoys[0]].tolist() == held.decoys[0].tolist()
    assert used_y[numbered.decoys[1]].tolist() == held.decoys[1].tolist()


def test_so_many_pairs_take_part_at_most(monkeypatch):
    monkeypatch.setattr(cross_validation, "MAX_OWNERS", 12)
    held = hold_out(pairs_of(40, 30), generator())
    assert held is not None
    assert [len(pairs) for pairs, _ in held.folds] == [3] * N_FOLDS


def test_partners_are_ranked_among_held_out_rows_and_decoys(rng):
    """With maps that leave coordinates alone, ranks are those of cosines, counted by loops."""
    view = linear_view(*(tensor(rng.standard_normal((9, 3))) for _ in "xy"))
    pairs = torch.tensor([[0, 4], [0, 5], [2, 6]])
    decoys = (torch.tensor([7]), torch.tensor([8]))
    other = torch.tensor([[1, 1], [3, 3]])
    held = HeldOut([(pairs, torch.ones(3)), (other, torch.ones(2))], decoys)

    def alone(number: int, moments: Moments) -> Maps:
        return Maps(torch.eye(3), torch.eye(3), torch.ones(3))

    expected = []
    for part in (pairs.tolist(), other.tolist()):
        left, right = [i for i, _ in part], [j for _, j in part]
        ranks: dict[int, list[float]] = {}
        for i, j in part:
            own = cosine_similarity(view.x[i], view.y[j], 0)
            to_y = sum(cosine_similarity(view.x[i], view.y[k], 0) > own for k in [*right, 8])
            to_x = sum(cosine_similarity(view.x[k], view.y[j], 0) > own for k in [*left, 7])
            rank = float(((1.0 + to_y).log() + (1.0 + to_x).log()) / 2)
            ranks.setdefault(i, []).append(rank)
        expected += [np.mean(ranks[i]) for i in sorted(ranks)]
    assert placing_errors([view], held, alone).tolist() == pytest.approx(expected)


def test_errors_come_from_maps_that_have_not_seen_the_pairs(rng):
    x = tensor(rng.standard_normal((40, 4)))
    view = linear_view(x, x + tensor(rng.standard_normal((40, 4))))
    held = hold_out(pairs_of(40, 24), generator())
    assert held is not None
    seen = []

    def solve(number: int, moments: Moments) -> Maps:
        seen.append(moments)
        return solver(2.0)(number, moments)

    placing_errors([view], held, solve)
    assert len(seen) == N_FOLDS
    for number, moments in enumerate(seen):
        kept = torch.cat([pairs for k, (pairs, _) in enumerate(held.folds) if k != number])
        expected = moments_of(view, kept, torch.ones(len(kept)))
        assert moments.n_pairs == len(kept)
        torch.testing.assert_close(moments.cross, expected.cross)
        torch.testing.assert_close(moments.own_x, expected.own_x)


def test_another_choice_must_be_clearly_better():
    base = torch.linspace(0.0, 1.0, 50)
    noise = torch.tensor([1.0, -1.0]).repeat(25)
    errors = {"default": base, "a little": base - 0.2 * noise - 0.01, "worse": base + 0.3}
    assert clearly_best(errors, "default") == "default"
    errors["clear"], errors["clearer"] = base - 0.1, base - 0.2
    assert clearly_best(errors, "default") == "clearer"


def test_columns_in_other_units_are_standardised(rng):
    shared = tensor(rng.standard_normal((200, 6)))
    x = shared * torch.tensor([1.0, 300.0, 1.0, 1.0, 1.0, 1.0])
    y = shared @ torch.linalg.qr(tensor(rng.standard_normal((6, 6)))).Q

    def chosen(n_known: int) -> tuple[str, str]:
        return choose_values(x, y, pairs_of(200, n_known), solver(2.0), 600, generator())

    assert chosen(80) == ("standard", "roots")
    assert chosen(6) == ("roots", "roots")


def test_exact_views_need_less_ridge_and_noisy_ones_do_not(rng):
    def chosen(x: torch.Tensor, y: torch.Tensor, n_known: int) -> float:
        views, pairs = [linear_view(x, y)], pairs_of(300, n_known)
        return choose_ridge_factor(views, pairs, lambda factor: solver(2.0 * factor), generator())

    found = []
    for _ in range(9):
        factors = rng.standard_normal((300, 6))
        x, exact = (tensor(factors @ rng.standard_normal((6, d))) for d in (12, 9))
        noisy = exact + 9.0 * tensor(rng.standard_normal((300, 9)))
        found.append((chosen(x, exact, 40), chosen(x, noisy, 40)))
        assert chosen(x, exact, 7) == 1.0
        assert found[-1][0] in RIDGE_FACTORS
    assert np.median(found, axis=0)[0] < 1.0
    assert np.median(found, axis=0)[1] == 1.0


@pytest.mark.parametrize(("n_known", "max_held"), [(40, 1000), (80, 1000), (40, 12)])
def test_the_temperature_is_that_of_the_largest_likelihood(n_known, max_held, rng, monkeypatch):
    """Likelihoods written out by loops; decoys stand for all free rows."""
    monkeypatch.setattr(cross_validation, "MAX_HELD", max_held)
    x = tensor(rng.standard_normal((120, 5)))
    view = linear_view(x, x + 0.7 * tensor(rng.standard_normal((120, 5))))
    pairs, solve = pairs_of(120, n_known), solver(2.0)
    held = hold_out(pairs, generator())
    assert held is not None
    totals = []
    for temperature in TEMPERATURES:
        total = 0.0
        for number in range(N_FOLDS):
            kept = [p for k, (p, _) in enumerate(held.folds) if k != number]
            moments = moments_of(view, torch.cat(kept), torch.ones(sum(map(len, kept))))
            maps = solve(0, moments)
            own = held.folds[number][0]
            rows_x = torch.cat([own[:, 0], held.decoys[0]])
            rows_y = torch.cat([own[:, 1], held.decoys[1]])
            left, right = view.x[rows_x] @ maps.x, view.y[rows_y] @ maps.y
            scores = cosine_similarity(left[:, None], right[None], 2)
            scores = (scores / scores.std()).double().numpy()
            for i in range(len(own)):
                shares = np.exp((scores[i] - scores[i, i]) / temperature)
                shares[len(own) :] *= (120 - n_known) / len(held.decoys[1])
                total -= math.log(shares.sum())
        totals.append(total)
    assert (
        choose_temperature([view], pairs, solve, generator())
        == TEMPERATURES[int(np.argmax(totals))]
    )


def test_the_noisier_the_pairs_the_warmer(rng):
    x = tensor(rng.standard_normal((200, 6)))
    found = []
    for noise in (0.05, 1.5):
        view = linear_view(x, x + noise * tensor(rng.standard_normal((200, 6))))
        found.append(choose_temperature([view], pairs_of(200, 60), solver(2.0), generator()))
    assert found[0] < found[1]
    few = pairs_of(200, 7)
    assert choose_temperature([linear_view(x, x)], few, solver(2.0), generator()) is None


def test_decoys_stand_for_all_free_rows(monkeypatch, rng):
    """With fewer decoys than free rows each counts for several: the answer hardly changes."""
    view = noisy_view(rng, 400, 6, 0.8)
    pairs = pairs_of(400, 40)
    whole = choose_temperature([view], pairs, solver(2.0), generator())
    monkeypatch.setattr(cross_validation, "MAX_HELD", 60)
    some = choose_temperature([view], pairs, solver(2.0), generator())
    assert whole is not None
    assert some is not None
    places = [TEMPERATURES.index(t) for t in (whole, some)]
    assert abs(places[0] - places[1]) <= 2


def test_ranks_of_held_out_pairs_are_their_foscttm(rng):
    """By loops over pairs: the share of rows above a partner, both ways."""
    view = noisy_view(rng, 60, 5, 0.7)
    pairs, solve = pairs_of(60, 24), solver(2.0)
    held = hold_out(pairs, generator())
    assert held is not None
    expected = []
    for number, (own, _) in enumerate(held.folds):
        kept = torch.cat([p for k, (p, _) in enumerate(held.folds) if k != number])
        maps = solve(0, moments_of(view, kept, torch.ones(len(kept))))
        rows = [torch.cat([own[:, side], held.decoys[side]]) for side in (0, 1)]
        left, right = view.x[rows[0]] @ maps.x, view.y[rows[1]] @ maps.y
        scores = cosine_similarity(left[:, None], right[None], 2).numpy()
        for i in range(len(own)):
            above = (scores[i] > scores[i, i]).mean(), (scores[:, i] > scores[i, i]).mean()
            expected.append((sum(above) / 2, above[0] == 0))
    found = held_out_pairs([view], pairs, solve, generator())
    assert [pair.rank for pair in found] == pytest.approx([r for r, _ in expected], abs=0.01)
    assert 0.0 < np.mean([pair.rank for pair in found]) < 0.4
    named = [bool(pair.right) for pair in found]
    assert named == [bool(right) for _, right in expected]
    assert 0 < sum(named) < len(named)
    assert held_out_pairs([view], pairs_of(60, 7), solve, generator()) == ()


def test_any_known_partner_of_a_row_counts_as_named(rng):
    """Each row of x has two partners that are all but the same: the other one may come first."""
    x = tensor(rng.standard_normal((40, 5)))
    y = torch.cat([x, x + 0.01 * tensor(rng.standard_normal((40, 5)))])
    known = np.column_stack([np.tile(np.arange(40), 2), np.arange(80)])
    pairs = make_pairs(known, 40, 80, torch.device("cpu"))
    found = held_out_pairs([linear_view(x, y)], pairs, solver(2.0), generator())
    assert len(found) == 80
    assert all(pair.right for pair in found)
    assert any(pair.rank > 0 for pair in found)


def test_all_free_rows_are_in_the_way_of_a_partner(monkeypatch, rng):
    """However few are drawn for the ranks."""
    view = noisy_view(rng, 300, 4, 0.7)
    pairs = pairs_of(300, 40)
    whole = held_out_pairs([view], pairs, solver(2.0), generator())
    monkeypatch.setattr(cross_validation, "MAX_HELD", 20)
    some = held_out_pairs([view], pairs, solver(2.0), generator())
    assert [pair.right for pair in some] == [pair.right for pair in whole]
    assert 0.0 < np.mean([pair.right for pair in whole]) < 0.6
