"""``unpaired fit | transform | retrieve`` as typed, in this process."""

import csv
import json
import os

import numpy as np
import pytest

import unpaired
from unpaired.baselines.cca import CCA


@pytest.fixture
def run(tmp_path, monkeypatch, typed):
    monkeypatch.chdir(tmp_path)
    return typed


@pytest.fixture
def views(tmp_path, rng):
    z = rng.normal(size=(60, 4)) * [3, 2, 1.5, 1]
    x, y = z @ rng.normal(size=(4, 5)), z @ rng.normal(size=(4, 6))
    np.save(tmp_path / "x.npy", x)
    lines = ["name," + ",".join("abcdef")]
    lines += [f"n{i}," + ",".join(map(repr, row)) for i, row in enumerate(y.tolist())]
    (tmp_path / "y.csv").write_text("\n".join(lines))
    return x, y


def test_a_fitted_model_finds_what_python_finds(run, views, tmp_path):
    (tmp_path / "pairs.csv").write_text("".join(f"{i},n{i}\n" for i in range(40)))
    words = ("fit", "x.npy", "y.csv", "--pairs", "pairs.csv", "--out", "fitted")
    for seed in (3, 0):  # the second takes the place of the first
        code, out, err = run(*words, "--seed", seed)
        assert code == 0, err
        assert unpaired.load("fitted/model").seed_ == seed
    assert "60 of 60 rows of x matched" in out
    assert sorted(os.listdir("fitted")) == ["match.csv", "model", "run.json"]
    record = json.loads((tmp_path / "fitted" / "run.json").read_text())
    assert set(record["inputs"]) == {"x", "y", "pairs"}
    for side, words in (("x", ["x.npy", "y.csv"]), ("y", ["y.csv", "x.npy"])):
        code, _, err = run("retrieve", "fitted/model", *words, "-k", "3", "--side", side)
        assert code == 0, err
        with open("retrieved.csv", newline="") as handle:
            rows = list(csv.DictReader(handle))
        assert [row["rank"] for row in rows[:4]] == ["1", "2", "3", "1"]
        found = np.array([int(row["found"].lstrip("n")) for row in rows]).reshape(60, 3)
        matrix = unpaired.load("fitted/model").score_matrix(*views)
        expected = np.argsort(-(matrix if side == "x" else matrix.T), axis=1)[:, :3]
        np.testing.assert_array_equal(found, expected)
        assert (found == np.arange(60)[:, None]).any(1).mean() > 0.9


@pytest.fixture
def model(views, tmp_path):
    fitted = CCA(random_state=0).fit(*views, "aligned")
    fitted.save(tmp_path / "model")
    return fitted


def test_embedded_rows_are_those_of_python(run, views, model):
    assert run("transform", "model", "x.npy", "--out", "new/x.npy")[0] == 0
    np.testing.assert_array_equal(np.load("new/x.npy"), model.transform_x(views[0]))
    code, out, err = run("transform", "model", "y.csv", "--side", "y", "--out", "y.out.csv")
    assert (code, err) == (0, "")
    assert out.startswith("60 rows of ")
    with open("y.out.csv", newline="") as handle:
        header, *rows = list(csv.reader(handle))
    assert header[:2] == ["id", "z0"]
    assert [row[0] for row in rows] == [f"n{i}" for i in range(60)]
    values = np.array([row[1:] for row in rows], dtype=float)
    np.testing.assert_array_equal(values, model.transform_y(views[1]))


def test_blocks_of_queries_give_what_one_block_gives(run, model, tmp_path, monkeypatch):
    assert run("retrieve", "model", "x.npy", "y.csv", "-k", "99", "--out", "one.csv")[0] == 0
    monkeypatch.setattr("unpaired.commands.model.QUERIES_AT_ONCE", 7)
    assert run("retrieve", "model", "x.npy", "y.csv", "-k", "99", "--out", "two.csv", "-q")[1] == ""
    with open("one.csv", newline="") as one, open("two.csv", newline="") as two:
        for a, b in zip(csv.DictReader(one), csv.DictReader(two), strict=True):
            assert (a["query"], a["rank"]) == (b["query"], b["rank"])
            assert float(a["score"]) == pytest.approx(float(b["score"]), abs=1e-9)
    assert len((tmp_path / "one.csv").read_text().splitlines()) == 1 + 60 * 60


def test_columns_in_another_order_are_refused(run, views, tmp_path):
    import pandas as pd

    y = pd.read_csv(tmp_path / "y.csv", index_col=0)
    CCA(random_state=0).fit(views[0], y, "aligned").save(tmp_path / "model")
    y[list("bacdef")].to_csv(tmp_path / "other.csv")
    code, _, err = run("transform", "model", "other.csv", "--side", "y")
    assert code == 2
    assert 'y must have its columns in the order of fit: column 0 is "b"' in err
    assert run("transform", "model", "y.csv", "--side", "y")[0] == 0


def test_a_classifier_is_no_model_of_two_sides(run, tmp_path, rng):
    images = rng.normal(size=(40, 6)) + 4 * np.eye(6)[rng.integers(0, 3, 40)]
    fitted = unpaired.UnsupervisedClassifier(n_rounds=1, random_state=0).fit(images, np.eye(3, 4))
    fitted.save(tmp_path / "model")
    np.save(tmp_path / "x.npy", images)
    code, _, err = run("transform", "model", "x.npy")
    assert code == 2
    assert "MODEL must be a model of two sides: model holds a UnsupervisedClassifier" in err


def test_programs_are_told_in_json(run, model):
    code, out, _ = run("transform", "model", "x.npy", "--out", "e.npy", "--json")
    assert (code, json.loads(out)) == (
        0,
        {"rows": 60, "columns": np.load("e.npy").shape[1], "out": "e.npy"},
    )
    code, out, _ = run("retrieve", "model", "x.npy", "y.csv", "-k", "2", "--json")
    told = {"queries": 60, "rows": 60, "k": 2, "out": "retrieved.csv"}
    assert (code, json.loads(out)) == (0, told)
    code, out, _ = run("ls", "measures", "--json")
    assert code == 0
    assert "hsic" in json.loads(out)["measures"]
