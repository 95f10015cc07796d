import shutil
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from unpaired.bench import reach

TREE = {
    "__init__.py": "from unpaired.maths import double\n",
    "maths.py": (
        '"""Doubling."""\nFACTOR = 2\n\n\ndef double(x):\n    return FACTOR * x\n\n\n'
        "def triple(x):\n    return 3 * x\n"
    ),
    "face/__init__.py": (
        "from unpaired.face.one import first\nfrom unpaired.face.two import second\n"
    ),
    "face/one.py": "def first():\n    from unpaired.maths import double\n    return double(1)\n",
    "face/two.py": "second = 2\n",
    "tool.py": "STEP = 1\n\n\ndef used():\n    return STEP\n\n\ndef idle():\n    return 0\n",
    "start.py": "def begin():\n    return 5\n",
    "method.py": (
        "import numpy\nimport unpaired.tool as tool\nfrom unpaired.face import first, second\n"
        "from unpaired import start\n\n\nclass Method:\n    def fit(self, x: second):\n"
        '        if x is None:\n            raise ValueError("x is none")\n'
        "        return first() + tool.used() + start.begin()\n\n\n"
        "def beside():\n    return second\n\n\nnumpy.seterr()\n"
    ),
    "task.py": "import unpaired.method\nLIMIT = 3\n",
}


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder to work in that holds a user's own method."""
    shutil.copy(Path(__file__).with_name("toy_method.py"), tmp_path / "toy_method.py")
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "toy_method", raising=False)  # of another test's folder
    return tmp_path


@pytest.fixture
def write_config(place):
    """A function that writes a configuration and returns its path."""

    def write(text: str, name: str = "config.toml") -> Path:
        (place / name).write_text(textwrap.dedent(text))
        return place / name

    return write


@pytest.fixture
def captions_folder(place, rng):
    """60 images and three captions each, nearly a linear map of the image."""
    folder = place / "data" / "flickr"
    folder.mkdir(parents=True)
    images = rng.normal(size=(60, 6))
    owner = np.repeat(np.arange(60), 3)
    texts = images[owner] @ rng.normal(size=(6, 5)) + 0.01 * rng.normal(size=(180, 5))
    split = np.array(["train"] * 40 + ["val"] * 5 + ["test"] * 15)
    np.savez(folder / "images.npz", features=images, split=split)
    np.savez(folder / "captions.npz", features=texts, image=owner)
    return place / "data"


@pytest.fixture
def classes_folder(place, rng):
    """Four well separated classes whose centres are a rotation of the class vectors."""
    folder = place / "data" / "classes"
    folder.mkdir(parents=True)
    vectors = rng.normal(size=(4, 5))
    rotation = np.linalg.qr(rng.normal(size=(8, 8)))[0][:5]
    for split, size in (("train", 160), ("test", 80)):
        labels = np.arange(size) % 4
        features = 5 * vectors[labels] @ rotation + 0.3 * rng.normal(size=(size, 8))
        np.savez(folder / f"{split}.npz", features=features, label=labels)
    np.savez(folder / "classes.npz", name=["a", "b", "c", "d"], vectors=vectors)
    return place / "data"


@pytest.fixture
def package(tmp_path, monkeypatch):
    """The folder of a small package in the place of ours, as ``reach`` reads it."""
    for name, text in TREE.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(reach, "SOURCE", tmp_path)
    reach.read_module.cache_clear()
    yield tmp_path
    reach.read_module.cache_clear()
