import numpy as np
import pytest

from unpaired.datasets.prepared import load_aligned, load_caption_features, load_class_features
from unpaired.errors import DataError


def test_captions(tmp_path, rng):
    images = rng.normal(size=(3, 4)).astype(np.float16)
    np.savez(tmp_path / "images.npz", features=images, split=["train", "test", "none"])
    captions = rng.normal(size=(5, 2)).astype(np.float16)
    np.savez(tmp_path / "captions.npz", features=captions, image=[1, 1, 0, 2, 2])
    data = load_caption_features(tmp_path)
    assert data.x.dtype == np.float32
    assert data.truth.tolist() == [2, 0, 3]
    assert data.owner.tolist() == [1, 1, 0, 2, 2]
    np.savez(tmp_path / "captions.npz", features=captions, image=[1, 1, 0, 2, 3])
    with pytest.raises(DataError, match="0 to 2"):
        load_caption_features(tmp_path)
    np.savez(tmp_path / "captions.npz", features=captions)
    with pytest.raises(DataError, match="image absent; it has features"):
        load_caption_features(tmp_path)
    (tmp_path / "captions.npz").write_bytes(b"PK damaged")
    with pytest.raises(DataError, match="cannot be read"):
        load_caption_features(tmp_path)


def test_classes(tmp_path, rng):
    for split, size in (("train", 4), ("test", 2)):
        np.savez(
            tmp_path / f"{split}.npz",
            features=rng.normal(size=(size, 3)),
            label=np.arange(size) % 2,
        )
    prompts = rng.normal(size=(2, 8, 6))
    np.savez(tmp_path / "classes.npz", name=["cat", "dog"], words=np.eye(2), prompts=prompts)
    data = load_class_features(tmp_path, ["prompts"])
    np.testing.assert_allclose(data.y, prompts.mean(1), rtol=1e-5)
    assert data.split.tolist() == ["train"] * 4 + ["test"] * 2
    assert data.names_y == ("cat", "dog")
    assert load_class_features(tmp_path).y.shape == (2, 8)
    with pytest.raises(DataError, match="glove absent"):
        load_class_features(tmp_path, ["glove"])
    (tmp_path / "test.npz").unlink()
    with pytest.raises(DataError, match="There is no file"):
        load_class_features(tmp_path)


def test_aligned(tmp_path, rng):
    x, y = rng.normal(size=(4, 3)), rng.normal(size=(4, 2))
    np.savez(tmp_path / "both.npz", x=x, y=y)
    np.save(tmp_path / "y.npy", y)
    for data in (
        load_aligned(tmp_path / "both.npz"),
        load_aligned(tmp_path / "both.npz", tmp_path / "y.npy"),
    ):
        np.testing.assert_allclose(data.y, y, rtol=1e-6)
        assert data.truth.tolist() == [0, 1, 2, 3]
    with pytest.raises(DataError, match="array called left: it has x, y"):
        load_aligned(tmp_path / "both.npz", key_x="left")
    with pytest.raises(DataError, match="There is no file"):
        load_aligned(tmp_path / "none.npz")


def test_images_in_one_file_are_split_by_unseen_classes(tmp_path, rng):
    labels = np.array([0, 2, 1, 2, 0])
    np.savez(tmp_path / "images.npz", features=rng.normal(size=(5, 3)), label=labels)
    arrays = {
        "name": ["a", "b", "c"],
        "attributes": rng.normal(size=(3, 4)),
        "predicate": list("wxyz"),
    }
    np.savez(tmp_path / "classes.npz", **arrays)
    assert load_class_features(tmp_path).split is None
    np.savez(tmp_path / "classes.npz", unseen=[False, False, True], **arrays)
    found = load_class_features(tmp_path)
    assert found.split.tolist() == ["train", "test", "train", "test", "train"]
    assert found.y.shape == (3, 4)
    np.testing.assert_array_equal(found.truth, labels)
