"""Draw any chart with plotly, for the screen. Names given by users are shown as they are, never read as HTML."""

import html
from functools import cache
from itertools import accumulate
from typing import Any

import numpy as np
import plotly.graph_objects as go

from crashbo.show.chart import Bars, Border, Chart, Look, Mark, Panel, Points, Ribbon, Side, Stroke, Surface, Words
from crashbo.show.theme import Theme, ThemeName, get_theme, see_through

_PIXELS = 90  # per inch in print
_SYMBOLS = {"cross": "x-thin", "up": "triangle-up", "down": "triangle-down"}
_SILENT = {"hoverinfo": "skip"}
_ON_PAPER = {"xref": "paper", "yref": "paper", "showarrow": False}


def safe(text: str) -> str:
    """Text that plotly shows as it is: it reads a little HTML in labels."""
    return html.escape(" ".join(text.split()), quote=False)


def small(values: Any) -> np.ndarray:
    """Values as single precision: enough for a screen, half the size in a file."""
    return np.asarray(values, dtype=np.float32)


def draw(chart: Chart, theme: ThemeName = "light") -> go.Figure:
    """Draw a chart."""
    colours, figure = get_theme(theme), go.Figure()
    layout, shown, groups = _layout(chart, colours), set[str](), dict[str, str]()
    for number, (panel, across, up) in enumerate(_placed(chart, _room(layout)), 1):
        x, y = ("x", "y") if number == 1 else (f"x{number}", f"y{number}")
        first = groups.setdefault(panel.x.group or x, x)
        linked = {} if first == x else {"matches": first}
        layout[x.replace("x", "xaxis")] = {"domain": across, "anchor": y, **linked, **_axis(panel, panel.x)}
        layout[y.replace("y", "yaxis")] = {"domain": up, "anchor": x, **_axis(panel, panel.y)}
        for mark in panel.marks:
            _add(figure, layout, mark, colours, (x, y), shown)
        if panel.title:
            place = {"x": sum(across) / 2, "y": up[1], "xanchor": "center", "yanchor": "bottom"}
            layout["annotations"].append(_ON_PAPER | place | {"text": safe(panel.title)})
    return figure.update_layout(layout)


def _layout(chart: Chart, theme: Theme) -> dict[str, Any]:
    """Theme, height, legend, margins, title and note."""
    found: dict[str, Any] = {"template": _template(theme), "height": chart.pixels or round(_PIXELS * chart.size[1])}
    found |= {"showlegend": chart.columns > 0, "annotations": []}
    titles = 20 * any(one is not None and one.title for one in chart.rows[0])
    found["margin"] = {"l": 60, "r": 20, "t": 50 + titles, "b": 75 if chart.note else 55}
    if not chart.columns:
        found["margin"] = {"l": 60, "r": 10, "t": 40 if chart.title else 15, "b": 50}
    height = 1.02 + titles / _room(found)
    found["legend"] = {"orientation": "h", "yanchor": "bottom", "y": height, "x": 0, "font": {"size": 12}}
    if chart.title:
        found["title"] = {"text": safe(chart.title), "font": {"size": 14}, "x": 0.02, "y": 0.97}
    if chart.note:
        place = {"x": 0, "y": 0, "yanchor": "top", "yshift": -48, "font": {"size": 11}}
        found["annotations"].append(_ON_PAPER | place | {"text": safe(chart.note[:150])})
    return found


def _room(layout: dict[str, Any]) -> float:
    """Height of all panels together, in pixels."""
    return float(layout["height"] - layout["margin"]["t"] - layout["margin"]["b"])


def _placed(chart: Chart, room: float) -> list[tuple[Panel, list[float], list[float]]]:
    """Every panel with the part of the picture that it has, across and up."""
    rows = [[one for one in row if one] for row in chart.rows]
    over = [30 * any(one.title for one in row) for row in rows]
    under = [15 if all(one.x.bare for one in row) else 65 for row in rows[:-1]] + [0]
    heights = np.array(chart.heights or (1.0,) * len(rows))
    heights = heights / heights.sum() * (1 - (sum(over[1:]) + sum(under)) / room)
    steps = [high + (below + above) / room for high, below, above in zip(heights, under, [*over[1:], 0], strict=True)]
    tops = [1.0, *(1 - one for one in accumulate(steps))]
    found = []
    for row, top, height in zip(chart.rows, tops, heights, strict=False):
        width = 1 / len(row)
        for place, panel in enumerate(row):
            if panel is not None:
                bar = any(isinstance(mark, Surface) and mark.bar for mark in panel.marks)
                left = place * width + (0.0 if place == 0 else 0.04 if panel.y.bare else 0.06)
                right = (place + 1) * width - (0.08 * bar if len(row) > 1 else 0.0)
                found.append((panel, [left, right], [max(0.0, top - float(height)), top]))
    return found


def _axis(panel: Panel, side: Side) -> dict[str, Any]:
    """Scale, limits, ticks and title of one side."""
    found: dict[str, Any] = {"type": "log" if side.log else "linear"}
    if side.limits is not None:
        ends = np.log10(side.limits) if side.log else side.limits
        found["range"] = [float(one) for one in ends]
        if side.log and side.ticks is None and ends[1] - ends[0] >= 1:
            found["dtick"] = 1  # powers of ten only: the digits between them would touch
    if side.ticks is not None:
        texts = [text if len(text) <= 18 else text[:17] + "…" for text in side.ticks.values()]
        found |= {"tickvals": list(side.ticks), "ticktext": [safe(text) for text in texts]}
    if side.bare:
        found["showticklabels"] = False
    elif side.label and panel.frame:
        found["title_text"] = "<br>".join(map(safe, side.label.split("\n")))
    if not side.grid or any(isinstance(one, Surface) for one in panel.marks):
        found["showgrid"] = False
    return found


@cache
def _template(theme: Theme) -> go.layout.Template:
    """Ground, text and grid of a theme."""
    axis = {"gridcolor": theme.grid, "linecolor": theme.muted, "zeroline": False, "title": {"standoff": 8}}
    axis["automargin"] = True
    layout = {"paper_bgcolor": theme.background, "plot_bgcolor": theme.background, "xaxis": axis, "yaxis": axis}
    layout["font"] = {"color": theme.ink, "family": "system-ui, sans-serif", "size": 13}
    layout["hoverlabel"] = {"bgcolor": theme.background, "font": {"color": theme.ink}}
    return go.layout.Template(layout=layout)


def _add(
    figure: go.Figure, layout: dict[str, Any], mark: Mark, theme: Theme, axes: tuple[str, str], shown: set[str]
) -> None:
    """Add a mark to the traces, in the legend where its name is new; words to the annotations."""
    if isinstance(mark, Words):
        layout["annotations"] += _words(mark, theme, axes)
        return
    for trace in _TRACES[type(mark)](mark, theme):
        name = safe(getattr(mark, "name", ""))
        trace.update(name=name, xaxis=axes[0], yaxis=axes[1])
        if isinstance(mark, Surface):
            trace.update(colorbar=_bar(layout, axes))
        else:
            trace.update(showlegend=bool(name) and name not in shown, legendgroup=name)
            shown.add(name)
        figure.add_trace(trace)


def _bar(layout: dict[str, Any], axes: tuple[str, str]) -> dict[str, Any]:
    """A colour bar beside its panel."""
    right = layout[axes[0].replace("x", "xaxis")]["domain"][1]
    low, high = layout[axes[1].replace("y", "yaxis")]["domain"]
    place = {"x": right + 0.01, "xanchor": "left", "y": (low + high) / 2, "len": high - low}
    return place | {"thickness": 10, "outlinewidth": 0}


def _hover(texts: Any) -> dict[str, Any]:
    if not len(texts):
        return {}
    return {"text": [safe(text) for text in texts], "hovertemplate": "%{text}<extra></extra>"}


def _stroke(mark: Stroke, theme: Theme) -> list[go.Scatter]:
    shape = "hv" if mark.step else "linear"
    looks = {"color": theme.colour(mark.colour), "dash": mark.dash, "width": mark.width, "shape": shape}
    mode = "lines+markers" if mark.symbol else "lines"
    return [go.Scatter(x=small(mark.x), y=small(mark.y), mode=mode, line=looks, **_hover(mark.texts))]


def _ribbon(mark: Ribbon, theme: Theme) -> list[go.Scatter]:
    """One area for each piece without a gap."""
    x, low, high = (np.asarray(one, dtype=np.float64) for one in (mark.x, mark.low, mark.high))
    known = np.flatnonzero(np.isfinite(low) & np.isfinite(high))
    pieces = np.split(known, np.flatnonzero(np.diff(known) > 1) + 1) if len(known) else []
    looks = {"fill": "toself", "fillcolor": see_through(theme.colour(mark.colour)), "line": {"width": 0}, **_SILENT}
    return [
        go.Scatter(
            x=small(np.append(x[rows], x[rows][::-1])), y=small(np.append(low[rows], high[rows][::-1])), mode="lines",
            **looks,
        )
        for rows in pieces
        if len(rows) > 1
    ]  # fmt: skip


def _points(mark: Points, theme: Theme) -> list[go.Scatter]:
    looks = _looks(mark.look, theme)
    if mark.opacity is not None:
        looks["opacity"] = small(mark.opacity).round(2)
    error = None if mark.error is None else {"type": "data", "array": small(mark.error)}
    hover = _hover(mark.texts) or {"hovertemplate": f"{safe(mark.name)}: %{{x:.4g}}, %{{y:.4g}}<extra></extra>"}
    return [go.Scatter(x=small(mark.x), y=small(mark.y), mode="markers", marker=looks, error_y=error, **hover)]


def _looks(look: Look, theme: Theme) -> dict[str, Any]:
    colour = theme.colour(look.colour)
    symbol = _SYMBOLS.get(look.symbol, look.symbol) + "-open" * look.hollow
    line = {"color": theme.colour(look.rim or look.colour), "width": 1}
    if look.symbol == "cross" or look.hollow:
        line = {"color": colour, "width": 2.5}
    return {"symbol": symbol, "color": colour, "size": 1.4 * look.size, "line": line}


def _surface(mark: Surface, theme: Theme) -> list[go.Heatmap]:
    low, high = mark.limits or (None, None)
    values = {"x": small(mark.x), "y": small(mark.y), "z": small(mark.values), "zmin": low, "zmax": high}
    scale = mark.colours if mark.colours == "RdYlBu" else mark.colours.capitalize()
    return [go.Heatmap(**values, colorscale=scale, showscale=mark.bar, hovertemplate="%{z:.4g}<extra></extra>")]


def _border(mark: Border, theme: Theme) -> list[go.Contour]:
    """A dashed line where values pass the level, or shade over all above it."""
    levels: dict[str, Any] = {"start": mark.level, "end": mark.level, "size": 1, "coloring": "none"}
    line: dict[str, Any] = {"color": "white", "dash": "dash", "width": 1.5}
    shades = None
    if mark.shade:
        levels["coloring"], line, shades = "fill", {"width": 0}, [[0, "rgba(0,0,0,0)"], [1, "rgba(0,0,0,0.53)"]]
    values = {"x": small(mark.x), "y": small(mark.y), "z": small(mark.values)}
    return [go.Contour(**values, contours=levels, line=line, colorscale=shades, showscale=False, **_SILENT)]


def _bars(mark: Bars, theme: Theme) -> list[go.Bar]:
    colour = theme.colour(mark.colour)
    hatch = {"shape": "/", "bgcolor": colour, "fgcolor": theme.background, "size": 7, "solidity": 0.2}
    looks = {"color": colour, "pattern": hatch if mark.hatched else None}
    place = {"x": small(mark.lengths), "y": mark.y, "width": 0.36, "orientation": "h"}
    return [go.Bar(**place, marker=looks, textposition="none", **_hover(mark.texts))]


def _words(mark: Words, theme: Theme, axes: tuple[str, str]) -> list[dict[str, Any]]:
    looks = {"xref": axes[0], "yref": axes[1], "showarrow": False, "xanchor": "left", "xshift": 3, "font": {"size": 11}}
    looks["bgcolor"] = see_through(theme.background, 0.7)
    places = zip(mark.x, mark.y, mark.texts, strict=True)
    return [looks | {"x": x, "y": y, "text": safe(text[:14])} for x, y, text in places]


_TRACES: dict[type, Any] = {
    Stroke: _stroke,
    Ribbon: _ribbon,
    Points: _points,
    Surface: _surface,
    Border: _border,
    Bars: _bars,
}
