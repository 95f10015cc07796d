import numpy as np
import pytest
import torch
from unpaired.training.closed_form import (
    WARM_ROUNDS,
    ClosedFormConfig,
    Coordinates,
    Round,
    Rows,
    lay_out,
    moments_of,
    pair_weights,
    ridge_of,
    soft_rounds,
    solve_maps,
    weigh_directions,
)
from unpaired.training.features import fit_features, principal_axes
from unpaired.training.grown import gaussian_log_ratio

from unpaired.learning.cross_validation import choose_ridge
from unpaired.math.eigen import canonical_maps


def generator():
    return torch.Generator().manual_seed(0)


def test_linear_coordinates_are_principal_components(rng):
    rows = torch.tensor(rng.standard_normal((50, 6)))
    found = fit_features(rows, max_rank=6, generator=generator())
    z = found(rows)
    units = torch.nn.functional.normalize(rows - rows.mean(0))
    expected = torch.linalg.svdvals(units - units.mean(0)) ** 2 / 50
    torch.testing.assert_close(found.variances, expected)
    torch.testing.assert_close(z.T @ z / 50, torch.diag(expected), atol=1e-9, rtol=0)


@pytest.mark.parametrize("shape", [(40, 5), (5, 40)])
def test_principal_axes_of_tall_and_wide_rows(shape, rng):
    rows = torch.tensor(rng.standard_normal(shape))
    rows = rows - rows.mean(0)
    variances, axes = principal_axes(rows)
    lengths = torch.linalg.svdvals(rows) ** 2 / len(rows)
    torch.testing.assert_close(variances[: len(lengths)], lengths, atol=1e-9, rtol=1e-9)
    torch.testing.assert_close((rows @ axes).var(0, correction=0), variances, atol=1e-9, rtol=1e-9)


def test_kernel_coordinates_give_the_kernel_when_all_rows_are_landmarks(rng):
    rows = torch.tensor(rng.standard_normal((30, 4)))
    found = fit_features(rows, max_rank=30, bandwidth=0.5, generator=generator())
    units = torch.nn.functional.normalize(rows - rows.mean(0))
    gaps = torch.cdist(units, units) ** 2
    kernel = torch.exp(-found.inverse_width * gaps)
    centred = kernel - kernel.mean(0) - kernel.mean(1, keepdim=True) + kernel.mean()
    z = found(rows)
    torch.testing.assert_close(z @ z.T, centred, atol=5e-3, rtol=0)


def test_square_roots_only_where_nothing_is_negative(rng):
    counts = torch.tensor(rng.poisson(3.0, size=(20, 4)).astype(float))
    assert fit_features(counts, max_rank=4, generator=generator()).take_root
    assert not fit_features(counts - 1.0, max_rank=4, generator=generator()).take_root


@pytest.mark.parametrize("bandwidth", [None, 0.5])
def test_sparse_counts_are_taken_as_shares_of_their_row(rng, bandwidth):
    counts = torch.tensor(rng.poisson(1.0, size=(40, 12)).astype(float))
    found = fit_features(counts, max_rank=4, bandwidth=bandwidth, generator=generator())
    assert found.take_shares
    torch.testing.assert_close(found(counts), found(7.0 * counts))
    roots = (counts / counts.sum(1, keepdim=True)).sqrt()
    torch.testing.assert_close(found.mean, roots.mean(0, keepdim=True))


@pytest.mark.parametrize("bandwidth", [None, 0.5])
def test_standard_columns_have_no_units(rng, bandwidth):
    rows = torch.tensor(rng.standard_normal((40, 5)))
    units = torch.tensor([1.0, 1e3, 1e-3, 7.0, 1.0])
    constant = torch.ones(40, 1, dtype=rows.dtype)
    plain, scaled = (torch.cat([view, constant], 1) for view in (rows, rows * units))
    found, other = (
        fit_features(
            view, max_rank=5, bandwidth=bandwidth, spread="standard", generator=generator()
        )
        for view in (plain, scaled)
    )
    a, b = found(plain), other(scaled)
    torch.testing.assert_close(a @ a.T, b @ b.T, atol=1e-5, rtol=0)


@pytest.mark.parametrize(("rate", "columns"), [(6.0, 12), (1.0, 4)])
def test_dense_or_narrow_counts_keep_the_length_of_their_rows(rng, rate, columns):
    counts = torch.tensor(rng.poisson(rate, size=(40, columns)).astype(float))
    found = fit_features(counts, max_rank=4, generator=generator())
    assert not found.take_shares
    assert float((found(counts) - found(7.0 * counts)).abs().max()) > 0.1


def test_directions_count_as_in_the_log_ratio_of_normal_variates():
    correlations = torch.tensor([0.9, 0.5, 0.0], dtype=torch.float64)
    a = torch.eye(3, dtype=torch.float64)
    far, near = (gaussian_log_ratio(sign * a, a, correlations).diagonal() for sign in (-1.0, 1.0))
    torch.testing.assert_close(weigh_directions(correlations, 1.0) ** 2, (near - far) / 2.0)
    torch.testing.assert_close(weigh_directions(correlations, 0.0), correlations.sqrt())
    assert torch.isfinite(weigh_directions(torch.tensor([1.02, 1.0]), 0.9)).all()


@pytest.mark.parametrize("n_known", [60, 20])
def test_first_maps_of_rounds_believe_nothing_and_the_last_all(rng, n_known):
    x = torch.tensor(rng.standard_normal((60, 5)), dtype=torch.float32)
    y = x[:, :4] + 0.5 * torch.tensor(rng.standard_normal((60, 4)), dtype=torch.float32)
    rest = torch.arange(n_known, 60)
    rows = Rows(torch.arange(n_known).repeat(2, 1).T, torch.ones(n_known), rest, rest)
    bare, believing = (ClosedFormConfig(bandwidths=(), n_rounds=1, belief=b) for b in (0.0, 0.8))
    coordinates = lay_out(x, y, bare, generator())
    (before,), (after,) = (soft_rounds(coordinates, rows, each) for each in (bare, believing))
    gain = weigh_directions(after.correlations, 0.8) / after.correlations.sqrt()
    assert float(gain[0]) > 1.05
    torch.testing.assert_close(after.map_x, before.map_x * gain)
    torch.testing.assert_close(after.map_y, before.map_y * gain)


def test_maps_agree_with_regularised_cca(rng):
    x = torch.tensor(rng.standard_normal((80, 5)))
    y = x[:, :4] @ torch.tensor(rng.standard_normal((4, 4))) + 0.1
    part = lay_out(x, y, ClosedFormConfig(bandwidths=()), generator())[0]
    config = ClosedFormConfig(bandwidths=(), ridge=8.0, linear_ridge=0.0, belief=0.0)
    pairs = torch.arange(80).repeat(2, 1).T
    moments = moments_of(part, pairs, torch.ones(80))
    map_x, map_y, values = solve_maps([part], [moments], 80.0, config)[0]
    ridge = ridge_of(part.features_x, 80.0, config)
    maps = canonical_maps(  # its ridges count in units of the mean variance
        part.x,
        part.y,
        ridge_x=ridge * part.features_x.total_variance / float(part.features_x.variances.mean()),
        ridge_y=ridge * part.features_y.total_variance / float(part.features_y.variances.mean()),
        n_components=4,
    )
    torch.testing.assert_close(values, maps.correlations, atol=1e-6, rtol=1e-6)
    torch.testing.assert_close(
        part.x @ map_x @ map_y.T @ part.y.T,
        part.x @ maps.map_x @ maps.map_y.T @ part.y.T,
        atol=1e-5,
        rtol=1e-5,
    )


def test_moments_are_weighted_sums_over_pairs(rng):
    x, y = (torch.tensor(rng.standard_normal((6, d))) for d in (3, 2))
    part = lay_out(x, y, ClosedFormConfig(bandwidths=()), generator())[0]
    pairs, weights = torch.tensor([[0, 1], [0, 2], [3, 2]]), torch.tensor([0.5, 0.25, 2.0])
    found = moments_of(part, pairs, weights)
    listed = list(zip(pairs, weights, strict=True))
    torch.testing.assert_close(
        found.cross, sum(w * torch.outer(part.x[i], part.y[j]) for (i, j), w in listed)
    )
    torch.testing.assert_close(
        found.own_x, sum(w * torch.outer(part.x[i], part.x[i]) for (i, _), w in listed)
    )
    torch.testing.assert_close(
        found.own_y, sum(w * torch.outer(part.y[j], part.y[j]) for (_, j), w in listed)
    )


def test_a_linear_map_is_found_from_few_pairs_whatever_other_rows_are_there(rng):
    """Variances of all rows would not cancel the chance in the covariance of twelve pairs."""
    x = torch.tensor(rng.standard_normal((500, 6)))
    y = x @ torch.linalg.qr(torch.tensor(rng.standard_normal((6, 6)))).Q
    part = lay_out(x, y, ClosedFormConfig(bandwidths=()), generator())[0]
    known = torch.arange(12).repeat(2, 1).T
    config = ClosedFormConfig(bandwidths=(), ridge=1e-3, linear_ridge=0.0, belief=0.0)
    moments = moments_of(part, known, torch.ones(12))
    map_x, map_y, _ = solve_maps([part], [moments], 12.0, config)[0]
    left, right = (torch.nn.functional.normalize(z) for z in (part.x @ map_x, part.y @ map_y))
    assert float(((left @ right.T).argmax(1) == torch.arange(500)).float().mean()) > 0.95


def test_five_captions_of_an_image_count_as_one():
    pairs = torch.tensor([[0, 0], [0, 1], [1, 2]])
    assert pair_weights(pairs, 2, 3).tolist() == [0.5, 0.5, 1.0]
    classes = torch.tensor([[0, 0], [1, 0], [1, 1]])
    assert pair_weights(classes, 2, 2, many_to_one=True).tolist() == [1.0, 0.5, 0.5]


def test_soft_rounds_find_the_rest_from_a_tenth(rng):
    factors = rng.standard_normal((150, 6))
    x = torch.tensor(factors @ rng.standard_normal((6, 12)), dtype=torch.float32)
    order = rng.permutation(150)
    y = torch.tensor((factors @ rng.standard_normal((6, 9)))[order], dtype=torch.float32)
    truth = np.argsort(order)
    pairs = torch.tensor(np.column_stack([np.arange(15), truth[:15]]))
    free_y = torch.tensor(np.setdiff1d(np.arange(150), truth[:15]))
    rows = Rows(pairs, torch.ones(15), torch.arange(15, 150), free_y)
    config = ClosedFormConfig(n_landmarks=150, max_rank=60)
    seen = []
    coordinates: list[Coordinates] = lay_out(x, y, config, generator())
    config = choose_ridge(coordinates, rows, config, generator())
    assert config.ridge < ClosedFormConfig().ridge  # the views differ by a linear map alone
    towers = soft_rounds(coordinates, rows, config, on_round=seen.append)
    assert len(towers) == 2
    assert len(seen) == config.n_rounds
    found = free_y[seen[-1].plan.partners()].numpy()
    assert (found == truth[15:]).mean() > 0.9
    assert seen[-1].n_pairs > 15
    again: list[Round] = []
    soft_rounds(coordinates, rows, config, start=seen[0].plan, on_round=again.append)
    assert len(again) == config.n_rounds - WARM_ROUNDS
    assert again[0].plan is seen[0].plan
