"""``unpaired translate`` as typed, in this process: learn a map, apply it."""

import csv
import json
import os

import numpy as np
import pandas as pd
import pytest

import unpaired


@pytest.fixture
def run(tmp_path, monkeypatch, typed):
    monkeypatch.chdir(tmp_path)
    return typed


@pytest.fixture
def vectors(tmp_path):
    """Vectors of 300 documents by an old model, of the same in another order by a new one."""
    rng = np.random.default_rng(3)
    centers = 3.0 * rng.normal(size=(30, 8))
    old = centers[rng.integers(30, size=340)] + rng.normal(size=(340, 8))
    old = old * np.exp(0.4 * rng.normal(size=8)) + 0.3
    old /= np.linalg.norm(old, axis=1, keepdims=True)
    turn = np.linalg.qr(rng.normal(size=(8, 8)))[0]
    order = rng.permutation(300)
    np.save(tmp_path / "old.npy", old[:300])
    np.save(tmp_path / "new.npy", old[order] @ turn)
    np.save(tmp_path / "more.npy", old[300:])
    lines = [f"{row},{place}" for place, row in enumerate(order) if place < 50]
    (tmp_path / "pairs.csv").write_text("\n".join(lines))
    return old[300:] @ turn


def test_a_map_is_learned_told_and_applied(run, vectors, tmp_path):
    code, out, err = run("translate", "old.npy", "new.npy", "--out", "map", "--onnx")
    assert code == 0, err
    lines = out.splitlines()
    assert lines[0].startswith("verdict: reliable")
    assert lines[1].startswith("A linear map from 8 columns to 8, learned from 300 and 300 rows")
    assert "No pairs were held out" in lines[2]
    assert sorted(os.listdir("map")) == ["run.json", "translation", "translation.onnx"]
    assert sorted(os.listdir("map/translation")) == ["arrays.safetensors", "config.json"]
    record = json.loads((tmp_path / "map" / "run.json").read_text())
    assert record["verdict"]["level"] == "reliable"
    assert record["held_out"] is None
    assert set(record["outputs"]) == {"translation/arrays.safetensors", "translation.onnx"}
    for model in ("map", "map/translation"):
        code, out, err = run("translate", model, "more.npy", "--out", "moved.npy")
        assert code == 0, err
        assert out == "40 rows in 8 columns: moved.npy\n"
        moved = np.load("moved.npy")
        assert (moved * vectors).sum(1).min() > 0.99
    assert run("translate", "map", "more.npy", "--out", "moved.csv")[0] == 0
    with open("moved.csv", newline="") as handle:
        rows = list(csv.reader(handle))
    assert rows[0][:2] == ["id", "z0"]
    np.testing.assert_allclose(np.array(rows[1:], dtype=float)[:, 1:], moved, rtol=1e-6)
    from onnx.reference import ReferenceEvaluator

    given = np.load("more.npy").astype(np.float32)
    (by_onnx,) = ReferenceEvaluator("map/translation.onnx").run(None, {"rows": given})
    np.testing.assert_allclose(by_onnx, moved, rtol=1e-4, atol=1e-6)


def test_held_out_pairs_judge_the_map(run, vectors, tmp_path):
    words = ("translate", "old.npy", "new.npy", "--pairs", "pairs.csv", "--out", "map", "--json")
    code, out, err = run(*words)
    assert code == 0, err
    held = json.loads(out)["held_out"]
    assert held["pairs"] == 10
    assert held["median_cosine"] > 0.99
    assert held["mean_rank"] < 1
    assert held["out_of"] == 300
    assert json.loads((tmp_path / "map" / "run.json").read_text())["held_out"] == held


def test_models_of_fit_translate_both_ways(run, vectors):
    assert run("fit", "old.npy", "new.npy", "--out", "fitted")[0] == 0
    for side, model in (("x", "fitted"), ("y", "fitted/model")):
        words = ("translate", model, "more.npy", "--side", side, "--out", f"{side}.npy")
        code, _, err = run(*words)
        assert code == 0, err
        wanted = getattr(unpaired.load("fitted/model"), f"translate_{side}")(np.load("more.npy"))
        np.testing.assert_allclose(np.load(f"{side}.npy"), wanted, rtol=1e-6)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("translate", "map", "narrow.npy", "--out", "m.npy"), "the 8 columns"),
        (("translate", "map", "more.npy", "--out", "m.txt"), "--out must end in .npy or .csv"),
        (("translate", "map", "more.npy", "--side", "y", "--out", "m.npy"), "knows both sides"),
        (("translate", "map", "more.npy", "--pairs", "pairs.csv"), "--pairs is for learning"),
        (("translate", "map", "more.npy", "--seed", "3"), "--seed is for learning"),
        (("translate", "old.npy", "new.npy", "--side", "y"), "swap OLD and NEW"),
        (("translate", "empty", "more.npy", "--out", "m.npy"), "does not hold a saved"),
        (("translate", "nothing.npy", "new.npy", "--out", "m"), "nothing.npy"),
        (("translate", "map", "gone.npy", "--out", "m.npy"), "gone.npy"),
    ],
)
def test_mistakes_are_one_sentence_and_write_nothing(run, tmp_path, words, said):
    np.save(tmp_path / "old.npy", np.eye(8))
    np.save(tmp_path / "more.npy", np.eye(8))
    np.save(tmp_path / "narrow.npy", np.eye(5))
    (tmp_path / "empty").mkdir()
    from unpaired.spaces.translation import Translation

    Translation(np.eye(8, dtype=np.float32), np.zeros(8, dtype=np.float32)).save(tmp_path / "map")
    before = sorted(os.listdir(tmp_path))
    code, out, err = run(*words)
    assert (code, out) == (2, "")
    assert said in err
    assert len(err.splitlines()) == 1
    assert sorted(os.listdir(tmp_path)) == before


def test_a_map_knows_the_names_of_its_columns(run, vectors, tmp_path):
    old = pd.DataFrame(np.load("old.npy"), columns=[f"old-{k}" for k in range(8)])
    old.to_csv(tmp_path / "old.csv", index=False)
    assert run("translate", "old.csv", "new.npy", "--out", "map")[0] == 0
    assert run("translate", "map", "old.csv", "--out", "a.npy")[0] == 0
    assert run("translate", "map", "old.npy", "--out", "b.npy")[0] == 0  # without names, by place
    np.testing.assert_allclose(np.load("a.npy"), np.load("b.npy"), atol=1e-6)
    np.testing.assert_array_equal(unpaired.load("map/translation")(old), np.load("a.npy"))
    old.iloc[:, ::-1].to_csv(tmp_path / "turned.csv", index=False)
    for model in ("map", "map/translation"):
        code, out, err = run("translate", model, "turned.csv", "--out", "c.npy")
        assert (code, out) == (2, "")
        assert 'VECTORS must have its columns in the order of fit: column 0 is "old-7"' in err
    assert not os.path.exists("c.npy")
