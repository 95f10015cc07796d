"""What ``unpaired match`` leaves in its folder, and what the other commands make of it."""

import csv
import json
import os

import numpy as np
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


@pytest.mark.parametrize("text", [None, "{", "[]", '{"format": 2}', '{"format": 1}'])
def test_a_folder_without_a_run_is_one_sentence(run, tmp_path, text):
    (tmp_path / "other").mkdir()
    if text is not None:
        (tmp_path / "other" / "report.json").write_text(text)
    code, out, err = run("report", "other")
    assert (code, out) == (2, "")
    assert len(err.splitlines()) == 1
    assert not (tmp_path / "other" / "report.html").exists()
