"""Profiles: descriptors by loops, alike for rows that look alike from inside their side."""

import numpy as np
import pytest
import torch
from scipy.stats import norm
from torch.nn.functional import normalize

from unpaired.alignment.alternation import standardise
from unpaired.alignment.profiles import (
    N_SCALES,
    N_SMOOTHINGS,
    joined,
    profile_score,
    profile_scores,
    profiles_of,
    rank_gauss,
    raw_profile,
    relative_score,
    with_side_information,
)
from unpaired.views.view import LINEAR, View, fit_view


def clusters(n, rng, d=6):
    """Rows in clusters of unequal size and spread: every row has its own surroundings."""
    centres = 3 * rng.standard_normal((5, d))
    label = rng.choice(5, n, p=[0.4, 0.25, 0.2, 0.1, 0.05])
    return centres[label] + np.linspace(0.3, 1.5, 5)[label][:, None] * rng.standard_normal((n, d))


def as_view(x, y):
    return View(None, None, torch.as_tensor(x).float(), torch.as_tensor(y).float())


def mean_rank(scores, partner):
    """Share of the other side that scores above the partner: 0 = first, 1/2 = chance."""
    scores = np.asarray(scores)
    own = scores[np.arange(len(partner)), partner]
    return (scores > own[:, None]).mean()


def test_ranks_become_normal_scores(rng):
    values = rng.gamma(1.0, size=(7, 2))
    for column in range(2):
        order = np.argsort(np.argsort(values[:, column]))
        expected = norm.ppf((order + 0.5) / 7)
        np.testing.assert_allclose(rank_gauss(values)[:, column], expected)
    tied = rank_gauss(np.array([[1.0], [1.0], [2.0]]))
    assert tied[0] == tied[1] < tied[2]


def test_descriptors_by_loops(rng):
    n = 40
    rows = clusters(n, rng)
    similarity = (rows @ rows.T).astype(np.float32)
    counts = np.round(np.geomspace(2, 0.9 * n, N_SCALES)).astype(int)
    base = []
    for i in range(n):
        rest = np.sort(np.delete(similarity[i], i).astype(np.float64))[::-1]
        tops = np.array([rest[:k].mean() for k in counts])
        centred = rest - rest.mean()
        spread = np.sqrt((centred**2).mean())
        moments = [spread, ((centred / spread) ** 3).mean(), ((centred / spread) ** 4).mean()]
        base.append([*np.diff(tops), *moments])
    base = rank_gauss(np.array(base))
    found = raw_profile(similarity)
    width = base.shape[1]
    assert found.shape == (n, width * (1 + 2 * N_SMOOTHINGS))
    np.testing.assert_allclose(found[:, :width], base, atol=1e-6)
    own = similarity.astype(float)
    np.fill_diagonal(own, -np.inf)
    near = np.argsort(-own, axis=1)[:, :10]
    smooth = np.array([base[near[i]].mean(0) for i in range(n)])
    spread = np.array([base[near[i]].std(0) for i in range(n)])
    for block, expected in ((1, smooth), (2, spread)):
        scores = found[:, block * width : (block + 1) * width]
        np.testing.assert_allclose(scores, rank_gauss(scores), atol=1e-9)
        in_order = np.take_along_axis(expected, np.argsort(scores, axis=0), axis=0)
        assert (np.diff(in_order, axis=0) > -1e-9).all()  # the same neighbours, the same value


def test_profiles_follow_the_rows_and_feel_no_rotation_and_no_scale(rng):
    rows = clusters(90, rng)
    order = rng.permutation(90)
    turned = 5.0 * rows[order] @ np.linalg.qr(rng.standard_normal((6, 6)))[0]
    one, other = raw_profile(rows @ rows.T), raw_profile(turned @ turned.T)
    off = np.abs(other - one[order])
    assert np.median(off) < 1e-6  # single precision may swap two near ranks
    assert off.mean() < 0.01


@pytest.mark.parametrize("n", [3, 5, 12])
def test_few_rows_have_finite_profiles(n, rng):
    rows = rng.standard_normal((n, 2))
    assert np.isfinite(raw_profile(rows @ rows.T)).all()


def test_similarity_is_a_cosine_or_a_product(rng):
    x, y = clusters(50, rng), clusters(40, rng)
    view = as_view(x, y)
    units = [normalize(side).numpy() for side in (view.x, view.y)]
    for found, side in zip(profiles_of(view, directions=True), units, strict=True):
        np.testing.assert_array_equal(found, raw_profile(side @ side.T))
    products = profiles_of(view, directions=False)
    np.testing.assert_array_equal(products[0], raw_profile((view.x @ view.x.T).numpy()))


def test_joined_profiles_have_unit_variance_in_a_common_basis(rng):
    profiles = [(rng.normal(size=(30, 9)), rng.normal(size=(20, 9)) + 0.3) for _ in range(2)]
    x, y = joined(profiles, n_axes=5)
    assert x.shape == (30, 5)
    both = torch.cat([x, y])
    torch.testing.assert_close(both.mean(0), torch.zeros(5).double(), atol=1e-9, rtol=0)
    assert float(both.square().sum(1).mean()) == pytest.approx(1.0)
    raw = np.concatenate([np.concatenate(side, axis=1) for side in zip(*profiles, strict=True)])
    raw = raw - raw.mean(0)
    left, values, _ = np.linalg.svd(raw, full_matrices=False)
    expected = (left * values)[:, :5]
    expected = expected / np.sqrt((expected**2).sum(1).mean())
    np.testing.assert_allclose(both.abs().numpy(), np.abs(expected), atol=1e-8)


def test_scores_are_standardised_closeness(rng):
    x, y = torch.tensor(rng.normal(size=(8, 3))), torch.tensor(rng.normal(size=(6, 3)))
    expected = -(torch.cdist(x, y) ** 2)
    torch.testing.assert_close(profile_score(x, y), standardise(expected).float())
    profiles = [(rng.normal(size=(30, 20)), rng.normal(size=(25, 20)))]
    coarse, fine = (profile_score(*joined(profiles, n)) for n in (8, 16))
    torch.testing.assert_close(profile_scores(profiles), standardise(coarse + fine))


def test_profiles_alone_place_partners_of_a_rotated_copy_first(rng):
    x = clusters(300, rng)
    order = rng.permutation(300)
    y = (x @ np.linalg.qr(rng.standard_normal((6, 6)))[0])[order]
    view = fit_view(LINEAR, torch.tensor(x).float(), torch.tensor(y).float(), rng)
    scores = profile_scores([profiles_of(view, directions=True)])
    assert mean_rank(scores, np.argsort(order)) < 0.02


def test_side_information_joins_and_is_standardised_again(rng):
    scores = standardise(torch.tensor(rng.normal(size=(7, 5))))
    side = standardise(torch.tensor(rng.normal(size=(7, 5))))
    assert with_side_information(scores, None) is scores
    torch.testing.assert_close(with_side_information(scores, side), standardise(scores + side))


# Closeness to known pairs


@pytest.fixture
def sides(rng):
    """A cloud, a rotated noisy copy in another order, and the partner of each row."""
    x = rng.standard_normal((200, 6))
    order = rng.permutation(200)
    y = x @ np.linalg.qr(rng.standard_normal((6, 6)))[0] + 0.1 * rng.standard_normal((200, 6))
    return x, y[order], np.argsort(order)


def test_closeness_to_known_pairs_ranks_other_partners_first(sides):
    x, y, partner = sides
    known = torch.tensor(np.column_stack([np.arange(20), partner[:20]]))
    scores = relative_score([as_view(x, y)], known)
    assert scores.shape == (200, 200)
    assert float(scores.mean()) == pytest.approx(0.0, abs=1e-5)
    assert mean_rank(scores[20:], partner[20:]) < 0.02
    ranks = []
    for shift in range(1, 20):
        wrong = torch.stack([known[:, 0], known[:, 1].roll(shift)], 1)
        ranks.append(mean_rank(relative_score([as_view(x, y)], wrong)[20:], partner[20:]))
    assert np.mean(ranks) > 0.3


def test_closeness_by_hand(rng):
    """Ranks of distances to known rows, in half-whitened principal components, as directions."""
    x, y = rng.standard_normal((30, 4)), rng.standard_normal((25, 3))
    known = np.column_stack([np.arange(5), rng.permutation(25)[:5]])
    sides = []
    for side, rows in enumerate((x, y)):
        gaps = ((rows[:, None] - rows[known[:, side]]) ** 2).sum(2)
        sides.append(rank_gauss(-gaps))
    both = np.concatenate(sides)
    values, axes = np.linalg.eigh(np.cov(both.T, bias=True))
    left, right = ((side - both.mean(0)) @ (axes / values**0.25) for side in sides)
    left, right = (side / np.linalg.norm(side, axis=1, keepdims=True) for side in (left, right))
    expected = left @ right.T
    expected = (expected - expected.mean()) / expected.std()
    found = relative_score([as_view(x, y)], torch.tensor(known))
    np.testing.assert_allclose(found, expected, atol=1e-3)


def test_more_known_pairs_and_more_views_say_more(sides, rng):
    x, y, partner = sides
    view = as_view(x, y)

    def rank(views, count):
        known = torch.tensor(np.column_stack([np.arange(count), partner[:count]]))
        return mean_rank(relative_score(views, known)[count:], partner[count:])

    assert rank([view], 3) > rank([view], 6) > rank([view], 20)
    halves = [as_view(x[:, :3], y), as_view(x[:, 3:], y)]
    assert rank(halves, 20) < min(rank([half], 20) for half in halves)


def test_a_single_known_pair_is_told_by_distance_alone(sides):
    x, y, partner = sides
    scores = relative_score([as_view(x, y)], torch.tensor([[0, partner[0]]]))
    assert torch.isfinite(scores).all()
    assert mean_rank(scores[1:], partner[1:]) < 0.45
