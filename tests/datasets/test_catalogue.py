import json

import numpy as np
import pytest

from unpaired.datasets.catalogue import check_folder
from unpaired.errors import DataError


def test_a_folder_of_several_data_sets(tmp_path, rng):
    binary = tmp_path / "cifar-10-batches-bin"
    binary.mkdir()
    for name in [f"data_batch_{k}" for k in range(1, 6)] + ["test_batch"]:
        (binary / f"{name}.bin").write_bytes(bytes(3073 * 2))
    half = tmp_path / "half"
    half.mkdir()
    (half / "data_batch_1.bin").write_bytes(bytes(3073))
    animals = tmp_path / "awa"
    animals.mkdir()
    (animals / "classes.txt").write_text("1 cat\n2 dog\n")
    (animals / "predicate-matrix-binary.txt").write_text("0 1\n1 0\n")
    sentences = [{"tokens": ["a"], "raw": "a", "sentid": 0}]
    image = {"filename": "1.jpg", "split": "test", "sentences": sentences}
    (tmp_path / "dataset_flickr8k.json").write_text(json.dumps({"images": [image]}))
    prepared = tmp_path / "flickr8k"
    prepared.mkdir()
    np.savez(prepared / "images.npz", features=rng.normal(size=(1, 2)), split=["test"])
    np.savez(prepared / "captions.npz", features=rng.normal(size=(3, 2)), image=[0, 0, 0])
    (tmp_path / "wiki.en.vec").write_text("a 1 2\n")
    found = {(f.name, f.folder.name): f for f in check_folder(tmp_path)}
    whole = found["cifar10", "cifar-10-batches-bin"]
    assert whole.whole
    assert "train: photos (10, 32, 32, 3), labels (10,)" in whole.lines
    assert "missing: test_batch.bin" in found["cifar10", "half"].lines
    assert "features are absent" in found["awa", "awa"].lines[0]
    listed = found["flickr8k", tmp_path.name]
    assert not listed.whole
    assert "1 images (0 train, 0 val, 1 test), 1 captions" in listed.lines[0]
    assert any(line.startswith("missing: image features") for line in listed.lines)
    assert found["captions, npz", "flickr8k"].lines[0] == "x (1, 2), y (3, 2)"
    assert ("words", tmp_path.name) in found


def test_python_batches_that_are_not_the_official_ones_are_told(tmp_path):
    (tmp_path / "data_batch_1").write_bytes(b"no pickle")
    (found,) = check_folder(tmp_path)
    assert "not the official files (checksum): data_batch_1" in found.lines
    assert not found.whole


def test_there_must_be_a_folder(tmp_path):
    assert check_folder(tmp_path) == []
    with pytest.raises(DataError, match="There is no folder"):
        check_folder(tmp_path / "none")
