"""What people give by mistake: one sentence, exit code 2, nothing written, no traceback."""

import gzip
import json
import os

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from wrong import GOOD, claims, frame, npy, npz, packed, refused, sheet, text

from unpaired._saving import _digest

FILES = {
    # name, content, words of the sentence
    "empty npy": ("x.npy", b"", "x.npy could not be read as npy"),
    "no npy": ("x.npy", b"hello", "x.npy could not be read as npy"),
    "npy cut short": ("x.npy", npy(GOOD)[:200], "x.npy must hold what its header claims"),
    "npy of a petabyte": ("x.npy", claims((2**40, 128)), "1125899906842624 bytes, and 0 follow"),
    "npy of negative size": ("x.npy", claims((-5, 4)), "no array of numbers"),
    "npy of pickles": (
        "x.npy",
        npy(np.array([[{}]], dtype=object), allow_pickle=True),
        "pickled objects, which are never read",
    ),
    "npy with a long header": ("x.npy", claims("(" + " " * 60000 + "2, 2)"), "could not be read"),
    "npy with code in its header": ("x.npy", claims("__import__('os')"), "could not be read"),
    "npy of named fields": ("x.npy", npy(np.zeros(3, dtype=[("a", "f8")])), "x must have two dim"),
    "npy of words": ("x.npy", npy(np.array([["a", "b"], ["c", "d"]])), "x must hold real numbers"),
    "npy of complex numbers": ("x.npy", npy(GOOD + 1j), "x must hold real numbers"),
    "npy of dates": ("x.npy", npy(GOOD.astype("M8[s]")), "x must hold real numbers"),
    "one dimension": ("x.npy", npy(GOOD[0]), "x must have two dimensions"),
    "three dimensions": ("x.npy", npy(GOOD[None]), "x must have two dimensions"),
    "no dimension": ("x.npy", npy(np.float64(3)), "x must have two dimensions"),
    "no rows": ("x.npy", npy(GOOD[:0]), "x must have at least 2 rows"),
    "one row": ("x.npy", npy(GOOD[:1]), "x must have at least 2 rows"),
    "no columns": ("x.npy", npy(GOOD[:, :0]), "and 1 column"),
    "nan": ("x.npy", npy(np.where(GOOD > 2, np.nan, GOOD)), "x must be finite"),
    "infinite": ("x.npy", npy(np.where(GOOD > 2, np.inf, GOOD)), "x must be finite"),
    "too large": ("x.npy", npy(1e100 * GOOD), "x must stay below 1e+30"),
    "too small": ("x.npy", npy(1e-200 * GOOD), "varies by more than 1e-30"),
    "constant": ("x.npy", npy(np.ones((30, 4))), "x must have rows that differ"),
    "empty npz": ("x.npz", b"", "x.npz could not be read as npz"),
    "npz without arrays": ("x.npz", npz(), "x.npz must hold an array: it is an empty archive"),
    "npz of several": ("x.npz", npz(a=GOOD, b=GOOD), "Say which one, e.g. x.npz:a"),
    "npz of pickles": ("x.npz", npz(a=np.array([{}], dtype=object)), "pickled objects"),
    "npz cut short": ("x.npz", npz(a=GOOD)[:300], "x.npz could not be read as npz"),
    "npz of a petabyte": ("x.npz", packed("a.npy", claims((2**40, 128))), "and 0 follow"),
    "npz of something else": ("x.npz", packed("a.txt", b"hello"), "could not be read as npz"),
    "empty csv": ("x.csv", b"", "x.csv is empty"),
    "csv of blank lines": ("x.csv", b"\n\n\n", "x.csv is empty"),
    "csv of a header": ("x.csv", b"a,b\n", "has a header and no rows"),
    "bad cell": ("x.csv", text() + "1,2,x,4\n", "line 32, column 2 (c) must be a number"),
    "bad cell in line 1": ("x.csv", text(header="1.5,2,x,4"), "neither a header nor a row"),
    "empty cell": ("x.csv", text() + "1,2,,4\n", "line 32, column 2 (c) is empty"),
    "empty row": ("x.csv", text() + ",,,\n", "line 32, column 0 (a) is empty"),
    "NA": ("x.csv", text() + "1,NA,3,4\n", "line 32, column 1 (b) is empty"),
    "written nan": ("x.csv", text() + "1,nan,3,4\n", "line 32, column 1 (b) must be a finite"),
    "#DIV/0!": ("x.csv", text() + "1,#DIV/0!,3,4\n", 'it holds "#DIV/0!"'),
    "decimal comma": ("x.csv", "a;b\n1,5;2\n3,5;1\n", "Write decimals with a point"),
    "thousands": ("x.csv", 'a,b\n"1,000",2\n"2,000",3\n', "has a comma"),
    "underscore": ("x.csv", text() + "1_0,2,3,4\n", 'it holds "1_0"'),
    "a unit": ("x.csv", text() + "1kg,2,3,4\n", 'it holds "1kg"'),
    "a short line": ("x.csv", text() + "1,2,3\n", "line 32 has 3"),
    "a long line": ("x.csv", text() + "1,2,3,4,5\n", "line 32 has 5"),
    "a quote left open": ("x.csv", text() + '"1,2,3,4\n', "could not be read as csv"),
    "latin-1": ("x.csv", "größe,b\n1,2\n".encode("latin-1"), "looks like Latin-1"),
    "utf-16 without mark": ("x.csv", text().encode("utf-16-le"), "looks like UTF-16"),
    "binary csv": ("x.csv", b"a,b\n1,\0\n", "looks like a binary file"),
    "a picture as csv": ("x.csv", b"\x89PNG\r\n\x1a\n" + bytes(50), "x.csv must be text"),
    "a column of words": ("x.csv", "a,b\n1,red\n2,blue\n", 'column 1 (b) must be a number: it h'),
    "only names": ("x.csv", "name\nant\nbee\n", "column 0 (name) must be a number"),
    "names twice and no numbers": ("x.csv", "id,key\nant,a\nbee,b\n", "must be a number"),
    "a nameless row": ("x.csv", "id,a\nant,1\n,2\ncat,3\n", "line 3, column 0 (id) is empty"),
    "lists of two lengths": ("x.csv", 'v\n"[1, 2]"\n"[1]"\n', "must be a list of 2 numbers"),
    "lists left open": ("x.csv", 'v\n"[1, 2]"\n"[1, "\n', "must be a list of numbers"),
    "huge number": ("x.csv", text() + "1e999,2,3,4\n", "line 32, column 0 (a) must be a finite"),
    "html as csv": ("x.csv", "<html>\n<body>\n404\n", "column 0 (<html>) must be a number"),
    "empty tsv": ("x.tsv", b"", "x.tsv is empty"),
    "no gz": ("x.csv.gz", b"hello", "x.csv.gz could not be read as csv"),
    "gz cut short": ("x.csv.gz", gzip.compress(text().encode())[:-9], "could not be read as csv"),
    "gz of a bad npy": ("x.npy.gz", gzip.compress(b"hello"), "could not be read as npy"),
    "no parquet": ("x.parquet", b"hello", "x.parquet could not be read as parquet"),
    "parquet of words": ("x.parquet", frame(a=[1, 2], b=["u", "v"]), "column 1 (b) must be a numb"),
    "parquet of lists of two lengths": ("x.parquet", frame(v=[[1.0], [1.0, 2.0]]), "column v must"),
    "parquet of gaps": ("x.parquet", frame(a=[1.0, None, 3.0]), "row 1, column 0 (a) must be a"),
    "parquet of dates": ("x.parquet", frame(a=pd.to_datetime(["2020"] * 2)), "must be a number"),
    "parquet of no columns": ("x.parquet", frame(), "x.parquet must have a column"),
    "parquet of no rows": ("x.parquet", frame(a=pa.array([], pa.float64())), "x must have at"),
    "no feather": ("x.feather", b"hello", "x.feather could not be read as feather"),
    "no xlsx": ("x.xlsx", b"hello", "x.xlsx could not be read as xlsx"),
    "another zip as xlsx": ("x.xlsx", packed("a.txt", b"hello"), "x.xlsx could not be read"),
    "xlsx of nothing": ("x.xlsx", sheet(), "x.xlsx is empty"),
    "xlsx with a gap": ("x.xlsx", sheet(["a", "b"], [1, 2], [3, None]), "line 3, column 1 (b) is"),
    "xlsx with a formula": ("x.xlsx", sheet(["a"], ["=1+1"], [2]), "line 2, column 0 (a) is empty"),
    "no h5ad": ("x.h5ad", b"hello", "x.h5ad could not be read as h5ad"),
    "h5ad of nothing": ("x.h5ad", b"", "x.h5ad could not be read as h5ad"),
    "gz of no h5ad": ("x.h5ad.gz", gzip.compress(b"hello"), "x.h5ad.gz could not be read as h5ad"),
    "empty jsonl": ("x.jsonl", b"", "x.jsonl is empty"),
    "no jsonl": ("x.jsonl", b"hello\n", "line 1 must be JSON"),
    "json, not lines": ("x.jsonl", b'[\n{"a": 1}\n]', "line 1 must be JSON"),
    "jsonl of other keys": ("x.jsonl", b'{"a": 1}\n{"b": 1}\n', "line 2 must have the keys"),
    "jsonl too deep": ("x.jsonl", b"[" * 50_000, "line 1 must be JSON"),
    "jsonl of a null": ("x.jsonl", b'{"a": 1}\n{"a": null}\n', "line 2, column 0 (a) is empty"),
    "unknown kind": ("x.docx", b"PK", "x.docx is not of a known kind"),
    "no kind": ("x", b"1,2\n", "x is not of a known kind"),
    "a pickle": ("x.pkl", b"\x80\x04.", "x.pkl is not of a known kind"),
}  # fmt: skip


@pytest.mark.parametrize("case", FILES)
def test_hostile_files(run, tmp_path, case):
    name, content, words = FILES[case]
    (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
    sentence = refused(run, "match", name, "good.npy", "--out", "out")
    assert words in sentence, sentence
    other = refused(run, "match", "good.npy", name, "--out", "out")
    assert words.replace("x must", "y must") in other, other


OPTIONS = {
    "missing file": (["none.npy", "good.npy"], "There is no file none.npy"),
    "a folder": ([".", "good.npy"], "it is a folder, not a file"),
    "a long name": (["x" * 5000, "good.npy"], "cannot be a file"),
    "unknown relation": (["--relation", "one2one"], 'Unknown relation "one2one". Did you mean'),
    "missing pairs": (["--pairs", "none.csv"], "There is no file none.csv"),
    "pairs of one column": (["--pairs", "one.csv"], "must have two columns in every line"),
    "pairs of three columns": (["--pairs", "named.csv"], "must have two columns"),
    "pairs that name no row": (["--pairs", "far.csv"], 'pairs names "99" in line 1'),
    "pairs as array that name no row": (["--pairs", "far.npy"], "pairs must name rows of x"),
    "pairs that contradict": (["--pairs", "twice.csv"], "pairs must be one to one"),
    "forbidden that name no row": (["--forbidden", "far.csv"], 'forbidden names "99" in line 1'),
    "forbidden and known": (["--pairs", "p.csv", "--forbidden", "p.csv"], "must not share a pair"),
    "side info of another shape": (["--side-info", "one.csv"], "unpaired: side-info must"),
    "weights of another length": (["--weights-x", "one.csv"], "must"),
    "shared that is not there": (["--shared", "zz"], 'good.npy has no "zz"'),
    "shared that takes all": (["--shared", "0,1,2,3"], "shared must leave columns to match by"),
    "jobs of zero": (["--jobs", "0"], "unpaired: jobs must be a whole number of at least 1"),
    "unknown id column": (["--id-column", "zz"], "id-column must name columns of good.npy"),
    "unknown feature": (["--features", "0-9"], "features must name columns of good.npy"),
    "features without any": (["--features-x", ","], 'there is no ""'),
    "ids among features": (["--id-column", "0", "--features", "0-2"], "must not hold the column"),
    "out is a file": (["--out", "good.npy"], "good.npy is a file"),
    "out is below a file": (["--out", "good.npy/out"], "good.npy is a file"),
    "out is too long": (["--out", "x" * 300], "File name too long"),
    "out where nothing can be made": (["--out", "/proc/self/out"], "--out must be a folder"),
}


@pytest.mark.parametrize("case", OPTIONS)
def test_hostile_options(run, tmp_path, case):
    arguments, words = OPTIONS[case]
    (tmp_path / "one.csv").write_text("1\n2\n3\n")
    (tmp_path / "far.csv").write_text("99,0\n")
    (tmp_path / "far.npy").write_bytes(npy(np.array([[99, 0]])))
    (tmp_path / "twice.csv").write_text("0,0\n0,1\n")
    (tmp_path / "p.csv").write_text("0,0\n")
    named = [] if not arguments[0].startswith("-") else ["good.npy", "good.npy"]
    out = [] if "--out" in arguments else ["--out", "out"]
    sentence = refused(run, "match", *named, *arguments, *out)
    assert words in sentence, sentence


@pytest.mark.parametrize(
    "arguments",
    [
        ["mach"],
        ["match"],
        ["match", "good.npy"],
        ["match", "good.npy", "good.npy", "good.npy"],
        ["match", "good.npy", "good.npy", "--sead", "1"],
        ["match", "good.npy", "good.npy", "--seed", "-1"],
        ["match", "good.npy", "good.npy", "--seed", "one"],
        ["match", "good.npy", "good.npy", "--jobs", "many"],
        ["retrieve", "m", "good.npy", "good.npy", "-k", "0"],
    ],
)
def test_wrong_usage(run, arguments):
    before = sorted(os.listdir())
    code, _, err = run(*arguments)
    assert code == 2
    assert "Error: " in err
    assert "Traceback" not in err
    assert sorted(os.listdir()) == before


MODELS = {
    "no model": (["transform", "none", "good.npy"], "none does not hold a saved estimator"),
    "a file as model": (["transform", "good.npy", "good.npy"], "does not hold a saved estimator"),
    "other columns": (["transform", "model", "good.npy", "--side", "y"], "the 3 columns"),
    "unknown side": (["transform", "model", "good.npy", "--side", "z"], 'Unknown side "z"'),
    "unknown kind of output": (["transform", "model", "good.npy", "--out", "a.zip"], "must end"),
    "output is a folder": (["transform", "model", "good.npy", "--out", "model/a.npy"], "a folder"),
    "missing rows": (["transform", "model", "none.npy"], "There is no file none.npy"),
    "gallery of other columns": (["retrieve", "model", "good.npy", "good.npy"], "the 3 columns"),
    "model folder of other things": (["fit", "good.npy", "good.npy", "--out", "."], "holds a.npy"),
}  # fmt: skip


@pytest.mark.parametrize("case", MODELS)
def test_hostile_models(run, model, case):
    arguments, words = MODELS[case]
    (model / "a.npy").mkdir()
    sentence = refused(run, *arguments)
    assert words in sentence, sentence


CLASSIFY = ["classify", "photos", "names.txt", "--encoder", "pixels", "--text-encoder", "letters"]
OTHERS = {
    "check: missing file": (["check", "none.npy", "good.npy"], "There is no file none.npy"),
    "check: no npy": (["check", "good.npy", "bad.npy"], "bad.npy could not be read as npy"),
    "check: bad cell": (["check", "bad.csv", "good.npy"], "line 32, column 2 (c) must be a number"),
    "check: nan": (["check", "good.npy", "nan.npy"], "y must be finite"),
    "check: pairs": (["check", "good.npy", "good.npy", "--pairs", "far.csv"], 'pairs names "99"'),
    "check: column": (["check", "good.npy", "good.npy", "--features", "9"], "features must name"),
    "fit: missing file": (["fit", "good.npy", "none.npy"], "There is no file none.npy"),
    "fit: bad cell": (["fit", "good.npy", "bad.csv"], "line 32, column 2 (c) must be a number"),
    "fit: words": (["fit", "words.csv", "good.npy"], "column 1 (b) must be a number"),
    "fit: nan": (["fit", "nan.npy", "good.npy"], "x must be finite"),
    "fit: pairs": (["fit", "good.npy", "good.npy", "--pairs", "far.csv"], 'pairs names "99"'),
    "fit: relation": (["fit", "good.npy", "good.npy", "--relation", "two"], "Unknown relation"),
    "fit: out": (["fit", "good.npy", "good.npy", "--out", "good.npy"], "good.npy is a file"),
    "transform: nan": (["transform", "model", "nan.npy"], "x must be finite"),
    "transform: bad cell": (["transform", "model", "bad.csv"], "line 32, column 2"),
    "transform: a classifier": (["transform", "namer", "good.npy"], "must be a model of two sides"),
    "transform: a map": (["transform", "map", "good.npy"], "must be a model of two sides"),
    "transform: no model": (["transform", "empty", "good.npy"], "does not hold a saved"),
    "retrieve: no queries": (["retrieve", "model", "none.npy", "good.npy"], "no file none.npy"),
    "retrieve: bad cell": (["retrieve", "model", "good.npy", "bad.csv"], "line 32, column 2"),
    "retrieve: out": (["retrieve", "model", "good.npy", "narrow.npy", "--out", "a.npy"], "in .csv"),
    "retrieve: side": (["retrieve", "model", "good.npy", "good.npy", "--side", "z"], "Unknown sid"),
    "translate: missing": (["translate", "none.npy", "good.npy"], "There is no file none.npy"),
    "translate: bad cell": (["translate", "good.npy", "bad.csv"], "line 32, column 2"),
    "translate: nan": (["translate", "nan.npy", "good.npy"], "x must be finite"),
    "translate: pairs": (["translate", "good.npy", "good.npy", "--pairs", "far.csv"], '"99"'),
    "translate: width": (["translate", "map", "narrow.npy"], "must have the 4 columns"),
    "translate: nan rows": (["translate", "map", "nan.npy"], "must be finite"),
    "translate: a classifier": (["translate", "namer", "good.npy"], "MODEL must hold a map"),
    "translate: no map": (["translate", "empty", "good.npy"], "does not hold a saved"),
    "translate: kind": (["translate", "map", "good.npy", "--out", "a.txt"], "--out must end in"),
    "translate: side": (["translate", "map", "good.npy", "--side", "z"], 'Unknown side "z"'),
    "encode: what": (["encode", "sounds", "photos"], 'Unknown kind to encode "sounds"'),
    "encode: encoder": (["encode", "images", "photos", "--encoder", "pixel"], "Did you mean"),
    "encode: other kind": (["encode", "texts", "names.txt", "--encoder", "pixels"], "one of texts"),
    "encode: no folder": (["encode", "images", "none", "--encoder", "pixels"], "no folder of phot"),
    "encode: a file": (["encode", "images", "good.npy", "--encoder", "pixels"], "it is a file"),
    "encode: no photos": (["encode", "images", "empty", "--encoder", "pixels"], "must hold photos"),
    "encode: broken": (["encode", "images", "broken", "--encoder", "pixels"], "nothing can"),
    "encode: no text": (["encode", "texts", "none.txt", "--encoder", "letters"], "no text file"),
    "encode: blank": (["encode", "texts", "blank.txt", "--encoder", "letters"], "it is empty"),
    "encode: latin-1": (["encode", "texts", "latin.txt", "--encoder", "letters"], "text in UTF-8"),
    "encode: a folder": (["encode", "texts", "photos", "--encoder", "letters"], "no text file"),
    "encode: out": (["encode", "images", "photos", "--out", "a.txt"], "must end in .npz or .csv"),
    "encode: cache": (
        ["encode", "images", "photos", "--encoder", "pixels", "--cache", "good.npy"],
        "--cache must be a folder",
    ),
    "classify: no photos": (["classify", "none", "names.txt"], "There is no file none"),
    "classify: no names": (["classify", "photos", "none.txt"], "There is no text file none.txt"),
    "classify: one name": ([*CLASSIFY[:2], "one.txt", *CLASSIFY[3:]], "two names or more"),
    "classify: alike": ([*CLASSIFY[:2], "same.txt", *CLASSIFY[3:]], "NAMES must have rows"),
    "classify: no name": ([*CLASSIFY[:2], "tab.txt", *CLASSIFY[3:]], "a name before the tab"),
    "classify: names of none": ([*CLASSIFY[:2], "vectors.csv", *CLASSIFY[3:]], "rows are called"),
    "classify: encoder": ([*CLASSIFY[:4], "pixel", *CLASSIFY[5:]], "Did you mean"),
    "classify: cache": ([*CLASSIFY, "--cache", "good.npy"], "--cache must be a folder"),
    "predict: cache": (["predict", "namer", "good.npy", "--cache", "good.npy"], "--cache must be"),
    "classify: texts encoder": ([*CLASSIFY[:6], "leters"], "Did you mean"),
    "classify: a label of none": ([*CLASSIFY, "--labels", "labels.csv"], "got '9.png,bee'"),
    "classify: a name of none": ([*CLASSIFY, "--labels", "wrong.csv"], 'Did you mean "an'),
    "classify: short labels": ([*CLASSIFY, "--labels", "short.csv"], "a line file,name"),
    "classify: no labels": ([*CLASSIFY, "--labels", "none.csv"], "no text file none.csv"),
    "classify: out": ([*CLASSIFY, "--out", "good.npy"], "good.npy is a file"),
    "classify: broken": (["classify", "broken", *CLASSIFY[2:]], "nothing can"),
    "predict: no model": (["predict", "none", "photos"], "does not hold a saved"),
    "predict: another model": (["predict", "model", "photos"], "MODEL must be a classifier"),
    "predict: photos": (["predict", "namer", "photos"], "must be a file of vectors"),
    "predict: columns": (["predict", "namer", "narrow.npy"], "must have the 4 columns"),
    "predict: missing": (["predict", "namer", "none.npy"], "There is no file none.npy"),
    "predict: out": (["predict", "namer", "good.npy", "--out", "a.npy"], "must end in .csv"),
    "report: no folder": (["report", "none"], "none"),
    "report: no run": (["report", "empty"], "empty"),
    "ls": (["ls", "solver"], 'Did you mean "solvers"'),
    "data get": (["data", "get", "imagenet"], 'Unknown package to fetch "imagenet"'),
    "data get: out": (["data", "get", "wink", "--out", "good.npy"], "good.npy is a file"),
    "data check": (["data", "check", "none"], "There is no folder none"),
    "bench: config": (["bench", "matching", "--config", "config.toml"], "config.toml"),
    "bench: broken config": (["bench", "matching", "--config", "broken.toml"], "broken.toml"),
    "bench: table": (["bench", "table", "empty"], "must hold finished cells"),
    "bench: plot": (["bench", "plot", "empty"], "must hold finished cells"),
    "demo: out": (["demo", "--out", "good.npy"], "good.npy is a file"),
}  # fmt: skip


@pytest.mark.parametrize("case", OTHERS)
def test_hostile_to_the_other_commands(others, case, tmp_path, monkeypatch):
    monkeypatch.setenv("UNPAIRED_CACHE", str(tmp_path / "model"))  # what is kept is not counted
    arguments, words = OTHERS[case]
    sentence = refused(others, *arguments)
    assert words in sentence, sentence


@pytest.mark.parametrize("name", ["config.json", "arrays.safetensors"])
@pytest.mark.parametrize("damage", ["cut", "garbage", "pickle", "edited"])
def test_damaged_models(run, model, name, damage):
    content = (model / name).read_bytes()
    (model / name).write_bytes(
        {
            "cut": content[: len(content) // 2],
            "garbage": b"\xff" * 100,
            "pickle": b"\x80\x04\x95\x05.",
            "edited": content.replace(b"0", b"1"),
        }[damage]
    )
    sentence = refused(run, "transform", "model", "good.npy")
    assert "model" in sentence


@pytest.mark.parametrize("key", ["estimator", "arrays_sha256", "unpaired", "values", "columns"])
def test_models_that_do_not_say_enough(run, model, key):
    config = json.loads((model / "config.json").read_text())
    del config[key]
    config["config_sha256"] = _digest(config)
    (model / "config.json").write_text(json.dumps(config))
    assert f"it has no {key}" in refused(run, "transform", "model", "good.npy")


def test_a_file_that_may_not_be_read(run, tmp_path, monkeypatch):
    def closed(*args):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("unpaired.files.reading.read_npy", closed)
    sentence = refused(run, "match", "good.npy", "good.npy")
    assert sentence == (
        "unpaired: good.npy must be a file that you may read: you may not. Change its permissions."
    )


def test_what_is_not_hostile_goes_through(run):
    code, out, _ = run("match", "good.npy", "named.csv", "--json")
    assert code == 0
    assert json.loads(out)["command"][:2] == ["unpaired", "match"]
