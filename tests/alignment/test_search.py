"""Soft alignment: groups without pairs, few pairs, starts, side information, and what is read."""

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

from unpaired.alignment.alternation import alternate
from unpaired.alignment.answers import mean_parts
from unpaired.alignment.critics import CanonicalCritic, Step
from unpaired.alignment.profiles import profile_scores, profiles_of
from unpaired.alignment.refinement import REFINEMENT
from unpaired.alignment.search import (
    GROWTH,
    HANDFUL,
    MORE_FOLDS,
    N_FOLDS,
    N_NEAREST,
    READ_TEMPERATURES,
    SEARCH,
    VIEWS,
    Clues,
    align_softly,
    profile_plan,
)
from unpaired.alignment.starts import JOINT, OWN
from unpaired.evaluation.retrieval import foscttm
from unpaired.plans.plan import dense_plan, make_pairs
from unpaired.views.view import fit_view

CPU = torch.device("cpu")


def groups(rng, n_groups=4, n_each=30, d=5):
    """Two views that share groups and nothing finer."""
    centres = rng.standard_normal((n_groups, d)) * np.linspace(4.0, 2.0, n_groups)[:, None]
    group = rng.permutation(np.repeat(np.arange(n_groups), n_each))
    order = rng.permutation(len(group))
    x, y = (centres[group] + rng.standard_normal((len(group), d)) for _ in "xy")
    rotation = np.linalg.qr(rng.standard_normal((d, d)))[0]
    return tensor(x), tensor((y @ rotation)[order]), group, group[order]


def copies(rng, n=160, noise=0.5, d=9):
    """A cloud and a rotated noisy copy of it, row by row."""
    x = rng.standard_normal((n, d)) * np.linspace(1.5, 0.5, d)
    turn = np.linalg.qr(rng.standard_normal((d, d)))[0]
    return tensor(x), tensor(x @ turn + noise * rng.standard_normal((n, d)))


def tensor(rows):
    return torch.tensor(rows).float()


def paired(count):
    return np.column_stack([np.arange(count), np.arange(count)])


def right_groups(found, x, y, group_x, group_y):
    best = found.space.scores(x, y).argmax(1).numpy()
    return (group_y[best] == group_x).mean()


def test_groups_are_found_without_a_single_pair(seed):
    shares = []
    for trial in range(3):
        x, y, *group = groups(np.random.default_rng([seed, trial]), n_groups=6, d=8)
        found = align_softly(x, y, np.random.default_rng(0))
        shares.append(right_groups(found, x, y, *group))
        assert 0.0 <= found.evidence.agreement <= 1.0
        assert found.evidence.gap > 0.2
        assert set(found.evidence.reached) == {
            f"{view}, {start} profile" for view in VIEWS for start in (OWN, JOINT)
        }
    assert np.median(shares) > 0.6  # chance is 1/6; two groups in each other's place leave 2/3


@pytest.mark.parametrize(("count", "n_rounds"), [(0, 1), (4, 4), (7, 4), (8, 14), (20, 14)])
def test_how_many_pairs_are_known_decides_the_schedule(count, n_rounds, rng):
    x, y = copies(rng, 80)
    found = align_softly(x, y, rng, known=paired(count), n_searches=0)
    assert len(found.history) == n_rounds
    assert found.kind == ("known pairs" if count else "profiles")
    assert found.temperature == READ_TEMPERATURES[found.kind]
    assert {1, len(HANDFUL.temperatures), len(GROWTH.temperatures)} == {1, 4, 14}


def test_known_pairs_help_rows_that_are_not_among_them(seed):
    errors = []
    for count in (4, 8, 30):
        x, y = copies(np.random.default_rng([seed, 5]))
        found = align_softly(x, y, np.random.default_rng(0), known=paired(count), n_searches=0)
        errors.append(foscttm(found.space.scores(x[30:], y[30:]).numpy()))
    assert errors[2] < 0.1
    assert errors[2] <= errors[1] + 0.02
    assert errors[1] < 0.35


@pytest.mark.parametrize("count", [8, 75, 79])
def test_any_number_of_known_pairs_is_held_out_once(count, rng):
    x, y = copies(rng, 80)
    found = align_softly(x, y, rng, known=paired(count))
    assert len(found.evidence.held_out) == count
    assert all(
        0.0 <= pair.rank <= 1.0 and 0.0 < pair.share <= 1.0 for pair in found.evidence.held_out
    )
    assert torch.isfinite(found.space.scores(x, y)).all()


def test_a_pair_has_no_say_in_what_answers_count_where_it_is_held_out(rng, monkeypatch):
    told = []

    def weigh(losses):
        told.append(losses)
        return np.full(len(losses), 1.0 / len(losses))

    monkeypatch.setattr("unpaired.alignment.search.weights_by", weigh)
    x, y = copies(rng, 80)
    align_softly(x, y, rng, known=paired(20))
    *without, whole = told
    assert whole.shape == (6, 20)
    assert [losses.shape[1] for losses in without] == [13, 13, 14]
    assert sum(losses.sum() for losses in without) == pytest.approx(2.0 * whole.sum())


@pytest.mark.parametrize(("count", "n_folds"), [(8, MORE_FOLDS), (30, N_FOLDS)])
def test_fits_without_some_pairs_count_together_as_much_as_the_one_with_all(
    count, n_folds, rng, monkeypatch
):
    made = []

    def spy(answers, weights, views):
        made.append(mean_parts(answers, weights, views))
        return made[-1]

    monkeypatch.setattr("unpaired.alignment.search.mean_parts", spy)
    x, y = copies(rng, 80)
    found = align_softly(x, y, rng, known=paired(count))
    *without, whole = made
    assert len(without) == n_folds
    expected = [part.weight for part in whole]
    expected += [part.weight / n_folds for parts in without for part in parts]
    assert [part.weight for part in found.space.parts] == pytest.approx(expected)


def test_side_information_decides_where_geometry_does_not(seed):
    rng = np.random.default_rng([seed, 8])
    x, y = tensor(rng.standard_normal((80, 4))), tensor(rng.standard_normal((80, 4)))
    side = torch.eye(80) + 0.2 * tensor(rng.standard_normal((80, 80)))
    side = (side - side.mean()) / side.std()
    errors = [
        foscttm(
            align_softly(x, y, np.random.default_rng(0), similarity=given, n_searches=0)
            .space.scores(x, y)
            .numpy()
        )
        for given in (None, 3.0 * side)
    ]
    assert errors[0] > 0.35
    assert errors[1] < errors[0] - 0.1


def test_refinement_is_kept_where_both_sides_are_one_geometry(seed):
    rng = np.random.default_rng([seed, 9])
    x = tensor(rng.gamma(1.0, size=(300, 8)) * np.linspace(2.0, 0.7, 8))
    turn = tensor(np.linalg.qr(rng.standard_normal((8, 8)))[0])
    y = x @ turn + 0.05 * tensor(rng.standard_normal((300, 8)))
    found = align_softly(x, y, np.random.default_rng(0))
    assert found.kind == "refined"
    assert found.temperature == READ_TEMPERATURES["refined"]
    assert found.space.n_nearest == N_NEAREST
    assert found.evidence.confirmed > 0.75
    (note,) = found.notes
    assert note.startswith("Refinement on random samples was kept")
    assert found.evidence.surprise >= REFINEMENT.surprise
    assert foscttm(found.space.scores(x, y).numpy()) < 0.01
    plain = align_softly(x, y, np.random.default_rng(0), n_searches=0)
    assert plain.kind == "profiles"
    assert plain.notes == []
    assert np.isnan(plain.evidence.confirmed)


def test_the_first_plan_is_the_mean_of_profiles_and_of_one_step_from_them(rng):
    x, y, *_ = groups(rng, n_each=15)
    views = [fit_view(name, x, y, rng) for name in VIEWS]
    profiles = [profiles_of(view, directions=number == 0) for number, view in enumerate(views)]
    clues = Clues(views, profiles, None)
    torch.testing.assert_close(clues.scores(), profile_scores(profiles))
    plan = profile_plan(clues, make_pairs(None, 60, 60, CPU))
    torch.testing.assert_close(plan.shares.sum(1), torch.ones(60))
    before = dense_plan(clues.scores(), SEARCH.temperature)
    step = Step(SEARCH.temperature, power=SEARCH.power, held=SEARCH.profile_weight)
    pairs = make_pairs(None, 60, 60, CPU)
    (after,) = alternate(CanonicalCritic(views, pairs), [step], before, held=clues.scores())
    torch.testing.assert_close(plan.shares, (before.shares + after.plan.shares) / 2)
    assert not torch.allclose(before.shares, after.plan.shares)
    alone = profile_plan(Clues(views[:1], profiles[:1], None), make_pairs(None, 60, 60, CPU))
    assert not torch.allclose(plan.shares, alone.shares)


def test_sides_of_unequal_size_and_width(rng):
    x, y = tensor(rng.standard_normal((70, 5))), tensor(rng.standard_normal((55, 12)))
    found = align_softly(x, y, rng, known=np.array([[69, 54]]))
    assert found.space.scores(x, y).shape == (70, 55)
    assert torch.isfinite(found.space.scores(x, y)).all()


def test_the_same_generator_gives_the_same_bits(rng):
    x, y = copies(rng, 80)
    one, two = (align_softly(x, y, np.random.default_rng(4), known=paired(3)) for _ in range(2))
    assert torch.equal(one.space.scores(x, y), two.space.scores(x, y))
    assert one.evidence.reached == two.evidence.reached
    rows = normalize(x)
    assert torch.equal(one.space.embed(rows, 0), two.space.embed(rows, 0))
