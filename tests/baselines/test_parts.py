"""Each part of a rival does what its authors meant: take it away and one of these tests fails."""

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

from unpaired.baselines import towers
from unpaired.baselines.cca import CCA
from unpaired.baselines.corrnet import CorrNet, component_correlation
from unpaired.baselines.deep_mcca import DeepMCCA
from unpaired.baselines.hsic_cca import HsicCCA, HsicDeepCCA, adaptive_gram
from unpaired.baselines.infonce import InfoNCE
from unpaired.baselines.kernelized_sorting import KernelizedSorting
from unpaired.baselines.mcca import MCCA
from unpaired.baselines.revise import ReViSE, mmd, prediction_loss
from unpaired.baselines.two_way import TwoWayNets, order_in_twos, structure_loss
from unpaired.baselines.wasserstein_procrustes import WassersteinProcrustes
from unpaired.errors import InputError
from unpaired.math.dependence import hsic

SMALL = {"hidden": (16,), "n_latent": 8, "least_steps": 150, "batch_size": 64, "random_state": 0}


def two_views(n, rng, noise=0.5):
    """Two noisy linear views of the same ten factors."""
    factors = rng.standard_normal((n, 10))
    worlds = np.random.default_rng(5)
    return tuple(
        factors @ worlds.standard_normal((10, width)) + noise * rng.standard_normal((n, width))
        for width in (30, 25)
    )


def aligned(n):
    return np.column_stack([np.arange(n), np.arange(n)])


def latents(model, x, y):
    """What the towers make of rows, before any read-out."""
    found = []
    for view, rows in enumerate((x, y)):
        name = "xy"[view]
        inputs = (rows - model._arrays[f"centre.{name}"]) @ model._arrays[f"axes.{name}"]
        found.append(torch.as_tensor(model._encode(inputs, view)))
    return found


# ---- matching by turns ----


def test_mcca_ends_at_the_cca_of_all_it_believes(seed):
    x, y = two_views(150, np.random.default_rng(seed))
    fixed = {"ridge_x": 0.1, "ridge_y": 0.1, "random_state": 0}
    model = MCCA(**fixed).fit(x, y, aligned(150)[:20])
    assert len(model.trace_[-1]) == 150
    by_hand = CCA(**fixed).fit(x, y, model.trace_[-1]).score_matrix(x, y)
    np.testing.assert_allclose(model.score_matrix(x, y), by_hand, atol=1e-10)
    known_alone = CCA(**fixed).fit(x, y, aligned(150)[:20]).score_matrix(x, y)
    assert np.abs(known_alone - by_hand).max() > 0.01


def test_deep_mcca_trains_on_what_it_matched(monkeypatch, seed):
    x, y = two_views(80, np.random.default_rng(seed))
    trained = []
    train = DeepMCCA._train

    def note(self, inputs, pairs, n_epochs=None):
        trained.append({*map(tuple, pairs.tolist())})
        train(self, inputs, pairs, n_epochs)

    monkeypatch.setattr(DeepMCCA, "_train", note)
    model = DeepMCCA(**SMALL).fit(x, y, aligned(80)[:12])
    assert [len(pairs) for pairs in trained] == [12, 29, 46, 63, 80]
    assert trained[-1] == {*map(tuple, model.trace_[-1].tolist())}


@pytest.mark.parametrize("kind", [MCCA, DeepMCCA])
@pytest.mark.parametrize("relation", ["one-to-one", "many-to-one"])
def test_no_pair_is_needed_to_begin(kind, relation, seed):
    rng = np.random.default_rng(seed)
    n_y = 60 if relation == "one-to-one" else 5
    y = rng.standard_normal((n_y, 6)) * np.linspace(3, 1, 6)
    truth = rng.permutation(60) % n_y
    turn = np.linalg.qr(rng.standard_normal((6, 6)))[0]
    x = y[truth] @ turn + 0.05 * rng.standard_normal((60, 6))
    params = {} if kind is MCCA else {"n_epochs": 1, "hidden": (8,)}
    model = kind(relation=relation, random_state=0, **params).fit(x, y)
    assert model.seeds_ == "engine"
    if relation == "one-to-one":  # the engine finds an exact turn, and believing it keeps it
        assert (model.match_.partner == truth).mean() >= 0.9
    other = kind(relation=relation, seeds="random", random_state=0, **params).fit(x, y)
    assert other.seeds_ == "random"
    assert len(other.trace_[0]) == 60
    assert (other.trace_[0][:, 1] == truth[other.trace_[0][:, 0]]).mean() < 0.5
    given = kind(relation=relation, random_state=0, **params).fit(
        x, y, np.column_stack([np.arange(60), truth])[:10]
    )
    assert given.seeds_ == "pairs"
    with pytest.raises(InputError, match='Unknown seeds "lucky"'):
        kind(seeds="lucky").fit(x, y)


def test_known_pairs_are_kept_beside_any_seeds(seed):
    x, y = two_views(60, np.random.default_rng(seed))
    for seeds in ("engine", "random"):
        model = MCCA(seeds=seeds, random_state=0).fit(x, y, aligned(60)[:10])
        np.testing.assert_array_equal(model.trace_[0][:10], aligned(60)[:10])
        assert len(np.unique(model.trace_[0][:, 1])) == len(model.trace_[0]) == 60


@pytest.mark.parametrize("kind", [KernelizedSorting, WassersteinProcrustes, MCCA, DeepMCCA])
def test_methods_that_match_by_steps_keep_a_trace(kind, seed):
    x, y = two_views(60, np.random.default_rng(seed), noise=0.1)
    known = aligned(60)[:10]
    model = kind(random_state=0).fit(x, y, known)
    assert len(model.trace_) >= 2
    for step in model.trace_:
        np.testing.assert_array_equal(step[:10], known)
    partner = np.full(60, -1)
    partner[model.trace_[-1][::-1, 0]] = model.trace_[-1][::-1, 1]
    np.testing.assert_array_equal(partner, model.match_.partner)


# ---- losses ----


@pytest.mark.parametrize("kind", [HsicCCA, HsicDeepCCA])
def test_hsic_cca_raises_hsic(kind, seed):
    x, y = two_views(120, np.random.default_rng(seed), noise=0.1)
    params = {**SMALL, "start": "random", "learning_rate": 3e-3}
    if kind is HsicCCA:
        params["hidden"] = ()

    def value(n_epochs):
        fit = {"n_epochs": n_epochs, "least_steps": 0}
        z_x, z_y = latents(kind(**{**params, **fit}).fit(x, y, aligned(120)), x, y)
        return hsic(adaptive_gram(z_x), adaptive_gram(z_y)).item()

    assert value(40) > 1.2 * value(0)


def test_corrnet_raises_the_correlation_of_its_halves(seed):
    x, y = two_views(120, np.random.default_rng(seed))
    params = {**SMALL, "start": "random", "learning_rate": 3e-3, "n_epochs": 40}
    found = [
        component_correlation(
            *latents(CorrNet(correlation_weight=w, **params).fit(x, y, aligned(120)), x, y)
        ).item()
        for w in (0.0, 2.0)
    ]
    assert found[1] > found[0] + 0.2


def test_revise_brings_both_codes_to_one_distribution(seed):
    x, y = two_views(120, np.random.default_rng(seed))
    params = {**SMALL, "start": "random", "learning_rate": 3e-3, "n_epochs": 40}

    def discrepancy(weight):
        model = ReViSE(mmd_weight=weight, **params).fit(x, y, aligned(120)[:20])
        return mmd(*map(normalize, latents(model, x, y))).item()

    assert discrepancy(5.0) < 0.7 * discrepancy(0.0)


def test_prediction_loss_against_a_loop(rng):
    logits = torch.tensor(rng.standard_normal((5, 5)))
    same = torch.eye(5, dtype=torch.bool)
    same[0, 3] = same[3, 0] = True
    pairs = [np.log1p(np.exp(-logits[i, i].item())) for i in range(5)]
    strangers = [
        np.log1p(np.exp(logits[i, j].item())) for i in range(5) for j in range(5) if not same[i, j]
    ]
    expected = np.mean(pairs) + np.mean(strangers)
    assert prediction_loss(logits, same).item() == pytest.approx(expected)
    assert torch.isfinite(prediction_loss(logits, torch.ones(5, 5, dtype=torch.bool)))


def test_structure_loss_against_a_loop(rng):
    scores = torch.tensor(rng.standard_normal((6, 6)))
    same = torch.eye(6, dtype=torch.bool)
    for i, j in ((0, 1), (0, 2), (1, 2), (3, 4)):
        same[i, j] = same[j, i] = True
    total, n_rows = 0.0, 0
    for i in range(6):
        likes = [scores[i, j].item() for j in range(6) if same[i, j] and i != j]
        if not likes:
            continue
        n_rows += 1
        hinges = [
            0.0 if same[i, j] else max(0.0, 0.3 + scores[i, j].item() - min(likes))
            for j in range(6)
        ]
        total += sum(sorted(hinges)[-2:]) / 2
    assert structure_loss(scores, same, 0.3, 2).item() == pytest.approx(total / n_rows)
    assert structure_loss(scores, torch.eye(6, dtype=torch.bool), 0.3, 2).item() == 0.0
    assert structure_loss(scores, torch.ones(6, 6, dtype=torch.bool), 0.3, 2).item() == 0.0


def test_two_way_nets_keep_captions_of_one_image_together(seed):
    rng = np.random.default_rng(seed)
    x, y = two_views(60, rng)
    owner = np.repeat(np.arange(60), 4)
    texts = y[owner] + 2.0 * rng.standard_normal((240, y.shape[1]))
    pairs = np.column_stack([owner, np.arange(240)])

    def contrast(weight):
        model = TwoWayNets(structure_weight=weight, start="random", **{**SMALL, "n_epochs": 20})
        unit = model.fit(x, texts, pairs).transform_y(texts)
        scores = unit @ unit.T
        same = owner[:, None] == owner[None, :]
        return scores[same].mean() - scores[~same].mean()

    assert contrast(5.0) > contrast(0.0) + 0.02


def test_batches_hold_two_of_a_row(rng):
    rows = np.repeat(np.arange(30), 5)
    order = order_in_twos(rows, rng)
    assert sorted(order) == list(range(150))
    together = (rows[order][1:] == rows[order][:-1]).sum()
    assert together >= 60  # two twos of each row; by chance about five stand together
    alone = order_in_twos(np.arange(50), rng)
    assert sorted(alone) == list(range(50))
    assert (alone != np.arange(50)).any()


# ---- starts of the networks ----


def test_the_better_of_two_starts_is_taken(seed):
    x, y = two_views(200, np.random.default_rng(seed))
    params = {**SMALL, "n_epochs": 2, "least_steps": 0}
    best = InfoNCE(start="best", **params).fit(x, y, aligned(200))
    assert best.start_ == "cca"  # two epochs from nothing cannot come near it
    again = InfoNCE(start="cca", **params).fit(x, y, aligned(200))
    np.testing.assert_array_equal(best.score_matrix(x, y), again.score_matrix(x, y))
    assert len(best.history_) == len(again.history_)


def test_held_out_partners_decide_on_the_start(monkeypatch, seed):
    x, y = two_views(100, np.random.default_rng(seed))
    params = {**SMALL, "n_epochs": 2, "least_steps": 0}
    seen = []

    def rank(embed_x, embed_y, owner):
        seen.append((len(embed_x), len(embed_y)))
        return float(len(seen))  # the second, "random", seems better

    monkeypatch.setattr(towers, "mean_reciprocal_rank", rank)
    best = InfoNCE(start="best", ridge=0.1, **params).fit(x, y, aligned(100))
    assert seen == [(20, 20), (20, 20)]
    assert best.start_ == "random"
    again = InfoNCE(start="random", ridge=0.1, **params).fit(x, y, aligned(100))
    np.testing.assert_array_equal(best.score_matrix(x, y), again.score_matrix(x, y))


def test_few_pairs_leave_nothing_to_choose_by(tmp_path):
    import unpaired

    x, y = two_views(30, np.random.default_rng(0))
    model = InfoNCE(start="best", **SMALL).fit(x, y, aligned(30)[:5])
    assert model.start_ == "cca"
    model.save(tmp_path / "model")
    assert unpaired.load(tmp_path / "model").start_ == "cca"
