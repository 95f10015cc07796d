"""What held-out pairs choose, and that they leave the default where nothing is clear."""

from __future__ import annotations

import pytest
import torch

from unpaired.training.closed_form import ClosedFormConfig, Coordinates, Rows, lay_out, solve_maps
from unpaired.training.closed_form import moments_of as moments
from unpaired.learning.cross_validation import (
    N_FOLDS,
    choose_ridge,
    choose_spreads,
    clearly_best,
    hold_out,
    misplaced,
    placing_errors,
    renumber,
)

CONFIG = ClosedFormConfig(bandwidths=())


def generator():
    return torch.Generator().manual_seed(0)


def rows_of(n: int, n_known: int) -> Rows:
    known, free = torch.arange(n_known), torch.arange(n_known, n)
    return Rows(known.repeat(2, 1).T, torch.ones(n_known), free, free)


def test_pairs_of_one_row_are_held_out_together():
    pairs = torch.tensor([[i // 3, i] for i in range(30)])
    rows = Rows(pairs, torch.full((30,), 1 / 3), torch.arange(10, 14), torch.arange(30, 31))
    held = hold_out(rows, generator())
    assert held is not None
    assert len(held.parts) == N_FOLDS
    owners = [set(part[:, 0].tolist()) for part, _ in held.parts]
    assert sum(map(len, owners)) == len(set().union(*owners)) == 10
    together = torch.cat([part for part, _ in held.parts])
    assert sorted(together.tolist()) == pairs.tolist()
    assert [sorted(decoys.tolist()) for decoys in held.decoys] == [[10, 11, 12, 13], [30]]
    assert hold_out(rows_of(20, 2 * N_FOLDS - 1), generator()) is None


def test_only_rows_that_are_used_are_numbered():
    pairs = torch.tensor([[i, 30 - i] for i in range(0, 30, 3)])
    rows = Rows(pairs, torch.ones(10), torch.tensor([1, 40]), torch.tensor([50]))
    held = hold_out(rows, generator())
    assert held is not None
    used_x, used_y, numbered = renumber(held)
    assert used_x.tolist() == sorted([*range(0, 30, 3), 1, 40])
    assert used_y.tolist() == sorted([*range(3, 31, 3), 50])
    for (before, _), (after, _) in zip(held.parts, numbered.parts, strict=True):
        assert (
            torch.stack([used_x[after[:, 0]], used_y[after[:, 1]]], 1).tolist() == before.tolist()
        )
    assert used_x[numbered.decoys[0]].tolist() == held.decoys[0].tolist()
    assert used_y[numbered.decoys[1]].tolist() == held.decoys[1].tolist()


def test_so_many_pairs_take_part_at_most(monkeypatch):
    monkeypatch.setattr("unpaired.learning.cross_validation.MAX_OWNERS", 12)
    held = hold_out(rows_of(40, 30), generator())
    assert held is not None
    assert [len(pairs) for pairs, _ in held.parts] == [3] * N_FOLDS


def test_partners_are_ranked_among_held_out_rows_and_decoys(rng):
    x, y = (torch.tensor(rng.standard_normal((9, 3)), dtype=torch.float32) for _ in "xy")
    part: Coordinates = lay_out(x, y, CONFIG, generator())[0]
    pairs, decoys = torch.tensor([[0, 4], [0, 5], [2, 6]]), (torch.tensor([7]), torch.tensor([8]))
    maps = [(torch.eye(part.x.shape[1]), torch.eye(part.y.shape[1]), torch.ones(3))]
    cosine = torch.nn.functional.cosine_similarity
    ranks = []
    for i, j in pairs.tolist():
        own = cosine(part.x[i], part.y[j], 0)
        to_y = sum(cosine(part.x[i], part.y[k], 0) > own for k in (4, 5, 6, 8))
        to_x = sum(cosine(part.x[k], part.y[j], 0) > own for k in (0, 0, 2, 7))
        ranks.append(float(((1.0 + to_y).log() + (1.0 + to_x).log()) / 2))
    expected = [(ranks[0] + ranks[1]) / 2, ranks[2]]
    assert misplaced([part], maps, pairs, decoys).tolist() == pytest.approx(expected)


def test_errors_come_from_maps_that_have_not_seen_the_pairs(rng):
    x = torch.tensor(rng.standard_normal((40, 4)), dtype=torch.float32)
    y = x + torch.tensor(rng.standard_normal((40, 4)), dtype=torch.float32)
    part, rows = lay_out(x, y, CONFIG, generator())[0], rows_of(40, 24)
    held = hold_out(rows, generator())
    assert held is not None
    sums = [[moments(part, *pairs)] for pairs in held.parts]
    expected = []
    for number in range(N_FOLDS):
        others = [pairs for k, (pairs, _) in enumerate(held.parts) if k != number]
        kept = torch.cat(others)
        maps = solve_maps([part], [moments(part, kept, torch.ones(len(kept)))], len(kept), CONFIG)
        expected.append(misplaced([part], maps, held.parts[number][0], held.decoys))
    torch.testing.assert_close(placing_errors([part], sums, held, CONFIG), torch.cat(expected))


def test_another_choice_must_be_clearly_better():
    base = torch.linspace(0.0, 1.0, 50)
    noise = torch.tensor([1.0, -1.0]).repeat(25)
    errors = {"default": base, "a little": base - 0.2 * noise - 0.01, "worse": base + 0.3}
    assert clearly_best(errors, "default") == "default"
    errors["clear"], errors["clearer"] = base - 0.1, base - 0.2
    assert clearly_best(errors, "default") == "clearer"


def test_columns_in_other_units_are_standardised(rng):
    shared = torch.tensor(rng.standard_normal((200, 6)), dtype=torch.float32)
    x = shared * torch.tensor([1.0, 300.0, 1.0, 1.0, 1.0, 1.0])
    y = shared @ torch.linalg.qr(torch.tensor(rng.standard_normal((6, 6)))).Q.float()
    assert choose_spreads(x, y, rows_of(200, 80), CONFIG, generator()) == ("standard", "roots")
    assert choose_spreads(x, y, rows_of(200, 6), CONFIG, generator()) == ("roots", "roots")


def test_exact_views_need_less_ridge_and_noisy_ones_do_not(rng):
    factors = rng.standard_normal((300, 6))
    x, exact = (
        torch.tensor(factors @ rng.standard_normal((6, d)), dtype=torch.float32) for d in (12, 9)
    )
    noisy = exact + 9.0 * torch.tensor(rng.standard_normal((300, 9)), dtype=torch.float32)
    chosen = [
        choose_ridge(lay_out(x, y, CONFIG, generator()), rows_of(300, 40), CONFIG, generator())
        for y in (exact, noisy)
    ]
    assert chosen[0].ridge < CONFIG.ridge
    assert chosen[1] == CONFIG
