"""Blocks that are kept and reused, items that are skipped, photos and texts as they are read."""

import io

import numpy as np
import pytest
from PIL import Image

from unpaired.errors import DataError, InputError
from unpaired.features import encoding
from unpaired.features.encoders import Encoder
from unpaired.features.encoding import Item, encode_items
from unpaired.features.sources import (
    photos_in,
    read_names,
    read_photo,
    text_item,
    texts_in,
    unknown_words,
)


class Counting:
    """Encodes a text by its length, and remembers what it was asked."""

    def __init__(self, fail_at=None):
        self.seen, self.fail_at = [], fail_at

    def __call__(self, texts):
        if self.fail_at is not None and len(self.seen) >= self.fail_at:
            raise RuntimeError("stopped")
        self.seen += texts
        return np.array([[len(text), 1.0] for text in texts])


def encoder_of(counting, name="counting"):
    return Encoder(name, counting)


def items_of(texts):
    plain = encoder_of(None)
    return [text_item(str(number), text, plain) for number, text in enumerate(texts)]


def test_a_stopped_run_goes_on_where_it_was(tmp_path, monkeypatch):
    monkeypatch.setattr(encoding, "BLOCK", 4)
    texts = [f"text {'x' * number}" for number in range(11)]
    first = Counting(fail_at=8)
    with pytest.raises(RuntimeError):
        encode_items(items_of(texts), encoder_of(first), tmp_path)
    assert len(first.seen) == 8
    second = Counting()
    found = encode_items(items_of(texts), encoder_of(second), tmp_path)
    assert second.seen == texts[8:]
    assert found.n_reused == 8
    np.testing.assert_array_equal(found.vectors[:, 0], [len(text) for text in texts])


def test_vectors_are_kept_by_content_and_by_encoder(tmp_path):
    encode_items(items_of(["one", "two"]), encoder_of(Counting()), tmp_path)
    again = Counting()
    renamed = [text_item("other name", "two", encoder_of(None)), *items_of(["three"])]
    found = encode_items(renamed, encoder_of(again), tmp_path)
    assert again.seen == ["three"]
    assert found.names == ("other name", "0")
    other = Counting()
    encode_items(items_of(["one"]), encoder_of(other, "another"), tmp_path)
    assert other.seen == ["one"]
    none = Counting()
    encode_items(items_of(["one"]), encoder_of(none), None)
    assert none.seen == ["one"]


def test_a_damaged_block_is_encoded_again(tmp_path):
    encode_items(items_of(["one", "two"]), encoder_of(Counting()), tmp_path)
    (block,) = tmp_path.rglob("*.npz")
    block.write_bytes(block.read_bytes()[:100])
    again = Counting()
    encode_items(items_of(["one", "two"]), encoder_of(again), tmp_path)
    assert again.seen == ["one", "two"]


def test_items_that_cannot_be_read_are_listed_and_the_rest_keep_their_order(tmp_path):
    def broken():
        raise DataError("it is broken")

    items = items_of(["a", "bb", "ccc"])
    items[1] = Item("bad", broken, bytes.decode)
    found = encode_items(items, encoder_of(Counting()), tmp_path)
    assert found.skipped == (("bad", "it is broken"),)
    assert found.names == ("0", "2")
    assert found.rows == (0, 2)
    np.testing.assert_array_equal(found.vectors[:, 0], [1, 3])
    with pytest.raises(InputError, match="nothing can. The first: bad, it is broken"):
        encode_items(items[1:2], encoder_of(Counting()), tmp_path)


def as_bytes(pixels, kind="PNG", **options):
    buffer = io.BytesIO()
    Image.fromarray(pixels).save(buffer, kind, **options)
    return buffer.getvalue()


def test_the_middle_of_a_photo_is_read():
    pixels = np.zeros((32, 96, 3), dtype=np.uint8)
    pixels[:, 32:64] = (200, 100, 50)
    photo = read_photo(as_bytes(pixels), 64)
    assert photo.shape == (64, 64, 3)
    assert (np.abs(photo[8:-8, 8:-8].astype(int) - (200, 100, 50)) <= 2).all()


def test_photos_are_turned_as_the_camera_says_and_grey_ones_get_colours():
    pixels = np.zeros((40, 40, 3), dtype=np.uint8)
    pixels[:20] = 255
    exif = Image.Exif()
    exif[0x0112] = 3  # upside down
    photo = read_photo(as_bytes(pixels, "JPEG", exif=exif), 40)
    assert photo[:15].mean() < 20
    assert photo[25:].mean() > 235
    grey = read_photo(as_bytes(np.full((8, 8), 77, dtype=np.uint8)), 8)
    assert (grey == 77).all()


@pytest.mark.parametrize("content", [b"", b"no photo", as_bytes(np.zeros((64, 64, 3), "u1"))[:60]])
def test_what_is_no_photo_is_told(content):
    with pytest.raises(DataError, match="it cannot be read as a photo"):
        read_photo(content, 32)


def test_a_photo_of_too_many_pixels_is_not_unpacked():
    with pytest.raises(DataError, match="12000 x 12000 pixels, too many"):
        read_photo(as_bytes(np.zeros((12000, 12000), dtype=bool)), 32)


def test_a_folder_is_read_by_name_with_the_folders_in_it(tmp_path):
    for name in ("b.png", "a/z.JPG", ".hidden.png", "notes.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    assert [item.name for item in photos_in(tmp_path, 8)] == ["a/z.JPG", "b.png"]
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="must hold photos"):
        photos_in(tmp_path / "empty", 8)
    with pytest.raises(DataError, match="is not there"):
        photos_in(tmp_path / "none", 8)


def test_texts_are_lines_and_those_without_a_known_word_are_skipped(tmp_path):
    file = tmp_path / "texts.txt"
    file.write_text("red fox\n\n  blue sky \nzzz\n", encoding="utf-8")
    reader = Encoder(
        "words",
        Counting(),
        unknown_words=lambda text: [w for w in text.split() if w in ("sky", "zzz")],
    )
    found = encode_items(texts_in(file, reader), reader, None)
    assert found.names == ("1", "3")
    assert found.skipped == (("4", 'no word of "zzz" has a vector'),)
    assert unknown_words(["red sky", "zzz sky"], reader) == ["sky", "zzz"]
    file.write_bytes("größe".encode("latin-1"))
    with pytest.raises(DataError, match="must be text in UTF-8: byte 0xf6 in line 1"):
        texts_in(file, reader)
    file.write_text(" \n")
    with pytest.raises(DataError, match="it is empty"):
        texts_in(file, reader)
    with pytest.raises(DataError, match="There is no text file"):
        texts_in(tmp_path / "none.txt", reader)


def test_names_may_have_several_descriptions(tmp_path):
    file = tmp_path / "names.txt"
    file.write_text("cat\tsmall and soft\ndog\ncat\tit says miaow\n", encoding="utf-8")
    assert read_names(file) == {"cat": ["small and soft", "it says miaow"], "dog": ["dog"]}
    file.write_text("cat\n")
    with pytest.raises(InputError, match="NAMES must hold two names or more"):
        read_names(file)
