from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from unpaired.errors import InputError
from unpaired.report.items import (
    PhotoBudget,
    check_items,
    describe_rows,
    rows_of_y_shown,
    rows_shown,
    table_rows,
    truth_of,
)
from unpaired.results import Items, RunResult
from unpaired.types import Match, Objective

NAN = float("nan")


def make_match(**changes: object) -> Match:
    match = Match(
        partner=np.array([2, 0, -1, 1]),
        confidence=np.array([0.9, 0.2, 0.0, 0.2]),
        objective=Objective(0.5),
        runner_up=np.array([0, 3, -1, 4]),
        margin=np.array([1.0, 0.5, NAN, -0.5]),
        n_y=5,
    )
    return replace(match, **changes)


def make_result(match: Match, **changes: object) -> RunResult:
    return RunResult("t", {}, {}, 0, {}, {}, match=match, **changes)


def test_rows_come_least_certain_first_ties_by_margin_left_out_last():
    assert rows_shown(make_match()).tolist() == [3, 1, 0, 2]
    assert rows_of_y_shown(make_match()).tolist() == [0, 1, 2, 3, 4]


def test_a_row_shows_name_text_photo_and_whether_it_is_right():
    photo = np.zeros((4, 4, 3), dtype=np.uint8)
    result = make_result(
        make_match(),
        ids_x=("a", "b", "c", "d"),
        items_x=Items(photos={3: photo}),
        items_y=Items({1: "x" * 500, 4: "second"}),
        truth=np.array([2, 3, 0, -1]),
    )
    rows = list(table_rows(result, result.match, PhotoBudget()))
    assert [row["x"]["name"] for row in rows] == ["d", "b", "a", "c"]
    assert [row["y"]["name"] for row in rows] == [1, 0, 2, "left out"]
    assert [row["verdict"] for row in rows] == ["", "wrong", "right", ""]
    assert rows[0]["x"]["uri"].startswith("data:image/")
    assert [row["x"]["uri"] for row in rows[1:]] == [None] * 3
    assert len(rows[0]["y"]["text"]) == 160
    assert rows[0]["y"]["text"].endswith("…")
    assert rows[0]["second"] == {"name": 4, "text": "second", "uri": None}
    assert truth_of(None, result.match, 0) == ""


def test_photos_stop_where_their_room_ends_and_the_rest_is_counted():
    photos = Items(photos=dict.fromkeys(range(3), np.zeros((4, 4, 3), dtype=np.uint8)))
    length = len(PhotoBudget().uri(photos, 0))
    budget = PhotoBudget(2 * length + 1)
    assert [budget.uri(photos, row) is not None for row in (0, 1, 2, 0)] == [
        True,
        True,
        False,
        False,
    ]
    assert budget.refused == 2


def test_what_stands_out_in_a_row_is_told_in_standard_deviations(rng):
    values = rng.normal(size=(200, 5))
    values[:, 4] = 7.0  # says nothing of any row
    values[3, 2] = 40.0
    told = describe_rows(values, list("abcde"), [3])[3]
    z = (values[3, 2] - values[:, 2].mean()) / values[:, 2].std()
    assert told.startswith(f"c {z:+.1f}, ")
    assert "e" not in told
    assert told.count(",") == 2


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ids_x": ("a",)}, "ids_x must name all 4 rows: it has 1 names"),
        ({"ids_y": ("a",)}, "ids_y must name all 5 rows"),
        ({"items_x": Items({4: "no"})}, "texts of items_x must be of rows 0 to 3: .* row 4"),
        ({"items_y": Items(photos={-1: np.zeros((2, 2, 3), np.uint8)})}, "photos of items_y must"),
        ({"items_y": Items(photos={0: np.zeros((2, 2), np.uint8)})}, "uint8 of shape"),
        ({"truth": np.zeros(3, np.int64)}, "truth must have one entry per row of x, 4"),
    ],
)
def test_what_is_not_of_the_rows_is_refused(changes, message):
    match = make_match()
    check_items(make_result(match), match)
    with pytest.raises(InputError, match=message):
        check_items(make_result(match, **changes), match)
