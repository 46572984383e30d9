"""Pictures of a run for the screen (plotly): thresholds, convergence, parallel coordinates, importance."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import plotly.graph_objects as go
from plotly.colors import sample_colorscale
from plotly.subplots import make_subplots

from crashbo.errors import InputError
from crashbo.show import history
from crashbo.show.history import NO_LIMIT, Band, Convergence, Parallel, ThresholdPath
from crashbo.show.importance import Importance, importance
from crashbo.show.screen import SCALES, dressed, safe, see_through, small
from crashbo.show.theme import Theme, ThemeName, get_theme
from crashbo.show.views import Source


def plot_thresholds(
    source: Source,
    *,
    true: Mapping[str, float] | None = None,
    fits: int = 40,
    theme: ThemeName = "light",
) -> go.Figure:
    """Draw the learned limits over the trials; arguments as in `crashbo.show.plot_thresholds`."""
    return draw_thresholds(history.thresholds(source, true=true, fits=fits), theme=theme)


def draw_thresholds(paths: Sequence[ThresholdPath], *, theme: ThemeName = "light") -> go.Figure:
    """Draw learned limits from their numbers."""
    if not paths:
        raise InputError(NO_LIMIT)
    colours = get_theme(theme)
    figure = make_subplots(len(paths), 1, shared_xaxes=True, vertical_spacing=0.06)
    for row, path in enumerate(paths, 1):
        for trace in _threshold_traces(path, colours, legend=row == 1):
            figure.add_trace(trace, row, 1)
        figure.update_yaxes(title_text=safe(f"limit of {path.label}"), row=row, col=1)
    figure.update_xaxes(title_text="trials", row=len(paths), col=1)
    return dressed(figure, colours, height=120 + 230 * len(paths))


def _threshold_traces(path: ThresholdPath, colours: Theme, *, legend: bool) -> list[go.Scatter]:
    curves = [
        (path.worst, "worst value seen", colours.green, "dot", "hv"),
        (path.limit, "learned limit", colours.orange, "solid", "linear"),
    ]
    x = path.trials.tolist()
    found = _deviation_traces(path, colours, legend=legend)
    found += [
        go.Scatter(
            x=x, y=small(values), mode="lines", name=name, showlegend=legend,
            line={"color": colour, "dash": dash, "shape": shape, "width": 2},
        )
        for values, name, colour, dash, shape in curves
    ]  # fmt: skip
    if path.true is not None:
        looks = {"color": colours.muted, "dash": "dash", "width": 2}
        found.append(go.Scatter(x=[x[0], x[-1]], y=[path.true] * 2, mode="lines", name="true limit", line=looks))
    if len(path.failures):
        everything = np.concatenate([path.worst, path.limit])
        low, high = np.nanmin(everything), np.nanmax(everything)
        level = low - 0.08 * ((high - low) or 1.0)
        looks = {"symbol": "x-thin", "size": 7, "line": {"width": 2, "color": colours.vermilion}}
        found.append(
            go.Scatter(
                x=path.failures.tolist(), y=[level] * len(path.failures), mode="markers", marker=looks,
                name="failed trial", showlegend=legend, hovertemplate="trial %{x} failed<extra></extra>",
            )
        )  # fmt: skip
    return found


def _deviation_traces(path: ThresholdPath, colours: Theme, *, legend: bool) -> list[go.Scatter]:
    """The limit's standard deviation as a band, in pieces where it is known, and as bars where it is known once."""
    known = np.flatnonzero(np.isfinite(path.limit))
    pieces = np.split(known, np.flatnonzero(np.diff(known) > 1) + 1) if len(known) else []
    found = []
    for number, rows in enumerate(pieces):
        low, high = path.limit[rows] - path.deviation[rows], path.limit[rows] + path.deviation[rows]
        name, shown = "± its standard deviation", legend and number == 0
        if len(rows) == 1:
            bar = {"type": "data", "array": small(path.deviation[rows])}
            looks = {"color": colours.orange, "size": 6}
            found.append(
                go.Scatter(
                    x=path.trials[rows].tolist(), y=small(path.limit[rows]), mode="markers", marker=looks, error_y=bar,
                    name=name, legendgroup=name, showlegend=shown,
                )
            )  # fmt: skip
            continue
        x = np.concatenate([path.trials[rows], path.trials[rows][::-1]])
        found.append(
            go.Scatter(
                x=x.tolist(), y=small(np.concatenate([low, high[::-1]])), fill="toself", mode="lines",
                line={"width": 0}, fillcolor=see_through(colours.orange), hoverinfo="skip", name=name,
                legendgroup=name, showlegend=shown,
            )
        )  # fmt: skip
    return found


def plot_convergence(
    source: Source | Mapping[str, Sequence[Source]], *, log: bool | None = None, theme: ThemeName = "light"
) -> go.Figure:
    """Draw how a run went, or several runs as bands; arguments as in `crashbo.show.plot_convergence`."""
    if isinstance(source, Mapping):
        if not source:
            raise InputError("`source` must hold runs by method name; got none. Give a run, or several.")
        bands = [history.band_of(name, runs) for name, runs in source.items()]
        label = history.convergence(next(iter(source.values()))[0]).label
        return draw_bands(bands, label=f"best {label} so far", log=log, theme=theme)
    return draw_convergence(history.convergence(source), log=log, theme=theme)


def draw_convergence(run: Convergence, *, log: bool | None = None, theme: ThemeName = "light") -> go.Figure:
    """Draw one run from its numbers: values, best so far, and crashes in a strip of their own."""
    if not len(run.values):
        raise InputError("`source` must have at least one trial; got none. Tell one.")
    colours = get_theme(theme)
    figure = make_subplots(2, 1, shared_xaxes=True, row_heights=[0.08, 1], vertical_spacing=0.02)
    trials, crashed = run.places, np.isnan(run.values)
    texts = np.array([safe(f"trial {number}: {text}") for number, text in zip(run.numbers, run.texts, strict=True)])
    strip = {"symbol": "x-thin", "size": 8, "line": {"width": 2.5, "color": colours.vermilion}}
    kinds = [
        (~run.failed & ~crashed, "succeeded", {"color": colours.green, "size": 8}, 2),
        (
            run.failed & ~crashed,
            "limit broken",
            {"symbol": "square-open", "color": colours.vermilion, "size": 9},
            2,
        ),
        (crashed, "crashed", strip, 1),
    ]
    for rows, name, looks, row in kinds:
        if rows.any():
            y = small(run.values[rows]) if row == 2 else [0] * int(rows.sum())
            figure.add_trace(
                go.Scatter(
                    x=trials[rows].tolist(), y=y, mode="markers", marker=looks, name=name,
                    text=texts[rows].tolist(), hovertemplate="%{text}<extra></extra>",
                ),
                row, 1,
            )  # fmt: skip
    looks = {"color": colours.blue, "shape": "hv", "width": 2}
    figure.add_trace(
        go.Scatter(x=trials.tolist(), y=small(run.best), mode="lines", line=looks, name="best so far"), 2, 1
    )
    figure.update_yaxes(visible=False, range=[-1, 1], row=1, col=1)
    figure.update_xaxes(showgrid=False, row=1, col=1)
    figure.update_yaxes(title_text=safe(run.label), row=2, col=1)
    if history.logarithmic(run.values, log):
        figure.update_yaxes(type="log", row=2, col=1)
    figure.update_xaxes(title_text="trial", row=2, col=1)
    return dressed(figure, colours, height=380)


def draw_bands(bands: Sequence[Band], *, label: str, log: bool | None = None, theme: ThemeName = "light") -> go.Figure:
    """Draw several methods from their numbers: median and quartiles; see `crashbo.show.run_figures.draw_bands`."""
    colours = get_theme(theme)
    figure = go.Figure()
    curves, use_log = history.drawable(bands, log)
    dashes = ("solid", "dash", "dashdot", "dot", "longdash")
    for number, (one, (low, middle, high)) in enumerate(zip(bands, curves, strict=True)):
        colour = colours.cycle[number % len(colours.cycle)]
        known = np.isfinite(low) & np.isfinite(high)
        trials = np.arange(1, len(middle) + 1)
        figure.add_scatter(
            x=small(np.concatenate([trials[known], trials[known][::-1]])),
            y=small(np.concatenate([low[known], high[known][::-1]])),
            fill="toself", fillcolor=see_through(colour), line={"width": 0}, mode="lines", hoverinfo="skip",
            showlegend=False,
        )  # fmt: skip
        looks = {"color": colour, "dash": dashes[number % len(dashes)], "width": 2}
        name = safe(f"{one.name} ({one.runs} runs)")
        figure.add_scatter(x=trials.tolist(), y=small(middle), mode="lines", line=looks, name=name)
    figure.update_yaxes(title_text=safe(label), type="log" if use_log else "linear")
    figure.update_xaxes(title_text="trials")
    return dressed(figure, colours, height=380)


def plot_parallel(source: Source, *, theme: ThemeName = "light") -> go.Figure:
    """Draw every trial as a line over all parameters; arguments as in `crashbo.show.plot_parallel`."""
    return draw_parallel(history.parallel(source), theme=theme)


def draw_parallel(numbers: Parallel, *, theme: ThemeName = "light") -> go.Figure:
    """Draw parallel coordinates from their numbers, costs in a few shades."""
    if not len(numbers.values) or not numbers.names:
        raise InputError("`source` must have a trial and a parameter that varies; got none of one of them.")
    colours = get_theme(theme)
    heights, low, high = history.parallel_heights(numbers)
    figure = go.Figure()
    for rows, name, looks in _groups(numbers, heights, colours):
        figure.add_trace(_polylines(numbers, heights, rows, safe(name), looks))
    count = len(numbers.names)
    costs = {history.TOP * share: f"{low + share * (high - low):.3g}" for share in (0, 0.5, 1)} | {1.0: "crashed"}
    axes = list(enumerate([*numbers.ticks, costs]))
    shade = see_through(colours.background, 0.7)
    annotations = [
        {"x": place, "y": height, "text": safe(text[:14]), "showarrow": False, "xanchor": "left", "xshift": 3,
         "font": {"size": 11}, "bgcolor": shade}
        for place, ticks in axes for height, text in ticks.items()
    ]  # fmt: skip
    line = {"color": colours.muted, "width": 1}
    shapes = [{"type": "line", "x0": x, "x1": x, "y0": 0, "y1": 1, "yref": "y domain", "line": line} for x, _ in axes]
    figure.update_layout(annotations=annotations, shapes=shapes)  # all at once: adding one looks at all the others
    names = [safe(name) for name in (*numbers.names, numbers.label)]
    figure.update_xaxes(tickvals=list(range(count + 1)), ticktext=names, range=[-0.1, count + 0.35], showgrid=False)
    figure.update_yaxes(visible=False, range=[-0.06, 1.08])
    return dressed(figure, colours, height=420)


def _groups(numbers: Parallel, heights: Any, colours: Theme) -> list[tuple[Any, str, dict[str, Any]]]:
    """Failed trials, and the others in five shades of cost."""
    groups: list[tuple[Any, str, dict[str, Any]]] = []
    failed = np.flatnonzero(numbers.failed)
    if len(failed):
        groups.append((failed, "failed", {"color": colours.vermilion, "dash": "dot", "width": 1.2}))
    good = np.flatnonzero(~numbers.failed)
    if not len(good):
        return groups
    steps = np.quantile(numbers.values[good], np.linspace(0, 1, 6))
    for number in reversed(range(5)):
        inside = (numbers.values[good] >= steps[number]) & ((numbers.values[good] < steps[number + 1]) | (number == 4))
        rows = good[inside]
        if len(rows):
            shade = sample_colorscale(SCALES["mean"], [0.25 + 0.55 * number / 4])[0]
            name = f"{numbers.values[rows].min():.3g} to {numbers.values[rows].max():.3g}"
            groups.append((rows, name, {"color": shade, "width": 2}))
    return groups


def _polylines(numbers: Parallel, heights: Any, rows: Any, name: str, looks: dict[str, Any]) -> go.Scatter:
    """Several lines in one trace, with gaps between them."""
    gap = np.full((len(rows), 1), np.nan)
    y = np.concatenate([numbers.positions[rows], heights[rows, None], gap], axis=1)
    x = np.tile(np.append(np.arange(y.shape[1] - 1.0), np.nan), len(rows))
    texts = np.array([safe(f"trial {numbers.numbers[row]}: {numbers.texts[row]}") for row in rows])
    return go.Scatter(
        x=small(x), y=small(y.ravel()), mode="lines", line=looks, name=name, text=np.repeat(texts, y.shape[1]),
        hovertemplate="%{text}<extra></extra>",
    )  # fmt: skip


def plot_importance(source: Source, *, theme: ThemeName = "light") -> go.Figure:
    """Draw how much each parameter matters; arguments as in `crashbo.show.plot_importance`."""
    return draw_importance(importance(source), theme=theme)


def draw_importance(numbers: Importance, *, theme: ThemeName = "light") -> go.Figure:
    """Draw importances from their numbers, the most important first."""
    colours = get_theme(theme)
    order = np.argsort(numbers.cost + 1e-6 * numbers.success)
    names = [safe(numbers.names[i]) for i in order]
    figure = go.Figure()
    for shares, change, name, colour in (
        (numbers.success, numbers.success_change, "for success", colours.orange),
        (numbers.cost, numbers.cost_change, safe(f"for the {numbers.label}"), colours.blue),
    ):
        figure.add_bar(
            y=names, x=small(shares[order]), orientation="h", name=name, marker={"color": colour},
            customdata=small(change[order]),
            hovertemplate="%{x:.0%} of the variation; typical change %{customdata:.3g}<extra></extra>",
        )  # fmt: skip
    figure.update_xaxes(title_text="share of the variation", range=[0, 1])
    figure.update_layout(barmode="group", legend_traceorder="reversed")
    return dressed(figure, colours, height=130 + 50 * len(order))
