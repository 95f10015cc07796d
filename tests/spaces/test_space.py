"""The space: what a score is, by plain formulas; and that all of it comes back from arrays."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

from unpaired.alignment.critics import CanonicalCritic, Step
from unpaired.learning.learner import LearnerConfig, learn
from unpaired.learning.towers import TowerConfig
from unpaired.matching import align
from unpaired.plans.plan import make_pairs
from unpaired.spaces import space as space_module
from unpaired.spaces.space import (
    Part,
    Space,
    build_space,
    even_weights,
    join,
    lengths,
    spread,
)
from unpaired.spaces.stored import space_from_arrays, space_to_arrays
from unpaired.views.features import fit_features
from unpaired.views.view import GEODESICS, LINEAR, View, fit_view

CPU = torch.device("cpu")
KINDS = ("learned", "soft", "evident", "shifted", "tiny")


def draw(n, width, seed):
    rows = np.random.default_rng(seed).standard_normal((n, width))
    return torch.tensor(rows, dtype=torch.float32)


@pytest.fixture(scope="module")
def sides():
    """Two views of 80 rows by the same factors, and 9 rows of either that were never seen."""
    factors = draw(89, 6, 0)
    x, y = factors @ draw(6, 8, 1), (factors @ draw(6, 7, 2)).tanh() + 0.3 * draw(89, 7, 3)
    return (x[:80], y[:80]), (x[80:], y[80:])


@pytest.fixture(scope="module")
def views(sides):
    """Three views of the 80 rows."""
    rng = np.random.default_rng(0)
    return [fit_view(name, *sides[0], rng) for name in (LINEAR, *GEODESICS)]


@pytest.fixture(scope="module")
def found(sides, views):
    """One space of every kind: by networks, by several views, by registration, of few rows."""
    (x, y), _ = sides
    known = np.column_stack([np.arange(30)] * 2)
    config = LearnerConfig(n_rounds=2, towers=TowerConfig(n_epochs=1, hidden=(9, 5)))
    turn = torch.linalg.qr(draw(8, 8, 4)).Q
    evident = align(x, x @ turn).solution.space
    every = make_pairs(np.column_stack([np.arange(80)] * 2), 80, 80, CPU)
    parts, _ = CanonicalCritic(views, every)(None, Step(0.1, power=0.25))
    return {
        "learned": learn(x, y, make_pairs(known, 80, 80, CPU), config, 0).solution.space,
        "soft": build_space(views, parts, n_nearest=6),
        "evident": evident,
        "shifted": shifted(evident),
        "tiny": align(x[:9], y[:9]).solution.space,
    }


def shifted(space):
    """The same with offsets of both sides."""
    (part,) = space.parts
    offsets = draw(1, part.width, 8), draw(1, part.width, 7)
    return replace(space, parts=(replace(part, offsets=offsets),))


def unseen(kind, sides):
    """Rows to score that were not seen, of the widths that the space knows."""
    _, (x, y) = sides
    return x, (x if kind in ("evident", "shifted") else y)


@pytest.mark.parametrize("kind", KINDS)
def test_scores_are_products_of_placed_rows(kind, found, sides):
    x, y = unseen(kind, sides)
    space = found[kind]
    torch.testing.assert_close(space.scores(x, y), space.place(x, 0) @ space.place(y, 1).T)


@pytest.mark.parametrize("kind", KINDS)
def test_a_space_comes_back_from_its_arrays_to_the_bit(kind, found, sides):
    space, (x, y) = found[kind], unseen(kind, sides)
    arrays = {name: np.array(array) for name, array in space_to_arrays(space).items()}
    again = space_from_arrays(arrays, CPU)
    assert torch.equal(again.scores(x, y), space.scores(x, y))
    for side, rows in enumerate((x, y)):
        assert torch.equal(again.embed(rows, side), space.embed(rows, side))
    assert again.n_nearest == space.n_nearest
    assert [type(f) for f, _ in again.features] == [type(f) for f, _ in space.features]
    assert sorted(space_to_arrays(again)) == sorted(arrays)


def test_the_kinds_differ_in_what_there_is_to_save(found):
    """So that the round trip above goes through networks, offsets and penalties."""
    assert any(part.towers is not None for part in found["learned"].parts)
    assert len({type(f) for f, _ in found["soft"].features}) == 2  # plain, geodesic
    for kind in ("evident", "shifted"):
        (part,) = found[kind].parts
        assert part.penalty is not None
        assert part.offsets is not None
    assert float(found["shifted"].parts[0].offsets[0].abs().max()) > 0
    assert not len(found["tiny"].references[0])


@pytest.mark.parametrize("kind", ["learned", "soft"])
def test_a_score_is_the_sum_of_weighed_cosines_less_half_of_both_crowdings(kind, found, sides):
    """CSLS against the training rows, written out by loops."""
    space, ((train_x, train_y), (x, y)) = found[kind], sides

    def cosines(left, right):
        total = np.zeros((len(left), len(right)))
        with torch.no_grad():
            for part in space.parts:
                placed = []
                for side, rows in enumerate((left, right)):
                    coordinates = space.features[part.view][side](rows)
                    if part.towers is not None:
                        own = part.towers[side](coordinates * part.maps[side])
                    else:
                        own = coordinates @ part.maps[side]
                    placed.append(normalize(own))
                total += part.weight * (placed[0] @ placed[1].T).double().numpy()
        return total

    crowd_x, crowd_y = cosines(x, train_y), cosines(train_x, y)
    k = space.n_nearest
    expected = cosines(x, y)
    for i in range(len(x)):
        for j in range(len(y)):
            near_i = np.sort(crowd_x[i])[-k:].mean()
            near_j = np.sort(crowd_y[:, j])[-k:].mean()
            expected[i, j] -= 0.5 * (near_i + near_j)
    np.testing.assert_allclose(space.scores(x, y), expected, atol=2e-4)
    assert k >= 5
    assert np.abs(crowd_x).max() > 0.1


@pytest.mark.parametrize("kind", ["evident", "shifted"])
def test_where_partners_are_evident_scores_are_minus_squared_distances(kind, found, sides):
    space, (x, y) = found[kind], unseen(kind, sides)
    left, right = (space.embed(rows, side) / 2**0.5 for side, rows in enumerate((x, y)))
    expected = -(torch.cdist(left.double(), right.double()) ** 2)
    np.testing.assert_allclose(space.scores(x, y), expected, atol=1e-3)


@pytest.mark.parametrize("kind", ["learned", "soft"])
def test_references_are_embedded_training_rows(kind, found, sides):
    for side in (0, 1):
        every = found[kind].embed(sides[0][side], side)
        torch.testing.assert_close(found[kind].references[side], every, rtol=0, atol=2e-3)


@pytest.mark.parametrize("kind", KINDS)
def test_blocks_agree_with_one_go(kind, found, sides, monkeypatch):
    x, y = unseen(kind, sides)
    whole = found[kind].scores(x, y)
    monkeypatch.setattr(space_module, "BLOCK_ROWS", 4)
    torch.testing.assert_close(found[kind].scores(x, y), whole, rtol=1e-4, atol=1e-4)


# The parts of it


def linear_view(n_x=12, n_y=15):
    x, y = draw(n_x, 5, 5), draw(n_y, 4, 6)
    rng = np.random.default_rng(0)
    map_x, map_y = (fit_features(rows, rng, max_rank=4) for rows in (x, y))
    return View(map_x, map_y, map_x(x), map_y(y))


def test_parts_are_joined_with_roots_of_their_weights():
    view = linear_view()
    parts = [Part(0, (draw(4, 3, i), draw(4, 3, 9 - i)), weight=w) for i, w in ((0, 4.0), (1, 0.5))]
    left, right = join(parts, [view.x], 0), join(parts, [view.y], 1)
    expected = torch.zeros(12, 15)
    for part in parts:
        own = normalize(view.x @ part.maps[0]) @ normalize(view.y @ part.maps[1]).T
        expected = expected + part.weight * own
    torch.testing.assert_close(left @ right.T, expected)


def test_only_the_leading_directions_enter_narrow_scores():
    view = linear_view()
    part = Part(0, (draw(4, 3, 0), draw(4, 3, 1)))
    narrow = part.embed(view.x, 0, 2)
    torch.testing.assert_close(narrow, part.embed(view.x, 0)[:, :2])
    assert part.width == 3


def test_rows_with_a_penalty_keep_their_length_and_pay_for_it():
    view = linear_view()
    cost = torch.tensor([0.5, 2.0, 0.0])
    part = Part(0, (draw(4, 3, 0), draw(4, 3, 1)), penalty=cost, offsets=(draw(1, 3, 2),) * 2)
    rows = view.x @ part.maps[0] + part.offsets[0]
    torch.testing.assert_close(part.embed(view.x, 0), rows)
    torch.testing.assert_close(lengths([part], rows), (rows**2 * cost).sum(1))


def test_even_weights_make_scores_of_all_parts_spread_alike():
    view = linear_view()
    parts = [Part(0, (draw(4, 3, i), draw(4, 3, 9 - i)), weight=7.0) for i in range(3)]
    found = even_weights(parts, [view])
    assert len({part.weight for part in found}) == 3
    for part in found:
        assert spread(part.embed(view.x, 0), part.embed(view.y, 1)) == pytest.approx(1.0, rel=1e-5)


def test_so_many_rows_are_references_at_most():
    view = linear_view(40, 90)
    part = Part(0, (draw(4, 3, 0), draw(4, 3, 1)))
    space = build_space([view], [part], n_nearest=3, max_reference=30)
    assert [len(reference) for reference in space.references] == [20, 30]
    torch.testing.assert_close(space.references[0], part.embed(view.x, 0)[::2])
    torch.testing.assert_close(space.references[1], part.embed(view.y, 1)[::3])


def test_crowded_rows_fall_back():
    """A hub of y, near to every row of x, loses to rows that are near to one only."""
    x = torch.eye(5)
    y = torch.cat([0.8 * torch.eye(5), torch.full((1, 5), 0.9)])  # the last one is the hub
    plain = Space((), (), (torch.zeros(0, 5), torch.zeros(0, 5)), n_nearest=3)
    fair = replace(plain, references=(x, y))
    best = [
        (space.corrected(x, 0) @ space.corrected(y, 1).T).argmax(1).tolist()
        for space in (plain, fair)
    ]
    assert best[0] == [5] * 5
    assert best[1] == list(range(5))
