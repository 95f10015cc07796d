"""What ``unpaired match`` leaves in its folder, and what the other commands make of it."""

import csv
import json
import os

import numpy as np
import pandas as pd
import pytest

import unpaired
from unpaired.datasets.toy import rotated_clusters


@pytest.fixture
def run(tmp_path, monkeypatch, typed):
    monkeypatch.chdir(tmp_path)
    return typed


@pytest.fixture
def files(tmp_path):
    data = rotated_clusters(200, np.random.default_rng(2), d_x=10, d_y=9, extra_x=20)
    np.save(tmp_path / "x.npy", data.x)
    np.save(tmp_path / "y.npy", data.y)
    return data


def test_match_leaves_all_that_others_need(run, files, tmp_path, monkeypatch):
    code, out, err = run("match", "x.npy", "y.npy", "--out", "result")
    assert code == 0, err
    assert out.startswith("verdict: reliable")
    assert "next: use the match: single partners can be relied on" in out
    names = ["match.csv", "model", "report.html", "report.json", "run.json"]
    assert sorted(os.listdir("result")) == names
    record = json.loads((tmp_path / "result" / "run.json").read_text())
    verdict = unpaired.match(files.x, files.y).verdict
    assert record["verdict"] == {
        "level": "reliable",
        "probability": verdict.probability,
        "expected_rank": verdict.expected_rank,
        "interval": list(verdict.interval),
        "reasons": list(verdict.reasons),
        "trusted": True,
    }
    assert set(record["outputs"]) == {"match.csv", "model/arrays.safetensors"}

    code, _, err = run("retrieve", "result/model", "x.npy", "y.npy", "-k", 1, "--out", "r.csv")
    assert code == 0, err
    with open("r.csv", newline="") as handle:
        found = np.array([int(row["found"]) for row in csv.DictReader(handle)])
    aligned = unpaired.align(files.x, files.y)
    np.testing.assert_array_equal(found, aligned.score_matrix(files.x, files.y).argmax(1))
    assert run("transform", "result/model", "y.npy", "--side", "y", "--out", "e.npy")[0] == 0
    np.testing.assert_allclose(np.load("e.npy"), aligned.embed_y(files.y), rtol=1e-5)
    assert run("translate", "result", "x.npy", "--out", "t.npy")[0] == 0
    np.testing.assert_allclose(np.load("t.npy"), aligned.translate_x(files.x), rtol=1e-4, atol=1e-5)

    page = (tmp_path / "result" / "report.html").read_bytes()
    (tmp_path / "result" / "report.html").unlink()
    monkeypatch.setattr("unpaired.matching.solve", None)  # nothing may be fitted
    code, out, err = run("report", "result")
    assert code == 0, err
    assert out == f"Report: {os.path.join('result', 'report.html')}\n"
    assert (tmp_path / "result" / "report.html").read_bytes() == page


def test_rows_below_a_confidence_are_left_out(run, files, tmp_path):
    whole = unpaired.match(files.x, files.y)
    least = float(np.median(whole.confidence))
    code, out, err = run("match", "x.npy", "y.npy", "--min-confidence", least, "--json")
    assert code == 0, err
    assert f"--min-confidence {least}" in " ".join(json.loads(out)["command"])
    with open("match-report/match.csv", newline="") as handle:
        partner = np.array([int(row["partner"]) for row in csv.DictReader(handle)])
    np.testing.assert_array_equal(partner, np.where(whole.confidence < least, -1, whole.partner))
    cut = unpaired.align(files.x, files.y, min_confidence=least).match
    np.testing.assert_array_equal(cut.partner, partner)
    assert (cut.confidence[partner < 0] == 0).all()
    assert np.isnan(cut.margin[partner < 0]).all()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--min-confidence", "1.5"), "min_confidence must be a number from 0 to 1"),
        (("--min-confidence", "0.3", "--leave-out"), "Pass one of them"),
    ],
)
def test_a_cut_that_makes_no_sense_is_refused(run, files, words, said):
    code, _, err = run("match", "x.npy", "y.npy", *words)
    assert code == 2
    assert said in err
    assert not os.path.exists("match-report")


def test_many_to_one_says_that_three_names_cannot_be_judged(run, tmp_path, rng):
    centers = 4.0 * rng.normal(size=(3, 4))
    np.save(tmp_path / "x.npy", centers[np.arange(60) % 3] + 0.1 * rng.normal(size=(60, 4)))
    np.save(tmp_path / "y.npy", centers @ np.linalg.qr(rng.normal(size=(4, 4)))[0])
    words = ("x.npy", "y.npy", "--relation", "many-to-one", "--out", "named")
    code, out, err = run("match", *words)
    assert code == 0, err
    assert out.startswith("verdict: unreliable")
    told = json.loads((tmp_path / "named" / "run.json").read_text())["verdict"]
    assert told["level"] == "unreliable"
    assert any("few classes (3)" in reason for reason in told["reasons"])
    assert "model" not in os.listdir("named")
    assert "few classes (3)" in (tmp_path / "named" / "report.html").read_text()
    (tmp_path / "named" / "model").mkdir()
    code, _, err = run("match", *words)
    assert code == 2
    assert "--out must not hold the model of another run" in err
    code, out, err = run("fit", *words[:-1], "fitted")
    assert code == 0, err
    assert out.startswith("verdict: unreliable")
    assert unpaired.load("fitted/model").verdict_.level == "unreliable"


def test_fit_tells_its_verdict(run, files, tmp_path):
    code, out, err = run("fit", "x.npy", "y.npy", "--out", "fitted")
    assert code == 0, err
    model = unpaired.load("fitted/model")
    assert model.verdict_ == model.match_.verdict
    assert out.startswith(f"verdict: {model.verdict_}")
    record = json.loads((tmp_path / "fitted" / "run.json").read_text())
    assert record["verdict"]["level"] == model.verdict_.level


@pytest.mark.parametrize("text", [None, "{", "[]", '{"format": 3}', '{"format": 1}'])
def test_a_folder_without_a_run_is_one_sentence(run, tmp_path, text):
    (tmp_path / "other").mkdir()
    if text is not None:
        (tmp_path / "other" / "report.json").write_text(text)
    code, out, err = run("report", "other")
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert not (tmp_path / "other" / "report.html").exists()


@pytest.fixture
def named(files, tmp_path):
    """The same rows as tables whose rows and columns have names."""
    frames = {}
    for side, values in (("x", files.x), ("y", files.y)):
        names = [f"{side}{row}" for row in range(len(values))]
        columns = [f"{side}-{k}" for k in range(values.shape[1])]
        frames[side] = pd.DataFrame(values, index=names, columns=columns)
        frames[side].to_csv(tmp_path / f"{side}.csv")
    return frames


def test_the_model_of_a_match_knows_its_columns(run, named, tmp_path):
    for out, more in (("result", ()), ("part", ("--features-x", "0-7"))):
        assert run("match", "x.csv", "y.csv", "--out", out, *more)[0] == 0
    assert run("transform", "result/model", "x.csv", "--out", "e.npy")[0] == 0
    assert run("transform", "result", "x.csv", "--out", "same.npy")[0] == 0  # the folder will do
    np.testing.assert_array_equal(np.load("same.npy"), np.load("e.npy"))
    named["x"].iloc[:, ::-1].to_csv(tmp_path / "turned.csv")
    named["x"].rename(columns={"x-0": "other"}).to_csv(tmp_path / "renamed.csv")
    for words, said in (
        (("transform", "result/model", "turned.csv"), "columns in the order of fit"),
        (("transform", "result/model", "renamed.csv"), '"other" was not there'),
        (("transform", "part/model", "y.csv", "--features", "0-7"), '"y-0" was not there'),
        (("translate", "result", "turned.csv"), "columns in the order of fit"),
        (("retrieve", "result/model", "turned.csv", "y.csv"), "columns in the order of fit"),
    ):
        code, out, err = run(*words)
        assert (code, out) == (2, ""), err
        assert said in err


def test_the_model_of_a_match_by_shared_columns_knows_the_others(run, named, tmp_path):
    for side in "xy":
        named[side].assign(age=np.arange(len(named[side])) % 7).to_csv(tmp_path / f"{side}.csv")
    assert run("match", "x.csv", "y.csv", "--shared", "age", "--out", "result")[0] == 0
    columns = unpaired.load("result/model").columns
    assert columns == {side: (f.shape[1], tuple(f.columns)) for side, f in named.items()}


def test_side_information_and_weights_are_taken_by_name(run, named, tmp_path, rng):
    sides = [list(named[side].index) for side in "xy"]
    info = pd.DataFrame(
        rng.random((len(sides[0]), len(sides[1]))), index=sides[0], columns=sides[1]
    )
    weight = pd.DataFrame({"w": rng.integers(1, 3, len(sides[0]))}, index=sides[0])
    found = []
    for step in (1, -1):
        info.iloc[::step, ::step].to_csv(tmp_path / "info.csv")
        weight.iloc[::step].to_csv(tmp_path / "weight.csv")
        words = ("--side-info", "info.csv", "--weights-x", "weight.csv", "--out", f"r{step}")
        code, _, err = run("match", "x.csv", "y.csv", *words)
        assert code == 0, err
        assert err.count("by name") == (0 if step == 1 else 3)
        found.append((tmp_path / f"r{step}" / "match.csv").read_bytes())
    assert found[0] == found[1]
    info.rename(index={"x3": "nobody"}).to_csv(tmp_path / "info.csv")
    code, _, err = run("match", "x.csv", "y.csv", "--side-info", "info.csv", "--out", "r")
    assert code == 2
    assert "side-info must name each row of x once, or none: info.csv has none" in err
    assert not os.path.exists("r")


def test_results_of_two_commands_are_not_mixed(run, files, tmp_path):
    assert run("match", "x.npy", "y.npy", "--out", "result")[0] == 0
    for command in ("fit", "translate"):
        code, out, err = run(command, "x.npy", "y.npy", "--out", "result")
        assert (code, out) == (2, "")
        assert (
            f"an earlier run of unpaired {command}: result holds results of unpaired match" in err
        )
    code, _, err = run("demo", "--out", "result")
    assert code == 2
    assert "result holds results of unpaired match" in err
    for text in ("{", "[]", '{"command": "mine"}', '{"command": []}'):
        (tmp_path / "result" / "run.json").write_text(text)
        code, _, err = run("match", "x.npy", "y.npy", "--out", "result")
        assert code == 2
        assert "result holds a run.json that unpaired did not write" in err
