"""Pictures of a run for print (matplotlib): thresholds, convergence, parallel coordinates, importance."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure

from crashbo.errors import InputError
from crashbo.show import history
from crashbo.show.canvas import band, canvas, legend_on_top, plain, shorten, whole_numbers
from crashbo.show.history import NO_LIMIT, Band, Convergence, Parallel, ThresholdPath
from crashbo.show.importance import Importance, importance
from crashbo.show.theme import COLOUR_MAPS, Theme, ThemeName
from crashbo.show.views import Source

_DASHES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)))


def plot_thresholds(
    source: Source,
    *,
    true: Mapping[str, float] | None = None,
    fits: int = 40,
    theme: ThemeName = "light",
) -> Figure:
    """Draw the learned limits over the trials.

    Args:
        source: an optimizer, a result, an Optuna study or a view.
        true: the true limits by output, where known.
        fits: largest number of fits, evenly spaced over the trials.
        theme: "light" or "dark".
    """
    return draw_thresholds(history.thresholds(source, true=true, fits=fits), theme=theme)


def draw_thresholds(paths: Sequence[ThresholdPath], *, theme: ThemeName = "light") -> Figure:
    """Draw learned limits from their numbers."""
    if not paths:
        raise InputError(NO_LIMIT)
    with canvas(theme, 7.2, 0.8 + 2.6 * len(paths)) as (figure, colours):
        panels = figure.subplots(len(paths), 1, squeeze=False, sharex=True).ravel()
        for axes, path in zip(panels, paths, strict=True):
            draw_threshold(axes, path, colours)
        panels[-1].set_xlabel("trials")
        legend_on_top(figure, *panels)
    return figure


def draw_threshold(axes: Axes, path: ThresholdPath, colours: Theme, *, faint: bool = False) -> None:
    """Draw one output's learned limit; faintly and without its surroundings where several runs lie over each other."""
    axes.plot(
        path.trials, path.limit, color=colours.orange, lw=1 if faint else 2, alpha=0.4 if faint else 1,
        label=None if faint else "learned limit",
    )  # fmt: skip
    axes.set_ylabel(shorten(f"limit of {path.label}", 34))
    if faint:
        return
    looks: dict[str, Any] = {"color": colours.green, "lw": 1.4, "ls": ":", "drawstyle": "steps-post"}
    axes.plot(path.trials, path.worst, label="worst value seen", **looks)
    if path.true is not None:
        axes.axhline(path.true, color=colours.muted, lw=1.4, ls="--", label="true limit")
    if len(path.failures):
        cross: dict[str, Any] = {"color": colours.vermilion, "ms": 6, "mew": 1.6, "label": "failed trial"}
        height = np.full(len(path.failures), 0.04)
        axes.plot(path.failures, height, "x", transform=axes.get_xaxis_transform(), **cross)
        axes.margins(y=0.14)
    _draw_deviation(axes, path, colours)
    whole_numbers(axes)


def _draw_deviation(axes: Axes, path: ThresholdPath, colours: Theme) -> None:
    """The limit's standard deviation as a band; where it is huge, it goes beyond the picture."""
    bottom, top = axes.get_ylim()
    low, high = path.limit - path.deviation, path.limit + path.deviation
    band(axes, path.trials, low, high, colours.orange, "± its standard deviation")
    alone = path.alone
    if alone.any():
        axes.errorbar(path.trials[alone], path.limit[alone], path.deviation[alone], color=colours.orange, fmt="o", ms=4)
    room = (top - bottom) / 2
    axes.set_ylim(max(bottom - room, min(bottom, np.nanmin(low))), min(top + room, max(top, np.nanmax(high))))


def plot_convergence(
    source: Source | Mapping[str, Sequence[Source]], *, log: bool | None = None, theme: ThemeName = "light"
) -> Figure:
    """Draw the progress of a run with crashes marked, or of several runs per method as bands.

    Args:
        source: one run, or lists of runs by method name.
        log: whether the axis is logarithmic; None: if the values are positive and span two orders of magnitude.
        theme: "light" or "dark".
    """
    if isinstance(source, Mapping):
        if not source:
            raise InputError("`source` must hold runs by method name; got none. Give a run, or several.")
        bands = [history.band_of(name, runs) for name, runs in source.items()]
        label = history.convergence(next(iter(source.values()))[0]).label
        return draw_bands(bands, label=f"best {label} so far", log=log, theme=theme)
    return draw_convergence(history.convergence(source), log=log, theme=theme)


def draw_convergence(run: Convergence, *, log: bool | None = None, theme: ThemeName = "light") -> Figure:
    """Draw one run from its numbers: values, best so far, and crashes in a strip of their own."""
    if not len(run.values):
        raise InputError("`source` must have at least one trial; got none. Tell one.")
    with canvas(theme, 7.2, 4.2) as (figure, colours):
        strip, axes = figure.subplots(2, 1, sharex=True, height_ratios=(0.09, 1))
        trials = run.places
        crashed = np.isnan(run.values)
        good, unsafe = ~run.failed & ~crashed, run.failed & ~crashed
        axes.plot(trials[good], run.values[good], "o", color=colours.green, ms=5, label="succeeded")
        if unsafe.any():
            looks: dict[str, Any] = {"color": colours.vermilion, "mfc": "none", "mew": 1.6, "ms": 6}
            axes.plot(trials[unsafe], run.values[unsafe], "s", label="limit broken", **looks)
        axes.plot(trials, run.best, color=colours.blue, lw=2, drawstyle="steps-post", label="best so far")
        strip.plot(
            trials[crashed], np.zeros(crashed.sum()), "x", color=colours.vermilion, ms=6, mew=1.8, label="crashed"
        )
        _strip(strip)
        axes.set(xlabel="trial", ylabel=shorten(run.label), xlim=(trials[0] - 0.7, trials[-1] + 0.7))
        whole_numbers(axes)
        if history.logarithmic(run.values, log):
            axes.set_yscale("log")
        legend_on_top(figure, axes, strip, columns=4)
    return figure


def _strip(axes: Axes) -> None:
    axes.set(yticks=[], ylim=(-1, 1))
    axes.grid(visible=False)
    axes.tick_params(axis="x", length=0, labelbottom=False)
    for spine in axes.spines.values():
        spine.set_visible(False)
    axes.set_ylabel("crashed", rotation=0, ha="right", va="center", fontsize=9)


def draw_bands(
    bands: Sequence[Band], *, label: str, log: bool | None = None, theme: ThemeName = "light", title: str = ""
) -> Figure:
    """Draw several methods from their numbers: median, quartiles, share of failures where known.

    Args:
        bands: one per method.
        label: of the curves.
        log: a logarithmic axis; None: if the values are positive and span two orders of magnitude.
            Values at or below 0 are then drawn at the bottom.
        theme: "light" or "dark".
        title: above the picture.
    """
    shares = [one for one in bands if one.failed_share is not None]
    with canvas(theme, 7.2, 4.2 + 1.3 * bool(shares)) as (figure, colours):
        panels = figure.subplots(
            1 + bool(shares), 1, sharex=True, squeeze=False, height_ratios=(2.6, 1)[: 1 + bool(shares)]
        )
        top = panels[0, 0]
        draw_band_curves(top, bands, colours, log=log)
        top.set_ylabel(shorten(label, 40))
        if shares:
            _draw_shares(panels[1, 0], bands, colours)
        panels[-1, 0].set_xlabel("trials")
        if title:
            top.set_title(plain(title))
        legend_on_top(figure, top, columns=min(4, len(bands)))
    return figure


def draw_band_curves(
    axes: Axes,
    bands: Sequence[Band],
    colours: Theme,
    *,
    log: bool | None = None,
    styles: Sequence[tuple[str, str]] | None = None,
) -> None:
    """Draw medians and quartiles of several methods; `styles` are colour and dashes of each, else a cycle of them."""
    cycle = [(colours.cycle[i % len(colours.cycle)], _DASHES[i % len(_DASHES)]) for i in range(len(bands))]
    curves, use_log = history.drawable(bands, log)
    for one, (low, middle, high), (colour, dashes) in zip(bands, curves, styles or cycle, strict=True):
        trials = np.arange(1, len(middle) + 1)
        band(axes, trials, low, high, colour)
        runs = f"{one.runs} run" + "s" * (one.runs != 1)
        axes.plot(trials, middle, color=colour, lw=2, ls=dashes, label=f"{plain(one.name)} ({runs})")
    if use_log:
        axes.set_yscale("log")
    whole_numbers(axes)


def _draw_shares(axes: Axes, bands: Sequence[Band], colours: Theme) -> None:
    for number, one in enumerate(bands):
        if one.failed_share is not None:
            trials = np.arange(1, len(one.failed_share) + 1)
            colour = colours.cycle[number % len(colours.cycle)]
            axes.plot(trials, one.failed_share, color=colour, lw=1.4, ls=_DASHES[number % len(_DASHES)])
    axes.set(ylabel="share of\nfailures", ylim=(-0.05, 1.05))


def plot_parallel(source: Source, *, theme: ThemeName = "light") -> Figure:
    """Draw every trial as a line over all parameters and its cost; failed trials end at a separate mark.

    Args:
        source: an optimizer, a result, an Optuna study or a view.
        theme: "light" or "dark".
    """
    return draw_parallel(history.parallel(source), theme=theme)


def draw_parallel(numbers: Parallel, *, theme: ThemeName = "light") -> Figure:
    """Draw parallel coordinates from their numbers."""
    if not len(numbers.values) or not numbers.names:
        raise InputError("`source` must have a trial and a parameter that varies; got none of one of them.")
    count = len(numbers.names)
    heights, low, high = history.parallel_heights(numbers)
    scale = Normalize(low, high)
    with canvas(theme, max(6.4, 1.7 * (count + 1)), 4.6) as (figure, colours):
        axes = figure.subplots()
        # Both ends of the map are left out: one is lost on dark ground, the other on paper.
        middle = LinearSegmentedColormap.from_list("lines", colormaps[COLOUR_MAPS["mean"]](np.linspace(0.2, 0.85, 64)))
        shades = ScalarMappable(scale, middle)
        for failed in (True, False):
            for row in np.flatnonzero(numbers.failed == failed):
                line = np.append(numbers.positions[row], heights[row])
                looks = _line_looks(failed, colours, shades, numbers.values[row])
                axes.plot(range(count + 1), line, **looks)
        _rulers(axes, numbers, scale, colours)
        axes.plot([], [], color=colours.vermilion, ls="--", label="failed")
        if np.isfinite(numbers.values).any():
            axes.plot([], [], color=shades.to_rgba(np.array([low]))[0], label=f"lowest {plain(numbers.label)}")
            axes.plot([], [], color=shades.to_rgba(np.array([high]))[0], label=f"highest {plain(numbers.label)}")
        legend_on_top(figure, axes)
    return figure


def _line_looks(failed: bool, colours: Theme, shades: Any, value: float) -> dict[str, Any]:
    if failed:
        return {"color": colours.vermilion, "ls": "--", "lw": 1.0, "alpha": 0.55}
    return {"color": shades.to_rgba(value), "lw": 1.4, "alpha": 0.9}


def _rulers(axes: Axes, numbers: Parallel, scale: Any, colours: Theme) -> None:
    """The vertical axes with their values; names below, staggered where they are long."""
    count = len(numbers.names)
    axes.grid(visible=False)
    for spine in axes.spines.values():
        spine.set_visible(False)
    costs = {history.TOP * float(share): f"{scale.inverse(share):.3g}" for share in (0, 0.25, 0.5, 0.75, 1)}
    box = {"facecolor": colours.background, "edgecolor": "none", "alpha": 0.75, "pad": 1.0}
    for place, ticks in enumerate([*numbers.ticks, {**costs, 1.0: "crashed"}]):
        axes.axvline(place, color=colours.muted, lw=1.0, zorder=3)
        for height, text in ticks.items():
            axes.text(place + 0.03, height, shorten(text, 12), fontsize=8, va="center", bbox=box, zorder=4)
    names = [shorten(name, 20) for name in (*numbers.names, numbers.label)]
    slant: dict[str, Any] = (
        {"rotation": 25, "ha": "right", "rotation_mode": "anchor"} if max(map(len, names)) > 14 else {}
    )
    axes.set_xticks(range(count + 1), names, **slant)
    axes.set(yticks=[], xlim=(-0.1, count + 0.35), ylim=(-0.06, 1.08))


def plot_importance(source: Source, *, theme: ThemeName = "light") -> Figure:
    """Draw how much each parameter matters for the cost and for success.

    Args:
        source: an optimizer, a result, an Optuna study or a view.
        theme: "light" or "dark".
    """
    return draw_importance(importance(source), theme=theme)


def draw_importance(numbers: Importance, *, theme: ThemeName = "light") -> Figure:
    """Draw importances from their numbers, the most important first."""
    order = np.argsort(numbers.cost + 1e-6 * numbers.success)
    with canvas(theme, 6.4, 1.5 + 0.55 * len(order)) as (figure, colours):
        axes = figure.subplots()
        rows = np.arange(len(order))
        axes.barh(rows + 0.19, numbers.cost[order], 0.36, color=colours.blue, label=f"for the {plain(numbers.label)}")
        axes.barh(
            rows - 0.19, numbers.success[order], 0.36, color=colours.orange, label="for success", hatch="////",
            edgecolor=colours.background, linewidth=0,
        )  # fmt: skip
        axes.set_yticks(rows, [shorten(numbers.names[i]) for i in order])
        axes.grid(visible=False, axis="y")
        axes.set(xlabel="share of the variation", xlim=(0, 1))
        legend_on_top(figure, axes, columns=2)
    return figure
