"""Pictures of a model, described from its numbers: along one parameter, over two, over all pairs."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np

from crashbo.problem.history import OBJECTIVE
from crashbo.show.chart import (
    Border,
    Chart,
    Look,
    Mark,
    Panel,
    Points,
    Ribbon,
    Side,
    Stroke,
    Surface,
    axis_side,
    column,
    span,
)
from crashbo.show.data import Curve, Line, Marks, held_text, limit_name
from crashbo.show.planes import Layer, Maps, Pairs
from crashbo.show.theme import COLOUR_MAPS

_FAINTEST = 0.2  # opacity of a trial far from the slice shown
_CHANCE = Side("success\nprobability", limits=(-0.05, 1.05))
_SUCCEEDED, _FAILED = Look("circle", "green"), Look("cross", "vermilion", 7.0)
_BEST, _NEXT = Look("up", "purple", 10.0, "background"), Look("down", "vermilion", 9.0, "background")
# On coloured ground: every kind of mark has its own shape and a light rim, so that it is found in print too.
_ON_MAP = {
    "succeeded": Look("circle", "white", 5.0, "black"),
    "failed": Look("x", "#E8590C", 7.0, "white"),
    "best guess": Look("up", "#C2388E", 10.0, "white"),
    "next point": Look("diamond", "#56B4E9", 8.0, "white"),
    "under way": Look("diamond", "white", 6.5, hollow=True),
    "true minimum": Look("star", "#C2388E", 12.0, "white"),
}


def line_chart(line: Line) -> Chart:
    """A model along one parameter: every output with its limit, the success probability and the score."""
    panels = [*(curve_panel(line, curve) for curve in line.curves), _success_panel(line), score_panel(line)]
    count = len(line.curves)
    return column(panels, 3.6 + 2.1 * count, [2.2] * count + [1.0, 1.0], note=_held(line.held))


def _held(held: Mapping[str, Any]) -> str:
    return f"held: {held_text(held)}" if held else ""


def _along(line: Line, values: Any, colour: str, name: str = "", **looks: Any) -> Stroke | Points:
    """A line between the values, marks on them where they are few; only marks on choices."""
    if line.axis.scale == "category":
        return Points(line.axis.values, values, Look("diamond", colour), name)
    few = line.axis.discrete and len(line.axis.values) <= 30
    return Stroke(line.axis.values, values, colour, name, symbol=few, **looks)


def _success_panel(line: Line) -> Panel:
    return Panel((_along(line, line.success, "blue"),), axis_side(line.axis, group=line.axis.name), _CHANCE)


def curve_panel(line: Line, curve: Curve) -> Panel:
    """One output along a parameter: mean, deviation, limit, trials, truth, best guess."""
    low, high = curve.mean - 2 * curve.std, curve.mean + 2 * curve.std
    ends, trials = np.array(line.axis.ends), _trials(curve)
    mean = _along(line, curve.mean, "blue", "posterior mean")
    found: list[Mark] = [Ribbon(line.axis.values, low, high, "blue", "mean ± 2 standard deviations"), mean]
    if isinstance(mean, Points):
        found = [replace(mean, name="mean ± 2 standard deviations", error=2 * curve.std)]
    levels: list[Any] = [low, high, *(one.y for one in trials)]
    if curve.truth is not None:
        found.append(_along(line, curve.truth, "muted", "true function", dash="dash", width=1.4))
        levels.append(curve.truth)
    if curve.true_threshold is not None:
        found.append(Stroke(ends, [curve.true_threshold] * 2, "muted", "true limit", width=1.2))
        levels.append(curve.true_threshold)
    if curve.limit is not None:
        value, deviation = curve.limit.value, curve.limit.deviation
        if deviation:  # not among the levels: a limit that is hardly known must not squeeze the rest
            found.append(Ribbon(ends, [value - deviation] * 2, [value + deviation] * 2, "orange"))
        found.append(Stroke(ends, [value] * 2, "orange", limit_name(curve), "dash", 1.6))
        levels.append(value)
    found += trials
    if line.best is not None and curve.output == OBJECTIVE:
        height = float(curve.mean[np.abs(line.axis.values - line.best).argmin()])
        found.append(Points([line.best], [height], _BEST, "best guess"))
    x = axis_side(line.axis, group=line.axis.name)
    return Panel(tuple(found), x, Side(curve.label, limits=span(*levels)))


def _trials(curve: Curve) -> list[Points]:
    """Values at their height, bare labels on the limit they are beyond."""
    level = np.where(np.isnan(curve.marks.y), curve.label_level, curve.marks.y)
    groups = [(~curve.marks.failed, "succeeded", _SUCCEEDED)]
    groups += [(rows, name, _FAILED) for rows, name in curve.failures()]
    return [_of(curve.marks, rows, level, look, name) for rows, name, look in groups if rows.any()]


def _of(marks: Marks, rows: Any, y: Any, look: Look, name: str) -> Points:
    """Some of the trials, fainter the farther they are from the slice shown."""
    texts = [f"trial {marks.numbers[row]}: {marks.texts[row]}" for row in np.flatnonzero(rows)]
    return Points(marks.x[rows], y[rows], look, name, np.clip(marks.near[rows], _FAINTEST, 1.0), texts=texts)


def score_panel(line: Line) -> Panel:
    """What the next point is chosen by."""
    found: list[Mark] = []
    if line.unconstrained is not None:
        name = f"{line.mode}, failures left aside"
        found.append(_along(line, line.unconstrained, "muted", name, dash="dot", width=1.6))
    found.append(_along(line, line.acquisition, "ink", f"score ({line.mode})"))
    if line.next is not None:
        found.append(Points([line.next], [1.0], _NEXT, "next point"))
    x = axis_side(line.axis, group=line.axis.name)
    return Panel(tuple(found), x, Side("score\n(relative)", limits=(-0.05, 1.1)))


def slice_chart(line: Line) -> Chart:
    """One slice by itself, small."""
    return replace(column(_slice([line], line), 4.0, [2.4, 1.0]), columns=0)


def _slice(beside: Sequence[Line], line: Line) -> tuple[Panel, Panel]:
    """The objective above, the success probability below; all beside each other have one scale."""
    top, bottom = curve_panel(line, line.curves[0]), _success_panel(line)
    ends = [limits for one in beside if (limits := curve_panel(one, one.curves[0]).y.limits) is not None]
    bare = line is not beside[0]
    y = replace(top.y, limits=span(ends, margin=0.0), bare=bare)
    return replace(top, x=replace(top.x, bare=True), y=y), replace(bottom, y=replace(bottom.y, bare=bare))


def slices_chart(lines: Sequence[Line]) -> Chart:
    """A model along every parameter, at most three beside each other."""
    count = len(lines)
    columns = 2 if count in (2, 4) else min(count, 3)
    rows: list[tuple[Panel | None, ...]] = []
    for first in range(0, count, columns):
        beside = lines[first : first + columns]
        pairs = [_slice(beside, line) for line in beside]
        gap = (None,) * (columns - len(beside))
        rows += [(*(top for top, _ in pairs), *gap), (*(bottom for _, bottom in pairs), *gap)]
    size = 0.6 + 3.1 * columns, 0.8 + 1.75 * len(rows)
    legend = 3 if columns < 3 else 5
    return Chart(tuple(rows), size, (2.4, 1.0) * (len(rows) // 2), note=_held_at(lines), columns=legend)


def _held_at(lines: Sequence[Line]) -> str:
    """Where the slices lie, in the order they are drawn in, then what none of them varies."""
    held = {name: value for line in lines for name, value in line.held.items()}
    shown = [line.axis.name for line in lines if line.axis.name in held]
    return _held({name: held[name] for name in [*shown, *(one for one in held if one not in shown)]})


def maps_chart(maps: Maps, *, columns: int | None = None) -> Chart:
    """Maps over two parameters: so many beside each other, or a row per output, or a block where there is only one."""
    layers = maps.layers
    outputs = list(dict.fromkeys(layer.output for layer in layers))
    if columns is None and len(outputs) > 1:
        grid = [[layer for layer in layers if layer.output == output] for output in outputs]
    else:
        columns = columns or (len(layers) if len(layers) <= 3 else -(-len(layers) // 2))
        grid = [list(layers[first : first + columns]) for first in range(0, len(layers), columns)]
    columns = max(map(len, grid))
    drawn = [[layer_panel(maps, layer, label=layer is row[0]) for layer in row] for row in grid]
    rows = tuple((*row, *[None] * (columns - len(row))) for row in drawn)
    size = 0.3 + 3.3 * columns, 0.9 + 2.9 * len(rows)
    legend = 5 if columns > 2 else 4 if columns == 2 else 2
    return Chart(rows, size, pixels=60 + 380 * len(rows), note=_held(maps.held), columns=legend)


def layer_chart(maps: Maps, layer: Layer) -> Chart:
    """One map by itself."""
    panel = replace(layer_panel(maps, layer), title="")
    return Chart(((panel,),), (3.6, 3.6), pixels=380, title=layer.title, columns=0)


def layer_panel(
    maps: Maps, layer: Layer, *, label: bool = True, limits: tuple[float, float] | None = None, bar: bool = True
) -> Panel:
    """One map with its marks."""
    x, y = maps.x, maps.y
    limits = limits or ((0.0, 1.0) if layer.quantity == "success" else None)
    surface = Surface(x.edges, y.edges, layer.values, COLOUR_MAPS[layer.quantity], layer.title, limits, bar)
    found: list[Mark] = [surface]
    smooth = "category" not in (x.scale, y.scale) and min(layer.values.shape) > 1
    if layer.quantity == "truth" and maps.infeasible is not None and smooth:
        found.append(Border(x.values, y.values, maps.infeasible.astype(float), 0.5, shade=True))
    if smooth and layer.quantity in ("mean", "success") and np.ptp(maps.success) > 0:
        found.append(Border(x.values, y.values, maps.success, maps.safe_level))
    found += _map_points(maps, layer)
    return Panel(tuple(found), axis_side(x), axis_side(y, label=label), layer.title, square=True)


def _map_points(maps: Maps, layer: Layer) -> list[Points]:
    marks, projected = maps.marks_of(layer), " (projected)" if maps.held else ""
    if layer.quantity == "truth":
        found = [_places([maps.minimum] if maps.minimum else [], "true minimum")]
    elif layer.quantity in ("acquisition", "unconstrained"):
        found = [_places(maps.pending, "under way", projected), _places([maps.next], "next point", projected)]
    else:
        groups = ((~marks.failed, "succeeded"), (marks.failed, "failed"))
        found = [_of(marks, rows, marks.y, _ON_MAP[name], name) for rows, name in groups]
        found.append(_places([maps.best], "best guess"))
    return [one for one in found if len(one.x)]


def _places(places: Sequence[tuple[float, float]], name: str, note: str = "") -> Points:
    return Points([x for x, _ in places], [y for _, y in places], _ON_MAP[name], name + note)


def pairs_chart(pairs: Pairs) -> Chart:
    """All pairs on one colour scale, a slice of the success probability along each parameter."""
    names, layers = list(pairs.lines), [one.layers[0] for one in pairs.maps.values()]
    values = [one.values for one in layers]
    limits = (0.0, 1.0) if layers[0].quantity == "success" else span(*map(np.ravel, values), margin=0.0)
    count, rows = len(names), []
    for row, vertical in enumerate(names):
        panels: list[Panel | None] = []
        for horizontal in names[:row]:
            maps = pairs.maps[horizontal, vertical]
            panels.append(replace(layer_panel(maps, maps.layers[0], limits=limits, bar=False), title=""))
        panels.append(replace(_success_panel(pairs.lines[vertical]), title="success", square=True))
        outer = [_outer(one, left=not place, bottom=row == count - 1) for place, one in enumerate(panels) if one]
        rows.append((*outer, *[None] * (count - row - 1)))
    bar = next(one for one in chain.from_iterable(p.marks for p in rows[1] if p) if isinstance(one, Surface))
    bar = replace(bar, name=layers[0].unit_label)
    size, title = (0.9 + 2.1 * count, 0.7 + 2.0 * count), layers[0].title
    return Chart(tuple(rows), size, title=title, note=_held_at(list(pairs.lines.values())), columns=1, bar=bar)


def _outer(panel: Panel, *, left: bool, bottom: bool) -> Panel:
    """Labels and texts of ticks at the outside only, but for those of chances."""
    y = panel.y if panel.title else replace(panel.y, bare=not left)
    y = replace(y, label="") if panel.title else y
    return replace(panel, x=replace(panel.x, bare=not bottom), y=y)
