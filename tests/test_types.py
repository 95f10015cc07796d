import copy
import csv
import dataclasses
import os
import stat

import numpy as np
import pytest

from unpaired._files import atomic_writer
from unpaired.types import Match, Objective, Verdict


@pytest.fixture
def match():
    return Match(
        partner=np.array([2, -1, 0, 1]),
        confidence=np.array([0.95, 0.0, 0.5, 0.9]),
        objective=Objective(0.25, {"slow": 0.125, "best": 0.25}),
        runner_up=np.array([1, -1, 2, 0]),
        margin=np.array([0.5, -0.25, 0.0, 1.5]),
        n_y=3,
    )


def test_objective_is_a_float_that_knows_its_starts():
    objective = Objective(0.25, {"a": 0.25})
    assert objective == 0.25
    assert objective + 1 == 1.25
    assert isinstance(objective, float)
    assert Objective(0.5).per_start == {}
    for other in (copy.copy(objective), copy.deepcopy(objective)):
        assert (other, other.per_start) == (0.25, {"a": 0.25})
        assert isinstance(other, Objective)


def test_objective_keeps_its_own_starts():
    starts = {"a": 0.25}
    objective = Objective(0.25, starts)
    starts["b"] = 1.0
    assert objective.per_start == {"a": 0.25}


def test_match_pairs_leave_out_rows_without_partner(match):
    assert match.pairs.tolist() == [[0, 2], [2, 0], [3, 1]]
    assert match.pairs.dtype == np.int64
    assert len(match) == 4
    nobody = dataclasses.replace(match, partner=np.full(4, -1))
    assert nobody.pairs.shape == (0, 2)


def test_match_cannot_be_changed(match):
    with pytest.raises(dataclasses.FrozenInstanceError):
        match.n_y = 5


def test_summary(match):
    assert match.summary().splitlines() == [
        "verdict: not judged: check some rows yourself",
        "3 of 4 rows of x matched to 3 rows of y (one-to-one)",
        "confidence: median 0.90, 2 rows at 0.9 or more",
        "objective: 0.2500, the best of 2 starts",
    ]


def test_summary_of_everything_and_of_nothing(match):
    full = dataclasses.replace(match, agreement=0.75, gap=0.5, converged=False)
    lines = full.summary().splitlines()
    assert lines[3] == "objective: 0.2500, the best of 2 starts (stopped before it settled)"
    assert lines[-2:] == [
        "agreement between starts: 0.75",
        "above random maps: 0.50 of what was possible",
    ]
    assert not full.trusted
    verdict = Verdict("coarse", 0.95, 0.1, (0.02, 0.25), ("few rows (60)",))
    vouched = dataclasses.replace(full, verdict=verdict)
    assert vouched.trusted
    assert vouched.summary().splitlines()[1:] == lines[1:]
    assert vouched.summary().startswith(
        "verdict: coarse: right for groups of rows with probability 0.95, expected rank of the "
        "true partner 0.10 (0.02 to 0.25); few rows (60)"
    )
    nobody = dataclasses.replace(match, partner=np.full(4, -1))
    assert nobody.summary().splitlines()[1:3] == [
        "0 of 4 rows of x matched to 3 rows of y (one-to-one)",
        "confidence: no row was matched",
    ]


def test_pandas_and_csv_tell_the_same(match, tmp_path):
    frame = match.to_pandas()
    assert list(frame) == ["row", "partner", "confidence", "runner_up", "margin"]
    match.to_csv(tmp_path / "new folder" / "match.csv")
    with (tmp_path / "new folder" / "match.csv").open(newline="") as handle:
        rows = list(csv.DictReader(handle))
    for row, expected in zip(rows, frame.to_dict("records"), strict=True):
        assert {key: float(value) for key, value in row.items()} == expected
    assert rows[0] == {
        "row": "0", "partner": "2", "confidence": "0.95", "runner_up": "1", "margin": "0.5",
    }  # fmt: skip


def test_writer_puts_a_whole_readable_file_in_place(tmp_path):
    path = tmp_path / "deep" / "file.txt"
    with atomic_writer(path) as handle:
        handle.write("käse\n")
        assert not path.exists()
    assert path.read_bytes() == "käse\n".encode()
    assert stat.S_IMODE(path.stat().st_mode) & 0o444 == 0o444
    assert os.listdir(path.parent) == ["file.txt"]


def test_writer_that_fails_leaves_the_old_file_and_no_other(tmp_path):
    path = tmp_path / "file.txt"
    path.write_text("old")

    def fail():
        with atomic_writer(path) as handle:
            handle.write("new")
            raise RuntimeError("half way")

    with pytest.raises(RuntimeError, match="half way"):
        fail()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["file.txt"]


def test_a_match_of_any_size_is_one_line(match):
    assert repr(match) == (
        "<Match one-to-one: 3 of 4 rows of x in 3 of y, objective 0.25, not trusted>"
    )
    verdict = Verdict("reliable", 0.95, 0.01, (0.0, 0.05))
    vouched = dataclasses.replace(match, verdict=verdict, relation="many-to-one")
    assert repr(vouched).endswith("trusted>")
    assert "not" not in repr(vouched)
