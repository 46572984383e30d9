"""The paper's figures, from reports and optimizers."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from crashbo.optimizer import Optimizer
from crashbo.problem.history import OBJECTIVE
from crashbo.research.problems import SYNTHETIC
from crashbo.research.reproduce.cases import Case, hidden_constraint
from crashbo.research.reproduce.methods import METHODS, PaperSettings
from crashbo.research.reproduce.simulations import SIMULATIONS, Report, evaluate, simulated
from crashbo.show import data
from crashbo.show.canvas import canvas
from crashbo.show.chart import Chart, Dash, Panel, Side, Stroke
from crashbo.show.draw_matplotlib import draw, draw_panel
from crashbo.show.figures import plot_maps, plot_thresholds
from crashbo.show.history import Band, band
from crashbo.show.model_charts import curve_panel, score_panel
from crashbo.show.run_charts import bands_chart, bands_panel
from crashbo.show.theme import Theme, ThemeName

_NAMES = {
    "sim1": "case 1, Simulation I",
    "case2": "case 2",
    "sim2": "case 3, Simulation II",
    "case4": "case 4",
}


def finished_run(name: str, seed: int, *, method: str = "paper", paper: PaperSettings | None = None) -> Optimizer:
    """Return the optimizer at the end of a simulation: that of `run_once` with the same arguments.

    Args:
        name: in `SIMULATIONS`.
        seed: of optimizer and noise.
        method: "paper" or "default".
        paper: how the paper's strategy is run.
    """
    simulation = SIMULATIONS[name]
    problem = SYNTHETIC[simulation.problem]
    optimizer = simulated(name, seed, method=method, paper=paper)
    rng = np.random.default_rng([seed, 1])
    for _ in range(simulation.evaluations):
        evaluate(optimizer, problem, optimizer.ask(), rng)
    return optimizer


def draw_report(
    report: Report, folder: Path, *, paper: PaperSettings | None = None, theme: ThemeName = "light"
) -> list[Path]:
    """Draw a simulation: maps and limits at the end of the first run of each strategy, regret over all runs.

    The first runs are repeated to their end, with the same result.

    Args:
        report: of `crashbo.research.reproduce.simulations.reproduce`.
        folder: is made.
        paper: how the paper's strategy was run.
        theme: "light" or "dark".

    Returns:
        Paths of the PNG files.
    """
    found = {}
    for method in ("paper", "default"):
        if not report.of(method):
            continue
        optimizer = finished_run(report.name, report.of(method)[0].seed, method=method, paper=paper)
        found[f"{method}-maps"] = plot_simulation(report.name, optimizer, theme=theme)
        if optimizer.limits:
            found[f"{method}-limits"] = plot_limits(report.name, optimizer, theme=theme)
    found["regret"] = plot_regret(report, theme=theme)
    return save({f"{report.name}-{part}": figure for part, figure in found.items()}, folder)


def save(figures: Mapping[str, Figure], folder: Path) -> list[Path]:
    """Write figures as PNG by name; the folder is made."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, figure in figures.items():
        paths.append(folder / f"{name}.png")
        figure.savefig(paths[-1], dpi=110)
    return paths


def plot_simulation(name: str, optimizer: Optimizer, *, theme: ThemeName = "light") -> Figure:
    """Draw truth, model and acquisition at the end of a run, as in the figures of Simulations I and II.

    Args:
        name: in `SIMULATIONS`.
        optimizer: at the end of a run.
        theme: "light" or "dark".
    """
    return plot_maps(optimizer, truth=SYNTHETIC[SIMULATIONS[name].problem], theme=theme)


def plot_limits(name: str, optimizer: Optimizer, *, theme: ThemeName = "light") -> Figure:
    """Draw the learned limits of one run, with the true ones."""
    return plot_thresholds(optimizer, true=SYNTHETIC[SIMULATIONS[name].problem].thresholds, fits=25, theme=theme)


def plot_regret(report: Report, *, theme: ThemeName = "light") -> Figure:
    """Draw the regret of the best guess over all runs, by method. An infeasible guess counts as worst."""
    title = f"{report.name}: median and quartiles of the runs"
    return draw(bands_chart(_bands(report), label="regret of the best guess", log=True, title=title), theme)


def _bands(report: Report, prefix: str = "") -> list[Band]:
    return [
        band(f"{prefix}{title}", [_or_nan(run.regret) for run in report.of(method)])
        for method, title in METHODS.items()
        if report.of(method)
    ]


def _or_nan(values: Sequence[float | None]) -> list[float]:
    return [math.nan if value is None else value for value in values]


def plot_statistics(reports: Sequence[Report], *, theme: ThemeName = "light") -> Figure:
    """Draw the statistical comparison: regret of mES and of mESCO, the limits over the trials below.

    Args:
        reports: of several simulations; those without constraints on the left (mES), the others right (mESCO).
        theme: "light" or "dark".
    """
    plain = [one for one in reports if not SYNTHETIC[SIMULATIONS[one.name].problem].constraints]
    limited = [one for one in reports if one not in plain]
    with canvas(theme, 9.6, 9.2) as (figure, colours):
        halves: Any = figure.subfigures(2, 1, height_ratios=(1.15, 1))
        top, bottom = halves
        sides = top.subplots(1, 2, sharey=True)
        for axes, title, group in zip(sides, ("mES", "mESCO"), (plain, limited), strict=True):
            _draw_group(axes, title, group, colours)
        sides[0].set_ylabel("regret of the best guess")
        _draw_limits(bottom, reports, colours)
    return figure


def _draw_group(axes: Axes, title: str, reports: Sequence[Report], colours: Theme) -> None:
    bands = [one for report in reports for one in _bands(report, f"{_NAMES[report.name]}: ")]
    colour = {"paper": colours.orange, "default": colours.blue, "random": colours.muted}
    dashes: tuple[Dash, ...] = ("solid", "dash", "dot", "dashdot")
    styles = [
        (colour[method], dash)
        for report, dash in zip(reports, dashes, strict=False)
        for method in METHODS
        if report.of(method)
    ]
    axes.set(title=title, xlabel="trials")
    if bands:
        draw_panel(axes, bands_panel(bands, log=True, styles=styles), colours)
        axes.legend(fontsize=7.5, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2, frameon=False)


def _draw_limits(figure: Any, reports: Sequence[Report], colours: Theme) -> None:
    """The limits of every run over the trials, their median on top, where the true limit is known."""
    shown = [
        (report, output, true)
        for report in reports
        for output, true in SYNTHETIC[SIMULATIONS[report.name].problem].thresholds.items()
        if report.name == "case4" or len(reports) == 1
    ]
    panels = figure.subplots(1, max(1, len(shown)), squeeze=False).ravel()
    for axes, (report, output, true) in zip(panels, shown, strict=False):
        _draw_limit_curves(axes, report, output, true, colours)


def _draw_limit_curves(axes: Axes, report: Report, output: str, true: float, colours: Theme) -> None:
    name = "cost" if output == OBJECTIVE else output
    for method, colour in (("paper", colours.orange), ("default", colours.blue)):
        curves = np.array([_or_nan(run.limit_curves[output]) for run in report.of(method)])
        if not np.isfinite(curves).any():
            continue
        trials = np.arange(1, curves.shape[-1] + 1)
        axes.plot(trials, curves.T, color=colour, lw=0.7, alpha=0.25)
        known = np.isfinite(curves).any(0)
        axes.plot(trials[known], np.nanmedian(curves[:, known], 0), color=colour, lw=2, label=METHODS[method])
    axes.axhline(true, color=colours.muted, ls="--", lw=1.4, label=f"true, {true:g}")
    axes.set_title(f"limit of {name}, {_NAMES[report.name].split(',')[0]}", fontsize=9)
    axes.set_xlabel("trials")
    axes.legend(fontsize=7.5, frameon=False)


def draw_cases(cases: Sequence[Case], folder: Path, *, theme: ThemeName = "light") -> list[Path]:
    """Write the picture of the four cases in one dimension; the folder is made."""
    return save({f"cases-{cases[0].strategy}": plot_cases(cases, theme=theme)}, folder)


def draw_statistics(reports: Sequence[Report], folder: Path, *, theme: ThemeName = "light") -> list[Path]:
    """Write the picture of the statistical comparison; the folder is made."""
    return save({"statistics": plot_statistics(reports, theme=theme)}, folder)


def plot_cases(cases: Sequence[Case], *, theme: ThemeName = "light") -> Figure:
    """Draw the four cases side by side: objective, constraint, acquisition.

    Args:
        cases: all four, from `crashbo.research.reproduce.cases.make_case`.
        theme: "light" or "dark".
    """
    left, right = ([panel for case in cases[side::2] for panel in _case_panels(case)] for side in (0, 1))
    rows = tuple(zip(left, right, strict=True))
    return draw(Chart(rows, (11.0, 10.6), (1.6, 1.3, 0.9) * 2, columns=5), theme)


def _case_panels(case: Case) -> list[Panel]:
    line = data.line(case.optimizer, truth=case.problem)
    top = replace(curve_panel(line, line.curves[0]), title=case.title)
    middle, hidden = curve_panel(line, line.curves[-1]), hidden_constraint(case.number, line.axis.values)
    if hidden is not None:
        ends = line.axis.ends
        marks = (
            Stroke(line.axis.values, hidden[0], "muted", dash="dash", width=1.4),
            Stroke(ends, [hidden[1]] * 2, "muted", width=1.2),
        )
        middle = Panel(marks, top.x, Side("g (is the cost)" if case.number == 1 else "g (never seen)"))
    score = score_panel(line)
    success = Stroke(line.axis.values, line.success, "blue", "success probability", "dashdot", 1.4)
    above = [replace(one, x=replace(one.x, bare=True)) for one in (top, middle)]
    return [*above, replace(score, marks=(success, *score.marks))]
