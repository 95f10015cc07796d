import numpy as np
import pytest
from scipy.io import savemat

from unpaired.datasets.awa import load_awa
from unpaired.errors import DataError

NAMES = ["antelope", "grizzly+bear", "killer+whale"]


@pytest.fixture
def base(tmp_path):
    """The authors' layout with three animals, two attributes and five images."""
    root = tmp_path / "Animals_with_Attributes2"
    features = root / "Features" / "ResNet101"
    features.mkdir(parents=True)
    (root / "classes.txt").write_text("".join(f"{i + 1:6d}\t{n}\n" for i, n in enumerate(NAMES)))
    (root / "predicate-matrix-continuous.txt").write_text(" -1.00  10.5\n 20 30.25\n 1 2\n")
    (root / "predicate-matrix-binary.txt").write_text("0 1\n1 1\n1 0\n")
    (root / "testclasses.txt").write_text("killer+whale\n")
    (features / "AwA2-labels.txt").write_text("1\n1\n2\n3\n3\n")
    rows = "\n".join(" ".join(str(10 * i + j) for j in range(4)) for i in range(5))
    (features / "AwA2-features.txt").write_text(rows)
    return tmp_path


def test_the_authors_layout(base):
    data = load_awa(base)
    assert data.x.shape == (5, 4)
    assert data.x[2, 3] == 23
    assert data.truth.tolist() == [0, 0, 1, 2, 2]
    assert data.names_y == tuple(NAMES)
    assert data.split.tolist() == ["train"] * 3 + ["test"] * 2
    np.testing.assert_allclose(data.y[0], [-1, 10.5])
    np.testing.assert_array_equal(load_awa(base, predicates="binary").y[2], [1, 0])
    words = load_awa(base, class_vectors=np.eye(3))
    np.testing.assert_array_equal(words.y, np.eye(3))


def test_the_benchmarks_layout(tmp_path, rng):
    features = rng.normal(size=(4, 5)).astype(np.float32)  # one column per image
    savemat(tmp_path / "res101.mat", {"features": features, "labels": [[1], [1], [2], [3], [3]]})
    names = np.array([[name] for name in NAMES], dtype=object)
    savemat(
        tmp_path / "att_splits.mat",
        {"allclasses_names": names, "att": rng.normal(size=(2, 3)), "test_unseen_loc": [[4], [5]]},
    )
    data = load_awa(tmp_path)
    np.testing.assert_allclose(data.x, features.T)
    assert data.y.shape == (3, 2)
    assert data.names_y == tuple(NAMES)
    assert data.split.tolist() == ["train"] * 3 + ["test"] * 2


def test_ones_own_features(base, rng):
    root = base / "Animals_with_Attributes2"
    np.save(root / "features.npy", rng.normal(size=(5, 7)).astype(np.float16))
    np.save(root / "labels.npy", np.array([3, 2, 1, 1, 1]))
    data = load_awa(base)
    assert data.x.shape == (5, 7)
    assert data.truth.tolist() == [2, 1, 0, 0, 0]


def test_absent_and_wrong_files_are_told(base, tmp_path):
    with pytest.raises(DataError, match=r"AwA2-features\.zip"):
        load_awa(tmp_path / "nothing")
    features = base / "Animals_with_Attributes2" / "Features" / "ResNet101"
    (features / "AwA2-labels.txt").write_text("1\n1\n2\n3\n4\n")
    with pytest.raises(DataError, match="from 1 to 3"):
        load_awa(base)
    (features / "AwA2-labels.txt").write_text("1\n1\n2\n")
    with pytest.raises(DataError, match="3 rows or columns"):
        load_awa(base)
    (features / "AwA2-features.txt").unlink()
    with pytest.raises(DataError, match="features are absent"):
        load_awa(base)
    (features / "AwA2-features.txt").write_text("1 2\n3 4\n5 6\n")
    with pytest.raises(DataError, match="one row for each of the 3 classes"):
        load_awa(base, class_vectors=np.eye(2))
