"""What a command says, and where."""

import json
import os
import pty
import signal
import subprocess
import sys

import numpy as np
import pytest

from unpaired._log import step
from unpaired.commands.console import Console, to_json

WORK = """
import time
import threading
from unpaired._log import step, track
from unpaired.commands.console import Console
with Console().progress("Working [1]"):
    time.sleep(0.3)
    step("Half way", 1, 2)
    time.sleep(0.3)
    other = threading.Thread(target=step, args=("Another thread", 1, 2))
    other.start()
    other.join()
    for _ in track(range(3), "A second loop"):
        time.sleep(0.2)
print("done")
"""


def test_results_go_to_stdout_and_decisions_to_stderr(capsys):
    console = Console()
    console.tell("result")
    console.note("decided")
    console.finish({"a": 1})
    assert capsys.readouterr() == ("result\n", "note: decided\n")


@pytest.mark.parametrize("console", [Console(quiet=True), Console(as_json=True)])
def test_nothing_else_is_said_to_programs(capsys, console):
    console.tell("result")
    console.note("decided")
    with console.progress("Working"):
        step("Half way", 1, 2)
    assert capsys.readouterr() == ("", "")
    console.finish({"a": float("nan"), "b": (1, float("inf"))})
    out = capsys.readouterr().out
    assert out == "" if console.quiet else json.loads(out) == {"a": None, "b": [1, None]}


def test_json_is_strict():
    with pytest.raises(ValueError, match="NaN"):
        json.loads(
            '{"a": NaN}', parse_constant=lambda name: (_ for _ in ()).throw(ValueError(name))
        )
    assert json.loads(to_json({"path": os.fspath("x"), "n": [float("-inf"), 0.5]})) == {
        "path": "x",
        "n": [None, 0.5],
    }


def on_a_terminal(command, **options):
    """The process, and a function that reads what it shows, to the end or until some words."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=theirs, **options)
    os.close(theirs)

    def shown(until=None):
        text = b""
        while until is None or until not in text:
            try:
                block = os.read(ours, 4096)
            except OSError:  # how Linux ends a terminal
                break
            if not block:
                break
            text += block
        return text

    return process, shown


def test_progress_shows_on_a_terminal_and_nowhere_else():
    quiet = subprocess.run([sys.executable, "-c", WORK], capture_output=True, text=True, check=True)
    assert (quiet.stdout, quiet.stderr) == ("done\n", "")
    run, read = on_a_terminal([sys.executable, "-c", WORK])
    shown = read()
    assert run.communicate()[0] == b"done\n"
    assert b"Working [1]" in shown
    assert b"Half way" in shown
    assert b"left" in shown  # once the pace is known
    assert b"left" not in shown[: shown.index(b"Half way")]  # no time gone is called time left
    assert b"A second loop" in shown
    assert b"Another thread" not in shown
    assert b"0:00:00" in shown  # time left of the loop that goes on


def test_the_demo_shows_that_it_goes_on(tmp_path):
    run, read = on_a_terminal([sys.executable, "-m", "unpaired", "demo"], cwd=tmp_path)
    shown = read(until=b"Grouping and naming")
    run.send_signal(signal.SIGINT)
    assert b"Loading the photos" in shown
    assert b"stopped; nothing was left half written." in read()
    run.communicate(timeout=60)
    assert run.returncode == 130
    assert os.listdir(tmp_path) == []


EARLY = """
import builtins, signal
from unpaired import __main__
plain = builtins.__import__
def interrupted(name, *rest, **named):
    if name == "unpaired.cli":
        signal.raise_signal(signal.SIGINT)
    return plain(name, *rest, **named)
builtins.__import__ = interrupted
__main__.main()
"""


def test_ctrl_c_before_anything_was_loaded():
    run = subprocess.run([sys.executable, "-c", EARLY], capture_output=True, text=True)
    assert run.returncode == 130
    assert run.stderr == "unpaired: stopped; nothing was begun.\n"


@pytest.mark.parametrize(
    ("words", "when"),
    [
        (("match", "x.npy", "y.npy", "--out", "out"), b"Matching"),
        (("fit", "x.npy", "y.npy", "--out", "out"), b"Learning"),
        (("translate", "x.npy", "y.npy", "--out", "out"), b"Learning the map"),
    ],
)
def test_ctrl_c_says_so_and_leaves_nothing(tmp_path, words, when):
    rng = np.random.default_rng(0)
    for name in "xy":
        np.save(tmp_path / f"{name}.npy", rng.normal(size=(2000, 16)))
    run, read = on_a_terminal([sys.executable, "-m", "unpaired", *words], cwd=tmp_path)
    before = read(until=when)
    assert b"Reading" in before  # told before anything heavy is loaded
    run.send_signal(signal.SIGINT)
    after = read()
    out, _ = run.communicate(timeout=60)
    assert run.returncode == 130
    assert b"unpaired: stopped; nothing was left half written." in after
    assert b"Traceback" not in after
    assert out == b""
    assert sorted(os.listdir(tmp_path)) == ["x.npy", "y.npy"]
