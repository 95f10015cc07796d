"""Coates & Ng by name: learned from the photos, kept, and the same for new ones."""

import numpy as np
import pytest

from unpaired.errors import DataError, InputError
from unpaired.features import patch_encoder
from unpaired.features.coates_ng import coates_ng_features, learn_dictionary
from unpaired.features.encoders import IMAGES, Item, load_encoder
from unpaired.features.encoding import encode_items


@pytest.fixture
def photos(rng, tmp_path, monkeypatch):
    """Ten items that decode to noise, and a dictionary that is small."""
    monkeypatch.setenv("UNPAIRED_WEIGHTS", str(tmp_path / "weights"))
    monkeypatch.setattr(patch_encoder, "N_ATOMS", 5)
    pixels = rng.integers(0, 256, (10, 32, 32, 3), dtype=np.uint8)
    return pixels, [Item(str(k), row.tobytes, shaped) for k, row in enumerate(pixels)]


def shaped(content):
    if len(content) != 32 * 32 * 3:
        raise DataError("it is no photo")
    return np.frombuffer(content, dtype=np.uint8).reshape(32, 32, 3)


def test_it_learns_from_what_it_encodes_and_encodes_new_photos_alike(photos, tmp_path):
    pixels, items = photos
    encoder = load_encoder("coates-ng", IMAGES)
    found = encode_items([*items, Item("broken", lambda: b"x", shaped)], encoder, None)
    assert found.vectors.shape == (10, 40)
    assert found.skipped == (("broken", "it is no photo"),)
    order = np.random.default_rng(0).permutation(11)
    own = learn_dictionary(
        pixels[order[order < 10]], np.random.default_rng(0), n_atoms=5, n_patches=4000
    )
    np.testing.assert_allclose(found.vectors, coates_ng_features(pixels, own), rtol=1e-5)
    again = load_encoder(found.encoder, IMAGES)
    np.testing.assert_array_equal(again.encode(pixels[:3]), found.vectors[:3])


def test_a_second_run_learns_nothing(photos, monkeypatch):
    _, items = photos
    first = encode_items(items, load_encoder("coates-ng", IMAGES), None)
    monkeypatch.setattr(patch_encoder, "learn_dictionary", None)
    second = encode_items(items, load_encoder("coates-ng", IMAGES), None)
    assert second.encoder == first.encoder
    np.testing.assert_array_equal(second.vectors, first.vectors)
    with pytest.raises(TypeError):  # others are learned from
        encode_items(items[1:], load_encoder("coates-ng", IMAGES), None)


def test_what_cannot_be_learned_or_found(photos, tmp_path):
    _, items = photos
    encoder = load_encoder("coates-ng", IMAGES)
    with pytest.raises(InputError, match="must learn from photos before it can encode"):
        encoder.encode([])
    with pytest.raises(InputError, match="must hold photos that coates-ng can learn from"):
        encoder.learn([Item("broken", lambda: b"x", shaped)])
    with pytest.raises(DataError, match=r"0123.npz is not installed there. Learn it from those"):
        load_encoder("coates-ng:../0123", IMAGES)
    key = encoder.learn(items).name.partition(":")[2]
    (tmp_path / "weights" / "coates-ng" / f"{key}.npz").write_bytes(b"half a file")
    with pytest.raises(DataError, match="must hold a dictionary of patches"):
        load_encoder(f"coates-ng:{key}", IMAGES)
    (tmp_path / "weights" / "coates-ng" / f"{key}.npz").unlink()
    (tmp_path / "weights" / "coates-ng").rmdir()
    (tmp_path / "weights" / "coates-ng").write_bytes(b"a file")
    with pytest.raises(InputError, match="UNPAIRED_WEIGHTS must be a folder that can be written"):
        encoder.learn(items)
