"""Pictures for print (matplotlib). Every function returns its figure; save it as you like."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from matplotlib.figure import Figure

from crashbo.show import data, history, model_charts, planes, run_charts
from crashbo.show.draw_matplotlib import draw
from crashbo.show.importance import importance
from crashbo.show.planes import Quantity
from crashbo.show.theme import ThemeName
from crashbo.show.views import Source

if TYPE_CHECKING:
    from crashbo.research.problems import Problem


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
    return draw(model_charts.line_chart(data.line(source, parameter, at=at, truth=truth)), theme)


def plot_slices(source: Source, *, at: Mapping[str, Any] | None = None, theme: ThemeName = "light") -> Figure:
    """Draw a model along every parameter, the others held at the best guess or at chosen values.

    Args:
        source: an optimizer, a result, an Optuna study or a view.
        at: values of other parameters; those not given are taken from the best guess.
        theme: "light" or "dark".
    """
    return draw(model_charts.slices_chart(data.slices(source, at=at)), theme)


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
    return draw(model_charts.maps_chart(numbers), theme)


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
    return draw(model_charts.pairs_chart(planes.pairs(source, names=names, at=at, quantity=quantity)), theme)


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
    return draw(run_charts.thresholds_chart(history.thresholds(source, true=true, fits=fits)), theme)


def plot_convergence(
    source: Source | Mapping[str, Sequence[Source]], *, log: bool | None = None, theme: ThemeName = "light"
) -> Figure:
    """Draw the progress of a run with crashes marked, or of several runs per method as bands.

    Args:
        source: one run, or lists of runs by method name.
        log: whether the axis is logarithmic; None: if the values are positive and span two orders of magnitude.
        theme: "light" or "dark".
    """
    return draw(run_charts.progress_chart(source, log), theme)


def plot_parallel(source: Source, *, theme: ThemeName = "light") -> Figure:
    """Draw every trial as a line over all parameters and its cost; failed trials end at a separate mark.

    Args:
        source: an optimizer, a result, an Optuna study or a view.
        theme: "light" or "dark".
    """
    return draw(run_charts.parallel_chart(history.parallel(source)), theme)


def plot_importance(source: Source, *, theme: ThemeName = "light") -> Figure:
    """Draw how much each parameter matters for the cost and for success.

    Args:
        source: an optimizer, a result, an Optuna study or a view.
        theme: "light" or "dark".
    """
    return draw(run_charts.importance_chart(importance(source)), theme)
