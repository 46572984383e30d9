"""Draw any chart with matplotlib, for print."""

from itertools import chain
from typing import Any, Literal

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from crashbo.show.canvas import canvas, legend_on_top, plain, shorten
from crashbo.show.chart import Bars, Border, Chart, Look, Panel, Points, Ribbon, Side, Stroke, Surface, Words
from crashbo.show.theme import Theme, ThemeName

_DASHES: dict[str, Any] = {"solid": "-", "dash": "--", "dot": ":", "dashdot": "-.", "longdash": (0, (5, 1, 1, 1, 1, 1))}
_SYMBOLS = {"circle": "o", "square": "s", "cross": "x", "x": "X", "up": "^", "down": "v", "diamond": "D", "star": "*"}


def draw(chart: Chart, theme: ThemeName = "light") -> Figure:
    """Draw a chart."""
    shape = len(chart.rows), max(map(len, chart.rows))
    with canvas(theme, *chart.size) as (figure, colours):
        panels = figure.subplots(*shape, squeeze=False, height_ratios=chart.heights or None)
        for axes, panel in zip(panels.ravel(), chain.from_iterable(chart.rows), strict=True):
            if panel is None:
                axes.set_axis_off()
            else:
                draw_panel(axes, panel, colours)
        figure.align_ylabels()
        if chart.bar is not None:
            for axes in panels.ravel():
                axes.tick_params(labelsize=8)
            shades = ScalarMappable(Normalize(*chart.bar.limits or (None, None)), chart.bar.colours)
            _colour_bar(figure, shades, panels[:-1, -1].tolist(), shrink=0.8, label=plain(chart.bar.name))
        if chart.title:
            figure.suptitle(plain(chart.title), fontsize=11)
        if chart.columns and chart.rows[0][-1] is None:  # there is room for it
            entries = dict(zip(*reversed(_entries(panels.ravel())), strict=True))
            panels[0, -1].legend(list(entries.values()), list(entries), loc="upper right", fontsize=9)
        elif chart.columns:
            legend_on_top(figure, *panels.ravel(), columns=chart.columns)
        if chart.note:
            figure.supxlabel(shorten(chart.note, 110), fontsize=8, color=colours.muted)
    return figure


def _entries(panels: Any) -> tuple[list[Any], list[str]]:
    """Handles and texts of all legends."""
    found = [axes.get_legend_handles_labels() for axes in panels]
    return [one for handles, _ in found for one in handles], [one for _, texts in found for one in texts]


def draw_panel(axes: Axes, panel: Panel, theme: Theme) -> None:
    """Draw a panel into axes of yours."""
    for mark in panel.marks:
        _DRAW[type(mark)](axes, mark, theme)
    _dress(axes, panel.x, "x")
    _dress(axes, panel.y, "y")
    if panel.square:
        axes.set_box_aspect(1)
    if any(isinstance(mark, Surface) for mark in panel.marks):
        axes.grid(visible=False)
    if panel.title:
        axes.set_title(plain(panel.title))
    if not panel.frame:
        axes.spines[:].set_visible(False)
        axes.tick_params(length=0)
        if panel.y.label:
            axes.set_ylabel(plain(panel.y.label), rotation=0, ha="right", va="center", fontsize=9)


def _dress(axes: Axes, side: Side, which: Literal["x", "y"]) -> None:
    """Give one side its scale, limits, ticks and label."""
    one = axes.xaxis if which == "x" else axes.yaxis
    if side.log:
        getattr(axes, f"set_{which}scale")("log")
    if side.whole:
        one.set_major_locator(MaxNLocator(integer=True))
    if side.ticks is not None:
        texts = [shorten(text, 20) for text in side.ticks.values()]
        width = axes.bbox.width / axes.figure.dpi
        long = which == "x" and 0.08 * max(map(len, texts), default=0) * len(texts) > width
        slant: Any = {"rotation": 30, "ha": "right", "rotation_mode": "anchor"} if long else {}
        one.set_ticks(list(side.ticks), labels=texts, **slant)
        axes.tick_params(axis=which, which="minor", length=0, labelcolor="none")
    if side.limits is not None:
        getattr(axes, f"set_{which}lim")(*side.limits)
    if side.bare:
        axes.tick_params(axis=which, which="both", **{"labelbottom" if which == "x" else "labelleft": False})
    elif side.label:
        one.set_label_text("\n".join(shorten(part, 40) for part in side.label.split("\n")))
    if not side.grid:
        axes.grid(visible=False, axis=which)


def _stroke(axes: Axes, mark: Stroke, theme: Theme) -> None:
    looks: dict[str, Any] = {"marker": "o" if mark.symbol else "", "ms": 3.5}
    looks |= {"ls": _DASHES[mark.dash], "lw": mark.width, "drawstyle": "steps-post" if mark.step else "default"}
    axes.plot(mark.x, mark.y, color=theme.colour(mark.colour), label=plain(mark.name) or None, **looks)


def _ribbon(axes: Axes, mark: Ribbon, theme: Theme) -> None:
    x, low, high = (np.asarray(one).tolist() for one in (mark.x, mark.low, mark.high))
    colour, name = theme.colour(mark.colour), plain(mark.name) or None
    axes.fill_between(x, low, high, color=colour, alpha=0.22, lw=0, label=name)


def _points(axes: Axes, mark: Points, theme: Theme) -> None:
    """Points, those at the border whole; what the legend shows is not faint."""
    if mark.error is not None:
        axes.errorbar(mark.x, mark.y, mark.error, color=theme.colour(mark.look.colour), fmt="none", capsize=4)
    looks = _looks(mark.look, theme)
    axes.scatter(mark.x, mark.y, alpha=mark.opacity, clip_on=False, **looks).set_gid(mark.name)
    if mark.name:
        axes.scatter([], [], label=plain(mark.name), **looks)


def _looks(look: Look, theme: Theme) -> dict[str, Any]:
    colour = theme.colour(look.colour)
    found = {"marker": _SYMBOLS[look.symbol], "s": look.size**2, "zorder": 4}
    if look.symbol == "cross":
        return found | {"c": colour, "linewidths": look.size / 3.5}
    if look.hollow:
        return found | {"facecolors": "none", "edgecolors": colour, "linewidths": 1.5}
    return found | {"c": colour, "edgecolors": theme.colour(look.rim or look.colour), "linewidths": 0.9}


def _surface(axes: Axes, mark: Surface, theme: Theme) -> None:
    low, high = mark.limits or (None, None)
    looks: dict[str, Any] = {"cmap": mark.colours, "vmin": low, "vmax": high, "rasterized": True}
    mesh = axes.pcolormesh(mark.x, mark.y, mark.values, **looks)
    if mark.bar:
        _colour_bar(axes.figure, mesh, axes, shrink=0.85, aspect=18)


def _colour_bar(figure: Any, shades: Any, axes: Any, **looks: Any) -> None:
    bar = figure.colorbar(shades, ax=axes, **looks)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=8)


def _border(axes: Axes, mark: Border, theme: Theme) -> None:
    if mark.shade:
        axes.contourf(mark.x, mark.y, mark.values, [mark.level, np.inf], colors=["#00000088"])
    else:
        looks: dict[str, Any] = {"colors": "white", "linewidths": 1.2, "linestyles": "--"}
        axes.contour(mark.x, mark.y, mark.values, [mark.level], **looks)


def _bars(axes: Axes, mark: Bars, theme: Theme) -> None:
    looks: dict[str, Any] = {"hatch": "////" if mark.hatched else None, "edgecolor": theme.background, "linewidth": 0}
    axes.barh(mark.y, mark.lengths, 0.36, color=theme.colour(mark.colour), label=plain(mark.name), **looks)


def _words(axes: Axes, mark: Words, theme: Theme) -> None:
    box = {"facecolor": theme.background, "edgecolor": "none", "alpha": 0.7, "pad": 1.0}
    for x, y, text in zip(mark.x, mark.y, mark.texts, strict=True):
        axes.text(x + 0.03, y, shorten(text, 12), fontsize=8, va="center", bbox=box, zorder=4)


_DRAW: dict[type, Any] = {
    Stroke: _stroke,
    Ribbon: _ribbon,
    Points: _points,
    Surface: _surface,
    Border: _border,
    Bars: _bars,
    Words: _words,
}
