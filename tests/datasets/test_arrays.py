import numpy as np
import pytest

from unpaired.datasets.arrays import read_matrix
from unpaired.errors import DataError


def test_matrices_of_all_kinds(tmp_path, rng):
    from scipy.io import savemat

    values = rng.normal(size=(4, 3)).astype(np.float32)
    np.save(tmp_path / "x.npy", values)
    np.savez(tmp_path / "x.npz", features=values, other=values + 1)
    np.savetxt(tmp_path / "x.txt", values)
    savemat(tmp_path / "x.mat", {"features": values.T})
    for kind in ("npy", "npz", "txt", "mat"):
        np.testing.assert_array_equal(read_matrix(tmp_path / f"x.{kind}", n_rows=4), values)


@pytest.mark.parametrize("kind", ["npy", "npz"])
def test_an_array_cut_short_is_refused_before_it_is_read(tmp_path, kind):
    path = tmp_path / f"x.{kind}"
    (np.save if kind == "npy" else np.savez)(path, np.zeros((100, 100)))
    path.write_bytes(path.read_bytes()[:5000])
    with pytest.raises(DataError, match=str(path)):
        read_matrix(path)


def test_pickles_are_never_read(tmp_path):
    np.save(tmp_path / "x.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(DataError, match="pickled objects, which are never read"):
        read_matrix(tmp_path / "x.npy")
