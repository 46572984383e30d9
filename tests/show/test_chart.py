"""What charts are made of."""

import math
from dataclasses import fields

import pytest

from crashbo.show.axis import make_axis
from crashbo.show.chart import Panel, Side, axis_side, column, span
from crashbo.show.theme import DARK, LIGHT, see_through
from crashbo.show.views import view


def test_a_span_has_room_on_both_sides_and_leaves_out_what_is_not_finite():
    assert span([1.0, 3.0], 2.0, [math.nan, math.inf]) == pytest.approx((0.9, 3.1))
    assert span([2.0], margin=0.1) == pytest.approx((1.9, 2.1))
    assert span([math.nan], []) is None


def test_of_panels_below_each_other_the_last_one_has_the_labels():
    panel = Panel((), Side("trials"), Side("cost"))
    chart = column([panel, panel], 4.0, (2.0, 1.0), columns=4)
    (first,), (last,) = chart.rows
    assert first is not None
    assert last is not None
    assert (first.x.bare, last.x.bare) == (True, False)
    assert (chart.size, chart.heights, chart.columns) == ((7.2, 4.0), (2.0, 1.0), 4)


def test_the_side_of_a_parameter_ends_where_its_values_do(mixed):
    seen = view(mixed)
    number, choice = (axis_side(make_axis(seen, name, 11)) for name in ("kd", "filter"))
    assert number.log
    assert number.limits == pytest.approx((0.01, 1.0))
    assert choice.limits == (-0.5, 2.5)
    assert choice.ticks == {0.0: "none", 1.0: "butter", 2.0: "bessel"}


def test_a_colour_is_a_name_in_the_theme_or_one_itself():
    for theme in (LIGHT, DARK):
        names = {one.name for one in fields(theme)} - {"name"}
        assert all(theme.colour(name) == getattr(theme, name) for name in names)
        assert theme.colour("#123456") == "#123456"
    assert see_through("#102030", 0.5) == "rgba(16,32,48,0.5)"
