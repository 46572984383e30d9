"""The same pictures for the screen (plotly): hover, zoom, switch parts on and off.

Every function returns a `plotly.graph_objects.Figure`; `figure.show()` opens it, `figure.write_html`
saves it. Names given by users are shown as they are, never read as HTML.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import plotly.graph_objects as go

from crashbo.show import data, history, model_charts, planes, run_charts
from crashbo.show.draw_plotly import draw
from crashbo.show.importance import importance
from crashbo.show.planes import Quantity
from crashbo.show.theme import ThemeName
from crashbo.show.views import Source

if TYPE_CHECKING:
    from crashbo.research.problems import Problem

__all__ = [
    "plot_convergence",
    "plot_importance",
    "plot_maps",
    "plot_model",
    "plot_parallel",
    "plot_slices",
    "plot_thresholds",
]


def plot_model(
    source: Source,
    parameter: str | None = None,
    *,
    at: Mapping[str, Any] | None = None,
    truth: "Problem | None" = None,
    theme: ThemeName = "light",
) -> go.Figure:
    """Draw a model along one parameter; arguments as in `crashbo.show.plot_model`."""
    return draw(model_charts.line_chart(data.line(source, parameter, at=at, truth=truth)), theme)


def plot_slices(source: Source, *, at: Mapping[str, Any] | None = None, theme: ThemeName = "light") -> go.Figure:
    """Draw a model along every parameter; arguments as in `crashbo.show.plot_slices`."""
    return draw(model_charts.slices_chart(data.slices(source, at=at)), theme)


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
    return draw(model_charts.maps_chart(numbers, columns=min(2, len(numbers.layers))), theme)


def plot_thresholds(
    source: Source,
    *,
    true: Mapping[str, float] | None = None,
    fits: int = 40,
    theme: ThemeName = "light",
) -> go.Figure:
    """Draw the learned limits over the trials; arguments as in `crashbo.show.plot_thresholds`."""
    return draw(run_charts.thresholds_chart(history.thresholds(source, true=true, fits=fits)), theme)


def plot_convergence(
    source: Source | Mapping[str, Sequence[Source]], *, log: bool | None = None, theme: ThemeName = "light"
) -> go.Figure:
    """Draw how a run went, or several runs as bands; arguments as in `crashbo.show.plot_convergence`."""
    return draw(run_charts.progress_chart(source, log), theme)


def plot_parallel(source: Source, *, theme: ThemeName = "light") -> go.Figure:
    """Draw every trial as a line over all parameters; arguments as in `crashbo.show.plot_parallel`."""
    return draw(run_charts.parallel_chart(history.parallel(source)), theme)


def plot_importance(source: Source, *, theme: ThemeName = "light") -> go.Figure:
    """Draw how much each parameter matters; arguments as in `crashbo.show.plot_importance`."""
    return draw(run_charts.importance_chart(importance(source)), theme)
