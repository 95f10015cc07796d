"""More of what people give by mistake, found by trying: refused, or taken and told."""

import datetime
import json
import os
import shutil
from dataclasses import replace

import anndata
import h5py
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from PIL import Image
from wrong import GOOD, frame, npy, refused, sheet, text

from unpaired.experiment import run_match
from unpaired.report.stored import write_stored

CODED = {
    "shift-jis": ("名前,b\nあ,1\nい,2\n", "It is in another encoding; save it as UTF-8."),
    "cp037": (text(), "It is in another encoding; save it as UTF-8."),
    "utf-32-le": (text(), "it looks like UTF-32 without its mark"),
}
FILES = {
    "numbers of 400 digits": (
        "x.csv",
        text() + "9" * 400 + ",2,3,4\n",
        "column 0 (a) must be a fin",
    ),
    "minus infinity": ("x.csv", text() + "-inf,2,3,4\n", "it is infinite (-inf)"),
    "infinity in parquet": (
        "x.parquet",
        frame(a=[1.0, np.inf], b=[1, 2]),
        "row 1, column 0 (a) must",
    ),
    "a gap inside a list": (
        "x.parquet",
        frame(v=[[1.0, None], [2.0, 3.0]]),
        "row 0, column 0 (v) m",
    ),
    "nan in jsonl": ("x.jsonl", '{"a": 1}\n{"a": NaN}\n', "line 2, column 0 (a) must be a finite"),
    "1e999 in jsonl": ("x.jsonl", '{"a": 1}\n{"a": 1e999}\n', "it is infinite (inf)"),
    "nan in a list": ("x.jsonl", "[1, NaN]\n[3, 4]\n", "line 1, column 0 must be a finite number"),
    "nan in xlsx": (
        "x.xlsx",
        sheet(["a", "b"], [1, "nan"], [2, 3]),
        "line 2, column 1 (b) must be",
    ),
    "#N/A in xlsx": ("x.xlsx", sheet(["a", "b"], [1, "#N/A"], [2, 3]), "column 1 (b) is empty"),
    "dates in xlsx": (
        "x.xlsx",
        sheet(["a", "b"], *([k, datetime.date(2020, 1, k + 1)] for k in range(5))),
        'it holds "2020-01-01',
    ),
    "dates": ("x.csv", "a,b\n1,2020-01-01\n2,2020-01-02\n", 'it holds "2020-01-01"'),
    "half yes and no": ("x.csv", "a,b\n1,True\n2,maybe\n", 'it holds "True"'),
    "a key twice": (
        "x.jsonl",
        '{"a": 1, "a": 2}\n',
        'line 1 must be JSON: the key "a" comes twice',
    ),
    "a list in a list": ("x.jsonl", "[[1, 2]]\n[[3, 4]]\n", '"[1, 2]", which is no number'),
    "5,000 digits in jsonl": ("x.jsonl", f'{{"a": 1{"0" * 5000}}}\n', "line 1 must be JSON"),
    "400 digits in jsonl": ("x.jsonl", f'{{"a": 1{"0" * 400}}}\n{{"a": 2}}\n', "numbers too large"),
    "numbers alone in jsonl": ("x.jsonl", "1\n2\n", "must be a JSON object or a list of numbers"),
    "objects in parquet": (
        "x.parquet",
        frame(a=[{"b": 1}, {"b": 2}]),
        "column 0 (a) must be a numb",
    ),
    "lists of lists": ("x.parquet", frame(a=[[[1.0]], [[2.0]]]), "must hold lists of numbers"),
    "bytes in parquet": (
        "x.parquet",
        frame(a=[b"x", b"y"], b=[1.0, 2.0]),
        "column 0 (a) must be a",
    ),
    "durations": (
        "x.parquet",
        frame(a=pd.to_timedelta([1, 2]), b=[1, 2]),
        "column 0 (a) must be a",
    ),
    "categories": (
        "x.parquet",
        frame(a=[1.0, 2.0], b=pd.Categorical(["u", "v"])),
        "column 1 (b) must",
    ),
    "nothing but gaps": (
        "x.parquet",
        frame(a=pa.array([None] * 3), b=[1.0, 2.0, 3.0]),
        "is empty, as",
    ),
    "lists of nothing": (
        "x.parquet",
        frame(a=pa.array([[], []], pa.list_(pa.float64()))),
        "1 column",
    ),
    "empty parquet": ("x.parquet", b"", "could not be read as parquet"),
    "empty feather": ("x.feather", b"", "could not be read as feather"),
    "empty xlsx": ("x.xlsx", b"", "could not be read as xlsx"),
    "empty gz": ("x.csv.gz", b"", "x.csv.gz is empty"),
    "an old spreadsheet": (
        "x.xlsx",
        b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600),
        "could not be",
    ),
    "a column of blanks": ("x.csv", "a,b,\n1,2,\n3,4,\n", "column 2 is empty, as are 1 more"),
    "comments": ("x.csv", "# made\n# by hand\n" + text(), "equally many columns in every line"),
    "percent": ("x.csv", "a,b\n1,12%\n2,13%\n", 'it holds "12%"'),
    "a minus of typographers": ("x.csv", "a,b\n−1.5,2\n3,4\n", 'it holds "−1.5"'),
    "complex numbers": ("x.csv", "a,b\n1+2j,2\n3,4\n", 'it holds "1+2j"'),
    "a cell of 200,000 letters": ("x.csv", f'a,b\n"{"x" * 200_000}",1\n', "field larger than"),
    "half precision that ran over": (
        "x.npy",
        npy(np.full((5, 2), np.inf, "f2")),
        "x must be finite",
    ),
    "raw bytes": ("x.npy", npy(np.zeros((4, 4), "V8")), "x must hold real numbers"),
} | {f"in {kind}": ("x.csv", words.encode(kind), told) for kind, (words, told) in CODED.items()}


@pytest.mark.parametrize("case", FILES)
def test_files_that_are_wrong(run, tmp_path, case):
    name, content, words = FILES[case]
    (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
    sentence = refused(run, "match", name, "good.npy", "--out", "out")
    assert words in sentence, sentence


def cells(values, **others):
    anndata.AnnData(values, **others).write_h5ad("x.h5ad")


PLACES = {
    "a folder called x.csv": (lambda: os.mkdir("x.csv"), "x.csv", "is a folder, not a file"),
    "links in a ring": (
        lambda: (os.symlink("y.csv", "x.csv"), os.symlink("x.csv", "y.csv")),
        "x.csv",
        "it is not there",
    ),
    "a link to nothing": (lambda: os.symlink("gone.csv", "x.csv"), "x.csv", "it is not there"),
    "a pipe": (lambda: os.mkfifo("x.csv"), "x.csv", "it is not a plain file"),
    "a device": (lambda: None, "/dev/null", "it is not a plain file"),
    "nan in h5ad": (
        lambda: cells(np.where(GOOD > 2, np.nan, GOOD)),
        "x.h5ad",
        "must be a finite number: it is missing (nan)",
    ),
    "h5ad without the part": (lambda: cells(GOOD), "x.h5ad:X_umap", 'no representation "X_umap"'),
    "h5ad with an empty part": (lambda: cells(GOOD), "x.h5ad:", "There is no file x.h5ad:"),
    "h5ad without a matrix": (
        lambda: cells(None, obs=pd.DataFrame(index=list("abc"))),
        "x.h5ad",
        'no representation "X"',
    ),
    "another HDF5": (
        lambda: h5py.File("x.h5ad", "w").create_dataset("stuff", data=GOOD).file.close(),
        "x.h5ad",
        'no representation "X"',
    ),
    "a part that climbs": (lambda: np.savez("x.npz", a=GOOD), "x.npz:../a", "There is no file"),
}


@pytest.mark.parametrize("case", PLACES)
def test_places_that_are_wrong(run, case):
    prepare, name, words = PLACES[case]
    prepare()
    sentence = refused(run, "match", name, "good.npy", "--out", "out")
    assert words in sentence, sentence


CONTENTS = {
    "twins.csv": "a,a,b\n1,2,3.5\n4,5,6.5\n7,9,1.5\n",
    "match.csv": text(),
    "x.csv": text(),
    "pairs.csv": "-1,0\n",
    "fractions.npy": npy(np.array([[0.5, 1.0]])),
    "gaps.npy": npy(np.array([[np.nan, 1.0]])),
    "below.npy": npy(np.array([[-1, 1]])),
    "wide.npy": npy(np.zeros((3, 3), dtype=int)),
    "typed.csv": "0.0,1.0\n",
    "p.docx": "0,0\n",
    "names.parquet": frame(x=["n0"], y=["m1"]),
    "doubled.csv": "id,a,b\nu,1,2.5\nu ,2,3.5\nv,4,1.5\n",
    "doubled-pairs.csv": "u,v\n",
    "negative.csv": "-1\n" * 30,
    "zero.csv": "0\n" * 30,
    "side.npy": npy(np.full((30, 30), np.nan)),
    "words.txt": "one\ntwo\n",
    "both.csv": "0.png,ant\n0.png,bee\n",
    "none.csv": "file,name\n",
    "words.csv": "name\nant\nbee\n",
    "described.csv": "name,description\nant,small\nbee,flies\n",
    "nul.txt": b"ant\nb\0e\n",
    "doubles.csv": "name,a,b\nant,1,2\nant,5,2\ncat,1,7\n",
    "gap.csv": "name,a,b\nant,nan,1\nbee,1,2\n",
    "t.txt": "zz\ta\n",
    "far.csv": "n0,n99\n",
    "several.csv": "n0,n1\nn0,n2\n",
}
CLASSIFY = ["classify", "photos", "names.txt", "--encoder", "pixels", "--text-encoder", "letters"]
ENCODE = ["encode", "images", "photos", "--encoder", "pixels"]
MATCH = ["match", "good.npy", "good.npy", "--out", "out"]
OPTIONS = {
    "an ambiguous feature": (
        ["match", "twins.csv", "good.npy", "--features-x", "a"],
        "numbers, here 0, 1",
    ),
    "ambiguous ids": (["match", "twins.csv", "good.npy", "--id-column-x", "a"], 'has 2 called "a"'),
    "ambiguous shared": (["match", "twins.csv", "twins.csv", "--shared", "a"], 'has 2 called "a"'),
    "an id column of no name": (
        ["match", "x.csv", "good.npy", "--id-column-x", ""],
        'there is no ""',
    ),
    "two id columns": (
        ["match", "x.csv", "good.npy", "--id-column-x", "a,b"],
        "names 2. Choose one",
    ),
    "a range turned round": ([*MATCH, "--features", "3-1"], 'there is no "3-1"'),
    "a range without end": ([*MATCH, "--features", "0-99999999999"], "features must name columns"),
    "a negative column": ([*MATCH, "--features", "-1"], 'there is no "-1"'),
    "pairs below zero": ([*MATCH, "--pairs", "pairs.csv"], 'pairs names "-1" in line 1'),
    "pairs of fractions": ([*MATCH, "--pairs", "fractions.npy"], "must hold whole row numbers"),
    "pairs of gaps": ([*MATCH, "--pairs", "gaps.npy"], "must hold whole row numbers"),
    "pairs below zero as array": ([*MATCH, "--pairs", "below.npy"], "pair 0 names -1"),
    "pairs in three columns": ([*MATCH, "--pairs", "wide.npy"], "must have shape (k, 2)"),
    "pairs typed as 0.0": ([*MATCH, "--pairs", "typed.csv"], 'pairs names "0.0"'),
    "pairs in a folder": ([*MATCH, "--pairs", "photos"], "it is a folder, not a file"),
    "pairs in a letter": ([*MATCH, "--pairs", "p.docx"], "not of a known kind"),
    "pairs by a name of none": (
        ["match", "named.csv", "named.csv", "--pairs", "names.parquet"],
        'pairs names "m1" in row 0, which is no row of y',
    ),
    "pairs by names that collide": (
        ["match", "doubled.csv", "doubled.csv", "--pairs", "doubled-pairs.csv"],
        'x has several rows "u"',
    ),
    "side info of gaps": ([*MATCH, "--side-info", "side.npy"], "side-info must be finite"),
    "weights below zero": ([*MATCH, "--weights-x", "negative.csv"], "must not be negative"),
    "weights of nothing": ([*MATCH, "--weights-x", "zero.csv"], "above 0 for at least two rows"),
    "confidence of nan": ([*MATCH, "--min-confidence", "nan"], "min_confidence must be a number"),
    "out over an input": (["match", "match.csv", "good.npy", "--out", "."], "match.csv is both"),
    "out over pairs": ([*MATCH[:3], "--pairs", "match.csv", "--out", "."], "match.csv is both"),
    "fit over an input": (["fit", "match.csv", "good.npy", "--out", "."], "match.csv is both"),
    "transform over its input": (
        ["transform", "model", "x.csv", "--out", "x.csv"],
        "x.csv is both",
    ),
    "translate over its input": (["translate", "map", "good.npy", "--out", "good.npy"], "is both"),
    "retrieve over an input": (
        ["retrieve", "model", "good.npy", "x.csv", "--out", "x.csv"],
        "--out must not write over what is read: x.csv is both. Name another place.",
    ),
    "predict over its input": (["predict", "namer", "x.csv", "--out", "x.csv"], "x.csv is both"),
    "encode over its input": (
        ["encode", "texts", "x.csv", "--encoder", "letters", "--out", "x.csv"],
        "x.csv is both",
    ),
    "out through a link": (["match", "good.npy", "good.npy", "--out", "ring"], "leads nowhere"),
    "no encoder": ([*ENCODE[:4], "", "--out", "o.npz"], 'Unknown encoder ""'),
    "an encoder of no model": (
        [*ENCODE[:4], "timm:", "--out", "o.npz"],
        'Did you mean "timm:NAME"',
    ),
    "an encoder of no family": (
        [*ENCODE[:4], "foo:bar", "--out", "o.npz"],
        'Unknown encoder "foo:bar"',
    ),
    "no text encoder": ([*CLASSIFY[:6], ","], 'Unknown encoder ""'),
    "two names of a photo": (
        [*CLASSIFY, "--labels", "both.csv"],
        'both.csv says "ant" and "bee" of 0.png. Drop one.',
    ),
    "labels of no photo": ([*CLASSIFY, "--labels", "none.csv"], "for at least one photo"),
    "labels in a folder": ([*CLASSIFY, "--labels", "photos"], "no text file photos"),
    "labels over the result": (
        [*CLASSIFY, "--labels", "labels.csv", "--out", "."],
        "labels.csv is both",
    ),
    "names as a table": (
        ["classify", "photos", "words.csv", *CLASSIFY[3:]],
        "give a text file, .txt",
    ),
    "described names as a table": (
        ["classify", "photos", "described.csv", *CLASSIFY[3:]],
        "NAMES as a table must have a vector for each name: described.csv, line 2",
    ),
    "names with a nul": (
        ["classify", "photos", "nul.txt", *CLASSIFY[3:]],
        "looks like a binary file",
    ),
    "names in a folder": (["classify", "photos", "photos", *CLASSIFY[3:]], "no text file photos"),
    "vectors of one name twice": (
        ["classify", "photos", "doubles.csv", *CLASSIFY[3:5]],
        "'ant' comes 2",
    ),
    "vectors with a gap": (
        ["classify", "photos", "gap.csv", *CLASSIFY[3:]],
        "line 2, column 1 (a) must",
    ),
    "one photo": (
        ["classify", "photos/0.png", *CLASSIFY[2:]],
        "photos/0.png is not of a known kind",
    ),
    "texts with a nul": (["encode", "texts", "nul.txt", "--encoder", "letters"], "a binary file"),
    "shown rows of none": (
        ["report", "drawn", "--show-x", "t.txt"],
        "show-x must have lines id<TAB>",
    ),
    "shown by too few lines": (
        ["report", "drawn", "--show-x", "words.txt"],
        "words.txt has 2 lines",
    ),
    "shown by nothing": (["report", "drawn", "--show-x", "nowhere"], "no text file nowhere"),
    "shown by other photos": (
        ["report", "drawn", "--show-x", "photos"],
        "must hold photos called as",
    ),
    "truth of no row": (["report", "drawn", "--truth", "far.csv"], 'truth names "n99" in line 1'),
    "truth that contradicts": (
        ["report", "drawn", "--truth", "several.csv"],
        "must name one partner",
    ),
}


@pytest.fixture(scope="module")
def drawn(tmp_path_factory):
    """The folder of a finished match, whose rows are called n0, n1, ..."""
    folder = tmp_path_factory.mktemp("drawn")
    result, _ = run_match(GOOD, GOOD, None, {"relation": "one-to-one"}, 0)
    names = tuple(f"n{row}" for row in range(len(GOOD)))
    write_stored(replace(result, ids_x=names, ids_y=names), folder)
    return folder


@pytest.mark.parametrize("case", OPTIONS)
def test_options_that_are_wrong(others, drawn, tmp_path, monkeypatch, case):
    monkeypatch.setenv("UNPAIRED_CACHE", str(tmp_path / "model"))  # what is kept is not counted
    shutil.copytree(drawn, tmp_path / "drawn")
    for name, content in CONTENTS.items():
        (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
    (tmp_path / "ring").symlink_to("ring")
    arguments, words = OPTIONS[case]
    sentence = refused(others, *arguments)
    assert words in sentence, sentence


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (
            lambda record: record["match"]["partner"].__setitem__(0, 10**9),
            "a row of y is not among",
        ),
        (lambda record: record["match"].update(confidence=[1]), "a column does not have 30 rows"),
        (lambda record: record["match"].update(confidence=["x"] * 30), "ValueError"),
        (lambda record: record["ids_x"].pop(), "more or fewer names than rows"),
        (lambda record: record["places"].append(["x", -1, 0.0, 0.0]), "a row of x is not among"),
        (lambda record: record.clear(), "KeyError"),
    ],
)
def test_runs_that_were_changed(run, drawn, tmp_path, damage, words):
    shutil.copytree(drawn, tmp_path / "drawn")
    record = json.loads((drawn / "report.json").read_text())
    damage(record)
    (tmp_path / "drawn" / "report.json").write_text(json.dumps(record))
    sentence = refused(run, "report", "drawn")
    assert words in sentence, sentence


@pytest.mark.parametrize("place", ["good.npy", "/proc/nowhere"])
def test_a_cache_that_cannot_be_written(others, monkeypatch, place):
    monkeypatch.setenv("UNPAIRED_CACHE", place)
    sentence = refused(others, *ENCODE, "--out", "o.npz")
    assert sentence.startswith("unpaired: --cache must be a folder that can be written")


def test_no_place_for_the_results(run, tmp_path):
    before = sorted(os.listdir())
    code, out, err = run("match", "good.npy", "good.npy", "--out", "")
    assert (code, out) == (2, "")
    assert "Invalid value for '--out': it must name a place for the results, and is empty." in err
    assert sorted(os.listdir()) == before


def test_odd_photos_are_taken_or_skipped_and_told(others, tmp_path, monkeypatch):
    monkeypatch.setenv("UNPAIRED_CACHE", str(tmp_path / "cache"))
    photos = tmp_path / "photos"
    Image.new("RGB", (30_000, 1), "red").save(
        photos / "long.png"
    )  # 6.7 million pixels wide, resized
    Image.new("CMYK", (9, 9)).save(photos / "print.jpg")
    Image.fromarray(np.arange(64, dtype=np.uint16).reshape(8, 8)).save(photos / "deep.png")
    (photos / "empty.png").write_bytes(b"")
    (photos / "words.png").write_text("hello")
    (photos / "folder.png").mkdir()
    (photos / "ring").symlink_to(photos)
    shutil.copy(photos / "0.png", os.path.join(os.fsencode(photos), b"\xff.png"))
    code, out, err = others(*ENCODE, "--out", "o.csv")
    assert code == 0, err
    assert out.startswith("11 rows of 768 numbers")
    assert "note: 3 skipped" in err
    assert "empty.png: it cannot be read as a photo (it is empty)" in err
    assert "words.png: it cannot be read as a photo (it is of no kind that Pillow knows)" in err
    assert r"\xff.png: its name is not in UTF-8; rename it" in err
    assert pd.read_csv("o.csv")["id"].tolist() == sorted(
        [f"{k}.png" for k in range(8)] + ["deep.png", "long.png", "print.jpg"]
    )


def test_texts_in_utf_16_and_with_marks_inside_lines(others, tmp_path, monkeypatch):
    monkeypatch.setenv("UNPAIRED_CACHE", str(tmp_path / "cache"))
    (tmp_path / "t.txt").write_bytes("eins\u2028noch eins\nzwei\x0bx\r\ndrei".encode("utf-16"))
    code, out, _ = others("encode", "texts", "t.txt", "--encoder", "letters", "--out", "o.npz")
    assert (code, out[:7]) == (0, "3 rows ")


def test_names_that_a_terminal_cannot_show(others, tmp_path, monkeypatch):
    out = os.fsdecode(b"o\xff")
    code, said, err = others("match", "good.npy", "good.npy", "--out", out)
    assert (code, err) == (0, "")
    assert os.path.isdir(out)
