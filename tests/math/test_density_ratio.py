import numpy as np
import pytest
import torch

from unpaired.math.density_ratio import fit_ratio


@pytest.fixture
def basis_grams(rng):
    """Kernel values of 6 matched rows against 3 basis points of their own view."""
    return torch.tensor(rng.random((6, 3)) + 0.1), torch.tensor(rng.random((6, 3)) + 0.1)


@pytest.mark.parametrize("ridge", [1e-3, 0.5])
def test_fit_by_loops(basis_grams, ridge):
    gram_x, gram_y = basis_grams
    n, b = gram_x.shape
    moment, mean = np.zeros((b, b)), np.zeros(b)
    for i in range(n):
        for j in range(n):
            phi = gram_x[i].numpy() * gram_y[j].numpy()  # basis functions at the pair (i, j)
            moment += np.outer(phi, phi) / n**2
            mean += phi / n if i == j else 0.0
    coef = np.linalg.inv(moment + ridge * np.eye(b)) @ mean
    fit = fit_ratio(gram_x, gram_y, ratio_ridge=ridge)
    np.testing.assert_allclose(fit.all_pairs_moment, moment, rtol=1e-10)
    np.testing.assert_allclose(fit.matched_mean, mean, rtol=1e-10)
    np.testing.assert_allclose(fit.coef, coef, rtol=1e-7)
    assert fit.smi.item() == pytest.approx(0.5 * coef @ mean - 0.5, rel=1e-7)


def test_coef_minimises_the_squared_loss(basis_grams, rng):
    gram_x, gram_y = basis_grams
    fit = fit_ratio(gram_x, gram_y, ratio_ridge=0.1)

    def loss(coef):
        square = coef @ fit.all_pairs_moment @ coef
        return 0.5 * square - coef @ fit.matched_mean + 0.05 * coef @ coef

    for _ in range(20):
        nudge = torch.tensor(rng.normal(size=3)) * 0.1
        assert loss(fit.coef + nudge) > loss(fit.coef)


def test_mean_ratio_of_matched_pairs_is_what_smi_is_made_of(basis_grams):
    gram_x, gram_y = basis_grams
    fit = fit_ratio(gram_x, gram_y)
    ratios = [
        sum(float(fit.coef[l] * gram_x[i, l] * gram_y[i, l]) for l in range(3)) for i in range(6)
    ]
    assert fit.smi.item() == pytest.approx(0.5 * np.mean(ratios) - 0.5)


def test_order_of_pairs_and_of_basis_points_does_not_matter(basis_grams, rng):
    gram_x, gram_y = basis_grams
    rows, basis = torch.tensor(rng.permutation(6)), torch.tensor(rng.permutation(3))
    fit, shuffled = fit_ratio(gram_x, gram_y), fit_ratio(gram_x[rows], gram_y[rows])
    torch.testing.assert_close(shuffled.coef, fit.coef)
    torch.testing.assert_close(fit_ratio(gram_x[:, basis], gram_y[:, basis]).coef, fit.coef[basis])


def test_swapped_views_give_the_same_fit(basis_grams):
    gram_x, gram_y = basis_grams
    fit, swapped = fit_ratio(gram_x, gram_y), fit_ratio(gram_y, gram_x)
    torch.testing.assert_close(swapped.coef, fit.coef)
    torch.testing.assert_close(swapped.smi, fit.smi)


def test_gradients_pass_through_the_fit(basis_grams):
    gram_x, gram_y = (gram.clone().requires_grad_() for gram in basis_grams)
    assert torch.autograd.gradcheck(
        lambda a, b: fit_ratio(a, b, ratio_ridge=0.1).coef, (gram_x, gram_y)
    )
