"""encode, classify and predict: the real commands on small photos that this file paints."""

import csv
import json
import re
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

import unpaired

COLOURS = {
    "red": (200, 30, 30),
    "green": (40, 180, 60),
    "blue": (30, 60, 210),
    "white": (240, 240, 230),
    "black": (15, 15, 20),
}


def run(*arguments, cwd):
    command = [sys.executable, "-m", "unpaired", *map(str, arguments)]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=300)


def paint(folder, n_each, seed):
    """Noisy photos of one colour each; returns the colour of every file."""
    rng = np.random.default_rng(seed)
    folder.mkdir()
    told = {}
    for name, colour in COLOURS.items():
        for number in range(n_each):
            noise = rng.normal(0, 12, (20, 24, 3)) + rng.normal(0, 10, 3)
            pixels = np.clip(np.array(colour) + noise, 0, 255).astype(np.uint8)
            file = f"{rng.integers(10**8):08}-{number}.png"
            Image.fromarray(pixels).save(folder / file)
            told[file] = name
    return told


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    place = tmp_path_factory.mktemp("photos")
    told = {part: paint(place / part, n, seed) for part, n, seed in (("old", 30, 0), ("new", 4, 1))}
    (place / "old" / "broken.png").write_bytes(b"\x89PNG\r\n\x1a\nnothing")
    (place / "names.txt").write_text("\n".join(COLOURS) + "\n")
    # Vectors of the names whose geometry is that of the colours, in a space of its own.
    turn = np.linalg.qr(np.random.default_rng(2).standard_normal((4, 4)))[0][:3]
    with (place / "names.csv").open("w", newline="") as handle:
        writer = csv.writer(handle)
        writer.writerow(["name", *"abcd"])
        for name, colour in COLOURS.items():
            writer.writerow([name, *(np.array(colour) @ turn).tolist()])
    return place, told


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("UNPAIRED_CACHE", str(tmp_path / "cache"))


def rows_of(file):
    with file.open(newline="") as handle:
        return list(csv.DictReader(handle))


def share_right(file, told):
    rows = rows_of(file)
    assert len(rows) == len(told)
    return np.mean([told[row["file"]] == row["name"] for row in rows])


def test_photos_are_encoded_once(place, tmp_path):
    folder, told = place
    command = ("encode", "images", folder / "old", "--encoder", "pixels", "--json")
    first, second = (run(*command, "--out", name, cwd=tmp_path) for name in ("a.npz", "b.csv"))
    assert first.returncode == second.returncode == 0, first.stderr + second.stderr
    records = [json.loads(done.stdout) for done in (first, second)]
    assert [record["reused"] for record in records] == [0, 150]
    assert records[0]["skipped"][0][0] == "broken.png"
    with np.load(tmp_path / "a.npz") as made:
        assert made["features"].shape == (150, 768)
        assert set(made["id"].tolist()) == set(told["old"])
        rows = rows_of(tmp_path / "b.csv")
        assert [row["id"] for row in rows] == made["id"].tolist()
        np.testing.assert_allclose(float(rows[3]["f7"]), made["features"][3, 7], rtol=1e-6)
    text = run("encode", "images", folder / "old", "--encoder", "pixels", cwd=tmp_path)
    assert "note: 1 skipped" in text.stderr
    assert "broken.png: it cannot be read as a photo" in text.stderr
    assert "150 rows of 768 numbers, 150 made before" in text.stdout


def test_texts_are_encoded(place, tmp_path):
    folder, _ = place
    done = run("encode", "texts", folder / "names.txt", "--encoder", "letters", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    with np.load(tmp_path / "encoded.npz") as made:
        assert made["features"].shape == (5, 256)
        assert made["id"].tolist() == ["1", "2", "3", "4", "5"]
    listed = run("encode", "texts", folder / "names.txt", "--encoder", "?", cwd=tmp_path)
    assert "sbert:NAME" in listed.stdout
    assert "efficientnet" not in listed.stdout


def test_a_folder_is_named_and_new_photos_by_its_model(place, tmp_path):
    folder, told = place
    done = run(
        *("classify", folder / "old", folder / "names.csv", "--encoder", "pixels"),
        *("--out", "named"),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert share_right(tmp_path / "named" / "labels.csv", told["old"]) >= 0.95
    assert "broken.png" in done.stderr
    assert "Uncertain: 3" in done.stdout
    assert sorted(p.name for p in (tmp_path / "named").iterdir()) == [
        *("labels.csv", "model", "report.html", "run.json"),
    ]
    page = (tmp_path / "named" / "report.html").read_text()
    assert page.count("<img ") >= 5 * 20
    assert "Skipped: broken.png" in page
    assert (
        "run again with --labels" in page[: page.index('id="result"')]
    )  # what to do next is first
    record = json.loads((tmp_path / "named" / "run.json").read_text())
    assert record["skipped"][0][0] == "broken.png"
    assert record["photos"] == 150
    assert unpaired.load(tmp_path / "named" / "model").encoder_ == "pixels"
    new = run("predict", "named/model", folder / "new", "--out", "new.csv", cwd=tmp_path)
    assert new.returncode == 0, new.stderr
    assert share_right(tmp_path / "new.csv", told["new"]) >= 0.9
    certainty = unpaired.load(tmp_path / "named" / "model").name_certainty_.max()
    assert certainty < 0.9  # nobody vouches for names by geometry alone
    for file in (tmp_path / "named" / "labels.csv", tmp_path / "new.csv"):
        assert max(float(row["confidence"]) for row in rows_of(file)) <= certainty + 1e-4
    again = run(
        *("classify", folder / "old", folder / "names.csv", "--encoder", "pixels"),
        *("--out", "named", "--quiet", "--seed", "3"),
        cwd=tmp_path,
    )
    assert (again.returncode, again.stdout) == (0, "")
    assert unpaired.load(tmp_path / "named" / "model").seed_ == 3


def test_photos_by_a_dictionary_of_their_own_patches(place, tmp_path, typed, monkeypatch):
    folder, _ = place
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("unpaired.features.patch_encoder.N_ATOMS", 8)
    monkeypatch.setattr("unpaired.features.patch_encoder.N_PATCHES", 3000)
    done = typed("encode", "images", folder / "old", "--encoder", "coates-ng", "--out", "a.npz")
    assert done[0] == 0, done[2]
    assert done[1] == "150 rows of 64 numbers, 0 made before: a.npz\n"
    told = done[2].splitlines()[-1]
    assert told.startswith("note: learned from these; for others like them: --encoder coates-ng:")
    names, by = str(folder / "names.csv"), ("--encoder", "coates-ng", "--out", "named")
    done = typed("classify", folder / "old", names, *by)
    assert done[0] == 0, done[2]
    kept = unpaired.load("named/model").encoder_
    assert kept == told.rpartition(" ")[2]
    done = typed("predict", "named/model", folder / "old", "--out", "again.csv")
    assert done[0] == 0, done[2]
    first, second = (
        [(row["file"], row["name"]) for row in rows_of(tmp_path / name)]
        for name in ("named/labels.csv", "again.csv")
    )
    assert first == second
    done = typed("encode", "images", folder / "new", "--encoder", kept, "--out", "b.npz")
    assert (done[0], done[1]) == (0, "20 rows of 64 numbers, 0 made before: b.npz\n")


def test_labels_decide_where_names_say_nothing(place, tmp_path):
    folder, told = place
    files = {name: [f for f, c in told["old"].items() if c == name] for name in COLOURS}
    lines = [f"{file},{name}" for name, some in files.items() for file in some[:3]]
    (tmp_path / "known.csv").write_text("\n".join(["file,name", *lines]))
    done = run(
        *("classify", folder / "old", folder / "names.txt", "--text-encoder", "letters"),
        *("--encoder", "pixels", "--labels", "known.csv", "--out", "named"),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert "note: known.csv, line 1: file, name taken as a header." in done.stderr
    assert share_right(tmp_path / "named" / "labels.csv", told["old"]) >= 0.95


def test_vectors_made_before_are_named_too(place, tmp_path):
    folder, told = place
    run("encode", "images", folder / "old", "--encoder", "pixels", "--out", "v.npz", cwd=tmp_path)
    done = run("classify", "v.npz", folder / "names.csv", "--out", "named", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert share_right(tmp_path / "named" / "labels.csv", told["old"]) >= 0.95
    refused = run("predict", "named/model", folder / "new", cwd=tmp_path)
    assert refused.returncode == 2
    assert "PHOTOS must be a file of vectors" in refused.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("classify", "nowhere", "names.txt"), "There is no file nowhere"),
        (("classify", "old", "none.txt", "--encoder", "pixels"), "There is no text file none.txt"),
        (("classify", "old", "names.txt", "--text-encoder", "leters"), "Did you mean"),
        (("classify", "old", "names.csv", "--encoder", "use"), "encoder must be one of images"),
        (("classify", "old", "names.csv", "--out", "names.csv"), "--out must be a folder"),
        (("classify", "few", "names.csv", "--encoder", "pixels"), "PHOTOS must be at least two"),
        (
            ("classify", "old", "names.csv", "--encoder", "pixels", "--labels", "wrong.csv"),
            'Unknown name "redd". Did you mean "red"?',
        ),
        (
            ("classify", "old", "names.csv", "--encoder", "pixels", "--labels", "other.csv"),
            "labels must have a line file,name",
        ),
        (("classify", "nowhere", "names.txt", "--encoder", "pixels"), "There is no file nowhere"),
        (("classify", "v.csv", "names.csv", "--encoder", "pixels"), "--encoder must be left out"),
        (
            ("classify", "old", "names.csv", "--text-encoder", "use"),
            "--text-encoder must be left out where NAMES is a table of vectors",
        ),
        (("classify", "v.csv", "names.csv", "--cache", "kept"), "--cache must be left out"),
        (("predict", "old", "v.csv", "--cache", "kept"), "--cache must be left out"),
        (
            ("classify", "old", "names.csv", "--encoder", "pixels", "--labels", "first.csv"),
            "got 'none.png,red'. Write names of files as in labels.csv",
        ),
        (("predict", "old", "old"), "does not hold a saved estimator"),
        (("predict", "old", "old", "--out", "x.npy"), "--out must end in .csv"),
        (("encode", "images", "names.txt", "--encoder", "pixels"), "it is a file"),
        (("encode", "sounds", "old"), 'Unknown kind to encode "sounds"'),
        (("encode", "images", "old", "--out", "x.npy"), "--out must end in .npz or .csv"),
        (("encode", "images", "broken", "--encoder", "pixels"), "nothing can. The first: a.png"),
    ],
)
def test_mistakes_are_one_sentence_and_nothing_is_written(place, tmp_path, arguments, message):
    folder, told = place
    for name in ("old", "names.txt", "names.csv"):
        (tmp_path / name).symlink_to(folder / name)
    (tmp_path / "few").mkdir()
    file = next(iter(told["old"]))
    (tmp_path / "few" / "a.png").write_bytes((folder / "old" / file).read_bytes())
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "a.png").write_bytes(b"no")
    (tmp_path / "v.csv").write_text("a,b\n1.5,2\n2.5,1\n")
    (tmp_path / "wrong.csv").write_text(f"{file},redd\n")
    (tmp_path / "other.csv").write_text(f"{file},red\nnone.png,red\n")
    (tmp_path / "first.csv").write_text(f"none.png,red\n{file},red\n")
    before = {path.name for path in tmp_path.iterdir()} | {"cache"}
    done = run(*arguments, cwd=tmp_path)
    assert done.returncode == 2, done.stderr
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert {path.name for path in tmp_path.iterdir()} | {"cache"} == before


def test_the_page_says_which_file_a_photo_is(place, tmp_path):
    folder, told = place
    done = run(
        *("classify", folder / "old", folder / "names.csv", "--encoder", "pixels"),
        *("--out", "named", "--quiet"),
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "named" / "report.html").read_text()
    named = {row["file"]: row["name"] for row in rows_of(tmp_path / "named" / "labels.csv")}
    shown = re.findall(r'alt="Photo (\S+), named (\w+)" title="([^"]+)"', page)
    assert len(shown) >= 100
    assert all(file == title and named[file] == name for file, name, title in shown)
    asked = page[page.index("What are these?") : page.index("Photos under the name")]
    examples = re.findall(r'alt="Photo (\S+)"><span class="file"><bdi>([^<]+)</bdi>', asked)
    record = json.loads((tmp_path / "named" / "run.json").read_text())
    told = [file for group in record["least_certain"] for file in group["examples"]]
    assert [file for file, _ in examples] == [name for _, name in examples] == told
    assert page.count('<span class="file">') == len(shown) + len(examples)
    settings = page[page.index('id="settings"') :]
    for said in (str(folder / "old"), "names.csv", "pixels", "grouping and naming"):
        assert said in settings
