"""Each method against an independent formula, a slow loop or another package."""

import numpy as np
import pytest
import torch
from sklearn.cross_decomposition import CCA as SklearnCCA

from unpaired.baselines.asif import ASIF, relative_rows
from unpaired.baselines.cca import CCA
from unpaired.baselines.closed_form import cca_fit, choose_ridges
from unpaired.baselines.corrnet import component_correlation
from unpaired.baselines.deep_cca import DeepCCA, total_correlation
from unpaired.baselines.devise import hinge_rank_loss
from unpaired.baselines.hsic_cca import adaptive_gram
from unpaired.baselines.infonce import info_nce
from unpaired.baselines.inputs import hold_out, mean_reciprocal_rank, pair_moments, principal
from unpaired.baselines.kcca import KernelCCA
from unpaired.baselines.procrustes import Procrustes, orthogonal_maps
from unpaired.baselines.rematch import best_pairs, one_to_one
from unpaired.baselines.revise import MMD_WIDTHS, mmd
from unpaired.baselines.ridge import RidgeMap
from unpaired.baselines.two_way import ranking_loss


@pytest.fixture
def views(rng):
    factors = rng.standard_normal((300, 3))
    x = factors @ rng.standard_normal((3, 6)) + rng.standard_normal((300, 6))
    y = factors @ rng.standard_normal((3, 5)) + rng.standard_normal((300, 5))
    return x, y


def component_correlations(a, b, k):
    return np.array([abs(np.corrcoef(a[:, i], b[:, i])[0, 1]) for i in range(k)])


def raw_maps(model, x, y):
    """Embeddings before they are scaled to unit length."""
    return model._map(x, 0), model._map(y, 1)


def test_cca_finds_the_correlations_of_scikit_learn(views):
    x, y = views
    ours = CCA(ridge_x=0.0, ridge_y=0.0, n_components=3, power=0.0).fit(x, y, "aligned")
    theirs = SklearnCCA(3, max_iter=5000, tol=1e-10).fit(x, y).transform(x, y)
    np.testing.assert_allclose(
        component_correlations(*raw_maps(ours, x, y), 3),
        component_correlations(*theirs, 3),
        atol=1e-3,
    )
    np.testing.assert_allclose(
        ours.correlations_, component_correlations(*raw_maps(ours, x, y), 3), atol=1e-6
    )


def test_regularised_cca_solves_the_generalised_eigenproblem(views):
    from scipy.linalg import eigh

    x, y = (v - v.mean(0) for v in views)
    c_xx, c_yy, c_xy = x.T @ x / 300, y.T @ y / 300, x.T @ y / 300
    r_xx = c_xx + 0.3 * np.trace(c_xx) / 6 * np.eye(6)
    r_yy = c_yy + 0.1 * np.trace(c_yy) / 5 * np.eye(5)
    left = np.block([[np.zeros((6, 6)), c_xy], [c_xy.T, np.zeros((5, 5))]])
    right = np.block([[r_xx, np.zeros((6, 5))], [np.zeros((5, 6)), r_yy]])
    values = eigh(left, right, eigvals_only=True)[::-1][:5]
    model = CCA(ridge_x=0.3, ridge_y=0.1).fit(x, y, "aligned")
    np.testing.assert_allclose(model.correlations_, values, atol=1e-8)


def test_cca_agrees_with_cca_zoo(views):
    linear = pytest.importorskip("cca_zoo.linear")
    x, y = views
    ours = CCA(ridge_x=0.0, ridge_y=0.0, n_components=3, power=0.0).fit(x, y, "aligned")
    theirs = linear.CCA(n_components=3).fit([x, y]).transform([x, y])
    np.testing.assert_allclose(
        component_correlations(*raw_maps(ours, x, y), 3),
        component_correlations(*theirs, 3),
        atol=1e-3,
    )


def test_kernel_cca_agrees_with_cca_zoo(rng):
    nonparametric = pytest.importorskip("cca_zoo.nonparametric")
    angle = rng.uniform(0, 2 * np.pi, 80)
    x = np.c_[np.cos(angle), np.sin(angle)] + 0.1 * rng.standard_normal((80, 2))
    y = np.c_[angle / 3, rng.standard_normal(80)]
    shrinkage, gamma = 0.1, 0.5  # sigma = 1
    theirs = nonparametric.KCCA(n_components=2, kernel="rbf", gamma=gamma, shrinkage=shrinkage)
    their_x, their_y = theirs.fit([x, y]).transform([x, y])
    # Theirs: (1 - c) Cov + c I with n - 1 below; ours: Cov + ridge * mean variance of the features.
    params = {"bandwidth_x": 1.0, "bandwidth_y": 1.0, "n_components": 2, "power": 0.0}
    first = KernelCCA(**params, random_state=0).fit(x, y, "aligned")
    ridges = {}
    for view, (name, rows) in enumerate((("x", x), ("y", y))):
        variances = (first._features(rows, view) ** 2).mean(0)
        ridges[f"ridge_{name}"] = shrinkage / (1 - shrinkage) * 79 / 80 / variances.mean()
    ours = KernelCCA(**params, **ridges, random_state=0).fit(x, y, "aligned")
    np.testing.assert_allclose(
        component_correlations(*raw_maps(ours, x, y), 2),
        component_correlations(their_x, their_y, 2),
        atol=1e-3,
    )


def test_landmarks_come_near_the_exact_kernel(rng):
    x = rng.standard_normal((150, 2))
    y = np.c_[np.sin(x[:, 0]), x[:, 1] ** 2] + 0.05 * rng.standard_normal((150, 2))
    exact, near = (
        KernelCCA(n_components=3, ridge_x=0.1, ridge_y=0.1, n_landmarks=m, random_state=0)
        .fit(x, y, "aligned")
        .correlations_
        for m in (150, 100)
    )
    np.testing.assert_allclose(exact, near, atol=0.05)


def test_ridge_regression_is_that_of_scikit_learn(views):
    from sklearn.linear_model import Ridge

    x, y = views
    centred = x - x.mean(0)
    alpha = 0.5 * np.trace(centred.T @ centred) / 6
    theirs = Ridge(alpha=alpha).fit(x, y).predict(x) - y.mean(0)
    ours = RidgeMap(ridge=0.5).fit(x, y, "aligned")
    mapped, target = raw_maps(ours, x, y)
    np.testing.assert_allclose(mapped @ target.T, theirs @ (y - y.mean(0)).T, atol=1e-8)


def test_procrustes_is_that_of_scipy_and_finds_a_rotation(rng):
    from scipy.linalg import orthogonal_procrustes

    x = rng.standard_normal((50, 9))
    rotation = np.linalg.qr(rng.standard_normal((9, 9)))[0]
    maps = orthogonal_maps(x.T @ (x @ rotation))
    np.testing.assert_allclose(maps.map_x @ maps.map_y.T, rotation, atol=1e-8)
    np.testing.assert_allclose(
        maps.map_x @ maps.map_y.T, orthogonal_procrustes(x, x @ rotation)[0], atol=1e-8
    )
    model = Procrustes().fit(x, x @ rotation, "aligned")
    np.testing.assert_allclose(np.diag(model.score_matrix(x, x @ rotation)), 1.0, atol=1e-8)


def test_asif_against_a_loop(rng):
    x, y = rng.standard_normal((30, 5)), rng.standard_normal((30, 4))
    model = ASIF(n_nearest=6, power=3.0, random_state=0).fit(x, y, "aligned")
    mean_x, mean_y = x.mean(0), y.mean(0)

    def cosine(a, b):
        return a @ b / np.sqrt((a @ a) * (b @ b))

    def told(row, rows, mean):
        likeness = [max(cosine(row - mean, other - mean), 0.0) for other in rows]
        least = sorted(likeness)[-6]
        return np.array([value**3 if value >= least else 0.0 for value in likeness])

    slow = [
        [cosine(told(a, x, mean_x), told(b, y, mean_y)) for b in y[:4]] for a in x[:5]
    ]  # anchors come in another order, which a cosine does not see
    np.testing.assert_allclose(model.score_matrix(x[:5], y[:4]), slow, atol=1e-5)


def test_relative_rows_keeps_all_when_there_are_few_anchors():
    np.testing.assert_array_equal(relative_rows(np.array([[0.5, -1.0]]), 9, 2.0), [[0.25, 0.0]])


def total_correlation_by_roots(x, y, ridge):
    x, y = x - x.mean(0), y - y.mean(0)
    roots = []
    for rows in (x, y):
        moment = rows.T @ rows / len(rows)
        moment += (ridge * np.trace(moment) / len(moment) + 1e-6) * np.eye(len(moment))
        values, vectors = np.linalg.eigh(moment)
        roots.append(vectors @ np.diag(values**-0.5) @ vectors.T)
    return np.linalg.svd(roots[0] @ (x.T @ y / len(x)) @ roots[1], compute_uv=False).sum()


def test_deep_cca_loss_is_the_trace_norm_and_its_gradient_right(rng):
    x, y = rng.standard_normal((20, 3)), rng.standard_normal((20, 4))
    z_x, z_y = (torch.tensor(rows, requires_grad=True) for rows in (x, y))
    value = total_correlation(z_x, z_y, 0.01)
    assert value.item() == pytest.approx(total_correlation_by_roots(x, y, 0.01), abs=1e-10)
    assert torch.autograd.gradcheck(lambda a, b: total_correlation(a, b, 0.01), (z_x, z_y))


@pytest.mark.parametrize("n_rows", [2, 3, 8])
def test_deep_cca_loss_stays_finite_for_tiny_and_degenerate_batches(n_rows):
    for rows in (torch.zeros(n_rows, 5), torch.ones(n_rows, 1) @ torch.randn(1, 5)):
        z_x = (rows + 0.0).requires_grad_()
        value = total_correlation(z_x, rows.flip(1), 1e-2)
        value.backward()
        assert torch.isfinite(value)
        assert torch.isfinite(z_x.grad).all()


def test_deep_cca_beats_linear_cca_where_views_are_bent(rng):
    angle = rng.uniform(0, 2 * np.pi, 1200)
    x = np.c_[np.cos(angle), np.sin(angle)] + 0.02 * rng.standard_normal((1200, 2))
    y = np.c_[np.cos(2 * angle), np.sin(3 * angle)] + 0.02 * rng.standard_normal((1200, 2))
    deep = DeepCCA(hidden=(64,), n_epochs=60, batch_size=250, learning_rate=5e-3, random_state=0)
    deep.fit(x[:1000], y[:1000], "aligned")
    linear = CCA(random_state=0).fit(x[:1000], y[:1000], "aligned")
    held = [
        component_correlations(*raw_maps(model, x[1000:], y[1000:]), 2).sum()
        for model in (deep, linear)
    ]
    assert held[0] > held[1] + 1.0


def scores_and_marks(rng):
    scores = torch.tensor(rng.standard_normal((6, 6)))
    same = torch.eye(6, dtype=torch.bool)
    same[0, 1] = same[1, 0] = True
    return scores, same


def test_ranking_loss_against_a_loop(rng):
    scores, same = scores_and_marks(rng)
    total = 0.0
    for matrix in (scores, scores.T):
        for i in range(6):
            hinges = [
                0.0 if same[i, j] else max(0.0, 0.2 + matrix[i, j].item() - matrix[i, i].item())
                for j in range(6)
            ]
            total += sum(sorted(hinges)[-3:]) / (3 * 6)
    assert ranking_loss(scores, same, 0.2, 3).item() == pytest.approx(total)


def test_hinge_rank_loss_against_a_loop(rng):
    scores, same = scores_and_marks(rng)
    total = sum(
        max(0.0, 0.1 + scores[i, j].item() - scores[i, i].item())
        for i in range(6)
        for j in range(6)
        if not same[i, j]
    )
    assert hinge_rank_loss(scores, same, 0.1).item() == pytest.approx(total / (6 * 5))


def test_info_nce_against_a_loop(rng):
    _, same = scores_and_marks(rng)
    z_x, z_y = (torch.tensor(rng.standard_normal((6, 4))) for _ in range(2))
    unit_x, unit_y = z_x / z_x.norm(dim=1)[:, None], z_y / z_y.norm(dim=1)[:, None]
    logits = (unit_x @ unit_y.T / 0.1).numpy()
    total = 0.0
    for i in range(6):
        others = [j for j in range(6) if i == j or not same[i, j]]
        total += np.log(sum(np.exp(logits[i, j] - logits[i, i]) for j in others))
        total += np.log(sum(np.exp(logits[j, i] - logits[i, i]) for j in others))
    assert info_nce(z_x, z_y, same, 0.1).item() == pytest.approx(total / 12)


def test_mmd_against_a_loop_and_zero_on_equal_sets(rng):
    a, b = rng.standard_normal((5, 3)), rng.standard_normal((7, 3))

    def kernel(u, v):
        return np.mean([np.exp(-((u - v) ** 2).sum() / (2 * w**2)) for w in MMD_WIDTHS])

    slow = (
        np.mean([[kernel(u, v) for v in a] for u in a])
        + np.mean([[kernel(u, v) for v in b] for u in b])
        - 2 * np.mean([[kernel(u, v) for v in b] for u in a])
    )
    assert mmd(torch.tensor(a), torch.tensor(b)).item() == pytest.approx(slow)
    assert mmd(torch.tensor(a), torch.tensor(a)).item() == pytest.approx(0.0, abs=1e-12)


def test_component_correlation_is_the_mean_of_correlations(rng):
    a, b = rng.standard_normal((30, 4)), rng.standard_normal((30, 4))
    slow = np.mean([np.corrcoef(a[:, i], b[:, i])[0, 1] for i in range(4)])
    assert component_correlation(torch.tensor(a), torch.tensor(b)).item() == pytest.approx(slow)
    a[:, 0] = 1.0
    assert torch.isfinite(component_correlation(torch.tensor(a), torch.tensor(b)))


def test_adaptive_gram_does_not_see_the_scale(rng):
    z = torch.tensor(rng.standard_normal((12, 3)))
    torch.testing.assert_close(adaptive_gram(z), adaptive_gram(100.0 * z))


def test_gromov_wasserstein_is_that_of_pot(rng):
    ot = pytest.importorskip("ot")
    from scipy.spatial.distance import cdist

    from unpaired.baselines.gromov import GromovWasserstein

    x = rng.standard_normal((20, 3))
    y = rng.standard_normal((20, 3))
    model = GromovWasserstein()
    model.seed_ = 0
    d_x, d_y = model._similarities(x, "x"), model._similarities(y, "y")
    np.testing.assert_allclose(d_x, cdist(x, x) / cdist(x, x).mean())
    ours = model._solve(d_x, d_y, None, np.empty((0, 2), dtype=np.int64))
    plan = ot.gromov.gromov_wasserstein(d_x, d_y, np.full(20, 0.05), np.full(20, 0.05))
    np.testing.assert_allclose(ours.plan, plan, atol=1e-10)


def test_moments_of_repeated_rows_are_those_written_out(rng):
    x, y = rng.standard_normal((4, 3)), rng.standard_normal((9, 2))
    pairs = np.array([[0, 0], [0, 5], [2, 1], [0, 8], [3, 1]])
    found = pair_moments(x, y, pairs)
    a, b = x[pairs[:, 0]], y[pairs[:, 1]]
    for ours, slow in ((found.xx, a.T @ a), (found.xy, a.T @ b), (found.yy, b.T @ b)):
        np.testing.assert_allclose(ours, slow / 5)


def test_principal_components_drop_what_does_not_vary(rng):
    rows = rng.standard_normal((40, 3)) @ rng.standard_normal((3, 7))
    for wide in (rows, np.c_[rows, np.ones((40, 300))]):
        found = principal(wide, 50, 0)
        assert found.axes.shape[1] == 3
        parts = found.apply(wide)
        np.testing.assert_allclose(parts.T @ parts / 40, np.diag(found.variances), atol=1e-8)


def test_held_out_pairs_share_no_row_of_x(rng):
    pairs = np.column_stack([np.repeat(np.arange(20), 5), np.arange(100)])
    kept, judged = hold_out(pairs, rng)
    assert len(judged) == 20
    assert not np.intersect1d(kept[:, 0], judged[:, 0]).size


def test_ridges_are_chosen_by_what_ranks_held_out_partners(rng):
    x = rng.standard_normal((80, 60))
    y = x[:, :3] @ rng.standard_normal((3, 50)) + 0.5 * rng.standard_normal((80, 50))
    pairs = np.column_stack([np.arange(80), np.arange(80)])
    ridge_x, ridge_y = choose_ridges(cca_fit(20, 0.5), x, y, pairs, "auto", "auto", rng)
    assert ridge_x >= 0.03  # noisy wide views want a firm hand
    assert ridge_y == pytest.approx(ridge_x / 3)
    assert choose_ridges(cca_fit(20, 0.5), x, y, pairs, 0.5, 0.2, rng) == (0.5, 0.2)


def test_reciprocal_ranks_by_hand():
    scores_x = np.array([[1.0, 0.0], [0.0, 1.0]])
    scores_y = np.array([[0.0, 1.0], [1.0, 0.0]])  # everything ranks second
    assert mean_reciprocal_rank(scores_x, scores_y, np.array([0, 1])) == 0.5


def test_best_pairs_dense_and_sparse_agree(rng, monkeypatch):
    left = rng.standard_normal((40, 6))
    right = left[rng.permutation(40)] + 0.05 * rng.standard_normal((40, 6))
    left, right = (v / np.linalg.norm(v, axis=1)[:, None] for v in (left, right))
    known = np.array([[0, 3], [0, 4]])
    dense, scores = best_pairs(left, right, known, "one-to-one")
    assert (np.diff(scores) <= 0).all()
    assert not np.isin(dense[:, 0], 0).any()
    assert not np.isin(dense[:, 1], [3, 4]).any()
    monkeypatch.setattr("unpaired.baselines.rematch.DENSE_ENTRIES", 0)
    sparse, _ = best_pairs(left, right, known, "one-to-one")
    assert len({*map(tuple, dense.tolist())} & {*map(tuple, sparse.tolist())}) >= 36
    many, _ = best_pairs(left, right, known, "many-to-one")
    assert len(many) == 39
    assert len(one_to_one(known)) == 1
