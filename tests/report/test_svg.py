from __future__ import annotations

import pytest

from unpaired.report.svg import axes, nice_ticks, scale, svg


@pytest.mark.parametrize(
    ("low", "high", "ticks"),
    [
        (0.0, 1.0, [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]),
        (-0.3, 0.3, [-0.2, 0.0, 0.2]),
        (0.0, 39.0, [0.0, 10.0, 20.0, 30.0]),
        (3.0, 3.0, [3.0]),
        (1e-9, 5e-9, [1e-9, 2e-9, 3e-9, 4e-9, 5e-9]),
    ],
)
def test_ticks_are_round_and_inside(low, high, ticks):
    assert nice_ticks(low, high) == pytest.approx(ticks, rel=1e-6)


def test_axes_write_a_number_at_the_place_of_each_tick():
    to_x, to_y = scale(0.0, 2.0, 0.0, 10.0)
    assert to_y(10.0) < to_y(0.0)  # SVG counts downwards
    drawn = "".join(axes(to_x, to_y, [1.0], [5.0]))
    assert f'x="{to_x(1.0):.1f}"' in drawn
    assert ">1<" in drawn
    assert ">5<" in drawn


def test_a_picture_describes_itself_and_escapes_what_it_says():
    assert 'aria-label="a &lt; b"' in svg(["<g/>"], "a < b")
