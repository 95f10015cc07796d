"""Where weights lie, and those that come as a zip in parts."""

import io
import zipfile

import pytest

from unpaired.errors import DataError
from unpaired.features.weights import find_weights, unpack_parts, user_cache, weights_folder


def test_the_cache_and_the_weights_are_where_the_environment_says(monkeypatch, tmp_path):
    monkeypatch.delenv("UNPAIRED_WEIGHTS", raising=False)
    monkeypatch.setenv("UNPAIRED_CACHE", str(tmp_path))
    assert user_cache() == tmp_path
    assert weights_folder("gte-small") == tmp_path / "weights" / "gte-small"
    monkeypatch.delenv("UNPAIRED_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert user_cache() == tmp_path / "unpaired"
    monkeypatch.setenv("UNPAIRED_WEIGHTS", str(tmp_path / "own"))
    assert weights_folder("wink") == tmp_path / "own" / "wink"


def test_weights_are_found_or_missed_by_name(monkeypatch, tmp_path):
    monkeypatch.setenv("UNPAIRED_WEIGHTS", str(tmp_path))
    (tmp_path / "net").mkdir()
    (tmp_path / "net" / "a").touch()
    assert find_weights("net", ("a",), "Run: this") == tmp_path / "net"
    with pytest.raises(DataError, match=r"net needs its weights in .*, and b is not .* Run: this"):
        find_weights("net", ("a", "b"), "Run: this")


def test_parts_are_joined_once(monkeypatch, tmp_path):
    monkeypatch.setenv("UNPAIRED_WEIGHTS", str(tmp_path / "weights"))
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as archive:
        for name in ("config.json", "other.txt", "model.safetensors"):
            archive.writestr(f"folder/{name}", name * 100)
    whole = held.getvalue()
    parts = [tmp_path / f"zip.{number}" for number in range(3)]
    cut = len(whole) // 3
    for number, part in enumerate(parts):
        part.write_bytes(whole[number * cut : None if number == 2 else (number + 1) * cut])
    wanted = ("config.json", "model.safetensors")
    with pytest.raises(DataError, match="The parts of net must make a zip"):
        unpack_parts("net", parts[:2], wanted)
    with pytest.raises(DataError, match="vocab.txt"):
        unpack_parts("net", parts, (*wanted, "vocab.txt"))
    assert not (tmp_path / "weights" / "net").exists()
    folder = unpack_parts("net", parts, wanted)
    assert {file.name: file.read_text() for file in folder.iterdir()} == {
        name: name * 100 for name in wanted
    }
    assert unpack_parts("net", [], wanted) == folder  # the parts are not read again
