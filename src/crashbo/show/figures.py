"""Pictures of a model for print (matplotlib). Every function returns its figure; save it as you like."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from crashbo.problem.history import OBJECTIVE
from crashbo.show import data, planes
from crashbo.show.canvas import band, canvas, dress, legend_on_top, plain, scatter, shorten
from crashbo.show.data import Curve, Line, held_text, limit_name
from crashbo.show.planes import Layer, Maps, Pairs, Quantity
from crashbo.show.theme import COLOUR_MAPS, Theme, ThemeName
from crashbo.show.views import Source

if TYPE_CHECKING:
    from crashbo.research.problems import Problem

# On coloured ground: every kind of mark has its own shape and a light rim, so that it is found in print too.
_MARKS: dict[str, dict[str, Any]] = {
    "succeeded": {"marker": "o", "c": "white", "edgecolors": "black", "linewidths": 0.8, "s": 24, "zorder": 3},
    "failed": {"marker": "X", "c": "#E8590C", "edgecolors": "white", "linewidths": 0.7, "s": 46, "zorder": 4},
    "best guess": {"marker": "^", "c": "#C2388E", "edgecolors": "white", "linewidths": 1.0, "s": 95, "zorder": 5},
    "next point": {"marker": "D", "c": "#56B4E9", "edgecolors": "white", "linewidths": 1.2, "s": 60, "zorder": 6},
    "under way": {"marker": "D", "facecolors": "none", "edgecolors": "white", "linewidths": 1.4, "s": 40, "zorder": 5},
    "true minimum": {"marker": "*", "c": "#C2388E", "edgecolors": "white", "linewidths": 0.8, "s": 150, "zorder": 6},
}


def plot_model(
    source: Source,
    parameter: str | None = None,
    *,
    at: Mapping[str, Any] | None = None,
    truth: "Problem | None" = None,
    theme: ThemeName = "light",
) -> Figure:
    """Draw a model along one parameter: every output with its limit, the success probability and the score.

    Args:
        source: an optimizer, a result, an Optuna study or a view.
        parameter: may be left out if only one varies.
        at: values of other parameters; those not given are taken from the best guess.
        truth: the true problem, if known.
        theme: "light" or "dark".
    """
    return draw_line(data.line(source, parameter, at=at, truth=truth), theme=theme)


def draw_line(line: Line, *, theme: ThemeName = "light") -> Figure:
    """Draw a model along one parameter from its numbers."""
    count = len(line.curves)
    with canvas(theme, 7.2, 3.6 + 2.1 * count) as (figure, colours):
        heights = [2.2] * count + [1.0, 1.0]
        panels = figure.subplots(count + 2, 1, sharex=True, height_ratios=heights)
        for axes, curve in zip(panels, line.curves, strict=False):
            draw_curve(axes, line, curve, colours)
        panels[-2].plot(line.axis.values, line.success, color=colours.blue, **_joined(line))
        panels[-2].set(ylabel="success\nprobability", ylim=(-0.05, 1.05))
        draw_acquisition(panels[-1], line, colours)
        dress(panels[-1], line.axis)
        figure.align_ylabels()
        legend_on_top(figure, *panels)
        _say_held(figure, line.held, colours)
    return figure


def _joined(line: Line) -> dict[str, Any]:
    """A line between the values, marks on them where they are few; no line between choices."""
    if line.axis.scale == "category":
        return {"ls": "none", "marker": "D", "ms": 6}
    return {"lw": 2, "marker": "o" if line.axis.discrete and len(line.axis.values) <= 30 else "", "ms": 3.5}


def draw_curve(axes: Axes, line: Line, curve: Curve, colours: Theme) -> None:
    """Draw one output along a parameter: mean, band, limit, trials, truth, best guess."""
    x, low, high = line.axis.values, curve.mean - 2 * curve.std, curve.mean + 2 * curve.std
    if line.axis.scale == "category":
        axes.errorbar(
            x, curve.mean, 2 * curve.std, color=colours.blue, ls="none", marker="D", capsize=4, label="mean ± 2 sd"
        )
    else:
        band(axes, x, low, high, colours.blue, "mean ± 2 standard deviations")
        axes.plot(x, curve.mean, color=colours.blue, label="posterior mean", **_joined(line))
    if curve.truth is not None:
        axes.plot(x, curve.truth, color=colours.muted, ls=(0, (4, 2)), lw=1.4, label="true function")
    if curve.true_threshold is not None:
        axes.axhline(curve.true_threshold, color=colours.muted, lw=1.2, label="true limit")
    if curve.limit is not None:
        axes.axhline(curve.limit.value, color=colours.orange, ls="--", lw=1.6, label=limit_name(curve))
    _draw_trials(axes, curve, colours)
    if line.best is not None and curve.output == OBJECTIVE:
        height = curve.mean[np.abs(x - line.best).argmin()]
        axes.plot(
            [line.best],
            [height],
            "^",
            color=colours.purple,
            mec=colours.background,
            ms=10,
            label="best guess",
            zorder=5,
        )
    if curve.limit is not None and curve.limit.deviation:
        value, deviation, shown = curve.limit.value, curve.limit.deviation, axes.get_ylim()
        axes.axhspan(value - deviation, value + deviation, color=colours.orange, alpha=0.13, lw=0)
        axes.set_ylim(shown)  # a limit that is hardly known must not squeeze the rest
    axes.set_ylabel(shorten(curve.label))


def _draw_trials(axes: Axes, curve: Curve, colours: Theme) -> None:
    """Values at their height, bare labels on the limit they are beyond."""
    marks = curve.marks
    good = ~marks.failed
    scatter(axes, marks.x[good], marks.y[good], marks.near[good], c=colours.green, s=30, label="succeeded", zorder=4)
    looks: dict[str, Any] = {"c": colours.vermilion, "marker": "x", "s": 48, "linewidths": 2, "zorder": 4}
    for bad, label in curve.failures():
        level = np.where(np.isnan(marks.y[bad]), curve.label_level, marks.y[bad])
        scatter(axes, marks.x[bad], level, marks.near[bad], label=label, **looks)


def draw_acquisition(axes: Axes, line: Line, colours: Theme) -> None:
    """Draw what the next point is chosen by."""
    x = line.axis.values
    if line.unconstrained is not None:
        looks = {"ls": "none", "marker": "d"} if line.axis.scale == "category" else {"ls": ":", "lw": 1.6}
        axes.plot(x, line.unconstrained, color=colours.muted, label=f"{line.mode}, failures left aside", **looks)
    axes.plot(x, line.acquisition, color=colours.ink, label=f"score ({line.mode})", **_joined(line))
    if line.next is not None:
        axes.plot(
            [line.next], [1.0], "v", color=colours.vermilion, mec=colours.background, ms=9, label="next point",
            zorder=5, clip_on=False,
        )  # fmt: skip
    axes.set(ylabel="score\n(relative)", ylim=(-0.05, 1.1))


def _say_held(figure: Figure, held: Mapping[str, Any], colours: Theme) -> None:
    if held:
        figure.supxlabel(shorten(f"held: {held_text(held)}", 110), fontsize=8, color=colours.muted)


def plot_slices(source: Source, *, at: Mapping[str, Any] | None = None, theme: ThemeName = "light") -> Figure:
    """Draw a model along every parameter, the others held at the best guess or at chosen values.

    Args:
        source: an optimizer, a result, an Optuna study or a view.
        at: values of other parameters; those not given are taken from the best guess.
        theme: "light" or "dark".
    """
    return draw_slices(data.slices(source, at=at), theme=theme)


def draw_slices(lines: Sequence[Line], *, theme: ThemeName = "light") -> Figure:
    """Draw slices from their numbers: the objective above, the success probability below."""
    count = len(lines)
    columns = 2 if count in (2, 4) else min(count, 3)
    rows = -(-count // columns)
    with canvas(theme, 0.6 + 3.1 * columns, 0.8 + 3.5 * rows) as (figure, colours):
        heights = [2.4, 1.0] * rows
        panels = figure.subplots(2 * rows, columns, squeeze=False, height_ratios=heights, sharey="row")
        for number in range(rows * columns):
            row, column = divmod(number, columns)
            top, bottom = panels[2 * row, column], panels[2 * row + 1, column]
            if number >= count:
                top.set_axis_off()
                bottom.set_axis_off()
                continue
            _draw_slice(top, bottom, lines[number], colours, first=column == 0)
        legend_on_top(figure, *panels[0], columns=3 if columns < 3 else 5)
        _say_best(figure, lines, colours)
    return figure


def _draw_slice(top: Axes, bottom: Axes, line: Line, colours: Theme, *, first: bool) -> None:
    draw_curve(top, line, line.curves[0], colours)
    bottom.plot(line.axis.values, line.success, color=colours.blue, **_joined(line))
    bottom.set(ylim=(-0.05, 1.05), ylabel="success\nprobability")
    dress(bottom, line.axis)
    dress(top, line.axis, label=False)
    top.tick_params(axis="x", labelbottom=False)
    if not first:
        top.set_ylabel("")
        bottom.set_ylabel("")


def _say_best(figure: Figure, lines: Sequence[Line], colours: Theme) -> None:
    """Say where the slices lie, in the order they are drawn in, then what none of them varies."""
    held = {name: value for line in lines for name, value in line.held.items()}
    shown = [line.axis.name for line in lines if line.axis.name in held]
    _say_held(figure, {name: held[name] for name in [*shown, *(one for one in held if one not in shown)]}, colours)


def plot_maps(
    source: Source,
    x: str | None = None,
    y: str | None = None,
    *,
    at: Mapping[str, Any] | None = None,
    quantities: Sequence[Quantity] = ("mean", "std", "success", "acquisition"),
    truth: "Problem | None" = None,
    points: int = 81,
    theme: ThemeName = "light",
) -> Figure:
    """Draw maps over two parameters, as in the paper's figures.

    Args:
        source: an optimizer, a result, an Optuna study or a view.
        x: the parameter along the horizontal axis; may be left out, like `y`, if there are only two.
        y: the parameter along the vertical axis.
        at: values of other parameters; those not given are taken from the best guess.
        quantities: which maps: "mean", "std", "success", "acquisition", "unconstrained".
        truth: the true problem, if known: adds the true outputs, failures shaded.
        points: resolution along each axis.
        theme: "light" or "dark".
    """
    numbers = planes.maps(source, x, y, at=at, quantities=quantities, truth=truth, points=points)
    return draw_maps(numbers, theme=theme)


def draw_maps(maps: Maps, *, theme: ThemeName = "light") -> Figure:
    """Draw maps from their numbers: a row per output, or a block where there is only one."""
    grid = _arrange(maps.layers)
    rows, columns = len(grid), max(map(len, grid))
    with canvas(theme, 0.3 + 3.3 * columns, 0.9 + 2.9 * rows) as (figure, colours):
        panels = figure.subplots(rows, columns, squeeze=False)
        for row, layers in enumerate(grid):
            for column in range(columns):
                axes = panels[row, column]
                if column >= len(layers):
                    axes.set_axis_off()
                    continue
                mesh = draw_layer(axes, maps, layers[column])
                bar = figure.colorbar(mesh, ax=axes, shrink=0.85, aspect=18)
                bar.outline.set_visible(False)
                bar.ax.tick_params(labelsize=8)
                dress(axes, maps.x)
                dress(axes, maps.y, vertical=True, label=column == 0)
        legend_on_top(figure, *panels.ravel(), columns=5 if columns > 2 else 4 if columns == 2 else 2)
        _say_held(figure, maps.held, colours)
    return figure


def _arrange(layers: Sequence[Layer]) -> list[list[Layer]]:
    outputs = list(dict.fromkeys(layer.output for layer in layers))
    if len(outputs) > 1:
        return [[layer for layer in layers if layer.output == output] for output in outputs]
    columns = len(layers) if len(layers) <= 3 else -(-len(layers) // 2)
    return [list(layers[first : first + columns]) for first in range(0, len(layers), columns)]


def draw_layer(axes: Axes, maps: Maps, layer: Layer, *, limits: tuple[float, float] | None = None) -> Any:
    """Draw one map with its marks; returns what a colour bar needs."""
    low, high = limits or ((0.0, 1.0) if layer.quantity == "success" else (None, None))
    axes.grid(visible=False)
    mesh = axes.pcolormesh(
        maps.x.edges, maps.y.edges, layer.values, cmap=COLOUR_MAPS[layer.quantity], vmin=low, vmax=high, rasterized=True
    )
    smooth = "category" not in (maps.x.scale, maps.y.scale) and min(layer.values.shape) > 1
    if layer.quantity == "truth" and maps.infeasible is not None and smooth:
        axes.contourf(maps.x.values, maps.y.values, maps.infeasible.astype(float), [0.5, 1.5], colors=["#00000088"])
    if smooth and layer.quantity in ("mean", "success") and np.ptp(maps.success) > 0:
        axes.contour(
            maps.x.values,
            maps.y.values,
            maps.success,
            [maps.safe_level],
            colors="white",
            linewidths=1.2,
            linestyles="--",
        )
    _draw_marks(axes, maps, layer)
    axes.set_box_aspect(1)
    axes.set_title(plain(layer.title))
    return mesh


def _draw_marks(axes: Axes, maps: Maps, layer: Layer) -> None:
    marks, projected = maps.marks_of(layer), " (projected)" if maps.held else ""
    if layer.quantity == "truth":
        if maps.minimum is not None:
            _mark(axes, [maps.minimum], "true minimum")
    elif layer.quantity in ("acquisition", "unconstrained"):
        _mark(axes, maps.pending, "under way", projected)
        _mark(axes, [maps.next], "next point", projected)
    else:
        for failed, name in ((False, "succeeded"), (True, "failed")):
            rows = marks.failed == failed
            scatter(axes, marks.x[rows], marks.y[rows], marks.near[rows], label=name, **_MARKS[name])
        _mark(axes, [maps.best], "best guess")


def _mark(axes: Axes, places: Sequence[tuple[float, float]], name: str, note: str = "") -> None:
    if places:
        x, y = zip(*places, strict=True)
        axes.scatter(x, y, label=name + note, clip_on=False, **_MARKS[name])


def plot_pairs(
    source: Source,
    *,
    names: Sequence[str] | None = None,
    at: Mapping[str, Any] | None = None,
    quantity: Quantity = "mean",
    theme: ThemeName = "light",
) -> Figure:
    """Draw a map for every pair of parameters, and a slice along each.

    Args:
        source: an optimizer, a result, an Optuna study or a view.
        names: names of the parameters; None: all that vary.
        at: values of other parameters; those not given are taken from the best guess.
        quantity: what to draw: "mean", "std", "success" or "acquisition".
        theme: "light" or "dark".
    """
    return draw_pairs(planes.pairs(source, names=names, at=at, quantity=quantity), theme=theme)


def draw_pairs(pairs: Pairs, *, theme: ThemeName = "light") -> Figure:
    """Draw all pairs from their numbers, on one colour scale."""
    names = list(pairs.lines)
    layers = [one.layers[0] for one in pairs.maps.values()]
    low = float(min(np.nanmin(one.values) for one in layers))
    high = float(max(np.nanmax(one.values) for one in layers))
    limits = (0.0, 1.0) if layers[0].quantity == "success" else (low, high)
    count = len(names)
    with canvas(theme, 0.9 + 2.1 * count, 0.7 + 2.0 * count) as (figure, colours):
        panels = figure.subplots(count, count, squeeze=False)
        for row, vertical in enumerate(names):
            for column, horizontal in enumerate(names):
                axes = panels[row, column]
                if column > row:
                    axes.set_axis_off()
                elif column == row:
                    _draw_diagonal(axes, pairs.lines[vertical], colours)
                else:
                    maps = pairs.maps[horizontal, vertical]
                    draw_layer(axes, maps, maps.layers[0], limits=limits)
                    axes.set_title("")
                    dress(axes, maps.y, vertical=True, label=column == 0)
                dress(axes, pairs.lines[horizontal].axis, label=row == count - 1)
                _thin(axes, left=column == 0, bottom=row == count - 1)
        mesh = ScalarMappable(Normalize(*limits), COLOUR_MAPS[layers[0].quantity])
        bar = figure.colorbar(mesh, ax=panels[:-1, -1], shrink=0.8, location="right", label=plain(layers[0].unit_label))
        bar.outline.set_visible(False)
        figure.suptitle(plain(layers[0].title), fontsize=11)
        legend = panels[0, -1] if count > 1 else panels[0, 0]
        handles, texts = panels[1, 0].get_legend_handles_labels()
        legend.legend(handles, texts, loc="upper right", fontsize=9)
        _say_best(figure, list(pairs.lines.values()), colours)
    return figure


def _draw_diagonal(axes: Axes, line: Line, colours: Theme) -> None:
    """The success probability along a parameter."""
    axes.plot(line.axis.values, line.success, color=colours.blue, **_joined(line))
    axes.set_ylim(-0.05, 1.05)
    axes.set_box_aspect(1)
    axes.set_title("success", fontsize=8, color=colours.muted, pad=2)


def _thin(axes: Axes, *, left: bool, bottom: bool) -> None:
    """Keep tick labels at the outside only."""
    axes.tick_params(labelsize=8, labelbottom=bottom)
    if not left and axes.get_title() != "success":
        axes.tick_params(labelleft=False)
