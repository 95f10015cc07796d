import gzip

import numpy as np
import pytest

from unpaired.datasets.word_vectors import (
    load_word_alignment,
    load_word_vectors,
    read_dictionary,
)
from unpaired.errors import DataError, InputError

WORDS = ["the", "naïve", "New_York", "dog"]
ROWS = np.arange(12, dtype=np.float32).reshape(4, 3) / 8


def text_lines():
    return "".join(
        f"{word} " + " ".join(map(str, row)) + " \n" for word, row in zip(WORDS, ROWS, strict=True)
    )


@pytest.fixture(params=["fasttext", "glove", "gz", "binary", "binary-newlines"])
def file(request, tmp_path):
    if request.param.startswith("binary"):
        end = b"\n" if "newlines" in request.param else b""
        parts = [
            word.encode() + b" " + row.astype("<f4").tobytes() + end
            for word, row in zip(WORDS, ROWS, strict=True)
        ]
        path = tmp_path / "vectors.bin"
        path.write_bytes(b"4 3\n" + b"".join(parts))
        return path
    head = "" if request.param == "glove" else "4 3\n"
    content = (head + text_lines()).encode()
    path = tmp_path / ("wiki.vec.gz" if request.param == "gz" else "wiki.vec")
    path.write_bytes(gzip.compress(content) if request.param == "gz" else content)
    return path


def test_every_form_gives_the_same_vectors(file):
    found = load_word_vectors(file)
    assert found.words == tuple(WORDS)
    np.testing.assert_array_equal(found.vectors, ROWS)
    np.testing.assert_array_equal(found["dog"], ROWS[3])
    assert load_word_vectors(file, max_words=2).words == ("the", "naïve")
    assert load_word_vectors(file, words=["dog", "cat"]).words == ("dog",)


def test_the_first_of_two_equal_words_counts_and_blanks_belong_to_words(tmp_path):
    (tmp_path / "v.txt").write_text("2 2\na 1 2\na 3 4\n. . 5 6\n")
    found = load_word_vectors(tmp_path / "v.txt")
    assert found.words == ("a", ". .")
    np.testing.assert_array_equal(found.vectors, [[1, 2], [5, 6]])


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("v.vec", b"2 3\na 1 2 3\nb 1 2\n", "line 3 has 2 numbers instead of 3"),
        ("v.vec", b"a x y\n", "could not convert"),
        ("v.bin", b"2 3\na ", "ends within the vector of word 1"),
        ("v.bin", b"1 1\nabc", "ends within word 1"),
        ("v.bin", b"\x93\x01\x02\x00", "first line must say"),
        ("v.vec", b"", "none of them"),
    ],
)
def test_damaged_files_are_told(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=message):
        load_word_vectors(tmp_path / name)


def test_absent_files_are_told(tmp_path):
    with pytest.raises(DataError, match=r"wiki\.en\.vec"):
        load_word_vectors(tmp_path / "none.vec")
    with pytest.raises(DataError, match="two words a line"):
        read_dictionary(tmp_path / "none.txt")


def test_an_alignment_is_one_to_one(tmp_path):
    (tmp_path / "en-fr.txt").write_text("dog chien\ndog toutou\nthe le\nthe\tla\nhound chien\n\n")
    pairs = read_dictionary(tmp_path / "en-fr.txt")
    assert len(pairs) == 5
    (tmp_path / "en").write_text("the 1 0\ndog 0 1\nhound 2 2\n")
    (tmp_path / "fr").write_text("la 1 1 1\nchien 2 2 2\nle 3 3 3\n")
    sides = [load_word_vectors(tmp_path / name) for name in ("en", "fr")]
    data = load_word_alignment(*sides, pairs)
    assert list(zip(data.names_x, data.names_y, strict=True)) == [("dog", "chien"), ("the", "le")]
    np.testing.assert_array_equal(data.y, [[2, 2, 2], [3, 3, 3]])
    np.testing.assert_array_equal(data.truth, [0, 1])
    with pytest.raises(InputError, match="at least two words"):
        load_word_alignment(*sides, pairs[:1])
    (tmp_path / "bad.txt").write_text("one two three\n")
    with pytest.raises(DataError, match="line 1 has 3"):
        read_dictionary(tmp_path / "bad.txt")
