"""Nearest rows: blocks and cells against a full sort."""

import numpy as np
import pytest

from unpaired.errors import InputError
from unpaired.math.neighbours import build_cells, cell_means, search_cells, top_k


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


def test_cells_find_what_the_exact_search_finds(rng):
    base = rng.normal(size=(4000, 6))
    queries = base[:500] + 0.01 * rng.normal(size=(500, 6))
    cells = build_cells(base, rng)
    assert len(cells.centers) == 4000 // 256
    index, square = search_cells(cells, queries, 3, n_probes=len(cells.centers))
    exact, distance = top_k(queries, base, 3)
    assert (index == exact).mean() > 0.999
    np.testing.assert_allclose(square, distance, atol=1e-4)
    few, _ = search_cells(cells, queries, 1, n_probes=1)
    assert (few[:, 0] == exact[:, 0]).mean() > 0.9  # near rows share a cell


def test_every_row_is_in_one_cell_the_one_of_its_nearest_centre(rng):
    base = rng.normal(size=(1000, 3))
    cells = build_cells(base, rng, cell_size=100)
    assert sorted(cells.members.tolist()) == list(range(1000))
    np.testing.assert_allclose(cells.rows, base[cells.members], rtol=1e-6)
    nearest = top_k(base, cells.centers, 1)[0][:, 0]
    for cell in range(len(cells.centers)):
        members = cells.members[cells.starts[cell] : cells.starts[cell + 1]]
        assert set(members.tolist()) == set(np.flatnonzero(nearest == cell).tolist())


def test_slots_without_a_row_are_empty(rng):
    cells = build_cells(rng.normal(size=(3, 2)), rng)
    index, square = search_cells(cells, rng.normal(size=(4, 2)), 5)
    assert (index[:, 3:] == -1).all()
    assert np.isinf(square[:, 3:]).all()
    assert sorted(index[0, :3].tolist()) == [0, 1, 2]


def test_means_of_cells_and_the_centre_of_an_empty_one():
    rows = np.array([[0.0, 0.0], [2.0, 4.0], [5.0, 5.0]], dtype=np.float32)
    centers = np.full((3, 2), 9.0, dtype=np.float32)
    means = cell_means(rows, np.array([2, 2, 0]), centers)
    assert means.tolist() == [[5.0, 5.0], [9.0, 9.0], [1.0, 2.0]]


def test_wrong_input_is_named():
    with pytest.raises(InputError, match=r"k must lie in 1..2, the rows of base. Got 3. Lower it."):
        top_k(np.zeros((2, 2)), np.zeros((2, 2)), 3)
    with pytest.raises(InputError, match="queries and base must be matrices with equally many col"):
        top_k(np.zeros((2, 2)), np.zeros((2, 3)), 1)
