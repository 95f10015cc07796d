"""``unpaired check``: what it promises is what a match gets, on a sample where there are many."""

import json
import sys

import numpy as np
import pytest

import unpaired
from unpaired import checking
from unpaired.checking import advise, pairs_to_settle
from unpaired.cli import main
from unpaired.datasets.toy import rotated_clusters
from unpaired.errors import InputError
from unpaired.types import Verdict


@pytest.fixture(scope="module")
def twins():
    return rotated_clusters(400, np.random.default_rng(0), d_x=16, d_y=16)


@pytest.fixture(scope="module")
def strangers():
    rng = np.random.default_rng(1)
    return rng.normal(size=(90, 6)), rng.normal(size=(80, 7))


def test_the_verdict_is_that_of_the_match(twins):
    found = unpaired.check(twins.x, twins.y)
    assert found.verdict == unpaired.match(twins.x, twins.y).verdict
    assert found.verdict.level == "reliable"
    assert (found.rows, found.judged) == ((400, 400), (400, 400))
    assert str(found).splitlines()[0] == f"verdict: {found.verdict}"
    assert str(found).endswith("next: " + found.advice[-1])


def test_strangers_are_told_to_bring_pairs(strangers):
    found = unpaired.check(*strangers)
    assert found.verdict == unpaired.match(*strangers).verdict
    assert not found.verdict.trusted
    assert any("known pairs" in sentence for sentence in found.advice)
    assert any("more rows" in sentence for sentence in found.advice)


def test_evident_partners_need_no_sample_and_others_get_one(twins, strangers, monkeypatch):
    monkeypatch.setattr(checking, "MOST_ROWS", 60)
    assert unpaired.check(twins.x, twins.y).judged == (400, 400)
    pairs = np.column_stack([np.arange(70, 90), np.arange(20)])
    found = unpaired.check(*strangers, pairs)
    assert (found.rows, found.judged) == ((90, 80), (60, 60))
    assert "drawn from 90 and 80" in str(found)
    assert found.n_known == 20
    # all of the pairs are among the rows that are drawn, and are held out in turn
    assert any("20 known pairs, held out" in reason for reason in found.verdict.reasons)


def test_the_number_of_pairs_follows_from_the_error_of_a_mean_rank(rng):
    n = pairs_to_settle()
    means = rng.random((20_000, n)).mean(axis=1)  # ranks by chance
    assert (means < 0.35).mean() < 0.03
    assert (rng.random((20_000, n // 2)).mean(axis=1) < 0.35).mean() > 0.03


@pytest.mark.parametrize(
    ("level", "n_known", "said"),
    [
        ("reliable", 0, "single partners can be relied on"),
        ("coarse", 0, "groups of rows"),
        ("unreliable", 0, "about 15 known pairs, drawn"),
        ("unreliable", 4, "15 known pairs in all (4 are given)"),
        ("unreliable", 40, "the known pairs do not help"),
    ],
)
def test_advice_follows_the_verdict(level, n_known, said):
    verdict = Verdict(level, 0.5, 0.2, (0.1, 0.3))
    assert said in " ".join(advise(verdict, 500, n_known, 0.0))
    assert "repeated" in advise(verdict, 500, n_known, 0.2)[-1]


def test_the_command_says_the_same(twins, tmp_path, monkeypatch, capsys):
    np.save(tmp_path / "x.npy", twins.x)
    np.save(tmp_path / "y.npy", twins.y)
    monkeypatch.chdir(tmp_path)
    for words in ([], ["--json"]):
        monkeypatch.setattr(sys, "argv", ["unpaired", "check", "x.npy", "y.npy", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        assert not ended.value.code
        out = capsys.readouterr().out
        if not words:
            assert out.startswith("verdict: reliable")
            assert "next: use the match" in out
        else:
            assert json.loads(out)["verdict"]["level"] == "reliable"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.npy", "y.npy"]


def test_bad_rows_are_named():
    with pytest.raises(InputError, match="y must be finite"):
        unpaired.check(np.eye(3), np.full((3, 2), np.nan))
