"""Pictures of a single GPCR with one input (matplotlib), from plain arrays. Every function returns its figure."""

from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure

from crashbo.errors import InputError
from crashbo.problem.arrays import Array
from crashbo.show.chart import Look, Mark, Panel, Points, Ribbon, Side, Stroke, column
from crashbo.show.draw_matplotlib import draw
from crashbo.show.theme import ThemeName


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


def _trials(curves: Curves) -> tuple[Mark, ...]:
    """The threshold, stable trials at their cost, crashed ones on the threshold they are above."""
    level = curves.threshold
    height = np.full(len(curves.crashed), level)
    return (
        Stroke(curves.x[[0, -1]], [level] * 2, "orange", f"threshold c = {level:.3g}", "dash", 1.5),
        Points(curves.stable, curves.costs, Look("circle", "green"), "stable trials"),
        Points(curves.crashed, height, Look("cross", "vermilion", 8), "crashed trials (cost unknown)"),
    )


def plot_posterior(curves: Curves, *, name: str = "x", theme: ThemeName = "light") -> Figure:
    """Draw a one-dimensional model: posterior with threshold, success probability below.

    Args:
        curves: the numbers to draw.
        name: name of the input, for the axis.
        theme: "light" or "dark".
    """
    x, mean, reach = curves.x, curves.mean, 2 * curves.deviation
    across = Side(name, limits=(float(x[0]), float(x[-1])))
    ribbon = Ribbon(x, mean - reach, mean + reach, "blue", "mean ± 2 standard deviations")
    top = (ribbon, Stroke(x, mean, "blue", "posterior mean"), *_trials(curves))
    success = Panel((Stroke(x, curves.success, "blue"),), across, Side("success probability", limits=(-0.05, 1.05)))
    return draw(column([Panel(top, across, Side("cost")), success], 5.4, (2.4, 1.0)), theme)


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
    marks = (
        Ribbon(x, low, high, "vermilion", "p(f*), 95 % interval"),
        Stroke(x, mode(density, costs), "vermilion", "p(f*), mode", width=1.8),
        Ribbon(x, mean - reach, mean + reach, "blue", "q(f*), 95 % interval"),
        Stroke(x, mean, "blue", "q(f*), mean", width=1.8),
        *_trials(curves),
    )
    return draw(column([Panel(marks, Side(name, limits=(float(x[0]), float(x[-1]))), Side("cost"))], 4.6), theme)
