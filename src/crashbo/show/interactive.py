"""The same pictures for the screen (plotly): hover, zoom, switch parts on and off.

Every function returns a `plotly.graph_objects.Figure`; `figure.show()` opens it, `figure.write_html`
saves it. Names given by users are shown as they are, never read as HTML.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import plotly.graph_objects as go
from plotly.subplots import make_subplots

from crashbo.problem.history import OBJECTIVE
from crashbo.show import data, planes
from crashbo.show.data import Curve, Line, Marks, held_text, limit_name
from crashbo.show.planes import Layer, Maps, Quantity
from crashbo.show.run_interactive import plot_convergence, plot_importance, plot_parallel, plot_thresholds
from crashbo.show.screen import SCALES, axis_layout, dressed, safe, see_through, small, titled
from crashbo.show.theme import Theme, ThemeName, get_theme
from crashbo.show.views import Source

if TYPE_CHECKING:
    from crashbo.research.problems import Problem

__all__ = [
    "draw_layer",
    "draw_line",
    "draw_maps",
    "draw_slice",
    "draw_slices",
    "plot_convergence",
    "plot_importance",
    "plot_maps",
    "plot_model",
    "plot_parallel",
    "plot_slices",
    "plot_thresholds",
]

_ON_MAP: dict[str, dict[str, Any]] = {
    "succeeded": {"symbol": "circle", "color": "white", "size": 7, "line": {"color": "black", "width": 1}},
    "failed": {"symbol": "x", "color": "#E8590C", "size": 9, "line": {"color": "white", "width": 1}},
    "best guess": {"symbol": "triangle-up", "color": "#C2388E", "size": 14, "line": {"color": "white", "width": 1}},
    "next point": {"symbol": "diamond", "color": "#56B4E9", "size": 12, "line": {"color": "white", "width": 1.5}},
    "under way": {"symbol": "diamond-open", "color": "white", "size": 9, "line": {"width": 2}},
    "true minimum": {"symbol": "star", "color": "#C2388E", "size": 14, "line": {"color": "white", "width": 1}},
}


def plot_model(
    source: Source,
    parameter: str | None = None,
    *,
    at: Mapping[str, Any] | None = None,
    truth: "Problem | None" = None,
    theme: ThemeName = "light",
) -> go.Figure:
    """Draw a model along one parameter; arguments as in `crashbo.show.plot_model`."""
    return draw_line(data.line(source, parameter, at=at, truth=truth), theme=theme)


def draw_line(line: Line, *, theme: ThemeName = "light") -> go.Figure:
    """Draw a model along one parameter from its numbers."""
    colours = get_theme(theme)
    rows = len(line.curves) + 2
    heights = [2.2] * len(line.curves) + [1.0, 1.0]
    figure = make_subplots(rows, 1, shared_xaxes=True, vertical_spacing=0.04, row_heights=heights)
    for row, curve in enumerate(line.curves, 1):
        for trace in _curve_traces(line, curve, colours, first=row == 1):
            figure.add_trace(trace, row, 1)
        figure.update_yaxes(title_text=safe(curve.label), row=row, col=1)
    figure.add_trace(_along(line, line.success, colours.blue, "success probability", legend=False), rows - 1, 1)
    figure.update_yaxes(title_text="success", range=[-0.05, 1.05], row=rows - 1, col=1)
    for trace in _choice_traces(line, colours):
        figure.add_trace(trace, rows, 1)
    figure.update_yaxes(title_text="score", range=[-0.05, 1.15], row=rows, col=1)
    figure.update_xaxes(**axis_layout(line.axis, title=False))
    figure.update_xaxes(title_text=titled(line.axis.label, held_text(line.held)), row=rows, col=1)
    return dressed(figure, colours, height=180 * len(line.curves) + 340)


def _along(line: Line, values: Any, colour: str, name: str, *, dash: str = "solid", legend: bool = True) -> go.Scatter:
    mode = "markers" if line.axis.scale == "category" else "lines+markers" if line.axis.discrete else "lines"
    looks = {"color": colour, "width": 2, "dash": dash}
    return go.Scatter(
        x=small(line.axis.values), y=small(values), mode=mode, name=name, line=looks, showlegend=legend
    )  # fmt: skip


def _curve_traces(line: Line, curve: Curve, colours: Theme, *, first: bool) -> list[go.Scatter]:
    x, deviation = line.axis.values, 2 * curve.std
    mean = _along(line, curve.mean, colours.blue, "mean", legend=first)
    if line.axis.scale == "category":
        mean.update(error_y={"type": "data", "array": small(deviation)})
        found = [mean]
    else:
        around = np.concatenate([curve.mean - deviation, (curve.mean + deviation)[::-1]])
        found = [
            go.Scatter(
                x=small(np.concatenate([x, x[::-1]])), y=small(around), fill="toself", line={"width": 0}, mode="lines",
                fillcolor=see_through(colours.blue), hoverinfo="skip", name="± 2 standard deviations", showlegend=first,
            ),
            mean,
        ]  # fmt: skip
    found += _limit_band(line, curve, colours)
    found += _level_traces(line, curve, colours, legend=first)
    found += _trial_traces(curve, colours, legend=first)
    if line.best is not None and curve.output == OBJECTIVE:
        height = float(curve.mean[np.abs(x - line.best).argmin()])
        looks = {"symbol": "triangle-up", "size": 13, "color": colours.purple}
        found.append(go.Scatter(x=[line.best], y=[height], mode="markers", marker=looks, name="best guess"))
    return found


def _level_traces(line: Line, curve: Curve, colours: Theme, *, legend: bool) -> list[go.Scatter]:
    """Truth and limits as horizontal lines."""
    found = []
    ends = [float(line.axis.edges[0]), float(line.axis.edges[-1])] if line.axis.discrete else line.axis.values[[0, -1]]
    if curve.truth is not None:
        found.append(_along(line, curve.truth, colours.muted, "true function", dash="dash", legend=legend))
    limit = (None, "") if curve.limit is None else (curve.limit.value, limit_name(curve))
    for level, name, colour, dash in (
        (curve.true_threshold, "true limit", colours.muted, "solid"),
        (*limit, colours.orange, "dash"),
    ):
        if level is not None:
            looks = {"color": colour, "dash": dash, "width": 2}
            found.append(
                go.Scatter(x=list(ends), y=[level] * 2, mode="lines", line=looks, name=name, showlegend=legend)
            )
    return found


def _limit_band(line: Line, curve: Curve, colours: Theme) -> list[go.Scatter]:
    """The learned limit's standard deviation as a band."""
    if curve.limit is None or not curve.limit.deviation:
        return []
    left, right = float(line.axis.edges[0]), float(line.axis.edges[-1])
    if not line.axis.discrete:
        left, right = float(line.axis.values[0]), float(line.axis.values[-1])
    low, high = curve.limit.value - curve.limit.deviation, curve.limit.value + curve.limit.deviation
    return [
        go.Scatter(
            x=[left, right, right, left], y=[low, low, high, high], fill="toself", mode="lines", line={"width": 0},
            fillcolor=see_through(colours.orange), hoverinfo="skip", name="± its standard deviation", showlegend=False,
        )
    ]  # fmt: skip


def _trial_traces(curve: Curve, colours: Theme, *, legend: bool) -> list[go.Scatter]:
    marks = curve.marks
    level = np.where(np.isnan(marks.y), curve.label_level, marks.y)
    good = {"symbol": "circle", "color": colours.green, "size": 9}
    bad = {"symbol": "x-thin", "color": colours.vermilion, "size": 9, "line": {"width": 3, "color": colours.vermilion}}
    return [
        _marks(marks, marks.x, level, ~marks.failed, good, "succeeded", legend),
        *(_marks(marks, marks.x, level, rows, bad, name, legend) for rows, name in curve.failures()),
    ]


def _marks(marks: Marks, x: Any, y: Any, rows: Any, looks: dict[str, Any], name: str, legend: bool) -> go.Scatter:
    texts = [
        safe(f"trial {number}: {text}")
        for number, text, row in zip(marks.numbers, marks.texts, rows, strict=True)
        if row
    ]
    opacity = small(np.clip(marks.near[rows], 0.25, 1.0).round(2))
    return go.Scatter(
        x=small(x[rows]), y=small(y[rows]), mode="markers", marker=looks | {"opacity": opacity}, name=name,
        text=np.array(texts), hovertemplate="%{text}<extra></extra>", showlegend=legend and bool(rows.any()),
        legendgroup=name,
    )  # fmt: skip


def _choice_traces(line: Line, colours: Theme) -> list[go.Scatter]:
    found = []
    if line.unconstrained is not None:
        name = f"{line.mode}, failures left aside"
        found.append(_along(line, line.unconstrained, colours.muted, name, dash="dot"))
    found.append(_along(line, line.acquisition, colours.ink, f"score ({line.mode})"))
    if line.next is not None:
        looks = {"symbol": "triangle-down", "size": 12, "color": colours.vermilion}
        found.append(go.Scatter(x=[line.next], y=[1.05], mode="markers", marker=looks, name="next point"))
    return found


def plot_slices(source: Source, *, at: Mapping[str, Any] | None = None, theme: ThemeName = "light") -> go.Figure:
    """Draw a model along every parameter; arguments as in `crashbo.show.plot_slices`."""
    return draw_slices(data.slices(source, at=at), theme=theme)


def draw_slices(lines: Sequence[Line], *, theme: ThemeName = "light") -> go.Figure:
    """Draw slices from their numbers: the objective above, the success probability below."""
    colours = get_theme(theme)
    count = len(lines)
    figure = make_subplots(2, count, shared_yaxes=True, row_heights=[2.4, 1], vertical_spacing=0.06)
    for column, line in enumerate(lines, 1):
        for trace in slice_traces(line, colours, first=column == 1):
            figure.add_trace(trace, 1, column)
        figure.add_trace(_along(line, line.success, colours.blue, "success probability", legend=False), 2, column)
        figure.update_xaxes(**axis_layout(line.axis, title=False), row=1, col=column)
        figure.update_xaxes(showticklabels=False, row=1, col=column)
        figure.update_xaxes(**axis_layout(line.axis), row=2, col=column)
    figure.update_yaxes(title_text=safe(lines[0].curves[0].label), row=1, col=1)
    figure.update_yaxes(title_text="success", range=[-0.05, 1.05], row=2, col=1)
    figure.update_yaxes(range=[-0.05, 1.05], row=2)
    return dressed(figure, colours, height=460)


def draw_slice(line: Line, *, theme: ThemeName = "light", height: int = 360) -> go.Figure:
    """Draw one slice by itself."""
    colours = get_theme(theme)
    figure = make_subplots(2, 1, shared_xaxes=True, row_heights=[2.4, 1], vertical_spacing=0.06)
    for trace in slice_traces(line, colours, first=True):
        figure.add_trace(trace, 1, 1)
    figure.add_trace(_along(line, line.success, colours.blue, "success probability", legend=False), 2, 1)
    figure.update_xaxes(**axis_layout(line.axis, title=False))
    figure.update_xaxes(title_text=safe(line.axis.label), row=2, col=1)
    figure.update_yaxes(title_text=safe(line.curves[0].label), row=1, col=1)
    figure.update_yaxes(title_text="success", range=[-0.05, 1.05], row=2, col=1)
    dressed(figure, colours, height=height)
    return figure.update_layout(showlegend=False, margin={"t": 15, "l": 60, "r": 10, "b": 50})


def slice_traces(line: Line, colours: Theme, *, first: bool) -> list[go.Scatter]:
    """The objective along one parameter."""
    found = _curve_traces(line, line.curves[0], colours, first=first)
    if not first:
        for trace in found:
            trace.update(showlegend=False)
    return found


def plot_maps(
    source: Source,
    x: str | None = None,
    y: str | None = None,
    *,
    at: Mapping[str, Any] | None = None,
    quantities: Sequence[Quantity] = ("mean", "std", "success", "acquisition"),
    truth: "Problem | None" = None,
    points: int = 61,
    theme: ThemeName = "light",
) -> go.Figure:
    """Draw maps over two parameters; arguments as in `crashbo.show.plot_maps`."""
    numbers = planes.maps(source, x, y, at=at, quantities=quantities, truth=truth, points=points)
    return draw_maps(numbers, theme=theme)


def draw_maps(maps: Maps, *, theme: ThemeName = "light") -> go.Figure:
    """Draw maps from their numbers, one beside the other."""
    colours = get_theme(theme)
    columns = min(2, len(maps.layers))
    rows = -(-len(maps.layers) // columns)
    titles = [safe(layer.title) for layer in maps.layers]
    spacing = {"horizontal_spacing": 0.14, "vertical_spacing": 0.3 / rows}
    figure = make_subplots(rows, columns, subplot_titles=titles, **spacing)
    shown: set[str] = set()
    for number, layer in enumerate(maps.layers):
        row, column = divmod(number, columns)
        place = figure.get_subplot(row + 1, column + 1)
        right = place.xaxis.domain[1]
        low, high = place.yaxis.domain
        bar = {"x": right + 0.01, "xanchor": "left", "y": (low + high) / 2, "len": high - low, "thickness": 10}
        for trace in layer_traces(maps, layer, bar):
            trace.update(showlegend=trace.name in _ON_MAP and trace.name not in shown)
            shown.add(str(trace.name))
            figure.add_trace(trace, row + 1, column + 1)
        figure.update_xaxes(**axis_layout(maps.x), row=row + 1, col=column + 1)
        figure.update_yaxes(**axis_layout(maps.y), row=row + 1, col=column + 1)
    held = held_text(maps.held)
    if held:
        figure.update_xaxes(title_text=titled(maps.x.label, held), row=rows, col=1)
    return dressed(figure, colours, height=60 + 380 * rows)


def draw_layer(maps: Maps, layer: Layer, *, theme: ThemeName = "light", height: int = 380) -> go.Figure:
    """Draw one map by itself."""
    colours = get_theme(theme)
    figure = go.Figure(layer_traces(maps, layer, {"thickness": 10, "outlinewidth": 0}))
    figure.update_xaxes(**axis_layout(maps.x))
    figure.update_yaxes(**axis_layout(maps.y))
    figure.update_layout(title={"text": safe(layer.title), "font": {"size": 14}, "x": 0.02, "y": 0.97})
    dressed(figure, colours, height=height)
    return figure.update_layout(showlegend=False, margin={"t": 40, "l": 60, "r": 10, "b": 50})


def layer_traces(maps: Maps, layer: Layer, bar: dict[str, Any]) -> list[Any]:
    """One map with its marks."""
    limits = {"zmin": 0, "zmax": 1} if layer.quantity == "success" else {}
    found: list[Any] = [
        go.Heatmap(
            x=small(maps.x.edges), y=small(maps.y.edges), z=small(layer.values), colorscale=SCALES[layer.quantity],
            colorbar=bar | {"outlinewidth": 0}, name=safe(layer.title), hovertemplate="%{z:.4g}<extra></extra>",
            **limits,
        )
    ]  # fmt: skip
    smooth = "category" not in (maps.x.scale, maps.y.scale) and min(layer.values.shape) > 1
    if smooth and layer.quantity in ("mean", "success"):
        found.append(_safe_border(maps))
    if layer.quantity == "acquisition":
        found += [_places(maps.pending, "under way"), _places([maps.next], "next point")]
    elif layer.quantity == "truth":
        found += [_places([maps.minimum] if maps.minimum else [], "true minimum")]
    else:
        marks = maps.marks_of(layer)
        for failed, name in ((False, "succeeded"), (True, "failed")):
            found.append(_marks(marks, marks.x, marks.y, marks.failed == failed, _ON_MAP[name], name, True))
        found.append(_places([maps.best], "best guess"))
    return [trace for trace in found if trace.x is not None and len(trace.x)]


def _safe_border(maps: Maps) -> go.Contour:
    levels = {"start": maps.safe_level, "end": maps.safe_level, "size": 1, "coloring": "none"}
    return go.Contour(
        x=small(maps.x.values), y=small(maps.y.values), z=small(maps.success), contours=levels, showscale=False,
        line={"color": "white", "dash": "dash", "width": 1.5}, hoverinfo="skip", name="safe enough",
    )  # fmt: skip


def _places(places: Sequence[tuple[float, float]], name: str) -> go.Scatter:
    x, y = zip(*places, strict=True) if places else ((), ())
    hover = f"{name}: %{{x:.4g}}, %{{y:.4g}}<extra></extra>"
    return go.Scatter(
        x=list(x), y=list(y), mode="markers", marker=_ON_MAP[name], name=name, hovertemplate=hover, legendgroup=name
    )
