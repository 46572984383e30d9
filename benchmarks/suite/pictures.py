"""The pictures: regret and crashes of each problem, and the overview of all."""

import math
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes

from benchmarks.suite.methods import CRASHBO, method_names
from benchmarks.suite.records import Row
from benchmarks.suite.stats import Run, Runs, full_runs, group_runs, mean_crashes, mean_ranks, quartiles
from crashbo.show.canvas import canvas
from crashbo.show.theme import Theme

# One colour per family (Okabe and Ito's, told apart by anyone), one dash per variant.
_FAMILIES = {
    "crashbo": "#D55E00",
    "tpe": "#C77C00",
    "gpsampler": "#0072B2",
    "logei": "#009E73",
    "ax": "#B0508C",
    "smac": "#56B4E9",
    "vizier": "#7A6A00",
}
_DASHES = ("-", "--", ":", "-.")
_FLOOR = 1e-8  # regrets are drawn no lower


def draw_all(rows: list[Row], folder: Path, theme: str = "light") -> list[Path]:
    """Draw everything and return the files."""
    runs = group_runs(full_runs(rows)[0])
    folder.mkdir(parents=True, exist_ok=True)
    drawn = [draw_problem(runs, name, folder / f"{name}.png", theme) for name in runs]
    return [*drawn, draw_overview(runs, folder / "overview.png", theme)]


def draw_problem(runs: Runs, name: str, path: Path, theme: str = "light") -> Path:
    """Draw regret with quartiles, and crashes so far, trial by trial."""
    with canvas(theme, 11, 4.2) as (figure, colours):
        left, right = figure.subplots(1, 2)
        for method in _ordered(runs[name]):
            look = _look(method, colours)
            _draw_regret(left, list(runs[name][method].values()), method, look)
            _draw_crashes(right, list(runs[name][method].values()), look)
        left.set(xlabel="trial", ylabel="simple regret", title=f"{name}: median and quartiles")
        if any(np.isfinite(np.asarray(line.get_ydata())).any() for line in left.lines):
            left.set(yscale="log")
        else:
            left.set(yticks=[], title=f"{name}: the median run of no method succeeded")
        right.set(xlabel="trial", ylabel="crashes so far", title=f"{name}: mean over seeds")
        figure.legend(loc="outside right center", fontsize=8)
        figure.savefig(path)
    return path


def draw_overview(runs: Runs, path: Path, theme: str = "light") -> Path:
    """Draw mean rank against the share of crashed trials; the lower left corner is best."""
    order, shared = mean_ranks(runs)
    with canvas(theme, 7, 5) as (figure, colours):
        axes = figure.subplots()
        places: list[tuple[float, float]] = []
        for method in sorted(order, key=lambda name: order[name]):
            place = _crash_share(runs, method, shared), order[method]
            look = _look(method, colours)
            axes.plot(*place, "o", color=look["color"], markersize=11 if method == CRASHBO else 6)
            crowded = any(abs(x - place[0]) < 0.2 and abs(y - place[1]) < 0.3 for x, y in places)
            axes.annotate(method, place, xytext=(6, -12 if crowded else 3), textcoords="offset points", fontsize=8)
            places.append(place)
        axes.margins(x=0.3)
        axes.set(xlabel="share of trials that crashed", ylabel="mean rank in regret at the end")
        axes.set_title(f"{len(shared)} problems; lower left is best")
        figure.savefig(path)
    return path


def _draw_regret(axes: Axes, runs: list[Run], method: str, look: dict[str, object]) -> None:
    length = min(len(run) for run in runs)
    spread = np.array([quartiles([run[index].regret for run in runs]) for index in range(length)])
    middle, low, high = np.where(np.isfinite(spread), spread.clip(_FLOOR), np.nan).T
    trials = np.arange(1, length + 1)
    axes.plot(trials, middle, label=method, **look)  # type: ignore[arg-type]
    axes.fill_between(trials, low, high, color=look["color"], alpha=0.08, linewidth=0)


def _draw_crashes(axes: Axes, runs: list[Run], look: dict[str, object]) -> None:
    length = min(len(run) for run in runs)
    crashes = np.mean([np.cumsum([row.crashed for row in run[:length]]) for run in runs], axis=0)
    axes.plot(np.arange(1, length + 1), crashes, **look)  # type: ignore[arg-type]


def _look(method: str, theme: Theme) -> dict[str, object]:
    family = method.split("-")[0]
    variants = [name for name in method_names() if name.split("-")[0] == family]
    dash = _DASHES[variants.index(method) % len(_DASHES)] if method in variants else "-"
    plain = ("random", "sobol")
    colour = theme.muted if family in plain else _FAMILIES.get(family, theme.ink)
    if family in plain:
        dash = _DASHES[plain.index(family)]
    return {"color": colour, "linestyle": dash, "linewidth": 2.6 if method == CRASHBO else 1.3}


def _crash_share(runs: Runs, method: str, shared: list[str]) -> float:
    crashes = sum(mean_crashes(runs[name][method]) for name in shared)
    trials = sum(np.mean([len(run) for run in runs[name][method].values()]) for name in shared)
    return float(crashes / trials) if shared else math.nan


def _ordered(problem: dict[str, dict[int, Run]]) -> list[str]:
    return sorted(problem, key=lambda name: method_names().index(name) if name in method_names() else 99)
