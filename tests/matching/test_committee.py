"""The committee: what members see, who is heard, and that nothing depends on how they run."""

import numpy as np
import pytest
from joblib import parallel_config
from unpaired.matching.committee import Answer, ask_member, coherence, draw_members, heard
from unpaired.matching.soft import align_soft
from unpaired.matching.soft_plan import anchor_score, build_view, mean_plan
from unpaired.matching.soft_refine import crosses_of, joint_score, sinkhorn, standardise

from unpaired.matching import committee, soft


@pytest.fixture
def sides():
    rng = np.random.default_rng(0)
    rows = rng.gamma(1.0, size=(120, 6)) @ rng.normal(size=(6, 20))
    return rows[:60], rows[60:] @ rng.normal(size=(20, 24))


def run(x, y, seed=5):
    view = build_view("half", x, y, np.random.default_rng(1))
    first = crosses_of([view.coords], mean_plan([view], None))
    return first, soft._steadied(
        x, y, ["half"], [view.coords], first, np.random.default_rng(seed), None
    )


def test_two_members_share_out_all_columns_and_see_few_rows():
    members = draw_members((5000, 21), (40, 16), np.random.default_rng(0))
    assert len(members) == 2 * committee.N_SPLITS
    for first, second in zip(members[::2], members[1::2], strict=True):
        for side, n_columns in enumerate((21, 16)):
            both = np.concatenate([first.columns[side], second.columns[side]])
            np.testing.assert_array_equal(np.sort(both), np.arange(n_columns))
    assert [len(rows) for rows in members[0].rows] == [committee.MEMBER_ROWS, 40]
    assert len({member.seed for member in members}) == len(members)


def test_no_committee_when_a_side_has_few_columns(sides):
    x, y = sides[0], sides[1][:, : committee.LEAST_COLUMNS - 1]
    assert draw_members(x.shape, y.shape, np.random.default_rng(0)) == []
    first, mean = run(x, y)
    np.testing.assert_array_equal(mean[0], first[0])


def test_the_mean_is_over_own_crosses_and_members_that_agree():
    own = [np.array([[1.0, 0.0]]), np.array([[2.0]])]
    near = [np.array([[0.0, 3.0]]), np.array([[4.0]])]
    wrong = [np.array([[900.0, 900.0]]), np.array([[900.0]])]
    mean = heard(own, [Answer(0.1, near, near), Answer(committee.APART, wrong, wrong)])
    np.testing.assert_allclose(mean[0], [[0.5, 1.5]])
    np.testing.assert_allclose(mean[1], [[3.0]])
    np.testing.assert_array_equal(heard(own, [Answer(0.5, wrong, wrong)])[0], own[0])


def test_coherence_is_one_for_one_mind_and_a_share_for_strangers():
    one, other = np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]])
    assert coherence([[one], [3 * one]]) == pytest.approx(1.0)
    assert coherence([[one], [other], [-one], [-other]]) == pytest.approx(0.0)
    assert coherence([[one], [other]]) == pytest.approx(1 / 2)
    assert coherence([[one, one], [other, one]]) == pytest.approx(3 / 4)  # mean over two views


def test_later_rounds_are_heard_only_while_members_stay_of_one_mind():
    axis = np.eye(3)
    own, first = [np.zeros((1, 3))], [axis[:1]]
    together = [Answer(0.1, first, [axis[1:2]]), Answer(0.1, first, [axis[1:2]])]
    astray = [Answer(0.1, first, [axis[1:2]]), Answer(0.1, first, [axis[2:]])]
    np.testing.assert_allclose(heard(own, together)[0], [[0, 2 / 3, 0]])
    np.testing.assert_allclose(heard(own, astray)[0], [[2 / 3, 0, 0]])


@pytest.fixture
def everything():
    return committee.Member((np.arange(60), np.arange(60)), (np.arange(20), np.arange(24)), 0)


def test_a_member_that_sees_everything_says_the_same_at_first(sides, everything):
    x, y = sides
    view = build_view("half", x, y, np.random.default_rng(1))
    coords, plan = [view.coords], mean_plan([view], None)
    first = crosses_of(coords, plan)
    scores = joint_score(coords, first, 0.25)
    answer = ask_member(x, y, ["half"], coords, scores, everything, None)
    assert answer.apart == 0
    np.testing.assert_allclose(answer.first[0], first[0], atol=1e-12)
    for _ in range(committee.LATER_ROUNDS):  # the same rounds, step by step
        total = standardise(joint_score(coords, crosses_of(coords, plan), 0.25))
        plan = sinkhorn(standardise(total + np.float32(0.5) * anchor_score([view])), 0.25)
    np.testing.assert_allclose(answer.later[0], crosses_of(coords, plan)[0], atol=1e-6)
    assert not np.allclose(answer.later[0], first[0], atol=1e-4)


def test_members_that_see_too_little_are_not_heard(sides):
    x, y = sides
    still = np.concatenate([x[:, :1], np.ones((60, 19))], axis=1)
    first, mean = run(still, y)
    np.testing.assert_array_equal(mean[0], first[0])


def test_members_matter_and_the_seed_decides(sides):
    first, mean = run(*sides)
    np.testing.assert_array_equal(mean[0], run(*sides)[1][0])
    assert not np.allclose(mean[0], first[0])
    assert not np.array_equal(mean[0], run(*sides, seed=6)[1][0])


def test_threads_change_nothing(sides):
    alone = run(*sides)[1][0]
    with parallel_config(backend="threading", n_jobs=2):
        np.testing.assert_array_equal(run(*sides)[1][0], alone)


@pytest.mark.parametrize(
    ("pairs", "trusted", "expected"),
    [(None, False, [True]), (None, True, []), (np.column_stack([np.arange(9)] * 2), False, [])],
)
def test_a_committee_is_asked_where_nothing_is_known_or_trusted(
    sides, monkeypatch, pairs, trusted, expected
):
    calls = []

    def spy(x, y, names, coords, crosses, rng, extra):
        calls.append(len(crosses) == len(coords))
        return crosses

    monkeypatch.setattr(soft, "_steadied", spy)
    monkeypatch.setattr(soft, "vouched", lambda gap, agreement: trusted)
    align_soft(*sides, np.random.default_rng(0), known=pairs, same_items=False)
    assert calls == expected
