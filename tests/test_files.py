"""Files written whole or not at all."""

import os

import pytest

from unpaired._files import (
    atomic_writer,
    check_apart,
    check_writable,
    staged_folder,
    whole_folder,
)
from unpaired.errors import InputError


def contents(folder):
    return {path.name: path.read_text() for path in folder.iterdir()}


def test_bytes_and_text_appear_when_whole(tmp_path):
    with atomic_writer(tmp_path / "a.bin", binary=True) as handle:
        handle.write(b"\xff")
        assert not (tmp_path / "a.bin").exists()
    assert (tmp_path / "a.bin").read_bytes() == b"\xff"


def test_a_move_that_fails_leaves_nothing(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="No space"), atomic_writer(tmp_path / "a.txt") as handle:
        handle.write("text")
    assert os.listdir(tmp_path) == []


def test_a_folder_takes_the_place_of_an_earlier_one(tmp_path):
    folder = tmp_path / "deep" / "model"
    for text in ("first", "second"):
        with whole_folder(folder, ["a", "b"]) as fresh:
            (fresh / "a").write_text(text)
            if text == "first":
                (fresh / "b").write_text("only then")
    assert contents(folder) == {"a": "second"}
    assert os.listdir(folder.parent) == ["model"]


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_a_folder_that_fails_leaves_the_earlier_one(tmp_path, error):
    def fail():
        with whole_folder(tmp_path / "model", ["a"]) as fresh:
            (fresh / "a").write_text("half")
            raise error

    with pytest.raises(error):
        fail()
    assert os.listdir(tmp_path) == []
    with whole_folder(tmp_path / "model", ["a"]) as fresh:
        (fresh / "a").write_text("whole")
    with pytest.raises(error):
        fail()
    assert contents(tmp_path / "model") == {"a": "whole"}
    assert os.listdir(tmp_path) == ["model"]


def test_a_swap_that_fails_brings_the_earlier_one_back(tmp_path, monkeypatch):
    with whole_folder(tmp_path / "model", ["a"]) as fresh:
        (fresh / "a").write_text("old")
    rename = os.rename

    def once(source, target):
        if os.path.basename(source) == "new":
            raise OSError("cannot")
        rename(source, target)

    monkeypatch.setattr(os, "rename", once)
    with pytest.raises(OSError, match="cannot"), whole_folder(tmp_path / "model", ["a"]) as fresh:
        (fresh / "a").write_text("new")
    assert contents(tmp_path / "model") == {"a": "old"}
    assert os.listdir(tmp_path) == ["model"]


def test_a_folder_with_other_things_in_it_is_not_replaced(tmp_path):
    (tmp_path / "thesis.tex").write_text("three years")
    with (
        pytest.raises(InputError, match="also holds thesis.tex. Name a folder of its own"),
        whole_folder(tmp_path, ["a"]),
    ):
        pass
    assert contents(tmp_path) == {"thesis.tex": "three years"}


def test_staged_files_arrive_together_and_leave_others_alone(tmp_path):
    folder = tmp_path / "new" / "out"
    with staged_folder(folder) as place:
        (place / "a").write_text("1")
    (folder / "notes").write_text("mine")
    with staged_folder(folder) as place:
        (place / "a").write_text("2")
        assert (folder / "a").read_text() == "1"
    assert contents(folder) == {"a": "2", "notes": "mine"}


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_staging_that_fails_leaves_no_trace(tmp_path, error):
    def fail(folder):
        with staged_folder(folder) as place:
            (place / "a").write_text("half")
            raise error

    with pytest.raises(error):
        fail(tmp_path / "new" / "out")
    assert os.listdir(tmp_path) == []
    (tmp_path / "a").write_text("old")
    with pytest.raises(error):
        fail(tmp_path)
    assert contents(tmp_path) == {"a": "old"}


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
@pytest.mark.parametrize("at", range(4))
def test_moving_that_fails_or_is_stopped_brings_everything_back(tmp_path, monkeypatch, error, at):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "w").write_text("old")
    (tmp_path / "b").write_text("old")
    rename, calls = os.rename, []

    def renamed(source, target):
        calls.append(source)
        if len(calls) == at + 1:
            raise error
        rename(source, target)

    def stage():
        with staged_folder(tmp_path) as place:
            (place / "a").write_text("new")
            (place / "b").write_text("new")
            (place / "model").mkdir()
            (place / "model" / "w").write_text("new")

    monkeypatch.setattr(os, "rename", renamed)
    with pytest.raises(error):
        stage()
    monkeypatch.undo()
    assert contents(tmp_path / "model") == {"w": "old"}
    assert (tmp_path / "b").read_text() == "old"
    assert sorted(os.listdir(tmp_path)) == ["b", "model"]


def test_what_is_read_is_never_written_over(tmp_path):
    (tmp_path / "x.csv").write_text("1")
    (tmp_path / "link.csv").symlink_to(tmp_path / "x.csv")
    check_apart([tmp_path / "y.csv"], [tmp_path / "x.csv", None, "a\0b"], "--out")
    for other in ("x.csv", "link.csv", "gone/../x.csv"):
        with pytest.raises(InputError, match="--out must not write over what is read: .*x.csv is"):
            check_apart([tmp_path / "x.csv"], [tmp_path / other], "--out")


def test_folders_that_can_be_written_leave_no_trace(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for folder in (tmp_path, tmp_path / "a" / "b", tmp_path.joinpath("x", "..", "y")):
        check_writable(folder, ["match.csv"])
        check_writable(folder.relative_to(tmp_path))
    assert os.listdir(tmp_path) == []


def test_folders_that_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    (tmp_path / "match.csv").mkdir()

    def message(folder, files=()):
        with pytest.raises(InputError) as error:
            check_writable(folder, files, "--out")
        assert str(error.value).startswith("--out must be a folder that can be written: ")
        return str(error.value)

    assert f"{tmp_path / 'file'} is a file" in message(tmp_path / "file")
    assert f"{tmp_path / 'file'} is a file" in message(tmp_path / "file" / "below")
    assert "match.csv is a folder" in message(tmp_path, ["match.csv"])
    assert "File name too long" in message(tmp_path / ("x" * 300))
    assert "null" in message(tmp_path / "a\0b")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere" / "deep")
    assert "link is a link that leads nowhere" in message(tmp_path / "link")
    monkeypatch.setattr(os, "mkdir", denied)
    assert f"{tmp_path / 'new'} cannot (Permission denied)" in message(tmp_path / "new")


def denied(*_):
    raise PermissionError(13, "Permission denied")
