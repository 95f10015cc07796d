"""The mean of several answers: what speaks for each, and what pairs alone and runs add."""

import numpy as np
import pytest
import torch

from unpaired.alignment.alternation import place_free
from unpaired.alignment.answers import (
    ANSWERS,
    climbed,
    log_ranks,
    mean_parts,
    numbered_from,
    pairs_alone,
    weights_by,
)
from unpaired.alignment.critics import CanonicalCritic
from unpaired.alignment.refinement import directions
from unpaired.alignment.search import align_softly
from unpaired.evaluation.retrieval import foscttm
from unpaired.plans.plan import make_pairs
from unpaired.spaces.space import Part, Space, join, spread
from unpaired.views.view import View, length_views

CPU = torch.device("cpu")


def tensor(rows):
    return torch.tensor(np.asarray(rows)).float()


def turned(rows, rng):
    size = rows.shape[1]
    return rows @ np.linalg.qr(rng.standard_normal((size, size)))[0]


def paired(count):
    return np.column_stack([np.arange(count)] * 2)


def misleading(rng, n=120):
    """Sides that share two weak columns; the strong ones are like each other by accident only."""
    common = rng.standard_normal((n, 2))
    sides = [np.hstack([common, 3.0 * rng.gamma(1.0, size=(n, 3))]) for _ in "xy"]
    return [tensor(turned(side, rng)) for side in sides]


def test_weights_follow_what_held_out_pairs_say_and_sum_to_one():
    losses = np.array([[1.0, 1.0, 1.0], [2.0, 2.0, 2.0], [90.0, 0.0, 90.0]])
    weights = weights_by(losses)
    assert weights.sum() == pytest.approx(1.0)
    assert weights[0] / weights[1] == pytest.approx(np.exp(3.0 * ANSWERS.rate))
    assert weights[2] == 0.0
    np.testing.assert_allclose(weights_by(losses + 700.0), weights)
    more = weights_by(np.tile(losses[:2], 3))
    assert more[0] > weights[0]  # more pairs say it more clearly


def test_places_are_counted_both_ways_among_the_rows_given(rng):
    x, y = (torch.nn.functional.normalize(tensor(rng.standard_normal((9, 4)))) for _ in "xy")
    eye = torch.eye(4)
    space = Space((), (Part(0, (eye, eye)),), (x, y), n_nearest=3)
    scores = (space.corrected(x, 0) @ space.corrected(y, 1).T).numpy()
    among = [np.array([0, 2, 3, 5, 8]), np.array([1, 2, 4, 7])]
    pairs = np.array([[2, 4], [8, 1]])
    expected = []
    for i, j in pairs:
        forth = 1 + (scores[i, among[1]] > scores[i, j]).sum()
        back = 1 + (scores[among[0], j] > scores[i, j]).sum()
        expected.append((np.log(forth) + np.log(back)) / 2)
    np.testing.assert_allclose(log_ranks(space, pairs, among), expected, atol=1e-12)


def test_scores_of_the_mean_are_the_mean_of_scores_of_one_spread(rng):
    views = [View(None, None, *(tensor(rng.standard_normal((30, 3))) for _ in "xy")) for _ in "ab"]
    eye = torch.eye(3)
    answers = [[Part(0, (eye, eye), weight=5.0)], [Part(1, (eye, eye), weight=0.1)]]

    def scores(parts):
        left, right = (join(parts, [(v.x, v.y)[s] for v in views], s) for s in (0, 1))
        return left @ right.T / (spread(left, right) if len(parts) == 1 else 1.0)

    mean = mean_parts(answers, np.array([0.25, 0.75]), views)
    expected = 0.25 * scores(answers[0]) + 0.75 * scores(answers[1])
    torch.testing.assert_close(scores(mean), expected)
    (only,) = mean_parts(answers, np.array([0.0, 1.0]), views)
    assert only.view == 1


def test_views_are_counted_from_another_number_on():
    eye = torch.eye(2)
    assert [p.view for p in numbered_from([Part(0, (eye, eye)), Part(2, (eye, eye))], 3)] == [3, 5]


def test_lengths_of_rows_are_seen_by_maps_of_the_pairs_alone(seed):
    errors = []
    for trial in range(4):
        rng = np.random.default_rng([seed, 31, trial])
        length = rng.gamma(2.0, size=(150, 1))
        x, y = (tensor(length + 0.05 * rng.standard_normal((150, 1))) for _ in "xy")
        x, y = (torch.cat([side, side], 1) for side in (x, y))  # one direction: lengths are all
        views = length_views(x, y, rng)
        pairs = make_pairs(paired(30), 150, 150, CPU)
        parts = pairs_alone(views[:1], pairs, ANSWERS.ridge)
        (part,) = parts
        embedded = [rows @ m for rows, m in zip((views[0].x, views[0].y), part.maps, strict=True)]
        gaps = (embedded[0][30:] - embedded[1][30:].T).abs()
        errors.append(foscttm(-gaps.numpy()))
    assert np.median(errors) < 0.1


def test_regression_predicts_what_the_other_side_has_more_of(seed):
    """CCA pulls directions up that a few pairs share by accident; a prediction does not."""
    gains = []
    for trial in range(6):
        rng = np.random.default_rng([seed, 35, trial])
        x = rng.standard_normal((200, 4))
        y = np.hstack([x @ rng.standard_normal((4, 3)), 0.3 * rng.standard_normal((200, 40))])
        x, y = tensor(np.hstack([x, 0.3 * rng.standard_normal((200, 40))])), tensor(y)
        views, pairs = length_views(x, y, rng), make_pairs(paired(25), 200, 200, CPU)
        errors = []
        for whitens in ((True, True), (True, False)):
            parts = pairs_alone(views, pairs, ANSWERS.ridge, whitens)
            left = join(parts, [view.x for view in views], 0)[25:]
            right = join(parts, [view.y for view in views], 1)[25:]
            errors.append(foscttm((left @ right.T).numpy()))
        gains.append(errors[0] - errors[1])
    assert np.mean(gains) > 0.0


def runs(rng, n_runs, *, size, noise, n_known):
    """Shares of partners named by maps of the pairs alone, and by the closest of so many runs."""
    x = rng.standard_normal((250, size)) * np.linspace(1.5, 0.7, size)
    x, y = tensor(x), tensor(turned(x, rng) + noise * rng.standard_normal((250, size)))
    pairs = make_pairs(paired(n_known), 250, 250, CPU)
    view = directions(x, y, 64, rng)
    critic = CanonicalCritic([view], pairs)
    placed = place_free(critic, pairs_alone([view], pairs, 10.0))
    found = [placed, place_free(critic, climbed(view, pairs, placed, n_runs, rng))]
    own = torch.arange(250 - n_known)
    return [float(((left @ right.T).argmax(1) == own).float().mean()) for left, right in found]


def test_runs_from_known_pairs_find_the_partners_of_the_rest(seed):
    for trial in range(3):
        rng = np.random.default_rng([seed, 32, trial])
        before, after = runs(rng, 1, size=30, noise=0.8, n_known=6)
        assert before < 0.4
        assert after > 0.9


def test_the_closest_of_several_runs_is_kept(seed):
    one, several = (
        np.mean(
            [
                runs(np.random.default_rng([seed, 34, t]), n, size=24, noise=1.0, n_known=5)[1]
                for t in range(8)
            ]
        )
        for n in (1, 8)
    )
    assert several > one + 0.05


def test_other_rows_that_mislead_have_little_say(seed, monkeypatch):
    errors, alone = [], []
    for trial in range(4):
        x, y = misleading(np.random.default_rng([seed, 33, trial]))
        found = align_softly(x, y, np.random.default_rng(0), known=paired(40))
        errors.append(foscttm(found.space.scores(x[40:], y[40:]).numpy()))
        with monkeypatch.context() as patch:  # what has grown, and nothing beside it
            patch.setattr(
                "unpaired.alignment.search.weights_by", lambda losses: np.eye(len(losses))[0]
            )
            grown = align_softly(x, y, np.random.default_rng(0), known=paired(40))
        alone.append(foscttm(grown.space.scores(x[40:], y[40:]).numpy()))
    assert np.mean(errors) < np.mean(alone) - 0.02
