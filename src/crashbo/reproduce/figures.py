"""The paper's figures, from reports and optimizers."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from crashbo.optimizer import Optimizer
from crashbo.plots import data
from crashbo.plots.canvas import canvas, dress, legend_on_top
from crashbo.plots.figures import draw_acquisition, draw_curve, plot_maps
from crashbo.plots.history import Band, band, thresholds
from crashbo.plots.run_figures import draw_band_curves, draw_bands, draw_threshold, plot_thresholds
from crashbo.plots.theme import Theme, ThemeName
from crashbo.problems import SYNTHETIC
from crashbo.reproduce.cases import Case, hidden_constraint
from crashbo.reproduce.simulations import SIMULATIONS, Report, Run, evaluate, make_optimizer

_NAMES = {
    "sim1": "case 1, Simulation I",
    "case2": "case 2",
    "sim2": "case 3, Simulation II",
    "case4": "case 4",
}


def finished_run(name: str, seed: int, *, learned: bool = True, sampler: str = "pathwise") -> Optimizer:
    """Return the optimizer at the end of a simulation: that of `run_once` with the same arguments.

    Args:
        name: in `SIMULATIONS`.
        seed: of optimizer and noise.
        learned: hyperparameters learned or fixed.
        sampler: of the minimum.
    """
    simulation = SIMULATIONS[name]
    problem = SYNTHETIC[simulation.problem]
    optimizer = make_optimizer(name, seed, learned=learned, sampler=sampler)
    rng = np.random.default_rng([seed, 1])
    for _ in range(simulation.evaluations):
        evaluate(optimizer, problem, optimizer.ask(), rng)
    return optimizer


def draw_report(report: Report, folder: Path, *, sampler: str = "pathwise", theme: ThemeName = "light") -> list[Path]:
    """Draw a simulation: maps and limits at the end of its first run, regret over all runs.

    The first run is repeated to its end, with the same result.

    Args:
        report: of `crashbo.reproduce.simulations.reproduce`.
        folder: is made.
        sampler: of the minimum, as in the runs.
        theme: "light" or "dark".

    Returns:
        Paths of the PNG files.
    """
    seed = min(run.seed for run in report.runs if run.method == "crashbo")
    optimizer = finished_run(report.name, seed, learned=report.hyperparameters == "learned", sampler=sampler)
    figures = {
        "maps": plot_simulation(report.name, optimizer, theme=theme),
        "regret": plot_regret(report, theme=theme),
        "thresholds": plot_limits(report.name, optimizer, theme=theme),
    }
    return save({f"{report.name}-{part}": figure for part, figure in figures.items()}, folder)


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
    """Draw the regret of the best guess over all runs, random search beside it."""
    runs = len([run for run in report.runs if run.method == "crashbo"])
    title = f"{report.name}: median and quartiles of {runs} runs"
    return draw_bands(_bands(report), label="regret of the best guess", log=True, theme=theme, title=title)


def _bands(report: Report, prefix: str = "") -> list[Band]:
    found = []
    for method, title in (("crashbo", "CrashBO"), ("random", "random search")):
        runs: list[Run] = [run for run in report.runs if run.method == method]
        if runs:
            found.append(band(f"{prefix}{title}", [run.regret for run in runs]))
    return found


def plot_statistics(reports: Sequence[Report], *, runs: Sequence[Optimizer] = (), theme: ThemeName = "light") -> Figure:
    """Draw the statistical comparison: regret of mES and of mESCO, limits below.

    Args:
        reports: of several simulations; those without constraints on the left (mES), the others right (mESCO).
        runs: finished runs of case 4, to follow their limits; without any, the final limits of all runs.
        theme: "light" or "dark".
    """
    plain = [one for one in reports if not SYNTHETIC[SIMULATIONS[one.name].problem].constraints]
    limited = [one for one in reports if one not in plain]
    with canvas(theme, 9.6, 8.4) as (figure, colours):
        halves: Any = figure.subfigures(2, 1, height_ratios=(1.15, 1))
        top, bottom = halves
        sides = top.subplots(1, 2, sharey=True)
        for axes, title, group in zip(sides, ("mES", "mESCO"), (plain, limited), strict=True):
            _draw_group(axes, title, group, colours)
        sides[0].set_ylabel("regret of the best guess")
        _draw_limits(bottom, reports, runs, colours)
    return figure


def _draw_group(axes: Axes, title: str, reports: Sequence[Report], colours: Theme) -> None:
    bands = [one for report in reports for one in _bands(report, f"{_NAMES[report.name]}: ")]
    axes.set(title=title, xlabel="trials")
    if bands:
        draw_band_curves(axes, bands, colours, log=True)
        axes.legend(fontsize=7.5, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2, frameon=False)


def _draw_limits(figure: Any, reports: Sequence[Report], runs: Sequence[Optimizer], colours: Theme) -> None:
    outputs = _limit_values(reports)
    panels = figure.subplots(1, max(1, len(outputs)), squeeze=False).ravel()
    if runs:
        paths = [thresholds(one, true=SYNTHETIC["case4"].thresholds, fits=20) for one in runs]
        panels_needed = min(len(panels), len(paths[0]))
        for index in range(panels_needed):
            for run, path in enumerate(paths):
                draw_threshold(panels[index], path[index], colours, faint=run > 0)
            panels[index].set_xlabel("trials")
        return
    for axes, (title, (values, true)) in zip(panels, outputs.items(), strict=False):
        _draw_spread(axes, title, values, true, colours)


def _limit_values(reports: Sequence[Report]) -> dict[str, tuple[list[float], float | None]]:
    """Final limits of all runs and the true one, by simulation and output; only where both are known."""
    found: dict[str, tuple[list[float], float | None]] = {}
    for report in reports:
        for output, true in SYNTHETIC[SIMULATIONS[report.name].problem].thresholds.items():
            values = [
                run.thresholds[output] for run in report.runs if run.method == "crashbo" and output in run.thresholds
            ]
            if not values:  # no run failed in this output
                continue
            name = "cost" if output == "objective" else output
            found[f"limit of {name}, {_NAMES[report.name].split(',')[0]}"] = (values, true)
    return found


def _draw_spread(axes: Axes, title: str, values: Sequence[float], true: float | None, colours: Theme) -> None:
    """Every run's final limit as a dot, median and quartiles as a box, the truth as a line."""
    spread = np.random.default_rng(0).uniform(-0.16, 0.16, len(values))
    axes.plot(spread, values, "o", color=colours.blue, ms=4, alpha=0.6)
    low, middle, high = np.quantile(values, [0.25, 0.5, 0.75])
    axes.fill_between([-0.25, 0.25], low, high, color=colours.orange, alpha=0.25, lw=0)
    axes.plot([-0.25, 0.25], [middle, middle], color=colours.orange, lw=2)
    if true is not None:
        axes.axhline(true, color=colours.muted, ls="--", lw=1.4)
    axes.set(xticks=[], xlim=(-0.5, 0.5))
    axes.set_title(title, fontsize=9)
    axes.set_xlabel(f"{len(values)} runs" + ("" if true is None else f"; true {true:g} (dashed)"), fontsize=8)


def draw_cases(cases: Sequence[Case], folder: Path, *, theme: ThemeName = "light") -> list[Path]:
    """Write the picture of the four cases in one dimension; the folder is made."""
    return save({"cases": plot_cases(cases, theme=theme)}, folder)


def draw_statistics(reports: Sequence[Report], folder: Path, *, theme: ThemeName = "light") -> list[Path]:
    """Write the picture of the statistical comparison; the folder is made."""
    return save({"statistics": plot_statistics(reports, theme=theme)}, folder)


def plot_cases(cases: Sequence[Case], *, theme: ThemeName = "light") -> Figure:
    """Draw the four cases side by side: objective, constraint, acquisition.

    Args:
        cases: all four, from `crashbo.reproduce.cases.make_case`.
        theme: "light" or "dark".
    """
    with canvas(theme, 11.0, 10.6) as (figure, colours):
        panels = figure.subplots(6, 2, height_ratios=(1.6, 1.3, 0.9) * 2, sharex="col")
        for place, case in enumerate(cases):
            row, column = divmod(place, 2)
            _draw_case(panels[3 * row : 3 * row + 3, column], case, colours)
        figure.align_ylabels()
        legend_on_top(figure, *panels.ravel(), columns=5)
    return figure


def _draw_case(panels: Sequence[Axes], case: Case, colours: Theme) -> None:
    top, middle, bottom = panels
    line = data.line(case.optimizer, truth=case.problem)
    draw_curve(top, line, line.curves[0], colours)
    top.set_title(case.title)
    hidden = hidden_constraint(case.number, line.axis.values)
    if hidden is None:
        draw_curve(middle, line, line.curves[1], colours)
    else:
        middle.plot(line.axis.values, hidden[0], color=colours.muted, ls=(0, (4, 2)), lw=1.4)
        middle.axhline(hidden[1], color=colours.muted, lw=1.2)
        middle.set_ylabel("g (is the cost)" if case.number == 1 else "g (never seen)")
    bottom.plot(line.axis.values, line.success, color=colours.blue, ls="-.", lw=1.4, label="success probability")
    draw_acquisition(bottom, line, colours)
    dress(bottom, line.axis)
