"""Principal coordinates, linear and of a kernel: oracles, invariants, and what comes back."""

import numpy as np
import pytest
import torch
from torch.nn.functional import normalize

from unpaired.views import features as module
from unpaired.views.features import METRICS, fit_features, in_blocks, prepare
from unpaired.views.stored import map_from_arrays, map_to_arrays

CPU = torch.device("cpu")
SETTINGS = [
    {},
    {"metric": "correlation"},
    {"metric": "euclidean", "whitening": 0.25},
    {"values": "standard", "keep": 0.9},
    {"bandwidth": 0.5, "n_landmarks": 40},
    {"bandwidth": 1.0, "metric": "euclidean"},
]
by_setting = pytest.mark.parametrize("setting", SETTINGS, ids=lambda s: " ".join(s) or "plain")


@pytest.fixture
def rows(rng):
    return torch.tensor(rng.standard_normal((60, 6)) * [5, 4, 3, 2, 1, 1] + 2.0)


def fit(rows, **options):
    return fit_features(rows, np.random.default_rng(0), **{"max_rank": 20, **options})


# Oracles


def test_linear_coordinates_are_principal_components_of_unit_total_variance(rows):
    found = fit(rows)
    z = found(rows)
    units = normalize(rows - rows.mean(0))
    variances = torch.linalg.svdvals(units - units.mean(0)) ** 2 / 60
    variances = variances / variances.sum()
    torch.testing.assert_close(found.variances, variances)
    torch.testing.assert_close(z.T @ z / 60, torch.diag(variances), atol=1e-9, rtol=0)


def test_kernel_coordinates_give_the_centred_kernel_when_all_rows_are_landmarks(rows):
    rows = rows[:30]
    found = fit(rows, max_rank=30, bandwidth=0.5)
    units = normalize(rows - rows.mean(0))
    gaps = torch.cdist(units, units) ** 2
    apart = gaps[~torch.eye(30, dtype=torch.bool)]
    assert found.inverse_width == pytest.approx(1.0 / (2.0 * 0.5 * float(apart.median())))
    kernel = torch.exp(-found.inverse_width * gaps)
    centred = kernel - kernel.mean(0) - kernel.mean(1, keepdim=True) + kernel.mean()
    z = found(rows)
    torch.testing.assert_close(z @ z.T, centred / centred.trace() * 30, atol=1e-4, rtol=0)


@pytest.mark.parametrize("power", [0.25, 0.5])
def test_whitening_divides_axes_by_a_power_of_their_variance(rows, power):
    plain, white = fit(rows), fit(rows, whitening=power)
    expected = plain.variances ** (1.0 - 2.0 * power)
    torch.testing.assert_close(white.variances, expected / expected.sum())
    torch.testing.assert_close((white(rows) ** 2).mean(0), white.variances)


def test_only_coordinates_that_hold_the_share_are_kept(rows):
    every = fit(rows, metric="euclidean").variances.cumsum(0)
    for share in (0.5, 0.9, 0.99):
        found = fit(rows, metric="euclidean", keep=share)
        count = len(found.variances)
        assert float(every[count - 1]) >= share
        assert count == 1 or float(every[count - 2]) < share


def test_whole_weights_are_repeated_rows(rows, rng):
    weights = torch.tensor(rng.integers(1, 4, 60))
    copies = rows.repeat_interleave(weights, 0)
    for options in ({}, {"metric": "euclidean"}, {"metric": "correlation", "whitening": 0.25}):
        weighted = fit(rows, weights=weights.double(), **options)
        torch.testing.assert_close(weighted(rows), fit(copies, **options)(rows))


# Invariants


@by_setting
def test_mean_squared_length_is_one_and_the_mean_is_zero(rows, setting):
    z = fit(rows, **setting)(rows)
    assert float(z.square().sum(1).mean()) == pytest.approx(1.0, rel=1e-5)
    torch.testing.assert_close(z.mean(0), torch.zeros_like(z[0]), atol=1e-6, rtol=0)


@by_setting
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_map_comes_back_from_its_arrays_to_the_bit(rows, setting, dtype):
    given = rows.to(dtype)
    found = fit(given, **setting)
    arrays = map_to_arrays(found)
    assert all(isinstance(array, np.ndarray) for array in arrays.values())
    assert ("principal.landmarks" in arrays) == ("bandwidth" in setting)
    again = map_from_arrays(arrays, CPU)
    assert torch.equal(again(given), found(given))
    unseen = given[:7] + 0.5
    assert torch.equal(again(unseen), found(unseen))
    assert found(given).dtype == dtype


@by_setting
def test_rows_are_placed_one_by_one(rows, setting, monkeypatch):
    found = fit(rows, **setting)
    whole = found(rows)
    torch.testing.assert_close(torch.cat([found(row[None]) for row in rows]), whole)
    monkeypatch.setattr(module, "BLOCK_ROWS", 7)
    torch.testing.assert_close(found(rows), whole)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("bandwidth", [None, 0.5])
def test_geometry_feels_no_rotation_no_shift_and_no_scale(rows, rng, metric, bandwidth):
    turn = torch.tensor(np.linalg.qr(rng.normal(size=(6, 6)))[0])
    before = fit(rows, metric=metric, bandwidth=bandwidth)(rows)
    moved = {"cosine": (rows @ turn + 9.0) * 3.0, "euclidean": (rows @ turn - 7.0) * 0.1}
    given = moved.get(metric, (rows + 9.0) * 3.0)  # correlations feel a rotation of the columns
    after = fit(given, metric=metric, bandwidth=bandwidth)(given)
    torch.testing.assert_close(after @ after.T, before @ before.T, atol=1e-6, rtol=1e-5)


def test_cosines_feel_no_length_around_the_mean_and_distances_do(rows):
    centred = rows - rows.mean(0)
    pair = torch.cat([centred, -centred])  # the mean stays zero whatever lengths are
    longer = pair.clone()
    longer[0] *= 5.0
    longer[60] *= 5.0
    cosine = [fit(given)(given) for given in (pair, longer)]
    torch.testing.assert_close(cosine[0], cosine[1])
    distance = [fit(given, metric="euclidean")(given) for given in (pair, longer)]
    assert not torch.allclose(distance[0].abs(), distance[1].abs(), atol=0.1)


@pytest.mark.parametrize("bandwidth", [None, 0.5])
def test_standard_columns_have_no_units(rng, bandwidth):
    rows = torch.tensor(rng.standard_normal((40, 5)))
    units = torch.tensor([1.0, 1e3, 1e-3, 7.0, 1.0])
    constant = torch.ones(40, 1, dtype=rows.dtype)
    plain, scaled = (torch.cat([view, constant], 1) for view in (rows, rows * units))
    a, b = (fit(view, bandwidth=bandwidth, values="standard")(view) for view in (plain, scaled))
    torch.testing.assert_close(a @ a.T, b @ b.T, atol=1e-5, rtol=0)


# Counts


def test_square_roots_only_where_nothing_is_negative_and_they_are_asked_for(rng):
    counts = torch.tensor(rng.poisson(3.0, size=(20, 4)).astype(float))
    assert prepare(counts, values="roots").roots
    assert not prepare(counts - counts.max(), values="roots").roots
    assert not prepare(counts).roots
    taken = prepare(counts, values="roots", metric="euclidean")(counts)
    torch.testing.assert_close(taken, counts.sqrt() - counts.sqrt().mean(0))


@pytest.mark.parametrize("bandwidth", [None, 0.5])
def test_sparse_counts_are_taken_as_shares_of_their_row(rng, bandwidth):
    counts = torch.tensor(rng.poisson(1.0, size=(40, 12)).astype(float))
    found = fit(counts, bandwidth=bandwidth, values="roots")
    assert found.preparation.shares
    torch.testing.assert_close(found(counts), found(7.0 * counts))
    roots = (counts / counts.sum(1, keepdim=True)).sqrt()
    torch.testing.assert_close(found.preparation.centre, roots.mean(0, keepdim=True))


@pytest.mark.parametrize(("rate", "columns"), [(6.0, 12), (1.0, 4)])
def test_dense_or_narrow_counts_keep_the_length_of_their_rows(rng, rate, columns):
    counts = torch.tensor(rng.poisson(rate, size=(40, columns)).astype(float))
    found = fit(counts, values="roots")
    assert found.preparation.roots
    assert not found.preparation.shares
    assert float((found(counts) - found(7.0 * counts)).abs().max()) > 0.1


# Odd rows


def test_rows_that_hardly_vary_and_equal_rows_stay_finite(rng):
    flat = torch.cat([torch.ones(30, 3), torch.tensor(rng.normal(size=(30, 1)))], 1)
    twins = torch.tensor(rng.normal(size=(5, 3))).repeat(6, 1)
    for given in (flat, twins, torch.ones(4, 2, dtype=torch.float64)):
        for metric in METRICS:
            for bandwidth in (None, 1.0):
                z = fit(given, metric=metric, bandwidth=bandwidth)(given)
                assert torch.isfinite(z).all()


def test_landmarks_are_drawn_by_the_generator(rows):
    one, two, three = (
        fit_features(rows, np.random.default_rng(s), max_rank=20, bandwidth=1.0, n_landmarks=20)
        for s in (1, 1, 2)
    )
    assert torch.equal(one.landmarks, two.landmarks)
    assert not torch.equal(one.landmarks, three.landmarks)
    every = {tuple(row) for row in one.preparation(rows).tolist()}
    assert {tuple(row) for row in one.landmarks.tolist()} <= every


def test_blocks_are_put_together_in_order(monkeypatch):
    monkeypatch.setattr(module, "BLOCK_ROWS", 3)
    seen = []

    def double(part):
        seen.append(len(part))
        return 2 * part

    given = torch.arange(8.0)[:, None]
    assert torch.equal(in_blocks(double, given), 2 * given)
    assert seen == [3, 3, 2]
