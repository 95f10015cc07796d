import itertools

import numpy as np
import pytest
import torch

from unpaired.errors import InputError
from unpaired.math.dependence import align_gram, cka, hsic, smi, ukta
from unpaired.math.kernels import gaussian_gram
from unpaired.registry import measures


def to_matrix(perm):
    """Pi with Pi[perm[i], i] = 1."""
    return torch.eye(len(perm), dtype=torch.float64)[:, perm]


def invert(perm):
    return torch.argsort(perm)


def linear_gram(x):
    return x @ x.T


# The formulas of the method with Pi written out; K, L and P are NumPy matrices.


def written_ukta(K, L, P):
    return np.trace(K @ P.T @ L @ P)


def written_hsic(K, L, P):
    n = len(K)
    H = np.eye(n) - np.ones((n, n)) / n
    return np.trace(H @ K @ H @ P.T @ (H @ L @ H) @ P) / n**2


def written_cka(K, L, P):
    both, eye = written_hsic(K, L, P), np.eye(len(K))
    return both / np.sqrt(written_hsic(K, K, eye) * written_hsic(L, L, eye))


def written_smi(K, L, P, ridge=1e-3):
    n = len(K)
    M = P.T @ L @ P
    H = np.zeros((n, n))
    h = np.zeros(n)
    for l, m in itertools.product(range(n), repeat=2):
        H[l, m] = np.mean(
            [[K[i, l] * K[i, m] * M[j, l] * M[j, m] for j in range(n)] for i in range(n)]
        )
    for l in range(n):
        h[l] = np.mean([K[i, l] * M[i, l] for i in range(n)])
    alpha = np.linalg.inv(H + ridge * np.eye(n)) @ h
    return np.trace(np.diag(alpha) @ K @ M) / (2 * n) - 0.5


WRITTEN = {"ukta": written_ukta, "hsic": written_hsic, "cka": written_cka, "smi": written_smi}
by_name = pytest.mark.parametrize("name", sorted(measures))


def test_every_measure_has_an_oracle_here():
    assert set(WRITTEN) == set(measures)


# Oracles


@by_name
@pytest.mark.parametrize("matched", [True, False])
def test_measure_with_pi_written_out(name, matched, grams):
    gram_x, gram_y, perm = grams
    pi = to_matrix(perm) if matched else torch.eye(len(perm))
    expected = WRITTEN[name](gram_x.numpy(), gram_y.numpy(), pi.numpy())
    value = measures[name](gram_x, gram_y, perm if matched else None)
    assert value.shape == ()
    assert value.item() == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("ridge", [1e-4, 0.1, 10.0])
def test_smi_ridge_with_pi_written_out(ridge, grams):
    gram_x, gram_y, perm = grams
    expected = written_smi(gram_x.numpy(), gram_y.numpy(), to_matrix(perm).numpy(), ridge)
    assert smi(gram_x, gram_y, perm, ratio_ridge=ridge).item() == pytest.approx(expected, rel=1e-8)


def test_pi_has_its_ones_at_the_partners(grams):
    perm = grams[2]
    pi = to_matrix(perm)
    assert pi.sum() == len(perm)
    assert all(pi[perm[i], i] == 1 for i in range(len(perm)))


def test_pi_points_from_x_to_its_partner_in_y(grams):
    gram_y, perm = grams[1:]
    aligned = align_gram(gram_y, perm)
    for i, j in itertools.product(range(len(perm)), repeat=2):
        assert aligned[i, j] == gram_y[perm[i], perm[j]]
    assert align_gram(gram_y, None) is gram_y


# Brute force: among all matchings, the true one of a rotated copy is best


@pytest.mark.parametrize("measure", [ukta, hsic, cka])
def test_true_matching_of_a_rotated_copy_is_the_best_of_all(measure, rng):
    x = rng.normal(size=(5, 3))
    truth = torch.tensor(rng.permutation(5))
    y = np.empty_like(x)
    y[truth] = x @ np.linalg.qr(rng.normal(size=(3, 3)))[0]
    gram_x = gaussian_gram(torch.tensor(x), bandwidth=1.0)
    gram_y = gaussian_gram(torch.tensor(y), bandwidth=1.0)
    values = {
        perm: measure(gram_x, gram_y, torch.tensor(perm)).item()
        for perm in itertools.permutations(range(5))
    }
    assert max(values, key=values.get) == tuple(truth.tolist())


# Invariants


@by_name
def test_shuffling_both_views_alike_changes_nothing(name, grams, rng):
    gram_x, gram_y, perm = grams
    order = torch.tensor(rng.permutation(len(perm)))
    before = measures[name](gram_x, gram_y, perm)
    # row i of the new x is row order[i] of the old one, and so is its partner
    after = measures[name](gram_x[order][:, order], gram_y, perm[order])
    torch.testing.assert_close(after, before)
    both = measures[name](
        gram_x[order][:, order], gram_y[order][:, order], invert(order)[perm[order]]
    )
    torch.testing.assert_close(both, before)


@by_name
def test_swapped_views_with_the_inverse_perm(name, grams):
    gram_x, gram_y, perm = grams
    torch.testing.assert_close(
        measures[name](gram_y, gram_x, invert(perm)), measures[name](gram_x, gram_y, perm)
    )
    wrong = measures[name](gram_y, gram_x, perm)  # the fixture's perm is not its own inverse
    right = measures[name](gram_x, gram_y, perm)
    assert not torch.isclose(wrong, right, rtol=1e-10)  # near it by chance is not equal to it


@by_name
@pytest.mark.parametrize("gram", [linear_gram, lambda x: gaussian_gram(x, bandwidth=1.5)])
def test_rotating_one_view_changes_nothing(name, gram, rng):
    x, y = torch.tensor(rng.normal(size=(6, 3))), torch.tensor(rng.normal(size=(6, 4)))
    turn = torch.tensor(np.linalg.qr(rng.normal(size=(4, 4)))[0])
    torch.testing.assert_close(
        measures[name](gram(x), gram(y @ turn)), measures[name](gram(x), gram(y))
    )


def test_scale_of_the_gram_matrices(grams):
    gram_x, gram_y, perm = grams
    torch.testing.assert_close(cka(3 * gram_x, 0.2 * gram_y, perm), cka(gram_x, gram_y, perm))
    for measure in (ukta, hsic):
        torch.testing.assert_close(
            measure(3 * gram_x, 5 * gram_y, perm), 15 * measure(gram_x, gram_y, perm)
        )


def test_a_constant_added_to_a_gram_matrix_is_centred_away(grams):
    gram_x, gram_y, perm = grams
    for measure in (hsic, cka):
        torch.testing.assert_close(
            measure(gram_x + 4.0, gram_y, perm), measure(gram_x, gram_y, perm)
        )
    assert ukta(gram_x + 4.0, gram_y, perm) > ukta(gram_x, gram_y, perm) + 1.0


def test_cka_of_a_view_with_itself_is_one(grams):
    gram_x, _, perm = grams
    assert cka(gram_x, 7 * gram_x).item() == pytest.approx(1.0)
    aligned = gram_x[invert(perm)][:, invert(perm)]
    assert cka(gram_x, aligned, perm).item() == pytest.approx(1.0)
    assert 0.0 <= cka(*grams).item() < 1.0


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("level", [0.0, 0.3, 1.0, 123.456])
def test_collapse_pays_in_ukta_only(grams, dtype, level):
    constant = torch.full((7, 7), level, dtype=dtype, requires_grad=True)
    gram_y = grams[1].to(dtype)
    for measure in (hsic, cka):
        value = measure(constant, gram_y)
        assert abs(value.item()) < 1e-5
        assert (torch.autograd.grad(value, constant)[0].abs() < 10).all()  # and so not NaN
    ones = torch.ones(7, 7, dtype=dtype)
    assert ukta(ones, ones) > ukta(grams[0].to(dtype), gram_y)


def test_smi_falls_when_the_matching_is_lost(rng):
    x = torch.tensor(rng.normal(size=(40, 2)))
    gram_x, gram_y = gaussian_gram(x, bandwidth=1.0), gaussian_gram(x**3, bandwidth=2.0)
    shuffled = torch.tensor(rng.permutation(40))
    assert smi(gram_x, gram_y) > smi(gram_x, gram_y, shuffled) + 0.1


# Gradients


@by_name
@pytest.mark.parametrize("matched", [True, False])
def test_gradients_reach_both_gram_matrices(name, matched, grams):
    gram_x, gram_y = (gram.clone().requires_grad_() for gram in grams[:2])
    perm = grams[2] if matched else None
    assert torch.autograd.gradcheck(
        lambda a, b: measures[name](a, b, perm), (gram_x, gram_y), atol=1e-4, rtol=1e-4
    )


def test_smi_gradient_passes_through_the_fitted_ratio(grams):
    gram_x, gram_y = grams[0].clone().requires_grad_(), grams[1]
    (full,) = torch.autograd.grad(smi(gram_x, gram_y), gram_x)
    n = len(gram_x)
    with torch.no_grad():
        moment = (gram_x.T @ gram_x) * (gram_y.T @ gram_y) / n**2
        alpha = torch.linalg.solve(
            moment + 1e-3 * torch.eye(n, dtype=moment.dtype), (gram_x * gram_y).mean(0)
        )
    held = alpha[None, :] * gram_y / (2 * n)  # derivative with alpha held fixed
    assert not torch.allclose(full, held, rtol=1e-2)


@by_name
def test_gradients_reach_the_rows(name, rng):
    x, y = (torch.tensor(rng.normal(size=(5, 2)), requires_grad=True) for _ in "xy")
    perm = torch.tensor(rng.permutation(5))

    def value(a, b):
        return measures[name](
            gaussian_gram(a, bandwidth=1.0), gaussian_gram(b, bandwidth=1.0), perm
        )

    assert torch.autograd.gradcheck(value, (x, y), atol=1e-4, rtol=1e-3)


# Errors: every measure passes its arguments through the gate


@by_name
@pytest.mark.parametrize(
    ("shape_x", "shape_y", "perm", "message"),
    [
        ((3,), (3,), None, "gram_x must be square: it has shape (3,)."),
        ((3, 3), (3, 2), None, "gram_y must be square: it has shape (3, 2)."),
        ((3, 3), (4, 4), None, "gram_x and gram_y must have one size: they have 3 and 4 rows."),
        ((3, 3), (3, 3), [0, 1, 1], "perm is not a permutation of 0..2: index 1 occurs twice"),
        ((3, 3), (3, 3), [0.0, 1.0, 2.0], "perm must be one row number of y for each row of x"),
    ],
)
def test_measures_refuse_what_cannot_be_matched(name, shape_x, shape_y, perm, message):
    index = None if perm is None else torch.tensor(perm)
    with pytest.raises(InputError) as error:
        measures[name](torch.ones(shape_x), torch.ones(shape_y), index)
    assert str(error.value).startswith(message)
