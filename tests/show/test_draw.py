"""Both drawers draw every mark of a chart, and its names as they are."""

from typing import get_args

import numpy as np
import pytest

from crashbo.show import draw_matplotlib, draw_plotly
from crashbo.show.chart import Bars, Border, Chart, Look, Mark, Panel, Points, Ribbon, Side, Stroke, Surface, Words

X = np.array([0.0, 1.0, 2.0, 3.0])
GRID = np.add.outer(X, X)
MARKS = (
    Surface(X, X, GRID[:3, :3], "viridis", "surface"),
    Border(X, X, GRID, 2.5),
    Border(X, X, GRID, 4.5, shade=True),
    Ribbon(X, [0, 1, np.nan, 1], [1, 2, np.nan, 2], "blue", "ribbon"),
    Stroke(X, X, "ink", "stroke", "dash", step=True, symbol=True),
    Points(X, X, Look("circle", "green", rim="background"), "points", X / 3, 0.1 + X, list("abcd")),
    Points(X, X, Look("square", "#123456", hollow=True)),
    Bars(X, X, "orange", "bars", list("abcd"), hatched=True),
    Words(X, X, ["<b>x</b>", "$y$", "z", "w"]),
)
NASTY = "<i>$a$</i>"


def chart(*marks: Mark, **looks) -> Chart:
    panel = Panel(marks, Side("across", limits=(0.0, 3.0), group="one"), Side("up"))
    return Chart(((panel, panel), (panel, None)), (6.0, 5.0), **looks)


def test_every_kind_of_mark_is_drawn_by_both():
    assert {type(one) for one in MARKS} == set(get_args(Mark))
    names = {"ribbon", "stroke", "points", "bars"}
    (legend,) = draw_matplotlib.draw(chart(*MARKS)).legends
    assert {one.get_text() for one in legend.get_texts()} == names
    traces = draw_plotly.draw(chart(*MARKS)).data
    assert {one.name for one in traces if one.showlegend} == names
    assert {one.type for one in traces} == {"heatmap", "contour", "scatter", "bar"}


@pytest.mark.parametrize("name", ["ribbon", "stroke", "points", "bars"])
def test_a_name_is_in_the_legend_once_and_hides_all_its_marks(name):
    traces = [one for one in draw_plotly.draw(chart(*MARKS)).data if one.name == name]
    assert [one.showlegend for one in traces] == [True] + [False] * (len(traces) - 1)
    assert {one.legendgroup for one in traces} == {name}
    assert len(traces) >= 3


def test_a_chart_without_columns_has_no_legend():
    assert draw_matplotlib.draw(chart(*MARKS, columns=0)).legends == []
    assert draw_plotly.draw(chart(*MARKS, columns=0)).layout.showlegend is False


def test_names_are_no_formulas_and_no_tags():
    marks = (Stroke(X, X, "ink", NASTY), Words([0], [0], [NASTY]))
    (legend,) = draw_matplotlib.draw(Chart(((Panel(marks, Side(NASTY), Side()),),), (4, 3))).legends
    assert legend.get_texts()[0].get_text() == r"<i>\$a\$</i>"
    figure = draw_plotly.draw(Chart(((Panel(marks, Side(NASTY), Side(), NASTY),),), (4, 3), title=NASTY, note=NASTY))
    assert "<i>" not in figure.to_json().replace("\\u003c", "<")


def test_sides_of_a_group_are_zoomed_together_and_panels_do_not_overlap():
    layout = draw_plotly.draw(chart(*MARKS)).layout
    assert (layout.xaxis2.matches, layout.xaxis3.matches) == ("x", "x")
    assert layout.xaxis.domain[1] <= layout.xaxis2.domain[0]
    assert layout.yaxis3.domain[1] < layout.yaxis.domain[0]
    assert layout.yaxis3.domain[0] == pytest.approx(0.0)


def test_a_ribbon_is_interrupted_where_it_is_unknown():
    ribbon = Ribbon(np.arange(5), [0, 0, np.nan, 1, 1], [1, 1, np.nan, 2, 2], "blue")
    first, second = draw_plotly.draw(Chart(((Panel((ribbon,), Side(), Side()),),), (4, 3))).data
    assert (list(first.x), list(second.x)) == ([0, 1, 1, 0], [3, 4, 4, 3])


def test_a_logarithmic_side_has_its_limits_in_powers_of_ten_for_plotly():
    panel = Panel((Stroke(X + 1, X, "ink"),), Side(log=True, limits=(0.1, 100.0)), Side())
    one = Chart(((panel,),), (4, 3))
    assert draw_plotly.draw(one).layout.xaxis.range == (-1.0, 2.0)
    assert draw_matplotlib.draw(one).axes[0].get_xlim() == (0.1, 100.0)


def test_one_colour_bar_for_all_panels():
    surface = Surface(X, X, GRID[:3, :3], "viridis", "probability", (0.0, 1.0), bar=False)
    figure = draw_matplotlib.draw(chart(surface, bar=surface))
    assert [axes.get_ylabel() for axes in figure.axes if axes.get_label() == "<colorbar>"] == ["probability"]
