"""Pictures of a single GPCR with one input (matplotlib), from plain arrays. Every function returns its figure."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from crashbo.errors import InputError
from crashbo.problem.arrays import Array
from crashbo.show.canvas import band, canvas, legend_on_top, shorten
from crashbo.show.theme import Theme, ThemeName


@dataclass(frozen=True)
class Curves:
    """A GPCR along its one input.

    Attributes:
        x: `p`, increasing.
        mean, deviation: `p`, of the cost.
        success: `p`, probability of success.
        threshold: finite.
        stable, costs: `s`, where trials have a cost, and which.
        crashed: `c`, where trials crashed.
    """

    x: Array
    mean: Array
    deviation: Array
    success: Array
    threshold: float
    stable: Array
    costs: Array
    crashed: Array

    def __post_init__(self) -> None:
        for name in ("x", "mean", "deviation", "success"):
            shape = np.shape(getattr(self, name))
            if shape != (len(self.x),):
                raise InputError(f"`{name}` must have one value per point, along one input; got shape {shape}.")


def _draw_trials(axes: Axes, curves: Curves, colours: Theme) -> None:
    """Stable trials at their cost, crashed ones on the threshold they are above."""
    axes.plot(curves.stable, curves.costs, "o", color=colours.green, ms=6, label="stable trials", zorder=4)
    height = np.full(len(curves.crashed), curves.threshold)
    looks: dict[str, Any] = {"color": colours.vermilion, "ms": 8, "mew": 2, "zorder": 4}
    axes.plot(curves.crashed, height, "x", label="crashed trials (cost unknown)", **looks)


def _draw_threshold(axes: Axes, curves: Curves, colours: Theme) -> None:
    label = f"threshold c = {curves.threshold:.3g}"
    axes.axhline(curves.threshold, color=colours.orange, ls="--", lw=1.5, label=label)


def plot_posterior(curves: Curves, *, name: str = "x", theme: ThemeName = "light") -> Figure:
    """Draw a one-dimensional model: posterior with threshold, success probability below.

    Args:
        curves: the numbers to draw.
        name: name of the input, for the axis.
        theme: "light" or "dark".
    """
    x, mean, reach = curves.x, curves.mean, 2 * curves.deviation
    with canvas(theme, 7.2, 5.4) as (figure, colours):
        top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=(2.4, 1))
        band(top, x, mean - reach, mean + reach, colours.blue, "mean ± 2 standard deviations")
        top.plot(x, mean, color=colours.blue, lw=2, label="posterior mean")
        _draw_threshold(top, curves, colours)
        _draw_trials(top, curves, colours)
        top.set_ylabel("cost")
        legend_on_top(figure, top)
        bottom.plot(x, curves.success, color=colours.blue, lw=2)
        limits = (float(x[0]), float(x[-1]))
        bottom.set(xlabel=shorten(name), ylabel="success probability", ylim=(-0.05, 1.05), xlim=limits)
    return figure


def quantile(density: Array, grid: Array, level: float) -> Array:
    """Quantiles of densities `m x g` on an even grid `g`, interpolated, `m`."""
    step = grid[1] - grid[0]
    cumulative = np.cumsum(0.5 * (density[:, 1:] + density[:, :-1]) * step, -1)
    after = np.maximum((cumulative >= level).argmax(-1), 1)
    every = np.arange(len(density))
    high, low = cumulative[every, after], cumulative[every, after - 1]
    share = np.clip((level - low) / np.maximum(high - low, 1e-300), 0, 1)
    return np.asarray(grid[after] + share * step)


def mode(density: Array, grid: Array) -> Array:
    """Modes of densities `m x g` on an even grid `g`, by a parabola through the log densities at the top, `m`."""
    top = np.clip(density.argmax(-1), 1, len(grid) - 2)
    every = np.arange(len(density))
    left, here, right = (np.log(np.maximum(density[every, top + i], 1e-300)) for i in (-1, 0, 1))
    bend = left - 2 * here + right
    shift = np.where(bend < 0, 0.5 * (left - right) / np.minimum(bend, -1e-300), 0.0)
    return np.asarray(grid[top] + np.clip(shift, -0.5, 0.5) * (grid[1] - grid[0]))


def plot_predictive(
    curves: Curves, costs: Array, density: Array, *, name: str = "x", theme: ThemeName = "light"
) -> Figure:
    """Compare the Gaussian q(f*) with the non-Gaussian predictive density p(f*), as in Appendix B of the paper.

    Args:
        curves: q(f*).
        costs: `g`, an even grid of costs.
        density: `p x g`, p(f*) at every point of the curves.
        name: name of the input, for the axis.
        theme: "light" or "dark".
    """
    x, mean, reach = curves.x, curves.mean, 1.96 * curves.deviation
    low, high = quantile(density, costs, 0.025), quantile(density, costs, 0.975)
    with canvas(theme, 7.2, 4.6) as (figure, colours):
        axes = figure.subplots()
        band(axes, x, low, high, colours.vermilion, "p(f*), 95 % interval")
        axes.plot(x, mode(density, costs), color=colours.vermilion, lw=1.8, label="p(f*), mode")
        band(axes, x, mean - reach, mean + reach, colours.blue, "q(f*), 95 % interval")
        axes.plot(x, mean, color=colours.blue, lw=1.8, label="q(f*), mean")
        _draw_threshold(axes, curves, colours)
        _draw_trials(axes, curves, colours)
        axes.set(xlabel=shorten(name), ylabel="cost", xlim=(float(x[0]), float(x[-1])))
        legend_on_top(figure, axes)
    return figure
