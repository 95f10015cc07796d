"""Sharp and partial matching on draws with known truth, and the searches under them."""

from __future__ import annotations

import numpy as np
import pytest

from unpaired.alignment.registration import match_sharp
from unpaired.datasets.toy import jittered_digits, rotated_clusters
from unpaired.errors import InputError
from unpaired.math.neighbours import build_cells, search_cells, top_k
from unpaired.trust.false_discovery import fit_chooser, partial_assign


@pytest.mark.parametrize("metric", ["distance", "inner"])
@pytest.mark.parametrize("k", [1, 7, 30])
@pytest.mark.parametrize("use_faiss", [False, True])
def test_top_k_is_exact(metric, k, use_faiss):
    rng = np.random.default_rng(k)
    queries, base = rng.normal(size=(150, 9)), rng.normal(size=(9000, 9))
    score = ((queries[:, None] - base) ** 2).sum(2) if metric == "distance" else -queries @ base.T
    index, value = top_k(queries, base, k, metric=metric, use_faiss=use_faiss)
    assert (index == np.argsort(score, axis=1)[:, :k]).mean() > 0.999
    sign = 1 if metric == "distance" else -1
    np.testing.assert_allclose(value, sign * np.sort(score, axis=1)[:, :k], atol=1e-3)


def test_cells_find_what_the_exact_search_finds():
    rng = np.random.default_rng(0)
    base = rng.normal(size=(4000, 6))
    queries = base[:500] + 0.01 * rng.normal(size=(500, 6))
    cells = build_cells(base, rng)
    index, square = search_cells(cells, queries, 3, n_probes=len(cells.centers))
    exact, distance = top_k(queries, base, 3)
    assert (index == exact).mean() > 0.999
    np.testing.assert_allclose(square, distance, atol=1e-4)


OPTIONS = [{}, {"anisotropy": 0.0}, {"d_y": 96, "uneven": True}, {"d_x": 40, "scale_y": 7.0}]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("options", OPTIONS)
def test_rotated_clusters_are_matched(seed, options):
    problem = rotated_clusters(4000, np.random.default_rng(seed), **options)
    found = match_sharp(problem.x, problem.y, np.random.default_rng(seed))
    assert (found.partner == problem.truth).mean() >= 0.99
    assert (found.confidence >= 0.9).mean() >= 0.95
    assert found.trusted


@pytest.mark.parametrize("seed", range(5))
def test_partial_digits(seed):
    draw = np.random.default_rng([seed, 1])
    problem = jittered_digits(800, draw, extra_x=200, extra_y=150)
    found = match_sharp(problem.x, problem.y, np.random.default_rng(seed), leave_out=True)
    partner = found.partner
    has = problem.truth >= 0
    assert (partner[has] == problem.truth[has]).mean() >= 0.95
    assert (partner[~has] < 0).mean() >= 0.80
    strangers = np.setdiff1d(np.arange(len(problem.y)), problem.truth[has])
    assert 1 - np.isin(strangers, partner).mean() >= 0.80


def test_no_orphans_no_row_left_out():
    problem = jittered_digits(1000, np.random.default_rng(3))
    found = match_sharp(problem.x, problem.y, np.random.default_rng(0), leave_out=True)
    assert (found.partner < 0).mean() <= 0.02


def test_same_seed_same_answer():
    problem = rotated_clusters(2000, np.random.default_rng(1), extra_x=100)
    one, two = (match_sharp(problem.x, problem.y, np.random.default_rng(5)) for _ in range(2))
    assert (one.partner == two.partner).all()
    assert (one.confidence == two.confidence).all()


def test_unrelated_sides_claim_nothing():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(800, 10)), rng.normal(size=(800, 10))
    found = match_sharp(x, y, rng, leave_out=True)
    assert not found.trusted
    assert (found.confidence == 0).all()
    assert (found.partner == -1).all()


def test_known_pairs_are_kept_and_forbidden_ones_not_made():
    problem = rotated_clusters(1000, np.random.default_rng(2))
    known = np.column_stack([np.arange(10), problem.truth[:10]])
    known[0, 1], known[1, 1] = known[1, 1], known[0, 1]  # two wrong ones, kept all the same
    forbidden = np.column_stack([np.arange(20, 30), problem.truth[20:30]])
    rng = np.random.default_rng(0)
    found = match_sharp(problem.x, problem.y, rng, known=known, forbidden=forbidden)
    assert (found.partner[:10] == known[:, 1]).all()
    assert (found.partner[20:30] != problem.truth[20:30]).all()
    assert (found.partner[30:] == problem.truth[30:]).mean() > 0.98
    assert "known pairs" in found.tried


def test_unseen_rows_land_near_their_partners():
    problem = rotated_clusters(1500, np.random.default_rng(3))
    found = match_sharp(problem.x[:1000], problem.y, np.random.default_rng(0), leave_out=True)
    assert found.trusted
    unseen, partners = found.embed_x(problem.x[1000:]), found.embed_y(problem.y)
    near = top_k(unseen, partners, 1)[0][:, 0]
    assert (near == problem.truth[1000:]).mean() > 0.98


@pytest.mark.parametrize("share", [0.0, 0.2, 0.6])
def test_chooser_finds_the_share(share):
    rng = np.random.default_rng(4)
    y = rng.normal(size=(1000, 12))
    n_out = int(share * 1000)
    x = y + 0.15 * rng.normal(size=y.shape)
    x[:n_out] = rng.normal(size=(n_out, 12))
    far = np.sqrt(((x[:, None] - y) ** 2).sum(2))
    partner, confidence, chooser = partial_assign(far)
    assert abs(chooser.stranger_share - share) < 0.05
    assert (partner[n_out:] == np.arange(n_out, 1000)).mean() >= 0.95
    assert n_out == 0 or (partner[:n_out] < 0).mean() >= 0.8
    assert (partner[confidence >= 0.9] == np.flatnonzero(confidence >= 0.9)).mean() > 0.97


def test_errors():
    with pytest.raises(InputError, match="distance"):
        fit_chooser(np.zeros((5, 2)))
    with pytest.raises(InputError, match="k must"):
        top_k(np.zeros((2, 2)), np.zeros((2, 2)), 3)
