import numpy as np
import pytest

from unpaired.errors import InputError
from unpaired.evaluation.retrieval import both_ways, foscttm, recall_at_k


def slow_recall(scores, relevant, k):
    """Share of rows whose best relevant column has fewer than k others before it; ties half."""
    hits = 0
    for row, wanted in zip(scores, relevant, strict=True):
        best = max(row[j] for j in range(len(row)) if wanted[j])
        places = 0.0
        for j in range(len(row)):
            if not wanted[j] and row[j] > best:
                places += 1
            elif not wanted[j] and row[j] == best:
                places += 0.5
        hits += places < k
    return hits / len(scores)


def slow_foscttm(scores):
    n = len(scores)
    total = 0.0
    for i in range(n):
        for j in range(n):
            if j != i:
                total += (scores[i, j] > scores[i, i]) + 0.5 * (scores[i, j] == scores[i, i])
                total += (scores[j, i] > scores[i, i]) + 0.5 * (scores[j, i] == scores[i, i])
    return total / (2 * n * (n - 1))


@pytest.fixture(params=["real", "all negative", "ties", "all equal"])
def scores(request, rng):
    """Scores of 8 images against 8 captions; captions belong to images in runs of uneven length."""
    real = rng.normal(size=(8, 8))
    return {
        "real": real,
        "all negative": real - 10,
        "ties": rng.integers(-2, 2, size=(8, 8)).astype(float),
        "all equal": np.full((8, 8), -1.0),
    }[request.param]


# Oracles


@pytest.mark.parametrize("k", [1, 2, 5, 8])
def test_recall_by_loops_with_several_captions(scores, rng, k):
    relevant = rng.random((8, 8)) < 0.25
    relevant[np.arange(8), rng.integers(8, size=8)] = True
    assert recall_at_k(scores, relevant, ks=(k,)) == {f"R@{k}": slow_recall(scores, relevant, k)}


def test_recall_by_loops_with_one_caption(scores, rng):
    column = rng.integers(8, size=8)
    mask = column[:, None] == np.arange(8)
    expected = {f"R@{k}": slow_recall(scores, mask, k) for k in (1, 5, 10)}
    assert recall_at_k(scores, column) == expected == recall_at_k(scores, mask)


def test_both_ways_by_loops(rng):
    owner = rng.permutation([0, 0, 0, 1, 1, 2, 3])  # 7 captions of 4 images
    scores = rng.normal(size=(4, 7)) - 5
    relevant = owner[None, :] == np.arange(4)[:, None]
    expected = {f"x->y R@{k}": slow_recall(scores, relevant, k) for k in (1, 2)}
    expected |= {f"y->x R@{k}": slow_recall(scores.T, relevant.T, k) for k in (1, 2)}
    assert both_ways(scores, owner, ks=(1, 2)) == expected


def test_foscttm_by_loops(scores):
    assert foscttm(scores) == pytest.approx(slow_foscttm(scores))


# Invariants


@pytest.mark.parametrize("change", [lambda s: s - 100, lambda s: s * 3, lambda s: s**3])
def test_only_the_order_of_scores_counts(scores, change):
    changed = change(scores)
    assert recall_at_k(changed, np.arange(8)) == recall_at_k(scores, np.arange(8))
    assert foscttm(changed) == foscttm(scores)


def test_shuffling_both_sides_alike_changes_nothing(scores, rng):
    order = rng.permutation(8)
    shuffled = scores[order][:, order]
    assert recall_at_k(shuffled, np.arange(8)) == recall_at_k(scores, np.arange(8))
    assert foscttm(shuffled) == pytest.approx(foscttm(scores))
    assert foscttm(scores.T) == pytest.approx(foscttm(scores))


def test_foscttm_of_perfect_reversed_and_uninformative_scores():
    truth = np.eye(5)
    assert (foscttm(truth), foscttm(-truth), foscttm(np.zeros((5, 5)))) == (0.0, 1.0, 0.5)


def test_recall_grows_with_k_to_one(scores):
    values = list(recall_at_k(scores, np.arange(8), ks=range(1, 10)).values())
    assert values == sorted(values)
    assert values[-1] == 1.0


# Errors


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: recall_at_k(np.eye(3), np.eye(3)[:, :2] > 0),
            "relevant must be a boolean (3, 3) matrix or 3 column numbers: it has shape (3, 2) and "
            "type bool. One entry per row of scores.",
        ),
        (
            lambda: recall_at_k(np.eye(2), np.array([0.0, 1.0])),
            "relevant must be a boolean (2, 2) matrix or 2 column numbers: it has shape (2,) and "
            "type float64. One entry per row of scores.",
        ),
        (
            lambda: recall_at_k(np.eye(2), np.array([[True, False], [False, False]])),
            "relevant must mark at least one column in every row: row 1 has none. "
            "Drop rows without truth.",
        ),
        (
            lambda: recall_at_k(np.eye(3), np.array([0, -1, 3])),
            "relevant must mark at least one column in every row: row 1 has none. "
            "Drop rows without truth.",
        ),
        (
            lambda: both_ways(np.eye(3), np.array([0, 1, 1])),
            "relevant must mark at least one column in every row: row 2 has none. "
            "Drop rows without truth.",
        ),
        (
            lambda: recall_at_k(np.array([[np.nan, 1.0]]), np.array([0])),
            "scores must be a matrix without NaN: its shape is (1, 2) and 1 entries are NaN. "
            "Score every row against every column.",
        ),
        (
            lambda: both_ways(np.ones(3), np.arange(3)),
            "scores must be a matrix without NaN: its shape is (3,) and 0 entries are NaN. "
            "Score every row against every column.",
        ),
        (
            lambda: foscttm(np.full((2, 2), np.nan)),
            "scores must be a matrix without NaN: its shape is (2, 2) and 4 entries are NaN. "
            "Score every row against every column.",
        ),
        (
            lambda: foscttm(np.ones((2, 3))),
            "foscttm needs a square score matrix of at least 2 rows, row i and column i belonging "
            "together: got shape (2, 3). Reorder the columns first.",
        ),
        (
            lambda: foscttm(np.ones((1, 1))),
            "foscttm needs a square score matrix of at least 2 rows, row i and column i belonging "
            "together: got shape (1, 1). Reorder the columns first.",
        ),
    ],
)
def test_wrong_arguments(call, message):
    with pytest.raises(InputError) as error:
        call()
    assert str(error.value) == message
