"""The logger "unpaired": steps, and loops inside loops."""

import logging
import threading

import pytest

from unpaired._log import log, step, track


@pytest.fixture
def heard(caplog):
    """What listeners heard: text, steps behind, steps in all."""
    with caplog.at_level(logging.INFO, logger="unpaired"):
        yield lambda: [(r.getMessage(), r.done, r.total) for r in caplog.records]


def test_the_logger_is_silent_unless_someone_listens(capsys, heard):
    assert log.name == "unpaired"
    step("somebody hears this", 3, 7)
    assert heard() == [("somebody hears this", 3, 7)]
    assert capsys.readouterr() == ("", "")


def test_a_loop_tells_where_it_is(heard):
    assert list(track("ab", "Reading")) == ["a", "b"]
    assert heard() == [("Reading", 0, 2), ("Reading", 1, 2), ("Reading", 2, 2)]


def test_a_loop_of_unknown_length_tells_what_it_does(heard):
    assert list(track(iter("ab"), "Reading")) == ["a", "b"]
    assert heard() == [("Reading", None, None)] * 2
    assert list(track(iter("ab"), "Counted", 2)) == ["a", "b"]
    assert heard()[2:] == [("Counted", 0, 2), ("Counted", 1, 2), ("Counted", 2, 2)]


def test_loops_inside_move_the_outer_one(heard):
    for _ in track(range(2), "Outer"):
        for _ in track(range(4), "Inner"):
            pass
    inner = [(done, total) for text, done, total in heard() if text == "Inner"]
    assert inner == [(k / 4, 2) for k in range(8)]
    assert heard()[-1] == ("Outer", 2, 2)


def test_a_loop_that_is_left_early_is_over(heard):
    for _ in track(range(5), "Left"):
        break

    def fail():
        for _ in track(range(5), "Failed"):
            raise KeyError

    with pytest.raises(KeyError):
        fail()
    for _ in track(range(2), "Next"):
        pass
    assert heard()[-3:] == [("Next", 0, 2), ("Next", 1, 2), ("Next", 2, 2)]


def test_threads_have_loops_of_their_own(heard):
    def work():
        list(track(range(1), "Elsewhere"))

    for _ in track(range(2), "Here"):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert ("Elsewhere", 0, 1) in heard()
    assert heard()[-1] == ("Here", 2, 2)
