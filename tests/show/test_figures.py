"""Both kinds of drawing show the numbers they are given, with the user's names as they are."""

import json
import math

import numpy as np
import pytest
from matplotlib.collections import PathCollection, QuadMesh

import crashbo
from crashbo import CRASHED, InputError, Optimizer, plots
from crashbo.show import data, draw_matplotlib, draw_plotly, history, interactive, planes
from crashbo.show.importance import importance
from crashbo.show.model_charts import layer_chart, line_chart, maps_chart
from crashbo.show.run_charts import convergence_chart, importance_chart, thresholds_chart

THEMES = ["light", "dark"]


def labels(figure) -> set[str]:
    return {text.get_text() for legend in figure.legends for text in legend.get_texts()}


def marks(axes, name: str) -> np.ndarray:
    found = [one for one in axes.collections if isinstance(one, PathCollection) and one.get_gid() == name]
    return np.concatenate([one.get_offsets() for one in found]) if found else np.empty((0, 2))


@pytest.mark.parametrize("theme", THEMES)
def test_the_model_is_drawn_as_computed(one, theme):
    line = data.line(one, points=31)
    figure = draw_matplotlib.draw(line_chart(line), theme)
    top, middle, bottom = figure.axes
    (mean,) = [one for one in top.lines if one.get_label() == "posterior mean"]
    assert mean.get_ydata().tolist() == line.curves[0].mean.tolist()
    assert marks(top, "succeeded").tolist() == [[0.2, 0.5], [0.6, 2.0], [1.0, 1.0]]
    assert marks(top, "crashed: value unknown")[:, 1].tolist() == [line.curves[0].limit.value] * 2
    assert middle.lines[0].get_ydata().tolist() == line.success.tolist()
    assert bottom.get_xlim() == (0.0, 2.0)
    assert {"best guess", "next point", "learned limit", "score (expected gain)"} <= labels(figure)
    assert figure.get_facecolor()[:3] != (1, 1, 1) if theme == "dark" else True


def test_maps_are_drawn_as_computed(two):
    maps = planes.maps(plots.view(two, units={"kp": "N/m"}), points=8)
    figure = draw_matplotlib.draw(maps_chart(maps))
    first = figure.axes[0]
    (mesh,) = [one for one in first.collections if isinstance(one, QuadMesh)]
    assert mesh.get_array().ravel().tolist() == maps.layer("mean").values.ravel().tolist()
    assert marks(first, "succeeded").shape == (4, 2)
    assert marks(first, "failed").tolist() == [[8.0, 0.9]]  # on the map of costs: what crashed
    success = next(axes for axes in figure.axes if axes.get_title() == "success probability")
    assert marks(success, "failed").tolist() == [[5.0, 0.4], [8.0, 0.9]]
    assert first.get_xlabel() == "kp [N/m]"
    titles = {axes.get_title() for axes in figure.axes}
    assert {"cost, mean", "success probability", "reach, mean", "probability that reach holds"} <= titles


def overlaps(figure, texts) -> list[tuple[str, str]]:
    """Pairs of drawn texts that touch."""
    figure.canvas.draw()
    boxes = [(one.get_text(), one.get_window_extent()) for one in texts if one.get_text() and one.get_visible()]
    return [(a, b) for i, (a, left) in enumerate(boxes) for b, right in boxes[i + 1 :] if left.overlaps(right)]


@pytest.mark.parametrize("name", ["maps", "slices", "pairs", "model", "importance", "convergence"])
def test_titles_labels_and_legends_do_not_touch(mixed, name):
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure = {
        "maps": lambda: plots.plot_maps(mixed, "filter", "kd", points=11),
        "slices": lambda: plots.plot_slices(mixed),
        "pairs": lambda: plots.plot_pairs(mixed),
        "model": lambda: plots.plot_model(mixed, "kd"),
        "importance": lambda: plots.plot_importance(mixed),
        "convergence": lambda: plots.plot_convergence(mixed),
    }[name]()
    FigureCanvasAgg(figure)
    texts = [one for legend in figure.legends for one in legend.get_texts()]
    for axes in figure.axes:
        if axes.axison:
            texts += [axes.title, axes.xaxis.label, axes.yaxis.label]
    assert overlaps(figure, texts) == []


def test_every_matplotlib_picture_is_drawn(mixed, two, tmp_path):
    theme = "dark"
    drawn = {
        "maps": plots.plot_maps(mixed, "filter", "kd", points=9, theme=theme),
        "slices": plots.plot_slices(mixed, theme=theme),
        "pairs": plots.plot_pairs(mixed, names=["kp", "order"], quantity="success", theme=theme),
        "model": plots.plot_model(mixed, "filter", theme=theme),
        "thresholds": plots.plot_thresholds(two, theme=theme),
        "convergence": plots.plot_convergence(two, theme=theme),
        "bands": plots.plot_convergence({"ours": [two, two], "theirs": [two]}, theme=theme),
        "parallel": plots.plot_parallel(mixed, theme=theme),
        "importance": plots.plot_importance(mixed, theme=theme),
    }
    for name, figure in drawn.items():
        figure.savefig(tmp_path / f"{name}.png", dpi=40)
        assert (tmp_path / f"{name}.png").stat().st_size > 1000


def test_convergence_marks_crashes_apart_from_costs(two):
    strip, axes = plots.plot_convergence(two).axes
    assert marks(strip, "crashed")[:, 0].tolist() == [3]
    assert marks(axes, "succeeded")[:, 0].tolist() == [0, 1, 4]
    assert marks(axes, "limit broken")[:, 0].tolist() == [2]


def test_thresholds_show_the_truth_where_it_is_known(two):
    figure = plots.plot_thresholds(two, true={"reach": 1.0})
    assert "true limit" in labels(figure)
    assert "true limit" not in labels(plots.plot_thresholds(two))


def test_a_limit_that_is_known_once_is_a_point_with_a_bar():
    numbers, worst = np.array([1, 2, 3, 4, 5]), np.array([0.9, 1.0, 1.1, 1.1, 1.2])
    limit = np.array([1.2, math.nan, math.nan, 1.3, 1.4])
    path = history.ThresholdPath("objective", "cost", numbers, limit, 0.1 + 0 * limit, worst, np.array([2]))
    assert path.alone.tolist() == [True, False, False, False, False]
    axes = draw_matplotlib.draw(thresholds_chart([path])).axes[0]
    (bar,) = axes.containers
    assert bar.lines[2][0].get_segments()[0] == pytest.approx(np.array([[1, 1.1], [1, 1.3]]))
    figure = draw_plotly.draw(thresholds_chart([path]))
    (ribbon,) = [one for one in figure.data if one.name == "± its standard deviation"]
    assert ribbon.y == pytest.approx([1.2, 1.3, 1.5, 1.4])
    (bar,) = [one for one in figure.data if one.error_y.array is not None]
    assert (list(bar.x), list(bar.error_y.array)) == ([1], pytest.approx([0.1]))


def test_without_a_limit_there_is_no_picture_of_it():
    optimizer = Optimizer({"x": (0.0, 1.0)}, constraints=[crashbo.Constraint("g", threshold=1.0)])
    optimizer.tell({"x": 0.5}, 1.0, g=0.2)
    with pytest.raises(InputError, match="must have a learned limit"):
        plots.plot_thresholds(optimizer)
    with pytest.raises(InputError, match="must have a learned limit"):
        interactive.plot_thresholds(optimizer)


def test_an_unknown_theme_is_refused(one):
    with pytest.raises(InputError, match="`theme` must be 'light' or 'dark'"):
        plots.plot_model(one, theme="sepia")


def test_a_notebook_shows_a_figure_by_itself(one):
    assert draw_matplotlib.draw(line_chart(data.line(one, points=5)))._repr_png_().startswith(b"\x89PNG")


# --- plotly ------------------------------------------------------------------------------------


def trace(figure, name: str):
    return next(one for one in figure.data if one.name == name)


def test_the_interactive_model_is_drawn_as_computed(one):
    line = data.line(one, points=31)
    figure = draw_plotly.draw(line_chart(line))
    assert trace(figure, "posterior mean").y == pytest.approx(line.curves[0].mean, rel=1e-5)
    assert trace(figure, "learned limit").y == pytest.approx([line.curves[0].limit.value] * 2)
    assert list(trace(figure, "crashed: value unknown").text) == ["trial 3: crashed: fell", "trial 4: crashed: fell"]
    assert trace(figure, "next point").x == pytest.approx([line.next])


def test_interactive_maps_are_drawn_as_computed(two):
    maps = planes.maps(two, points=7)
    figure = draw_plotly.draw(maps_chart(maps, columns=2))
    assert trace(figure, "cost, mean").z.ravel() == pytest.approx(maps.layer("mean").values.ravel(), rel=1e-5)
    assert len(trace(figure, "failed").x) == 1
    single = draw_plotly.draw(layer_chart(maps, maps.layer("acquisition")))
    assert trace(single, "next point").x == pytest.approx([maps.next[0]])


def test_every_interactive_picture_is_valid(mixed, two):
    theme = "dark"
    drawn = [
        interactive.plot_model(mixed, "filter", theme=theme),
        interactive.plot_slices(mixed, theme=theme),
        interactive.plot_maps(mixed, "filter", "kd", points=5, theme=theme),
        interactive.plot_thresholds(two, theme=theme),
        interactive.plot_convergence(two, theme=theme),
        interactive.plot_convergence({"ours": [two, two]}, theme=theme),
        interactive.plot_parallel(mixed, theme=theme),
        interactive.plot_importance(mixed, theme=theme),
    ]
    for figure in drawn:
        assert json.loads(figure.to_json())["data"]
        assert figure.layout.height > 100


def test_both_kinds_agree_on_the_same_numbers(two):
    run = history.convergence(two)
    chart = convergence_chart(run)
    drawn = {line.get_label(): line.get_ydata() for line in draw_matplotlib.draw(chart).axes[1].lines}
    shown = trace(draw_plotly.draw(chart), "best so far")
    assert drawn["best so far"] == pytest.approx(shown.y)
    shares = importance(two)
    bars = draw_plotly.draw(importance_chart(shares))
    assert sorted(trace(bars, "for the cost").x) == pytest.approx(sorted(shares.cost))


NASTY = '<script>alert("$x$")</script>'


def test_names_are_shown_as_they_are():
    optimizer = Optimizer({NASTY: (0.0, 1.0), "b$": (0.0, 1.0)})
    for x in (0.1, 0.4, 0.7):
        optimizer.tell({NASTY: x, "b$": 1 - x}, x)
    optimizer.tell({NASTY: 0.9, "b$": 0.9}, CRASHED, reason="<b>bold</b>")
    figure = interactive.plot_model(optimizer, NASTY)
    assert list(trace(figure, "crashed: value unknown").text) == ["trial 3: crashed: &lt;b&gt;bold&lt;/b&gt;"]
    titles = [figure.layout[name].title.text or "" for name in figure.layout if name.startswith("xaxis")]
    assert any(title.startswith("&lt;script&gt;alert(") for title in titles)
    assert "<script" not in json.dumps(json.loads(figure.to_json()))
    assert plots.plot_model(optimizer, NASTY).axes[-1].get_xlabel().startswith("<script>alert(")
    assert r"\$" in plots.plot_model(optimizer, "b$").axes[-1].get_xlabel()


def test_importing_plots_brings_neither_plotly_nor_matplotlib_along():
    import subprocess
    import sys

    code = "import sys, crashbo.show; print(sorted({'plotly', 'matplotlib', 'torch'} & set(sys.modules)))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.strip() == "[]"
