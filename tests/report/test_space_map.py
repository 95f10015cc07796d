from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

import numpy as np

from unpaired.report.space_map import space_map
from unpaired.results import Place
from unpaired.types import Match, Objective


def make_match() -> Match:
    return Match(
        partner=np.array([2, 0, 1]),
        confidence=np.array([0.0, 0.4, 1.0]),
        objective=Objective(0.5),
        runner_up=np.full(3, -1),
        margin=np.zeros(3),
        n_y=3,
    )


def test_a_line_leads_from_each_row_to_its_partner_fainter_where_less_certain():
    places = [Place("x", i, float(i), 0.0) for i in range(3)]
    places += [Place("y", i, float(i), 1.0) for i in range(2)]  # the partner of row 0 is not shown
    drawn = space_map(tuple(places), make_match())
    assert drawn.count("<circle") == 3
    assert drawn.count('class="spot s1"') == 2
    tie = r'class="(tie[ \w]*)" opacity="([\d.]+)" d="M([\d.]+) ([\d.]+)L([\d.]+) ([\d.]+)"'
    assert [(kind, *map(float, rest)) for kind, *rest in re.findall(tie, drawn)] == [
        ("tie unsure", 0.45, 220.0, 426.0, 14.0, 14.0),
        ("tie", 0.9, 426.0, 426.0, 220.0, 14.0),
    ]


def test_names_are_told_under_the_pointer_and_escaped():
    places = (Place("x", 1, 0.0, 0.0), Place("y", 0, 1.0, 1.0))
    drawn = space_map(places, make_match(), ("a", "<b>", "c"), ("p&q", "r", "s"))
    told = [title.text for title in ElementTree.fromstring(drawn).iter("title")]
    assert told == ["x: <b> → y: p&q, confidence 0.40", "y: p&q"]


def test_no_places_or_places_that_are_no_numbers_give_no_map():
    assert space_map((), make_match()) is None
    assert space_map((Place("x", 0, float("nan"), 0.0),), make_match()) is None
