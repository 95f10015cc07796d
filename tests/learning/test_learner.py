"""The learner: what networks learn from, how a schedule runs, and that each constant is used."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from unpaired.alignment import alternation, critics
from unpaired.alignment.critics import CanonicalCritic, PeakWeight, Step
from unpaired.learning import learner
from unpaired.learning.learner import UNSURE, LearnedCritic, LearnerConfig, learn
from unpaired.learning.towers import TowerConfig
from unpaired.plans.plan import DensePlan, Pairs, SparsePlan, hard_plan, make_pairs
from unpaired.views.features import fit_features
from unpaired.views.view import View

CPU = torch.device("cpu")
FAST = LearnerConfig(n_rounds=3, towers=TowerConfig(n_epochs=2, hidden=(16,)))


def two_views(n, seed=0, noise=0.3, d=6):
    """Two linear views of the same factors with noise, as tensors."""
    rng = np.random.default_rng(seed)
    factors = rng.standard_normal((n, d)) * np.linspace(1.5, 0.7, d)
    sides = (
        factors @ rng.standard_normal((d, width)) + noise * rng.standard_normal((n, width))
        for width in (10, 8)
    )
    return tuple(torch.tensor(side, dtype=torch.float32) for side in sides)


def aligned(n: int, n_known: int, **options) -> Pairs:
    return make_pairs(np.column_stack([np.arange(n_known)] * 2), n, n, CPU, **options)


@pytest.fixture(scope="module")
def views():
    return two_views(90)


@pytest.fixture(scope="module")
def learned(views):
    return learn(*views, aligned(90, 30), FAST, 0)


# What networks learn from


@pytest.fixture
def pairs() -> Pairs:
    """Two images, the first with two captions; rows 2 and 3 of x and 3 and 4 of y are free."""
    return make_pairs(np.array([[0, 0], [0, 1], [1, 2]]), 4, 5, CPU)


@pytest.fixture
def plan() -> SparsePlan:
    return SparsePlan(
        torch.tensor([0, 0, 1]),
        torch.tensor([0, 1, 1]),
        torch.tensor([0.25, 0.75, 1.0]),
        (2, 2),
    )


def critic_of(x, y, pairs, config) -> LearnedCritic:
    """A critic on one linear view of both sides."""
    rng = np.random.default_rng(0)
    map_x, map_y = (fit_features(side, rng, max_rank=50) for side in (x, y))
    views = [View(map_x, map_y, map_x(x), map_y(y))]
    closed = CanonicalCritic(views, pairs, config.peak_weight, config.width)
    return LearnedCritic(closed, config, 0, lambda step: None)


def taught(monkeypatch, critic, plan, step) -> list[tuple]:
    """What every network is given: x, y, pairs, start, noise, weights and seed."""
    given = []

    def train(x, y, pairs, start, noise, config, *, seed, weights, on_epoch):
        given.append((x, y, pairs, start, noise, weights, seed))
        return learner_train(
            x, y, pairs, start, noise, config, seed=seed, weights=weights, on_epoch=on_epoch
        )

    learner_train = learner.train_towers
    monkeypatch.setattr(learner, "train_towers", train)
    critic(plan, step)
    return given


def test_each_free_row_is_paired_with_its_expected_partner(pairs, plan, monkeypatch, rng):
    x, y = (torch.tensor(rng.standard_normal((n, 3)), dtype=torch.float32) for n in (4, 5))
    config = replace(FAST, peak_weight=PeakWeight(0.4, 0.1))
    critic = critic_of(x, y, pairs, config)
    (_, given_y, seen, _, _, weights, _), second = taught(
        monkeypatch, critic, plan, Step(0.1, 2.0, networks=True)
    )
    assert seen.tolist() == [[0, 0], [0, 1], [1, 2], [2, 5], [3, 6]]
    soft = [config.soft_share * 0.4 * peak / (peak + 0.1) for peak in (0.75, 1.0)]
    assert weights.tolist() == pytest.approx([0.5, 0.5, 1.0, *soft])
    torch.testing.assert_close(given_y[5], 0.25 * given_y[3] + 0.75 * given_y[4])
    torch.testing.assert_close(given_y[6], given_y[4])
    assert second[2].tolist() == seen.tolist()


def test_without_a_plan_known_pairs_are_all(pairs, monkeypatch, rng):
    x, y = (torch.tensor(rng.standard_normal((n, 3)), dtype=torch.float32) for n in (4, 5))
    critic = critic_of(x, y, pairs, FAST)
    (first, _) = taught(monkeypatch, critic, None, Step(0.1, 2.0, networks=True))
    assert first[2].tolist() == pairs.known.tolist()
    assert first[5].tolist() == [0.5, 0.5, 1.0]


def test_inputs_are_white_up_to_the_ridge_and_noise_stands_for_it(views, monkeypatch):
    critic = critic_of(*views, aligned(90, 30), FAST)
    (given, _) = taught(monkeypatch, critic, None, Step(0.1, 2.0, networks=True))
    view = critic.views[0]
    sides = ((view.x, view.map_x.variances), (view.y, view.map_y.variances))
    for side, (rows, variances) in enumerate(sides):
        ridge = FAST.tower_ridges[side] * 2.0 / 30
        scale = 1.0 / (variances + ridge).sqrt()
        torch.testing.assert_close(given[side], rows * scale)
        torch.testing.assert_close(given[4][side], ridge**0.5 * scale)
        spread = given[side].var(0, unbiased=False) + given[4][side] ** 2
        torch.testing.assert_close(spread, torch.ones_like(spread), rtol=1e-3, atol=1e-3)


def test_networks_learn_from_soft_pairs():
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(200, 20, generator=generator)
    y = x @ torch.linalg.qr(torch.randn(20, 20, generator=generator)).Q
    y = y + 0.5 * torch.randn(200, 20, generator=generator)
    pairs, rest = aligned(200, 5), torch.arange(5, 200)
    truth = hard_plan(np.arange(195), 195, CPU)
    critic = critic_of(x, y, pairs, replace(FAST, n_towers=1))

    def right(plan) -> float:
        parts, _ = critic(plan, Step(0.1, 2.0, networks=True))
        with torch.no_grad():
            left = parts[-1].embed(critic.views[0].x[rest], 0)
            score = left @ parts[-1].embed(critic.views[0].y[rest], 1).T
        return float((score.argmax(1) == torch.arange(195)).float().mean())

    assert right(truth) > right(None) + 0.1


def test_two_networks_begin_from_other_weights_and_learn_other_maps(learned, views):
    first, second = (part for part in learned.solution.space.parts if part.towers is not None)
    for side in (0, 1):
        weights = [part.towers[side].residual[0].weight for part in (first, second)]
        assert float((weights[0] - weights[1]).abs().max()) > 0.01
        own = [part.towers[side].linear for part in (first, second)]
        assert float((own[0] - own[1]).abs().max()) > 1e-5


def test_the_seed_of_the_learner_decides_its_networks(views):
    pairs = aligned(90, 90)
    scores = [learn(*views, pairs, FAST, seed).solution.space.scores(*views) for seed in (0, 0, 1)]
    assert torch.equal(scores[0], scores[1])
    assert float((scores[0] - scores[2]).abs().max()) > 1e-3


@pytest.mark.parametrize("hidden", [(), (16,), (16, 8)])
def test_networks_have_the_layers_that_were_asked_for(hidden, views):
    config = replace(FAST, towers=TowerConfig(n_epochs=1, hidden=hidden))
    space = learn(*views, aligned(90, 90), config, 0).solution.space
    towers = [tower for part in space.parts if part.towers for tower in part.towers]
    assert len(towers) == 2 * config.n_towers
    for tower in towers:
        layers = [m for m in tower.modules() if isinstance(m, torch.nn.Linear)]
        assert [layer.out_features for layer in layers[:-1]] == list(hidden)


# The schedule


def test_temperatures_fall_and_belief_rises_by_half_way():
    steps = learner._schedule(LearnerConfig(), 2.0, skipped=0)
    heats = np.array([step.temperature for step in steps])
    assert (heats[0], heats[-1]) == pytest.approx((0.8, 0.13))
    np.testing.assert_allclose(heats[1:] / heats[:-1], (0.13 / 0.8) ** (1 / 8))
    beliefs = [step.belief for step in steps]
    assert beliefs == pytest.approx([0.9 * min(1.0, 2 * i / 9) for i in range(9)])
    assert {step.ridge for step in steps} == {2.0}
    assert not any(step.networks for step in steps)


def test_a_start_stands_for_the_first_steps():
    whole = learner._schedule(LearnerConfig(), 2.0, skipped=0)
    assert learner._schedule(LearnerConfig(), 2.0, skipped=3) == whole[3:]
    short = learner._schedule(replace(FAST, n_rounds=2), 2.0, skipped=3)
    assert [step.temperature for step in short] == pytest.approx([0.13])
    assert learner._schedule(replace(FAST, n_rounds=0), 2.0, skipped=3) == []


@pytest.fixture
def plans(monkeypatch):
    """All plans that alternations make, with their temperatures."""
    made = []
    plan_of = alternation.plan_of

    def recorded(left, right, temperature, *, balanced=True):
        made.append((temperature, balanced, plan_of(left, right, temperature, balanced=balanced)))
        return made[-1][2]

    monkeypatch.setattr(alternation, "plan_of", recorded)
    return made


def test_plans_are_made_at_the_temperatures_of_the_schedule(plans, views):
    found = learn(*views, aligned(90, 30), FAST, 0)
    heats = [heat for heat, _, _ in plans]
    assert heats == pytest.approx([*np.geomspace(0.8, 0.13, 3), 0.13])
    peaks = [float(plan.peaks().mean()) for _, _, plan in plans]
    assert np.all(np.diff(peaks[:-1]) > 0.02)  # plans grow sharper as they cool
    told = [entry["confidence"] for entry in found.solution.history if "confidence" in entry]
    assert told == pytest.approx(peaks)
    for step, (_, _, plan) in zip(found.trace, plans, strict=True):
        np.testing.assert_array_equal(step, plan.partners().numpy())


def test_one_to_one_every_row_of_y_has_the_same_load(plans):
    x, y = two_views(90)
    known = np.column_stack([np.arange(20)] * 2)
    learn(x, y[:55], make_pairs(known, 90, 55, CPU), FAST, 0)
    for _, balanced, plan in plans:
        assert balanced
        loads = plan.loads(torch.ones(70))
        assert loads.shape == (35,)
        torch.testing.assert_close(loads, torch.full((35,), 2.0), rtol=0.05, atol=0.05)


def test_many_to_one_rows_of_y_take_what_is_theirs(plans):
    rng = np.random.default_rng(0)
    sizes = [60, 20, 10]
    truth = np.repeat(np.arange(3), sizes)
    centres = 3.0 * rng.standard_normal((3, 6))
    x = torch.tensor(centres[truth] + 0.3 * rng.standard_normal((90, 6)), dtype=torch.float32)
    y = torch.tensor(centres @ rng.standard_normal((6, 5)), dtype=torch.float32)
    rows = np.r_[0:3, 60:63, 80:83]
    known = np.column_stack([rows, truth[rows]])
    learn(x, y, make_pairs(known, 90, 3, CPU, many_to_one=True), FAST, 0)
    _, balanced, plan = plans[-1]
    assert not balanced
    np.testing.assert_allclose(plan.loads(torch.ones(81)), [57, 17, 7], atol=2.0)


def test_the_ridge_falls_with_the_number_of_pairs(views, monkeypatch):
    """The ridge of every closed form is that of one pair over the pairs that were seen."""
    asked = []
    canonical_maps = critics.canonical_maps

    def recorded(moments, ridges, **options):
        asked.append((moments.n_pairs, ridges))
        return canonical_maps(moments, ridges, **options)

    monkeypatch.setattr(critics, "canonical_maps", recorded)
    config = replace(FAST, ridge=3.0, keeps_ridge=True, towers=TowerConfig(n_epochs=0))
    learn(*views, aligned(90, 30), config, 0)
    linear, kernel = asked[::2], asked[1::2]
    assert len(linear) == 4
    assert linear[0][0] == kernel[0][0] == pytest.approx(30.0)
    counts = [count for count, _ in kernel]
    assert min(counts[1:]) > 30.0
    for count, ridges in kernel:
        assert ridges == pytest.approx((3.0 / count,) * 2)
    for count, ridges in linear:
        assert ridges == pytest.approx((3.0 / count + config.linear_ridge,) * 2)


@pytest.mark.parametrize("keeps_ridge", [False, True])
def test_a_ridge_that_is_given_is_taken_as_it_is(keeps_ridge, views, monkeypatch):
    asked = []

    def choose(views, pairs, solve, rng):
        asked.append(len(views))
        return 0.1

    monkeypatch.setattr(learner, "choose_ridge_factor", choose)
    steps = []
    monkeypatch.setattr(
        CanonicalCritic,
        "__call__",
        lambda self, plan, step, call=CanonicalCritic.__call__: (
            steps.append(step.ridge) or call(self, plan, step)
        ),
    )
    config = replace(FAST, keeps_ridge=keeps_ridge, towers=TowerConfig(n_epochs=0))
    learn(*views, aligned(90, 30), config, 0)
    assert asked == ([] if keeps_ridge else [2])
    assert steps == pytest.approx([2.0 if keeps_ridge else 0.2] * 4)


def test_soft_pairs_count_by_the_peaks_of_their_rows(rng):
    """Moments written out: known pairs, and expected partners weighed by trust."""
    x, y = (torch.tensor(rng.standard_normal((9, 3)), dtype=torch.float32) for _ in "xy")
    pairs = aligned(9, 4)
    shares = torch.softmax(torch.tensor(rng.standard_normal((5, 5)) * 3), 1).float()
    critic = critic_of(x, y, pairs, replace(FAST, peak_weight=PeakWeight(0.6, 0.2)))
    (found,) = critic.closed.moments(DensePlan(shares))
    view = critic.views[0]
    cross = sum(torch.outer(view.x[i], view.y[i]) for i in range(4))
    total = 4.0
    for row in range(5):
        peak = float(shares[row].max())
        weight = 0.6 * peak / (peak + 0.2)
        total += weight
        for column in range(5):
            product = torch.outer(view.x[4 + row], view.y[4 + column])
            cross = cross + weight * shares[row, column] * product
    torch.testing.assert_close(found.cross, cross, rtol=1e-4, atol=1e-5)
    assert found.n_pairs == pytest.approx(total, rel=1e-5)


# What a fit leaves behind


@pytest.mark.parametrize(("n_known", "n_steps"), [(30, 4), (90, 1)])
def test_history_has_an_entry_for_each_step_and_epoch_and_each_is_told(n_known, n_steps, views):
    told = []
    found = learn(*views, aligned(90, n_known), FAST, 0, on_step=told.append)
    history = found.solution.history
    assert told == history
    assert [entry["step"] for entry in history] == list(range(len(history)))
    assert sum("loss" in entry for entry in history) == FAST.n_towers * FAST.towers.n_epochs
    assert sum("dependence" in entry for entry in history) == n_steps
    assert len(found.trace) == (n_steps if n_known < 90 else 0)
    changed = [entry["changed"] for entry in history if "changed" in entry]
    by_hand = [1.0] + [
        float((b != a).mean()) for a, b in zip(found.trace, found.trace[1:], strict=False)
    ]
    assert changed == pytest.approx(by_hand if n_known < 90 else [])
    reached = found.solution.evidence.reached["known pairs"]
    assert reached == [entry["dependence"] for entry in history if "dependence" in entry][-1]


def test_closed_forms_in_two_views_and_networks_on_the_second(learned):
    space = learned.solution.space
    assert [part.view for part in space.parts] == [0, 1] + [1] * FAST.n_towers
    assert [part.towers is None for part in space.parts] == [True, True, False, False]
    assert space.features[0][0].landmarks is None
    assert space.features[1][0].landmarks is not None
    assert space.n_nearest == FAST.n_nearest


def test_cosines_of_all_parts_count_alike(learned):
    assert [part.weight for part in learned.solution.space.parts] == [1.0] * 4
    assert all(part.penalty is None for part in learned.solution.space.parts)


def test_a_start_begins_where_it_says(views):
    """From all the true partners the first plan is nearly right; from wrong ones it is not."""
    pairs, right = aligned(90, 9), np.arange(81)
    first = []
    for partner in (right, np.roll(right, 11)):
        start = hard_plan(partner, 81, CPU)
        found = learn(*views, pairs, FAST, 0, start=start)
        first.append(float((found.trace[0] == right).mean()))
    assert first[0] > first[1] + 0.3


def test_too_few_pairs_to_choose_a_temperature_are_unsure(views):
    assert learn(*views, aligned(90, 7), FAST, 0).solution.temperature == UNSURE
    heat = learn(*views, aligned(90, 60), FAST, 0).solution.temperature
    assert heat in learner.choose_temperature.__globals__["TEMPERATURES"]


def test_soft_rounds_beat_known_pairs_alone():
    x, y = two_views(240, noise=0.2, d=8)
    pairs = aligned(240, 16)
    right = []
    for weight in (0.0, 0.4):
        config = replace(
            LearnerConfig(),
            peak_weight=PeakWeight(weight),
            towers=TowerConfig(n_epochs=0),
            n_rounds=9,
        )
        found = learn(x, y, pairs, config, 0)
        right.append(float((found.trace[-1] == np.arange(224)).mean()))
    assert right[1] > right[0] + 0.05
