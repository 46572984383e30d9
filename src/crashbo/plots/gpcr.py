"""Pictures of a single GPCR model (matplotlib). Every function returns its figure; save it as you like."""

from typing import Any

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from crashbo.errors import InputError
from crashbo.models.gpcr import GPCR
from crashbo.plots.canvas import band, canvas, legend_on_top, shorten
from crashbo.plots.theme import Theme, ThemeName


def _line(model: GPCR, points: int) -> Tensor:
    """An even grid over the domain of a one-dimensional model, `points x 1`."""
    dimension = model.trials.X.shape[-1]
    if dimension != 1:
        raise InputError(f"`model` must have one input for this plot; got {dimension}.")
    unit = torch.linspace(0, 1, points, dtype=torch.float64, device=model.trials.X.device).unsqueeze(-1)
    return unit if model.domain is None else model.domain[0] + unit * (model.domain[1] - model.domain[0])


def _draw_trials(axes: Axes, model: GPCR, colours: Theme) -> None:
    """Stable trials at their cost, crashed ones on the threshold they are above."""
    X, crashed = model.train_points.squeeze(-1), model.trials.crashed
    axes.plot(X[model.trials.observed], model.costs, "o", color=colours.green, ms=6, label="stable trials", zorder=4)
    height = torch.full_like(X[crashed], model.threshold)
    looks: dict[str, Any] = {"color": colours.vermilion, "ms": 8, "mew": 2, "zorder": 4}
    axes.plot(X[crashed], height, "x", label="crashed trials (cost unknown)", **looks)


def _draw_threshold(axes: Axes, model: GPCR, colours: Theme) -> None:
    axes.axhline(model.threshold, color=colours.orange, ls="--", lw=1.5, label=f"threshold c = {model.threshold:.3g}")


@torch.no_grad()
def plot_posterior(model: GPCR, *, name: str = "x", points: int = 401, theme: ThemeName = "light") -> Figure:
    """Draw a one-dimensional model: posterior with threshold, success probability below.

    Args:
        model: with one input and a finite threshold.
        name: of the input, for the axis.
        points: resolution.
        theme: "light" or "dark".
    """
    grid = _line(model, points)
    x = grid.squeeze(-1)
    posterior = model.posterior(grid)
    mean, deviation = posterior.mean.squeeze(-1), posterior.variance.sqrt().squeeze(-1)
    with canvas(theme, 7.2, 5.4) as (figure, colours):
        top, bottom = figure.subplots(2, 1, sharex=True, height_ratios=(2.4, 1))
        band(top, x, mean - 2 * deviation, mean + 2 * deviation, colours.blue, "mean ± 2 standard deviations")
        top.plot(x, mean, color=colours.blue, lw=2, label="posterior mean")
        _draw_threshold(top, model, colours)
        _draw_trials(top, model, colours)
        top.set_ylabel("cost")
        legend_on_top(figure, top)
        bottom.plot(x, model.success_probability(grid), color=colours.blue, lw=2)
        bottom.set(
            xlabel=shorten(name), ylabel="success probability", ylim=(-0.05, 1.05), xlim=(float(x[0]), float(x[-1]))
        )
    return figure


def _quantile(density: Tensor, grid: Tensor, level: float) -> Tensor:
    """Quantiles of densities `m x g` on a grid, interpolated."""
    cumulative = torch.cumulative_trapezoid(density, grid, dim=-1)
    after = (cumulative >= level).int().argmax(-1).clamp_min(1).unsqueeze(-1)
    high, low = cumulative.gather(-1, after), cumulative.gather(-1, after - 1)
    share = ((level - low) / (high - low).clamp_min(1e-300)).clamp(0, 1).squeeze(-1)
    return grid[after.squeeze(-1)] + share * (grid[1] - grid[0])


@torch.no_grad()
def plot_predictive(
    model: GPCR, *, name: str = "x", points: int = 200, values: int = 400, theme: ThemeName = "light"
) -> Figure:
    """Compare the Gaussian q(f*) with the non-Gaussian predictive p(f*) of Appendix B.

    Args:
        model: with one input and a finite threshold.
        name: of the input, for the axis.
        points, values: resolution over inputs and costs.
        theme: "light" or "dark".
    """
    grid = _line(model, points)
    x = grid.squeeze(-1)
    posterior = model.posterior(grid)
    mean, deviation = posterior.mean.squeeze(-1), posterior.variance.sqrt().squeeze(-1)
    costs = torch.linspace(float((mean - 4 * deviation).min()), float((mean + 5 * deviation).max()), values).to(x)
    density = model.predictive_density(grid, costs)
    low, high = _quantile(density, costs, 0.025), _quantile(density, costs, 0.975)
    with canvas(theme, 7.2, 4.6) as (figure, colours):
        axes = figure.subplots()
        band(axes, x, low, high, colours.vermilion, "p(f*), 95 % interval")
        axes.plot(x, costs[density.argmax(-1)], color=colours.vermilion, lw=1.8, label="p(f*), mode")
        band(axes, x, mean - 1.96 * deviation, mean + 1.96 * deviation, colours.blue, "q(f*), 95 % interval")
        axes.plot(x, mean, color=colours.blue, lw=1.8, label="q(f*), mean")
        _draw_threshold(axes, model, colours)
        _draw_trials(axes, model, colours)
        axes.set(xlabel=shorten(name), ylabel="cost", xlim=(float(x[0]), float(x[-1])))
        legend_on_top(figure, axes)
    return figure
