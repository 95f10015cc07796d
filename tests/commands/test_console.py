"""What a command says, and where."""

import json
import logging
import os
import pty
import subprocess
import sys

import pytest

from unpaired._log import log, step
from unpaired.commands.console import Console, to_json

WORK = """
import time
from unpaired._log import step
from unpaired.commands.console import Console
with Console().progress("Working [1]"):
    time.sleep(0.3)
    step("Half way", 1, 2)
    time.sleep(0.3)
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


def test_progress_shows_on_a_terminal_and_nowhere_else():
    quiet = subprocess.run([sys.executable, "-c", WORK], capture_output=True, text=True, check=True)
    assert (quiet.stdout, quiet.stderr) == ("done\n", "")
    ours, theirs = pty.openpty()
    with subprocess.Popen(
        [sys.executable, "-c", WORK], stdout=subprocess.PIPE, stderr=theirs
    ) as run:
        os.close(theirs)
        shown = b""
        while True:
            try:
                block = os.read(ours, 4096)
            except OSError:  # how Linux ends a terminal
                break
            if not block:
                break
            shown += block
        assert run.stdout.read() == b"done\n"
    os.close(ours)
    assert b"Working [1]" in shown
    assert b"Half way" in shown
    assert b"left" in shown


def test_the_logger_is_silent_unless_someone_listens(capsys, caplog):
    step("nobody hears this")
    assert capsys.readouterr() == ("", "")
    with caplog.at_level(logging.INFO, logger="unpaired"):
        step("somebody does", 3, 7)
    (record,) = caplog.records
    assert record.name == log.name == "unpaired"
    assert (record.done, record.total) == (3, 7)
