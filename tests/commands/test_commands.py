"""``unpaired data`` and ``unpaired bench`` as a person types them, in processes of their own."""

import json
import os
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

OWN_METHOD = """
import time, numpy as np

class Mean:
    '''Scores by the distance of row means: right on this toy, where the first column tells.'''

    def __init__(self, pause=0.0, random_state=None):
        self.pause = pause

    def fit(self, x, y, pairs=None):
        time.sleep(self.pause)
        return self

    def score_matrix(self, x, y):
        return -np.abs(np.asarray(x)[:, :1] - np.asarray(y)[:, :1].T)
"""
CONFIG = """
title = "Own method"
task = "matching"
rows = ["0 pairs", "5 pairs"]
settings = ["semi"]
seeds = [0, 1]
[data]
source = "aligned"
file = "views.npz"
[[methods]]
name = "own_method:Mean"
label = "Mean"
[methods.params]
pause = 0.0
"""


def command(*arguments):
    return [sys.executable, "-m", "unpaired", *map(str, arguments)]


def run(*arguments, cwd, **environment):
    return subprocess.run(
        command(*arguments),
        cwd=cwd,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


@pytest.fixture
def place(tmp_path, rng):
    first = rng.permutation(30.0 * np.arange(30))
    x = np.column_stack([first, rng.normal(size=30)])
    y = np.column_stack([first, rng.normal(size=(30, 2))])
    np.savez(tmp_path / "views.npz", x=x, y=y)
    (tmp_path / "own_method.py").write_text(OWN_METHOD)
    (tmp_path / "config.toml").write_text(CONFIG)
    return tmp_path


def test_a_benchmark_from_run_to_picture(place):
    arguments = ("bench", "matching", "--config", "config.toml", "--out", "out", "--data", ".")
    done = run(*arguments, cwd=place)
    assert done.returncode == 0, done.stderr
    assert "[4/4] semi 5 pairs Mean seed 1: x->y R@1 1.000" in done.stdout
    assert "4 cells run, 0 skipped, 0 failed" in done.stdout
    cells = place / "out" / "cells.jsonl"
    cells.write_text(cells.read_text()[:-50])
    again = run(*arguments[:-2], cwd=place, UNPAIRED_DATA=".")
    assert "3 of 4 cells are finished and skipped" in again.stdout
    assert "1 cells run, 3 skipped, 0 failed" in again.stdout
    table = run("bench", "table", "out", cwd=place)
    assert re.search(r"0 pairs +semi +Mean +2 +100.0 ± 0.0", table.stdout)
    written = run("bench", "table", "out", "--format", "latex", "--out", "t/table.tex", cwd=place)
    assert written.returncode == 0
    assert r"\begin{tabular}" in (place / "t" / "table.tex").read_text()
    cells.write_text(cells.read_text().replace('"digest": "', '"digest": "0', 1))
    assert "2 (1 stale)" in run("bench", "table", "out", cwd=place).stdout
    redone = run(*arguments, "--redo-stale", cwd=place)
    assert "1 cells run, 3 skipped, 0 failed" in redone.stdout
    drawn = run("bench", "plot", "out", "--format", "svg", cwd=place)
    assert drawn.returncode == 0, drawn.stderr
    assert {path.name for path in (place / "out" / "plots").iterdir()} == {
        "own-method-p@1.svg",
        "own-method-foscttm.svg",
    }


def test_stopping_by_ctrl_c_keeps_finished_cells(place):
    slow = CONFIG.replace("pause = 0.0", "pause = 3.0").replace("[0, 1]", "[0, 1, 2, 3, 4, 5]")
    (place / "config.toml").write_text(slow)
    process = subprocess.Popen(
        command("bench", "matching", "--config", "config.toml", "--out", "out", "--data", "."),
        cwd=place,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    cells = place / "out" / "cells.jsonl"
    for _ in range(1200):
        assert process.poll() is None, process.communicate()
        if cells.exists():
            break
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "finished cells are kept in out" in errors
    assert "Traceback" not in errors
    records = [json.loads(line) for line in cells.read_text().splitlines()]
    assert 1 <= len(records) < 12
    assert all(record["metrics"] for record in records)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("bench", "retrieval", "--config", "config.toml"), "run unpaired bench matching"),
        (("bench", "matching", "--config", "none.toml"), "There is no configuration none.toml"),
        (
            ("bench", "matching", "--config", "config.toml", "--redo-stale", "--confirm-stale"),
            "--redo-stale must be left out where --confirm-stale is given",
        ),
        (
            ("bench", "matching", "--config", "config.toml", "--confirm-stale"),
            "--confirm-stale needs finished cells",
        ),
        (("bench", "table", "."), "must hold finished cells"),
        (("bench", "table", "nowhere"), "There is no folder nowhere"),
        (("data", "check", "nowhere"), "There is no folder nowhere"),
        (("data", "get", "imagenet"), 'Unknown package to fetch "imagenet"'),
    ],
)
def test_mistakes_get_one_sentence_and_exit_code_two(place, arguments, message):
    done = run(*arguments, cwd=place)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_data_list_and_check(place):
    listed = run("data", "list", cwd=place)
    assert listed.returncode == 0
    for name in ("cifar10", "awa", "flickr30k", "coco", "words", "sample"):
        assert name in listed.stdout
    nothing = run("data", "check", ".", cwd=place)
    assert nothing.returncode == 1
    assert "No known data set" in nothing.stdout
    (place / "data_batch_1.bin").write_bytes(bytes(3073))
    half = run("data", "check", ".", cwd=place)
    assert half.returncode == 1
    assert "cifar10 in .: NOT WHOLE" in half.stdout
    assert "missing: test_batch.bin" in half.stdout


def test_get_without_npm_says_what_to_do(place):
    done = run("data", "get", "cifar10", "--out", "c", cwd=place, PATH="/nowhere")
    assert done.returncode == 2
    assert "Install Node.js" in done.stderr
