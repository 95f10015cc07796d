"""Every command that reads tables, on every kind of file: the same answer as from .npy."""

import csv
import gzip
import os

import anndata
import numpy as np
import pandas as pd
import pytest

import unpaired

N_ROWS = 30
COLUMNS = list("abcd")
KINDS = {
    "npy": "{}.npy",
    "npz": "{}.npz",
    "npz, picked": "{}2.npz:rows",
    "csv": "{}.csv",
    "tsv": "{}.tsv",
    "txt": "{}.txt",
    "parquet": "{}.parquet",
    "feather": "{}.feather",
    "xlsx": "{}.xlsx",
    "xlsx, picked": "{}2.xlsx:rows",
    "jsonl": "{}.jsonl",
    "h5ad": "{}.h5ad",
    "h5ad, picked": "{}2.h5ad:X_rows",
    "csv.gz": "{}.csv.gz",
    "npy.gz": "{}.npy.gz",
    "jsonl.gz": "{}.jsonl.gz",
    "h5ad.gz": "{}.h5ad.gz",
}


def write_all(folder, name, rows):
    """One table as every kind of file; the numbers have few digits, so that all hold the same."""
    frame = pd.DataFrame(rows, columns=COLUMNS)
    np.save(folder / f"{name}.npy", rows)
    np.savez(folder / f"{name}.npz", rows)
    np.savez(folder / f"{name}2.npz", other=rows[:3], rows=rows)
    for ending, mark in (("csv", ","), ("tsv", "\t"), ("txt", " ")):
        frame.to_csv(folder / f"{name}.{ending}", sep=mark, index=False)
    frame.to_parquet(folder / f"{name}.parquet")
    frame.to_feather(folder / f"{name}.feather")
    frame.to_excel(folder / f"{name}.xlsx", index=False)
    with pd.ExcelWriter(folder / f"{name}2.xlsx") as book:
        frame[:3].to_excel(book, sheet_name="other", index=False)
        frame.to_excel(book, sheet_name="rows", index=False)
    frame.to_json(folder / f"{name}.jsonl", orient="records", lines=True)
    cells = anndata.AnnData(rows)
    cells.obs_names = [str(number) for number in range(len(rows))]
    cells.var_names = COLUMNS
    cells.write_h5ad(folder / f"{name}.h5ad")
    cells.obsm["X_rows"] = rows
    cells.X = np.zeros_like(rows)
    cells.write_h5ad(folder / f"{name}2.h5ad")
    for ending in ("csv", "npy", "jsonl", "h5ad"):
        packed = gzip.compress((folder / f"{name}.{ending}").read_bytes())
        (folder / f"{name}.{ending}.gz").write_bytes(packed)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """Two tables of every kind, one model of each sort, and a folder for each command's results."""
    folder = tmp_path_factory.mktemp("kinds")
    rng = np.random.default_rng(0)
    centres = 4 * rng.standard_normal((3, 4))
    x = (centres[np.arange(N_ROWS) % 3] + rng.standard_normal((N_ROWS, 4))).round(3)
    turn = np.linalg.qr(rng.standard_normal((4, 4)))[0]
    write_all(folder, "x", x)
    write_all(folder, "y", (x @ turn)[rng.permutation(N_ROWS)].round(3))
    write_all(folder, "names", (centres @ turn).round(3))
    with (folder / "names.csv").open("w", newline="") as handle:
        writer = csv.writer(handle)
        writer.writerow(["name", *COLUMNS])
        writer.writerows([f"n{k}", *row] for k, row in enumerate((centres @ turn).tolist()))
    from unpaired.baselines.cca import CCA

    CCA(random_state=0).fit(x, x @ turn, "aligned").save(folder / "model")
    unpaired.align(x, x @ turn, random_state=0).translations[0].save(folder / "map")
    namer = unpaired.UnsupervisedClassifier(n_rounds=1, random_state=0)
    namer.fit(x, centres @ turn, classes=["n0", "n1", "n2"]).save(folder / "namer")
    return folder


def column(file, *names):
    with open(file, newline="") as handle:
        return [[row[name] for name in names] for row in csv.DictReader(handle)]


COMMANDS = {
    "match": (["match", "{x}", "{y}", "--id-column", "none", "--out", "{out}"],
              lambda out: column(f"{out}/match.csv", "row", "partner")),
    "fit": (["fit", "{x}", "{y}", "--id-column", "none", "--out", "{out}"],
            lambda out: column(f"{out}/match.csv", "row", "partner")),
    "transform": (["transform", "model", "{x}", "--out", "{out}.npy"],
                  lambda out: np.load(f"{out}.npy").round(4).tolist()),
    "retrieve": (["retrieve", "model", "{x}", "{y}", "-k", "2", "--out", "{out}.csv"],
                 lambda out: column(f"{out}.csv", "rank", "found")),
    "translate, learn": (["translate", "{x}", "{y}", "--out", "{out}"],
                         lambda out: unpaired.load(f"{out}/translation").matrix.round(3).tolist()),
    "translate, apply": (["translate", "map", "{x}", "--out", "{out}.npy"],
                         lambda out: np.load(f"{out}.npy").round(4).tolist()),
    "classify": (["classify", "{x}", "names.csv", "--out", "{out}"],
                 lambda out: column(f"{out}/labels.csv", "name")),
    "predict": (["predict", "namer", "{x}", "--out", "{out}.csv"],
                lambda out: column(f"{out}.csv", "name")),
}  # fmt: skip


@pytest.fixture(scope="module")
def answers():
    """What each command said of .npy, kept for the other kinds."""
    return {}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_reads_every_kind(command, kind, place, answers, typed, monkeypatch):
    monkeypatch.chdir(place)
    words, read = COMMANDS[command]

    def answer(pattern):
        out = f"{command.replace(', ', '-')}-{pattern[2:].replace(':', '-')}"
        x, y = pattern.format("x"), pattern.format("y")
        code, _, err = typed(*(word.format(x=x, y=y, out=out) for word in words))
        assert code == 0, err
        return read(out)

    if command not in answers:
        answers[command] = answer(KINDS["npy"])
    assert answer(KINDS[kind]) == answers[command]


@pytest.mark.parametrize("kind", KINDS)
def test_check_reads_every_kind(kind, place, answers, typed, monkeypatch):
    monkeypatch.chdir(place)
    files = [KINDS[kind].format(side) for side in "xy"]
    code, out, err = typed("check", *files, "--json")
    assert code == 0, err
    assert out == answers.setdefault("check", out)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("txt", "tsv")])
def test_classify_reads_class_vectors_of_every_kind_that_names_rows(
    kind, place, typed, monkeypatch
):
    monkeypatch.chdir(place)
    names = KINDS[kind].format("names")
    code, _, err = typed("classify", "x.npy", names, "--out", f"c-{kind.replace(', ', '-')}")
    if kind.startswith("h5ad") or kind == "csv":
        assert code == 0, err
    else:
        assert code == 2
        assert f"NAMES must say what its rows are called: {names} has no column of names" in err
        assert not os.path.exists(f"c-{kind.replace(', ', '-')}")
