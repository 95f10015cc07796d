import json

import numpy as np
import pytest
from scipy.io import savemat

from unpaired.datasets.captions import load_captions, mean_of_words
from unpaired.datasets.word_vectors import WordVectors
from unpaired.errors import DataError, InputError

SPLITS = ["train", "test", "restval", "val", "test"]
VECTORS = WordVectors(("a", "dog", "runs"), np.array([[1, 0], [0, 2], [4, 4]], dtype=np.float32))


def write_list(folder, name="flickr8k", step=1):
    images, sentence = [], 0
    for i, split in enumerate(SPLITS):
        sentences = []
        for k in range(5):
            tokens = ["a", "dog"] if k else ["Dog", "runs", f"word{i}"]
            sentences.append({"tokens": tokens, "raw": f"{i}.{k}", "imgid": i, "sentid": sentence})
            sentence += step
        images.append({"filename": f"{i}.jpg", "split": split, "imgid": i, "sentences": sentences})
    (folder / f"dataset_{name}.json").write_text(json.dumps({"images": images, "dataset": name}))


def test_vgg_features_have_one_column_per_image(tmp_path, rng):
    write_list(tmp_path)
    features = rng.normal(size=(7, 5))
    savemat(tmp_path / "vgg_feats.mat", {"feats": features})
    data = load_captions(tmp_path, "flickr8k", word_vectors=VECTORS)
    np.testing.assert_allclose(data.x, features.T, rtol=1e-6)
    assert data.split.tolist() == ["train", "test", "train", "val", "test"]
    assert data.y.shape == (25, 2)
    np.testing.assert_array_equal(data.owner, np.repeat(np.arange(5), 5))
    np.testing.assert_array_equal(data.truth, np.arange(0, 25, 5))
    np.testing.assert_allclose(data.y[0], [2, 3])  # "dog runs word0": the mean of the known words
    assert data.names_x[1] == "1.jpg"
    assert data.names_y[6] == "1.1"


def test_one_caption_and_fewer_test_images(tmp_path, rng):
    write_list(tmp_path)
    np.save(tmp_path / "images.npy", rng.normal(size=(5, 3)))
    captions = rng.normal(size=(25, 4)).astype(np.float32)
    np.save(tmp_path / "captions.npy", captions)
    data = load_captions(tmp_path, "flickr8k", captions_per_image=1, max_test_images=1)
    assert data.x.shape == (4, 3)  # the second test image is gone
    np.testing.assert_array_equal(data.owner, np.arange(4))
    np.testing.assert_array_equal(data.y, captions[[0, 5, 10, 15]])


def test_numbers_of_sentences_with_gaps_follow_the_file(tmp_path, rng):
    write_list(tmp_path, "coco", step=7)
    np.save(tmp_path / "images.npy", rng.normal(size=(5, 3)))
    captions = rng.normal(size=(25, 4)).astype(np.float32)
    np.savez(tmp_path / "captions.npz", features=captions)
    np.testing.assert_array_equal(load_captions(tmp_path, "coco").y, captions)


def test_words_nobody_knows_give_zero():
    np.testing.assert_array_equal(mean_of_words((("zebra",),), VECTORS), [[0, 0]])


def test_absent_and_wrong_files_are_told(tmp_path, rng):
    with pytest.raises(DataError, match=r"caption_datasets\.zip"):
        load_captions(tmp_path, "flickr30k")
    with pytest.raises(InputError, match='Unknown data set "flikr8k". Did you mean "flickr8k"'):
        load_captions(tmp_path, "flikr8k")
    write_list(tmp_path)
    with pytest.raises(DataError, match=r"vgg_feats\.mat"):
        load_captions(tmp_path, "flickr8k")
    np.save(tmp_path / "images.npy", rng.normal(size=(4, 3)))
    with pytest.raises(DataError, match="must have 5 rows or columns"):
        load_captions(tmp_path, "flickr8k", word_vectors=VECTORS)
    np.save(tmp_path / "images.npy", rng.normal(size=(5, 3)))
    with pytest.raises(DataError, match="pass word_vectors"):
        load_captions(tmp_path, "flickr8k")
    with pytest.raises(InputError, match="captions_per_image"):
        load_captions(tmp_path, "flickr8k", captions_per_image=0)
    (tmp_path / "dataset_flickr8k.json").write_text('{"images": [{"filename": 1}]}')
    with pytest.raises(DataError, match="Karpathy's list"):
        load_captions(tmp_path, "flickr8k")
