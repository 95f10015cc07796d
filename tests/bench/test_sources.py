import json

import numpy as np
import pytest
from PIL import Image

from unpaired.bench.sources import DataSource
from unpaired.errors import DataError, InputError


def load(spec, root):
    return DataSource(spec, str(root), root / "cache").load()


@pytest.mark.parametrize("source", ["digits", "rotated-clusters"])
def test_toys_have_a_known_answer(tmp_path, source):
    data = load({"source": source, "rows": 40}, tmp_path)
    assert sorted(data.truth) == list(range(40))


def test_the_sample(tmp_path):
    data = load({"source": "sample"}, tmp_path)
    assert data.x.shape == (2000, 1280)
    assert data.y.shape == (10, 484)
    assert (data.split == "test").sum() == 500


def test_words_and_class_names(tmp_path):
    (tmp_path / "en.vec").write_text("polar 1 0\nbear 0 1\ncat 2 2\nthe 9 9\n")
    (tmp_path / "fr.vec").write_text("ours 1 0 0\nchat 0 1 0\n")
    (tmp_path / "en-fr.txt").write_text("bear ours\ncat chat\n")
    spec = {"vectors_x": "en.vec", "vectors_y": "fr.vec", "dictionary": "en-fr.txt"}
    assert load({"source": "words", **spec}, tmp_path).x.shape == (2, 2)
    (tmp_path / "classes.txt").write_text("1 polar+bear\n2 cat\n")
    (tmp_path / "predicate-matrix-continuous.txt").write_text("1 2 3\n4 5 6\n")
    np.save(tmp_path / "features.npy", np.eye(3, dtype=np.float32))
    (tmp_path / "labels.txt").write_text("1\n2\n2\n")
    assert load({"source": "awa"}, tmp_path).y.shape == (2, 3)
    data = load({"source": "awa", "word_vectors": "en.vec"}, tmp_path)
    np.testing.assert_array_equal(data.y, [[0.5, 0.5], [2, 2]])
    (tmp_path / "few.vec").write_text("cat 1 1\n")
    with pytest.raises(InputError, match='no word of "polar.bear"'):
        load({"source": "awa", "word_vectors": "few.vec"}, tmp_path)


def test_patch_features_are_made_once(tmp_path, rng):
    folder = tmp_path / "cifar10"
    folder.mkdir()
    for name in [f"data_batch_{k}" for k in range(1, 6)] + ["test_batch"]:
        pixels = rng.integers(256, size=(2, 1024, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"{name}.png")
    (folder / "train_lables.json").write_text(json.dumps([0, 1] * 5))
    (folder / "test_lables.json").write_text("[2, 3]")
    spec = {"source": "cifar10", "folder": "cifar10", "n_atoms": 3, "n_patches": 300}
    data = load(spec, tmp_path)
    assert data.x.shape == (12, 24)
    assert np.isfinite(data.x).all()
    assert data.split.tolist() == ["train"] * 10 + ["test"] * 2
    (made,) = (tmp_path / "cache").iterdir()
    stamp = made.stat().st_mtime_ns
    np.testing.assert_array_equal(load(spec, tmp_path).x, data.x)
    assert made.stat().st_mtime_ns == stamp
    few = load({**spec, "n_train": 7, "n_test": 1}, tmp_path)
    assert few.split.tolist() == ["train"] * 7 + ["test"]
    np.testing.assert_array_equal(few.truth, np.delete(data.truth, [7, 8, 9, 11]))
    fewer = load({**spec, "n_components": 4}, tmp_path)
    centred = data.x[:10] - data.x[:10].mean(0)
    lengths = np.linalg.svd(centred, compute_uv=False)[:4]  # of the training photos alone
    np.testing.assert_allclose(np.linalg.norm(fewer.x[:10], axis=0), lengths, rtol=1e-4)
    assert fewer.x.shape == (12, 4)
    with pytest.raises(InputError, match='Unknown features "vgg"'):
        load({**spec, "features": "vgg"}, tmp_path)


def test_karpathy_needs_its_file(tmp_path):
    with pytest.raises(DataError, match=r"dataset_flickr30k\.json"):
        load({"source": "karpathy"}, tmp_path)
    with pytest.raises(InputError, match="must have the field file"):
        load({"source": "aligned"}, tmp_path)
