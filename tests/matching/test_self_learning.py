import numpy as np
import pytest
from unpaired.matching.soft import MOSTLY_CONFIRMED
from unpaired.matching.soft_refine import disagreement, map_from_cross, sinkhorn, standardise
from unpaired.matching.views import geodesic_side, linear_side, unit_rows

from unpaired.alignment.self_learning import confirmed_share, csls, mutual_share, self_learn


def test_csls_by_loops(seed):
    scores = np.random.default_rng(seed).random((12, 9)).astype(np.float32)
    k = 3
    expected = np.empty_like(scores)
    for i in range(12):
        for j in range(9):
            row, column = np.sort(scores[i])[-k:].mean(), np.sort(scores[:, j])[-k:].mean()
            expected[i, j] = scores[i, j] - row / 2 - column / 2
    np.testing.assert_allclose(csls(scores, k), expected, atol=1e-6)


def test_mutual_share_by_hand():
    scores = np.array([[3.0, 1.0, 0.0], [2.0, 1.0, 0.0], [0.0, 5.0, 0.0]])
    assert mutual_share(scores) == pytest.approx(2 / 3)


def test_a_rough_map_is_sharpened_where_partners_exist(seed):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((400, 12))
    rotation = np.linalg.qr(rng.standard_normal((12, 12)))[0]
    y = x @ rotation + 0.2 * rng.standard_normal((400, 12))
    rough = x.T @ y / 400 + 0.25 * rng.standard_normal((12, 12))
    learned = self_learn(x, y, rough, rng)
    right = (learned.scores.argmax(1) == np.arange(400)).mean()
    left, other = map_from_cross(rough).power(0.25)
    before = ((unit_rows(x @ left) @ unit_rows(y @ other).T).argmax(1) == np.arange(400)).mean()
    assert right > max(0.95, before)
    assert learned.confirmed > 0.9


def test_accidental_pairs_are_mutual_but_not_confirmed(seed):
    rng = np.random.default_rng(seed)
    x, y = rng.standard_normal((2, 300, 60))
    learned = self_learn(x, y, rng.standard_normal((60, 60)), rng)
    mutual = mutual_share(learned.scores)
    assert learned.confirmed < MOSTLY_CONFIRMED < mutual
    assert confirmed_share(x, x, (x @ x.T).astype(np.float32), rng) > 0.95


def test_known_pairs_pull_the_map(seed):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((200, 6))
    rotation = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    y = x @ rotation
    known = np.column_stack([np.arange(40), np.arange(40)])
    learned = self_learn(x, y, rng.standard_normal((6, 6)), rng, known=known)
    assert (learned.scores.argmax(1) == np.arange(200)).mean() > 0.9


def test_a_few_known_pairs_do_not_bend_the_map(seed):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((300, 40))
    rotation = np.linalg.qr(rng.standard_normal((40, 40)))[0]
    y = x @ rotation + 1.2 * rng.standard_normal((300, 40))
    known = np.column_stack([np.arange(4), np.arange(4)])
    right = []
    for pairs in (None, known):
        learned = self_learn(x, y, x[:60].T @ y[:60], np.random.default_rng(seed), known=pairs)
        right.append((learned.scores.argmax(1) == np.arange(300))[4:].mean())
    assert right[0] > 0.8
    assert right[1] > right[0] - 0.05


def test_disagreement_is_a_mean_rank():
    scores = np.array([[1.0, 0.0, 0.0, 0.0]])
    assert disagreement(scores, np.array([[4.0, 3.0, 2.0, 1.0]])) == 0.0
    assert disagreement(scores, np.array([[2.0, 3.0, 2.5, 1.0]])) == 0.5


def test_plan_sums_and_temperature(seed):
    scores = standardise(np.random.default_rng(seed).random((30, 20)).astype(np.float32))
    plan = sinkhorn(scores.copy(), 0.5, rounds=200)
    np.testing.assert_allclose(plan.sum(0), 1 / 20, rtol=1e-3)
    np.testing.assert_allclose(plan.sum(1), 1 / 30, rtol=1e-3)
    cold = sinkhorn(scores.copy(), 0.05, rounds=200)
    assert cold.max() > plan.max()


@pytest.mark.parametrize("metric", ["correlation", "euclidean"])
def test_geodesic_coordinates_keep_path_distances_and_place_new_rows(metric, seed):
    rng = np.random.default_rng(seed)
    angle = np.sort(rng.uniform(0, 1.5 * np.pi, 300))
    x = np.column_stack([np.cos(angle), np.sin(angle), 0.1 * rng.standard_normal((300, 3))])
    side = geodesic_side(x, metric, rng, k=8)
    np.testing.assert_allclose(side.embed(x[:5]), side.coords[:5], atol=0.15)
    if metric == "euclidean":  # the kernel is -D/2: squared distances are path lengths
        apart = ((side.coords[0] - side.coords[[50, 150, 299]]) ** 2).sum(1)
        assert apart[0] < apart[1] < apart[2]


def test_linear_coordinates_damp_variances(seed):
    x = np.random.default_rng(seed).standard_normal((200, 5)) * np.array([5, 4, 3, 2, 1])
    side = linear_side(x, whiten=0.5)
    np.testing.assert_allclose(side.coords.var(0), 1.0, rtol=0.05)
    np.testing.assert_allclose(side.embed(x[:3]), side.coords[:3])
