"""Pictures of a run, described from its numbers: thresholds, convergence, parallel coordinates, importance."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from crashbo.errors import InputError
from crashbo.show import history
from crashbo.show.chart import Bars, Chart, Dash, Look, Mark, Panel, Points, Ribbon, Side, Stroke, Words, column, span
from crashbo.show.history import NO_LIMIT, Band, Convergence, Parallel, ThresholdPath
from crashbo.show.importance import Importance
from crashbo.show.views import Source

_DASHES: tuple[Dash, ...] = ("solid", "dash", "dashdot", "dot", "longdash")
_CYCLE = ("blue", "orange", "green", "vermilion", "purple")
# From viridis, without its ends: one is lost on dark ground, the other on paper.
_SHADES = ("#3b528b", "#2c728e", "#21918c", "#3fbc73", "#8fd744")


def thresholds_chart(paths: Sequence[ThresholdPath]) -> Chart:
    """The learned limits over the trials."""
    if not paths:
        raise InputError(NO_LIMIT)
    return column([_threshold_panel(path) for path in paths], 0.8 + 2.6 * len(paths))


def _threshold_panel(path: ThresholdPath) -> Panel:
    """One output's learned limit; where its standard deviation is huge, that goes beyond the picture."""
    low, high = path.limit - path.deviation, path.limit + path.deviation
    found: list[Mark] = [
        Ribbon(path.trials, low, high, "orange", "± its standard deviation"),
        Stroke(path.trials, path.worst, "green", "worst value seen", "dot", 1.4, step=True),
        Stroke(path.trials, path.limit, "orange", "learned limit"),
    ]
    if path.alone.any():
        at = path.alone
        found.append(Points(path.trials[at], path.limit[at], Look("circle", "orange", 4), error=path.deviation[at]))
    if path.true is not None:
        found.append(Stroke(path.trials[[0, -1]], [path.true] * 2, "muted", "true limit", "dash", 1.4))
    bottom, top = span(path.limit, path.worst, [] if path.true is None else path.true, margin=0.14) or (0.0, 1.0)
    room = (top - bottom) / 2
    bottom = max(bottom - room, min(bottom, float(np.nanmin(low))))
    top = min(top + room, max(top, float(np.nanmax(high))))
    if len(path.failures):
        height = np.full(len(path.failures), bottom + 0.04 * (top - bottom))
        texts = [f"trial {number} failed" for number in path.failures]
        found.append(Points(path.failures, height, Look("cross", "vermilion"), "failed trial", texts=texts))
    x = Side("trials", limits=span(path.trials), whole=True, group="trials")
    return Panel(tuple(found), x, Side(f"limit of {path.label}", limits=(bottom, top)))


def progress_chart(source: Source | Mapping[str, Sequence[Source]], log: bool | None) -> Chart:
    """The progress of one run, or of several runs per method."""
    if not isinstance(source, Mapping):
        return convergence_chart(history.convergence(source), log=log)
    if not source:
        raise InputError("`source` must hold runs by method name; got none. Give a run, or several.")
    bands = [history.band_of(name, runs) for name, runs in source.items()]
    label = history.convergence(next(iter(source.values()))[0]).label
    return bands_chart(bands, label=f"best {label} so far", log=log)


def convergence_chart(run: Convergence, *, log: bool | None = None) -> Chart:
    """One run: values, best so far, and crashes in a strip of their own."""
    if not len(run.values):
        raise InputError("`source` must have at least one trial; got none. Tell one.")
    trials, crashed = run.places, np.isnan(run.values)
    texts = [f"trial {number}: {text}" for number, text in zip(run.numbers, run.texts, strict=True)]

    def points(rows: Any, values: Any, look: Look, name: str) -> Points:
        return Points(trials[rows], values[rows], look, name, texts=[texts[row] for row in np.flatnonzero(rows)])

    good = points(~run.failed & ~crashed, run.values, Look("circle", "green", 5), "succeeded")
    unsafe = points(run.failed & ~crashed, run.values, Look("square", "vermilion", hollow=True), "limit broken")
    lost = points(crashed, np.zeros(len(trials)), Look("cross", "vermilion"), "crashed")
    best = Stroke(trials, run.best, "blue", "best so far", step=True)
    ends = float(trials[0]) - 0.7, float(trials[-1]) + 0.7
    above = Side(limits=ends, whole=True, grid=False, group="trial")
    strip = Panel((lost,), above, Side("crashed", limits=(-1.0, 1.0), ticks={}, grid=False), frame=False)
    values = Panel(
        (good, *([unsafe] if len(unsafe.x) else []), best),
        Side("trial", limits=ends, whole=True, group="trial"),
        Side(run.label, log=history.logarithmic(run.values, log)),
    )
    return column([strip, values], 4.2, (0.09, 1.0), columns=4)


def bands_chart(bands: Sequence[Band], *, label: str, log: bool | None = None, title: str = "") -> Chart:
    """Several methods: median, quartiles, share of failures where known."""
    top = bands_panel(bands, label=label, log=log, title=title)
    top = replace(top, x=replace(top.x, label="trials"))
    shares = tuple(
        Stroke(np.arange(1, len(one.failed_share) + 1), one.failed_share, colour, dash=dash, width=1.4)
        for one, (colour, dash) in zip(bands, _styles(len(bands)), strict=True)
        if one.failed_share is not None
    )
    legend = min(4, len(bands))
    if not shares:
        return column([top], 4.2, columns=legend)
    below = Panel(shares, top.x, Side("share of\nfailures", limits=(-0.05, 1.05)))
    return column([top, below], 5.5, (2.6, 1.0), columns=legend)


def _styles(count: int) -> list[tuple[str, Dash]]:
    return [(_CYCLE[i % len(_CYCLE)], _DASHES[i % len(_DASHES)]) for i in range(count)]


def bands_panel(
    bands: Sequence[Band],
    *,
    label: str = "",
    log: bool | None = None,
    title: str = "",
    styles: Sequence[tuple[str, Dash]] | None = None,
) -> Panel:
    """Medians and quartiles of several methods.

    Args:
        bands: one per method.
        label: of the curves.
        log: a logarithmic axis; None: if the values are positive and span two orders of magnitude.
            Values at or below 0 are then drawn at the bottom.
        title: above the panel.
        styles: colour and dashes of each; None: a cycle of them.
    """
    curves, use_log = history.drawable(bands, log)
    found: list[Mark] = []
    for one, (low, middle, high), (colour, dash) in zip(bands, curves, styles or _styles(len(bands)), strict=True):
        trials = np.arange(1, len(middle) + 1)
        name = f"{one.name} ({one.runs} run" + "s" * (one.runs != 1) + ")"
        found += [Ribbon(trials, low, high, colour), Stroke(trials, middle, colour, name, dash)]
    return Panel(tuple(found), Side(whole=True, group="trials"), Side(label, log=use_log), title)


def parallel_chart(numbers: Parallel) -> Chart:
    """Every trial as a line over all parameters and its cost, in a few shades of cost; failed ones dotted."""
    if not len(numbers.values) or not numbers.names:
        raise InputError("`source` must have a trial and a parameter that varies; got none of one of them.")
    count = len(numbers.names)
    heights, low, high = history.parallel_heights(numbers)
    costs = {history.TOP * share: f"{low + share * (high - low):.3g}" for share in (0, 0.25, 0.5, 0.75, 1)}
    found: list[Mark] = [_polylines(numbers, heights, *group) for group in _groups(numbers)]
    for place, ticks in enumerate([*numbers.ticks, {**costs, 1.0: "crashed"}]):
        found.append(Stroke([place, place], [0, 1], "muted", width=1.0))
        found.append(Words([place] * len(ticks), list(ticks), list(ticks.values())))
    names = dict(enumerate((*numbers.names, numbers.label)))
    x = Side(limits=(-0.1, count + 0.35), ticks={float(place): name for place, name in names.items()}, grid=False)
    panel = Panel(tuple(found), x, Side(limits=(-0.06, 1.08), ticks={}, grid=False), frame=False)
    return Chart(((panel,),), (max(6.4, 1.7 * (count + 1)), 4.6))


def _groups(numbers: Parallel) -> list[tuple[Any, str, str, Dash]]:
    """Rows, name, colour and dashes of failed trials, and of the others in shades of cost from the highest."""
    failed, good = np.flatnonzero(numbers.failed), np.flatnonzero(~numbers.failed)
    groups: list[tuple[Any, str, str, Dash]] = [(failed, "failed", "vermilion", "dot")] if len(failed) else []
    if not len(good):
        return groups
    steps = np.quantile(numbers.values[good], np.linspace(0, 1, len(_SHADES) + 1))
    shades = np.clip(np.searchsorted(steps, numbers.values[good], side="right") - 1, 0, len(_SHADES) - 1)
    for shade in reversed(range(len(_SHADES))):
        rows = good[shades == shade]
        if len(rows):
            name = f"{numbers.values[rows].min():.3g} to {numbers.values[rows].max():.3g}"
            groups.append((rows, name, _SHADES[shade], "solid"))
    return groups


def _polylines(numbers: Parallel, heights: Any, rows: Any, name: str, colour: str, dash: Dash) -> Stroke:
    """Several trials as one line with gaps between them."""
    y = np.concatenate([numbers.positions[rows], heights[rows, None], np.full((len(rows), 1), np.nan)], axis=1)
    x = np.tile(np.append(np.arange(y.shape[1] - 1.0), np.nan), len(rows))
    texts = [f"trial {numbers.numbers[row]}: {numbers.texts[row]}" for row in rows for _ in range(y.shape[1])]
    return Stroke(x, y.ravel(), colour, name, dash, 1.2 if dash == "dot" else 1.6, texts=texts)


def importance_chart(numbers: Importance) -> Chart:
    """How much each parameter matters, the most important first."""
    order = np.argsort(numbers.cost + 1e-6 * numbers.success)
    rows = np.arange(len(order))

    def bars(shares: Any, changes: Any, name: str, colour: str, shift: float) -> Bars:
        pairs = zip(shares[order], changes[order], strict=True)
        texts = [f"{share:.0%} of the variation; typical change {change:.3g}" for share, change in pairs]
        return Bars(rows + shift, shares[order], colour, name, texts, hatched=shift < 0)

    cost = bars(numbers.cost, numbers.cost_change, f"for the {numbers.label}", "blue", 0.19)
    success = bars(numbers.success, numbers.success_change, "for success", "orange", -0.19)
    names = {float(row): numbers.names[i] for row, i in enumerate(order)}
    x = Side("share of the variation", limits=(0.0, 1.0))
    panel = Panel((cost, success), x, Side(limits=(-0.5, len(order) - 0.5), ticks=names, grid=False))
    return column([panel], 1.5 + 0.55 * len(order), columns=2)
