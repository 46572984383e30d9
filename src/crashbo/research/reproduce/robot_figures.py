"""The robot's figures: what the model learned, how the runs went, how the best guess balances."""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from crashbo.research.pole_figures import plot_rollouts
from crashbo.research.problems.pole.reference import grid_reference
from crashbo.research.problems.pole.rollout import MONITOR, Outcome
from crashbo.research.problems.pole.tuning import POLES
from crashbo.research.reproduce.figures import save
from crashbo.research.reproduce.methods import METHODS, PaperSettings
from crashbo.research.reproduce.penalties import PENALTIES, PenaltyReport
from crashbo.research.reproduce.robot import REEVALUATIONS, RobotReport, Run, Tuned, rollout_seed, tune
from crashbo.show.canvas import canvas, legend_on_top
from crashbo.show.draw_matplotlib import draw_panel
from crashbo.show.figures import plot_convergence, plot_maps, plot_pairs, plot_slices, plot_thresholds
from crashbo.show.history import Band, band
from crashbo.show.planes import Quantity
from crashbo.show.run_charts import bands_panel
from crashbo.show.theme import Theme, ThemeName
from crashbo.show.views import View


def draw_robot(
    report: RobotReport, folder: Path, *, paper: PaperSettings | None = None, theme: ThemeName = "light"
) -> list[Path]:
    """Draw a robot experiment: the first run of each strategy from the model to the pole, and all runs together.

    The first runs are repeated to their end, with the same result.

    Args:
        report: of `crashbo.research.reproduce.robot.reproduce_robot`.
        folder: is made.
        paper: how the paper's strategy was run.
        theme: "light" or "dark".

    Returns:
        Paths of the PNG files.
    """
    found: dict[str, Figure] = {}
    for method in ("paper", "default"):
        if report.of(method):
            seed = report.of(method)[0].seed
            tuned = tune(report.name, seed, method=method, paper=paper)
            parts = robot_figures(report.name, tuned, seed, theme=theme)
            found |= {f"{method}-{part}": figure for part, figure in parts.items()}
    found["convergence"] = plot_runs(report, theme=theme)
    return save({f"{report.name}-{part}": figure for part, figure in found.items()}, folder)


def robot_figures(name: str, tuned: Tuned, seed: int, *, theme: ThemeName = "light") -> dict[str, Figure]:
    """Draw one run, by part: the model, the trials, the limits where there are any, and the pole.

    Args:
        name: of the experiment.
        tuned: the run.
        seed: of the run.
        theme: "light" or "dark".
    """
    tuning = POLES[name]
    numbers = range(1, len(tuned.outcomes) + 1)
    seen = View(tuned.optimizer, {"reach": "cm"} if tuning.mixed else {}, numbers)
    if tuning.dimension == 2:
        found = {"maps": plot_maps(seen, quantities=_quantities(tuning.mixed), theme=theme)}
    else:
        found = {"pairs": plot_pairs(seen, theme=theme), "slices": plot_slices(seen, theme=theme)}
    found["trials"] = plot_convergence(seen, theme=theme)
    if tuned.optimizer.limits:
        found["limits"] = plot_thresholds(seen, true=tuning.thresholds, fits=25, theme=theme)
    limits = {**MONITOR.limits, "reach": tuning.reach_limit}
    found["rollouts"] = plot_rollouts(shown_rollouts(name, tuned, seed), theme=theme, limits=limits)
    return found


def _quantities(mixed: bool) -> tuple[Quantity, ...]:
    return ("mean", "std", "success", "acquisition", *(("unconstrained",) if mixed else ()))


def shown_rollouts(name: str, tuned: Tuned, seed: int) -> dict[str, Outcome]:
    """A failed trial beside the best guess, under the same disturbances; the first trial if none failed."""
    trials = tuned.optimizer.trials
    first = next((one for one in trials if one.failed), trials[0])
    noise = rollout_seed(seed, 2, 0)
    before, after = (POLES[name].rollout(params, noise) for params in (first.params, tuned.optimizer.best().params))
    return {f"trial {first.number + 1}{_fate(before)}": before, f"best guess{_fate(after)}": after}


def _fate(outcome: Outcome) -> str:
    if outcome.cost is not None:
        return f", cost {outcome.cost:.2f}"
    rescue = "safe gains recover it" if outcome.recovered else "emergency stop"
    return f": {outcome.reason}, {rescue}"


def plot_runs(report: RobotReport, *, theme: ThemeName = "light") -> Figure:
    """Draw all runs together: lowest cost and failed trials so far; what every run's best guess was worth.

    Args:
        report: of a robot experiment.
        theme: "light" or "dark".
    """
    groups = {title: report.of(method) for method, title in METHODS.items() if report.of(method)}
    return _plot_groups(groups, [title.replace(" ", "\n") for title in groups], theme=theme)


def plot_penalties(report: PenaltyReport, *, method: str = "paper", theme: ThemeName = "light") -> Figure:
    """Draw penalties beside none: how the search went, and what every run's best guess was worth.

    Args:
        report: of `crashbo.research.reproduce.penalties.reproduce_penalties`.
        method: "paper" or "default".
        theme: "light" or "dark".
    """
    groups = {"no penalty": report.of(None, method)}
    groups |= {f"penalty {value:g}, {title}": report.of(value, method) for title, value in PENALTIES.items()}
    names = ["no\npenalty", *(f"penalty\n{value:g}" for value in PENALTIES.values())]
    return _plot_groups(groups, names, theme=theme)


def draw_penalties(report: PenaltyReport, folder: Path, *, theme: ThemeName = "light") -> list[Path]:
    """Write a picture of penalties beside none for each strategy; arguments as in `draw_robot`."""
    found = {f"penalties-{one}": plot_penalties(report, method=one, theme=theme) for one in report.methods}
    return save(found, folder)


def _plot_groups(groups: Mapping[str, Sequence[Run]], names: Sequence[str], *, theme: ThemeName) -> Figure:
    """Draw groups of runs: over the trials on the left, run by run on the right under short names."""
    with canvas(theme, 10.4, 6.4) as (figure, colours):
        panels = figure.subplots(2, 2, width_ratios=(1.5, 1), sharex="col")
        _draw_costs(panels[0, 0], groups, colours)
        _draw_failures(panels[1, 0], groups, colours)
        _draw_guesses(panels[0, 1], list(groups.values()), colours)
        _draw_counts(panels[1, 1], list(groups.values()), colours)
        panels[1, 1].set_xticks(range(len(groups)), names[: len(groups)])
        for axes in panels[:, 1]:
            axes.grid(visible=False, axis="x")
        legend_on_top(figure, *panels[0], columns=3)
    return figure


def _draw_costs(axes: Axes, groups: Mapping[str, Sequence[Run]], colours: Theme) -> None:
    """Draw the lowest cost so far, by group, with the best of the grid."""
    bands = [_band(name, [run.curve for run in runs]) for name, runs in groups.items()]
    draw_panel(axes, bands_panel(bands, log=True), colours)
    _draw_grid_best(axes, colours)
    axes.set(ylabel="lowest cost of a roll-out", title="median and quartiles of the runs")
    axes.yaxis.set_major_formatter("{x:g}")
    axes.yaxis.set_minor_formatter("{x:g}")
    axes.tick_params(axis="y", which="minor", labelsize=8)


def _draw_grid_best(axes: Axes, colours: Theme) -> None:
    """A line at the mean cost of the best cell: single roll-outs can be lucky and lie below."""
    value = grid_reference().best_value
    axes.axhline(value, color=colours.muted, ls="--", lw=1.2, label="mean cost of the best of a 2D grid")


def _draw_failures(axes: Axes, groups: Mapping[str, Sequence[Run]], colours: Theme) -> None:
    """Draw the number of failed trials so far, by group."""
    bands = [_band(name, [_failures(run) for run in runs]) for name, runs in groups.items()]
    draw_panel(axes, bands_panel(bands, log=False), colours)
    axes.set(ylabel="failed trials so far", xlabel="trials")


def _band(name: str, curves: Sequence[Sequence[float | None]]) -> Band:
    return band(name, [[math.nan if value is None else value for value in curve] for curve in curves])


def _failures(run: Run) -> list[float | None]:
    return list(np.cumsum([cost is None for cost in run.costs]).astype(float))


def _draw_guesses(axes: Axes, groups: Sequence[Sequence[Run]], colours: Theme) -> None:
    """Draw the cost of every run's best guess; those that did not balance in a row of their own above."""
    lost_looks: dict[str, Any] = {"color": colours.vermilion, "ms": 6, "mew": 1.8, "ls": "none", "marker": "x"}
    steady_looks: dict[str, Any] = {"color": colours.green, "ms": 5, "ls": "none", "marker": "o", "alpha": 0.8}
    for place, runs in enumerate(groups):
        steady = [run.best_value for run in runs if run.stable and run.best_value is not None]
        lost = len(runs) - len(steady)
        axes.plot(_beside(place, len(steady)), steady, **steady_looks)
        axes.plot(_beside(place, lost), [0.95] * lost, transform=axes.get_xaxis_transform(), **lost_looks)
    axes.plot([], [], label=f"balanced in all {REEVALUATIONS} more roll-outs", **steady_looks)
    if not all(run.stable for runs in groups for run in runs):
        axes.plot([], [], label="did not", **lost_looks)
    _draw_grid_best(axes, colours)
    axes.set(ylabel="mean cost", xlim=(-0.5, len(groups) - 0.5), title="best guess of every run, tried again")
    axes.margins(y=0.25)


def _draw_counts(axes: Axes, groups: Sequence[Sequence[Run]], colours: Theme) -> None:
    """Draw the failed trials of every run, their mean as a bar."""
    for place, runs in enumerate(groups):
        colour, counts = colours.cycle[place], [run.crashes for run in runs]
        axes.bar(place, float(np.mean(counts)), 0.6, color=colour, alpha=0.35)
        axes.plot(_beside(place, len(counts)), counts, "o", color=colour, ms=4)
    axes.set(ylabel="failed trials of a run")


def _beside(place: int, count: int) -> np.ndarray:
    """Places for several marks beside each other."""
    return place + np.linspace(-0.2, 0.2, count) if count > 1 else np.full(count, float(place))
