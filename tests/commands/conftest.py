"""The real command in an otherwise empty folder, with good files, models and photos in it."""

import shutil

import numpy as np
import pytest
from PIL import Image
from wrong import GOOD, npy, text

from unpaired.baselines.cca import CCA
from unpaired.models.classifier import UnsupervisedClassifier
from unpaired.spaces.translation import Translation


@pytest.fixture
def run(tmp_path, monkeypatch, typed):
    """Run the real command in an otherwise empty folder; returns exit code, stdout and stderr."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "good.npy").write_bytes(npy(GOOD))
    lines = text().splitlines()
    named = [f"name,{lines[0]}", *(f"n{i},{line}" for i, line in enumerate(lines[1:]))]
    (tmp_path / "named.csv").write_text("\n".join(named))

    return typed


@pytest.fixture
def model(models, tmp_path):
    shutil.copytree(models / "model", tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    """A model of two sides, a map and a classifier."""
    folder = tmp_path_factory.mktemp("models")
    CCA(random_state=0).fit(GOOD, GOOD[:, :3], "aligned").save(folder / "model")
    unit = np.eye(4, dtype=np.float32)
    Translation(unit, unit[0]).save(folder / "map")
    namer = UnsupervisedClassifier(n_rounds=1, random_state=0)
    namer.fit(GOOD, np.eye(3), classes=["ant", "bee", "cat"]).save(folder / "namer")
    return folder


@pytest.fixture
def others(run, models, tmp_path):
    """Beside the models: photos, names and files that are wrong."""
    shutil.copytree(models, tmp_path, dirs_exist_ok=True)
    (tmp_path / "photos").mkdir()
    for number in range(8):
        pixels = np.full((8, 8, 3), 30 * number, dtype=np.uint8)
        Image.fromarray(pixels).save(tmp_path / "photos" / f"{number}.png")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "a.png").write_bytes(b"\x89PNG nothing")
    (tmp_path / "empty").mkdir()
    contents = {
        "names.txt": "ant\nbee\ncat\n",
        "one.txt": "ant\n",
        "same.txt": "ant\tan insect\nbee\tan insect\n",
        "tab.txt": "ant\n\tbee\n",
        "blank.txt": "\n\n",
        "latin.txt": "größe\n".encode("latin-1"),
        "vectors.csv": "a,b\n1,2\n3,4\n5,7\n",
        "labels.csv": "0.png,ant\n9.png,bee\n",
        "wrong.csv": "0.png,ent\n",
        "short.csv": "0.png\n",
        "bad.csv": text() + "1,2,x,4\n",
        "bad.npy": b"hello",
        "words.csv": "a,b\n1,red\n2,blue\n",
        "narrow.npy": npy(GOOD[:, :3]),
        "nan.npy": npy(np.where(GOOD > 2, np.nan, GOOD)),
        "far.csv": "99,0\n",
        "config.toml": "title = 3\n",
        "broken.toml": "title = \n",
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return run
