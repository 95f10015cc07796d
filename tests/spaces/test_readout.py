"""From scores to a Match: partner, runner-up, margin and confidence by one and the same score."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy.optimize import linear_sum_assignment

from unpaired.problem.problem import check_problem
from unpaired.spaces import readout
from unpaired.spaces.readout import (
    SURE,
    Reading,
    numbered,
    read_dense,
    read_evident,
    read_match,
    read_partners,
    read_scores,
    to_match,
)
from unpaired.spaces.solution import Evidence, Solution
from unpaired.spaces.space import Space
from unpaired.trust.false_discovery import fit_chooser
from unpaired.types import Verdict

VERDICT = Verdict("coarse", 0.8, 0.1, (0.0, 0.2), ("halves agree",))


class Plain:
    """A space in which rows are where they are."""

    def place(self, rows, side):
        return rows

    embed, placed = place, Space.placed


def solution(kind="profiles", **options):
    return Solution(Plain(), Evidence({"axes": 0.7, "profiles": 0.4}), kind, **options)


def sides(rng, n_x, n_y, width=4):
    return rng.standard_normal((n_x, width)), rng.standard_normal((n_y, width))


def scores_of(x, y, problem=None):
    """Scores in units of their spread, with side information where there is some."""
    scores = (x.astype(np.float32) @ y.astype(np.float32).T).astype(np.float64)
    scores = scores / scores.std()
    if problem is not None and problem.side is not None:
        scores = scores + problem.side.block(np.arange(len(x)), np.arange(len(y)))
    return scores


def check_reading(reading, scores, *, heat=None, certainty=1.0):
    """Runner-up, margin and confidence recomputed by loops from scores and partners."""
    for row, partner in enumerate(reading.partner):
        others = [column for column in range(scores.shape[1]) if column != partner]
        best = max(others, key=lambda column: scores[row, column])
        assert reading.runner_up[row] == best
        if partner < 0:
            assert reading.confidence[row] == 0.0
            continue
        gap = scores[row, partner] - scores[row, best]
        assert reading.margin[row] == pytest.approx(gap, abs=1e-4)
        if heat is not None:
            shares = np.exp(scores[row] / heat)
            share = certainty * shares[partner] / shares.sum()
            assert reading.confidence[row] == pytest.approx(min(SURE, share), abs=1e-4)


@pytest.mark.parametrize(("n_x", "n_y"), [(6, 6), (4, 6), (6, 4)])
def test_partners_are_the_best_assignment_of_all(n_x, n_y, rng):
    x, y = sides(rng, n_x, n_y)
    reading = read_scores(check_problem(x, y), solution(certainty=0.8, temperature=0.7))
    scores = scores_of(x, y)
    best = max(
        itertools.permutations([*range(n_y), *[-1] * max(0, n_x - n_y)], n_x),
        key=lambda chosen: sum(scores[i, j] for i, j in enumerate(chosen) if j >= 0),
    )
    assert tuple(reading.partner) == best
    check_reading(reading, scores, heat=0.7, certainty=0.8)


def test_known_pairs_are_kept_and_forbidden_ones_never_made(rng):
    x, y = sides(rng, 6, 6)
    free = read_scores(check_problem(x, y), solution()).partner
    known = [[0, int(free[1])]]
    forbidden = [[2, int(free[2])]]
    problem = check_problem(x, y, known, forbidden=forbidden)
    reading = read_scores(problem, solution())
    scores = scores_of(x, y)
    allowed = [
        p
        for p in itertools.permutations(range(6))
        if p[0] == known[0][1] and p[2] != forbidden[0][1]
    ]
    assert tuple(reading.partner) == max(allowed, key=lambda p: scores[np.arange(6), p].sum())
    check_reading(reading, scores)


@pytest.mark.parametrize("given", ["similarity", "shared", "both"])
def test_side_information_is_part_of_the_score(given, rng):
    x, y = sides(rng, 20, 20)
    order = rng.permutation(20)
    matrix = 4.0 * np.eye(20)[order] + 0.1 * rng.standard_normal((20, 20))
    columns = rng.standard_normal((20, 9))
    extra = {} if given == "shared" else {"similarity": matrix}
    if given != "similarity":
        extra["shared"] = (columns[order], columns)
    problem = check_problem(x, y, **extra)
    reading = read_scores(problem, solution(certainty=1.0))
    scores = scores_of(x, y, problem)
    np.testing.assert_array_equal(reading.partner, linear_sum_assignment(-scores)[1])
    check_reading(reading, scores, heat=0.25)
    plain = read_scores(check_problem(x, y), solution())
    assert (reading.partner == order).mean() > (plain.partner == order).mean() + 0.2


@pytest.mark.parametrize("given", [(), ("similarity",), ("shared",), ("similarity", "shared")])
def test_many_rows_are_read_as_few_are(given, rng, monkeypatch):
    """Without the matrix of all scores the same partners, runners-up, margins and shares."""
    x = rng.standard_normal((60, 5))
    order = rng.permutation(60)
    y = x[np.argsort(order)] + 0.2 * rng.standard_normal((60, 5))
    extra = {
        "similarity": rng.standard_normal((60, 60)),
        "shared": (rng.standard_normal((60, 2)), rng.standard_normal((60, 2))),
    }
    known, forbidden = [[3, int(order[3])]], [[5, int(order[5])]]
    problem = check_problem(
        x, y, known, forbidden=forbidden, **{name: extra[name] for name in given}
    )
    found = solution(certainty=0.9, temperature=0.3)
    dense = read_scores(problem, found)
    monkeypatch.setattr(readout, "DENSE_ENTRIES", 0)
    monkeypatch.setattr(readout, "N_CANDIDATES", 60)
    sparse = read_scores(problem, found)
    assert (sparse.partner == dense.partner).mean() > 0.9
    same = sparse.partner == dense.partner
    np.testing.assert_array_equal(sparse.runner_up[same], dense.runner_up[same])
    np.testing.assert_allclose(sparse.margin[same], dense.margin[same], atol=1e-3)
    np.testing.assert_allclose(sparse.confidence[same], dense.confidence[same], atol=1e-3)
    for reading in (dense, sparse):
        assert reading.partner[3] == order[3]
        assert reading.partner[5] != order[5]
        assert len(set(reading.partner.tolist())) == 60


def test_a_few_candidates_a_row_are_nearly_as_good_as_all(rng, monkeypatch):
    x, y = sides(rng, 150, 150, width=8)
    problem, scores = check_problem(x, y), scores_of(x, y)
    best = read_scores(problem, solution(certainty=1.0)).partner
    monkeypatch.setattr(readout, "DENSE_ENTRIES", 0)
    found = read_scores(problem, solution(certainty=1.0)).partner
    assert sorted(found) == list(range(150))
    reached, most = (scores[np.arange(150), partner].sum() for partner in (found, best))
    assert reached > 0.98 * most


def test_soft_alignments_claim_no_more_than_85_percent(rng):
    x = 5.0 * np.eye(12)
    found = read_scores(check_problem(x, x), solution(certainty=1.0, temperature=0.1))
    assert found.confidence.tolist() == [0.85] * 12


def test_many_to_one_rows_take_their_best(rng):
    x, y = sides(rng, 30, 4)
    problem = replace(check_problem(x, y), relation="many-to-one")
    reading = read_scores(problem, solution(certainty=0.9, temperature=0.5))
    scores = scores_of(x, y)
    np.testing.assert_array_equal(reading.partner, scores.argmax(1))
    check_reading(reading, scores, heat=0.5, certainty=0.9)


def test_placed_rows_are_read_in_blocks(rng, monkeypatch):
    x, y = sides(rng, 30, 12)
    partner = rng.integers(12, size=30)
    partner[4] = -1
    whole = read_partners((x, y), partner, 0.3, 0.7)
    scores = x @ y.T / (x @ y.T).std()
    check_reading(whole, scores, heat=0.3, certainty=0.7)
    best = read_partners((x, y), None)
    np.testing.assert_array_equal(best.partner, scores.argmax(1))
    monkeypatch.setattr(readout, "BLOCK_ROWS", 30)
    whole = read_partners((x, y), partner, 0.3, 0.7)
    monkeypatch.setattr(readout, "BLOCK_ROWS", 7)
    blocks = read_partners((x, y), partner, 0.3, 0.7)
    np.testing.assert_array_equal(blocks.partner, whole.partner)
    np.testing.assert_array_equal(blocks.runner_up, whole.runner_up)


@pytest.mark.parametrize("n_y", [1, 2, 3, 9])
def test_dense_scores_are_described_as_they_are(n_y, rng):
    scores = rng.standard_normal((12, n_y))
    partner = rng.integers(-1, n_y, size=12)
    reading = read_dense(scores, partner, np.full(12, 0.5))
    if n_y == 1:
        assert (reading.runner_up == -1).all()
        assert np.isnan(reading.margin).all()
        return
    check_reading(reading, scores)
    np.testing.assert_array_equal(reading.confidence, np.where(partner < 0, 0.0, 0.5))


# Evident partners


@pytest.fixture
def registered(rng):
    """80 rows, the same with noise in another order, and 20 strangers on either side."""
    x = rng.standard_normal((80, 6))
    order = rng.permutation(80)
    y = (x + 0.05 * rng.standard_normal((80, 6)))[order]
    strangers = 1.0 * rng.standard_normal((2, 20, 6))
    truth = np.r_[np.argsort(order), np.full(20, -1)]
    return np.r_[x, strangers[0]], np.r_[y, strangers[1]], truth


def test_evident_partners_are_described_by_distances(registered):
    x, y, truth = registered
    reading = read_evident(check_problem(x, y), solution("evident", certainty=0.9))
    assert (reading.partner[:80] == truth[:80]).mean() > 0.95
    assert sorted(reading.partner) == list(range(100))
    root = 0.5**0.5
    moved, target = (root * side.astype(np.float32).astype(np.float64) for side in (x, y))
    distance = np.linalg.norm(moved[:, None] - target[None], axis=2)
    chooser = fit_chooser(np.sort(distance, axis=1)[:, :6])
    for row in range(100):
        partner = reading.partner[row]
        others = np.delete(np.arange(100), partner)
        nearest = others[distance[row, others].argmin()]
        assert reading.runner_up[row] == nearest
        own, other = distance[row, partner], distance[row, nearest]
        assert reading.margin[row] == pytest.approx(other**2 - own**2, abs=1e-3)
        expected = 0.9 * chooser.probability(np.array([own]), np.array([other]))[0]
        assert reading.confidence[row] == pytest.approx(expected, abs=0.02)
    assert reading.confidence[:80].mean() > 0.8
    assert reading.confidence[80:].mean() < 0.2


def test_evident_partners_respect_what_is_known_and_what_is_forbidden(registered):
    x, y, truth = registered
    known = [[0, int(truth[1])]]
    forbidden = [[2, int(truth[2])], [3, int(truth[3])]]
    reading = read_evident(
        check_problem(x, y, known, forbidden=forbidden), solution("evident", certainty=1.0)
    )
    assert reading.partner[0] == truth[1]
    assert reading.partner[2] != truth[2]
    assert reading.partner[3] != truth[3]
    assert (reading.partner[4:80] == truth[4:80]).mean() > 0.95
    assert (reading.partner >= 0).all()  # those that must not have their nearest get another


def test_forbidden_pairs_are_not_made_where_rows_may_be_left_out(registered):
    x, y, truth = registered
    rows = np.arange(5)
    forbidden = np.column_stack([rows, truth[rows]])
    problem = check_problem(x, y, forbidden=forbidden, leave_out=True)
    reading = read_evident(problem, solution("evident", certainty=1.0))
    assert (reading.partner[rows] != truth[rows]).all()
    assert (reading.partner[5:80] == truth[5:80]).mean() > 0.9


def test_strangers_are_left_out_where_rows_may_be(registered):
    x, y, truth = registered
    problem = check_problem(x, y, leave_out=True)
    found = read_match(problem, solution("evident", certainty=1.0))
    assert (found.partner[80:] == -1).mean() > 0.8
    assert (found.partner[:80] == truth[:80]).mean() > 0.9
    out = found.partner < 0
    np.testing.assert_array_equal(found.confidence[out], 0.0)
    assert np.isnan(found.margin[out]).all()
    assert (found.confidence[~out] >= 0.5).all()


# The Match


def test_a_match_holds_what_was_read_and_what_is_known(rng):
    reading = Reading(
        np.array([1, -1, 0]),
        np.array([2, 0, 1]),
        np.array([0.5, 3.0, -0.1]),
        np.array([0.4, 0.9, 1.2]),
    )
    found = to_match(
        reading,
        Evidence({"a": 0.2, "b": 0.6}, agreement=0.3, gap=0.1),
        5,
        known=np.array([[0, 3]]),
        verdict=VERDICT,
        converged=False,
    )
    assert found.partner.tolist() == [3, -1, 0]
    assert found.confidence.tolist() == [1.0, 0.0, 1.0]
    assert found.margin[2] == -0.1
    assert np.isnan(found.margin[1])
    assert (float(found.objective), found.objective.per_start) == (0.6, {"a": 0.2, "b": 0.6})
    assert (found.n_y, found.agreement, found.gap) == (5, 0.3, 0.1)
    assert (found.verdict, found.converged) == (VERDICT, False)
    assert reading.partner.tolist() == [1, -1, 0]  # not changed in place


def test_rows_below_one_half_are_left_out_but_known_ones_stay():
    nobody = np.full(3, -1)
    reading = Reading(np.array([0, 1, 2]), nobody, np.ones(3), np.array([0.49, 0.5, 0.1]))
    found = to_match(reading, Evidence({}), 3, known=np.array([[2, 2]]), leave_out=True)
    assert found.partner.tolist() == [-1, 1, 2]
    assert found.confidence.tolist() == [0.0, 0.5, 1.0]
    assert np.isnan(found.objective)


def test_rows_of_no_weight_get_what_the_others_leave_over(rng):
    x, y = sides(rng, 8, 8)
    weights = np.ones(8), np.ones(8)
    weights[0][[1, 4]], weights[1][[0, 2]] = 0.0, 0.0
    problem = check_problem(x, y, weights=weights)
    found = read_match(problem, solution(certainty=1.0))
    rows_x, rows_y = np.delete(np.arange(8), [1, 4]), np.delete(np.arange(8), [0, 2])
    scores = scores_of(x[rows_x], y[rows_y])
    best = max(itertools.permutations(range(6)), key=lambda p: scores[np.arange(6), p].sum())
    np.testing.assert_array_equal(found.partner[rows_x], rows_y[list(best)])
    rest = x[[1, 4]] @ y[[0, 2]].T
    straight = rest[0, 0] + rest[1, 1] > rest[0, 1] + rest[1, 0]
    assert found.partner[[1, 4]].tolist() == ([0, 2] if straight else [2, 0])
    np.testing.assert_array_equal(found.confidence[[1, 4]], 0.0)
    assert (found.confidence[rows_x] > 0).all()
    left = read_match(
        check_problem(x, y, weights=weights, leave_out=True),
        solution(certainty=1.0),
    )
    assert left.partner[[1, 4]].tolist() == [-1, -1]


def test_known_pairs_of_rows_of_no_weight_stay(rng):
    x, y = sides(rng, 8, 8)
    weights = np.ones(8)
    weights[1] = 0.0
    problem = check_problem(x, y, [[1, 5], [2, 2]], weights=(weights, None))
    found = read_match(problem, solution(certainty=1.0))
    assert found.partner[[1, 2]].tolist() == [5, 2]
    assert sorted(found.partner) == list(range(8))
    assert found.confidence[[1, 2]].tolist() == [1.0, 1.0]


def test_a_claim_makes_probabilities_of_shares_and_known_pairs_stay_certain(rng):
    x, y = sides(rng, 8, 8)
    problem = check_problem(x, y, [[3, 3]])
    plain = read_match(problem, solution(certainty=1.0))
    claimed = read_match(problem, solution(certainty=1.0), VERDICT, lambda share: 0.25 * share)
    free = np.delete(np.arange(8), 3)
    np.testing.assert_allclose(claimed.confidence[free], 0.25 * plain.confidence[free])
    assert claimed.confidence[3] == plain.confidence[3] == 1.0
    assert (claimed.verdict, plain.verdict) == (VERDICT, None)


def test_rows_with_copies_are_right_as_often_as_one_of_them(rng):
    x, y = sides(rng, 9, 9)
    x[5], y[1], y[2] = x[4], y[0], y[0]
    problem = check_problem(x, y)
    found = read_match(problem, solution(certainty=1.0))
    share = read_scores(problem, solution(certainty=1.0)).confidence
    copies_x = np.where(np.isin(np.arange(9), [4, 5]), 2, 1)
    copies_y = np.where(np.arange(9) < 3, 3, 1)[found.partner]
    np.testing.assert_allclose(found.confidence, share / np.maximum(copies_x, copies_y))


@pytest.mark.parametrize("side", ["y", "x"])
def test_equal_rows_push_no_other_row_from_its_partner(side, rng):
    rows = rng.standard_normal((80, 4))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    other = rows.copy()
    other[:20] = [0.8, 0.0, 0.0, 0.0]  # by their scores they would take rows from their partners
    x, y = (rows, other) if side == "y" else (other, rows)
    reading = read_scores(check_problem(x, y), solution(certainty=1.0))
    assert (reading.partner[20:] == np.arange(20, 80)).mean() > 0.95
    assert len(np.unique(reading.partner)) == 80


def test_numbers_of_positions():
    assert numbered(np.array([1, -1, 0]), np.array([7, 9])).tolist() == [9, -1, 7]


def test_scores_of_tensors_on_the_space_are_what_is_read(rng):
    """The space is asked for placed rows of either side, once each."""
    asked = []

    class Shifted(Plain):
        def place(self, rows, side):
            asked.append((side, rows.dtype))
            return rows.flip(1) if side else rows

    x, y = sides(rng, 6, 6)
    reading = read_scores(check_problem(x, y), replace(solution(), space=Shifted()))
    assert asked == [(0, torch.float32), (1, torch.float32)]
    scores = scores_of(x, y[:, ::-1])
    np.testing.assert_array_equal(reading.partner, linear_sum_assignment(-scores)[1])
