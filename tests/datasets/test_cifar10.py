import json
import pickle

import numpy as np
import pytest
from PIL import Image

from unpaired.datasets.cifar10 import CLASS_NAMES, is_official, load_cifar10, read_cifar10
from unpaired.errors import DataError, InputError

BATCHES = [f"data_batch_{k}" for k in range(1, 6)] + ["test_batch"]


@pytest.fixture
def photos(rng):
    """Two photos for each of six batches, and their labels."""
    return rng.integers(256, size=(6, 2, 32, 32, 3), dtype=np.uint8), rng.integers(10, size=(6, 2))


def planes(images):
    return images.transpose(0, 3, 1, 2).reshape(len(images), 3072)


def write_binary(folder, images, labels):
    for name, photos, classes in zip(BATCHES, images, labels, strict=True):
        records = np.column_stack([classes.astype(np.uint8), planes(photos)])
        (folder / f"{name}.bin").write_bytes(records.tobytes())


def write_python(folder, images, labels):
    for name, photos, classes in zip(BATCHES, images, labels, strict=True):
        batch = {b"data": planes(photos), b"labels": classes.tolist(), b"batch_label": b"x"}
        (folder / name).write_bytes(pickle.dumps(batch, protocol=2))


def write_png(folder, images, labels):
    for name, photos in zip(BATCHES, images, strict=True):
        Image.fromarray(photos.reshape(2, 1024, 3)).save(folder / f"{name}.png")
    (folder / "train_lables.json").write_text(json.dumps(labels[:5].ravel().tolist()))
    (folder / "test_lables.json").write_text(json.dumps(labels[5].tolist()))


@pytest.mark.parametrize("write", [write_binary, write_python, write_png])
@pytest.mark.parametrize("sub", [".", "cifar-10-batches-py"])
def test_all_three_forms_give_the_same_photos(tmp_path, photos, write, sub):
    images, labels = photos
    (tmp_path / sub).mkdir(exist_ok=True)
    write(tmp_path / sub, images, labels)
    found, classes = read_cifar10(tmp_path, "train")
    np.testing.assert_array_equal(found, images[:5].reshape(10, 32, 32, 3))
    np.testing.assert_array_equal(classes, labels[:5].ravel())
    np.testing.assert_array_equal(read_cifar10(tmp_path, "test")[1], labels[5])
    first, some = read_cifar10(tmp_path, "train", n_batches=2)
    assert len(first) == len(some) == 4


def test_two_views_with_class_vectors(tmp_path, photos):
    write_binary(tmp_path, *photos)
    data = load_cifar10(tmp_path)
    assert data.x.shape == (12, 3072)
    assert data.x.max() <= 1
    assert data.y.shape == (10, 100)
    assert data.names_y == CLASS_NAMES
    assert data.split.tolist() == ["train"] * 10 + ["test"] * 2
    other = load_cifar10(
        tmp_path, features=lambda pixels: pixels.mean((1, 2)), class_vectors=np.eye(10)
    )
    assert other.x.shape == (12, 3)
    np.testing.assert_array_equal(other.y, np.eye(10))


def test_absent_files_are_told_with_what_to_do(tmp_path, photos):
    with pytest.raises(DataError, match="unpaired data get cifar10"):
        read_cifar10(tmp_path)
    write_binary(tmp_path, *photos)
    (tmp_path / "data_batch_3.bin").unlink()
    with pytest.raises(DataError, match=r"data_batch_3\.bin"):
        read_cifar10(tmp_path)
    with pytest.raises(InputError, match='Unknown split "valid"'):
        read_cifar10(tmp_path, "valid")


def test_damaged_files_are_told(tmp_path, photos):
    write_binary(tmp_path, *photos)
    (tmp_path / "data_batch_1.bin").write_bytes(b"123")
    with pytest.raises(DataError, match="records of 3073 bytes"):
        read_cifar10(tmp_path)
    write_binary(tmp_path, photos[0], photos[1] + 100)
    with pytest.raises(DataError, match="label from 0 to 9"):
        read_cifar10(tmp_path)


def test_wrong_python_batches_and_sheets_are_told(tmp_path, photos):
    python, png = tmp_path / "python", tmp_path / "png"
    python.mkdir(), png.mkdir()
    write_python(python, *photos)
    (python / "data_batch_1").write_bytes(pickle.dumps({"pixels": 1}))
    with pytest.raises(DataError, match='must be a dict with "data"'):
        read_cifar10(python)
    assert is_official(python / "data_batch_1") is False
    assert is_official(python / "readme.html") is None
    write_png(png, *photos)
    Image.new("RGB", (32, 32)).save(png / "data_batch_2.png")
    with pytest.raises(DataError, match="1024 pixels wide"):
        read_cifar10(png)
    (png / "data_batch_2.png").write_bytes(b"no picture")
    with pytest.raises(DataError, match="must be a PNG sheet"):
        read_cifar10(png)
    write_png(png, *photos)
    (png / "train_lables.json").write_text("{")
    with pytest.raises(DataError, match="list of class numbers"):
        read_cifar10(png)
