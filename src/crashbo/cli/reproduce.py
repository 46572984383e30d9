"""The command that reproduces the paper."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from crashbo.cli.options import JsonOption, SeedOption
from crashbo.errors import InputError


class Experiment(StrEnum):
    """Experiments of the paper that can be reproduced."""

    example1 = "example1"
    cases = "cases"
    sim1 = "sim1"
    case2 = "case2"
    sim2 = "sim2"
    case4 = "case4"
    statistics = "statistics"
    all_crash = "all-crash"
    robot2d = "robot2d"
    robot2d_mixed = "robot2d-mixed"
    robot5d = "robot5d"
    robot_mujoco = "robot2d-mujoco"
    penalties = "penalties"


class Hyperparameters(StrEnum):
    """Where the models' hyperparameters come from."""

    learned = "learned"
    fixed = "fixed"


def reproduce(
    name: Annotated[Experiment, typer.Argument(help="Which experiment of the paper.")],
    runs: Annotated[int, typer.Option(min=1, help="How many runs, with seeds from --seed on.")] = 20,
    seed: SeedOption = 0,
    hyperparameters: Annotated[
        Hyperparameters, typer.Option(help="Learned from the trials, or fixed as in the paper.")
    ] = Hyperparameters.learned,
    sampler: Annotated[
        str, typer.Option(help="Samples of the minimum: pathwise, or virtual as in the paper.")
    ] = "pathwise",
    plots: Annotated[Path | None, typer.Option(help="Folder for the pictures.")] = None,
    json_output: JsonOption = False,
) -> None:
    """Reproduce an experiment of the paper, random search beside it."""
    if plots is not None and name is Experiment.all_crash:
        drawn = ", ".join(one.value for one in Experiment if one is not Experiment.all_crash)
        raise InputError(f"`--plots` must go with one of {drawn}; got {name.value}. Leave it out.")
    if plots is not None:
        plots.mkdir(parents=True, exist_ok=True)  # better refused now than after an hour
    learned = hyperparameters is Hyperparameters.learned
    with _progress(str(name.value)) as advance:
        found, words, draw = _experiment(name, runs, seed, learned, sampler, advance)
    pictures = draw(plots) if plots is not None else []
    if json_output:
        typer.echo(json.dumps(found | {"pictures": [str(path) for path in pictures]}, indent=2))
        return
    typer.echo(words)
    for path in pictures:
        typer.echo(f"Picture: {path}")


Progress = Callable[[int, int], None]
Draw = Callable[[Path], list[Path]]
Found = tuple[dict[str, Any], str, Draw]


def _experiment(name: Experiment, runs: int, seed: int, learned: bool, sampler: str, advance: Progress) -> Found:
    """Run an experiment; numbers, words, and what draws its pictures into a folder."""
    if name is Experiment.example1:
        return _example1(seed)
    if name is Experiment.cases:
        return _cases(seed)
    if name is Experiment.all_crash:
        return _all_crash(runs, seed, advance)
    if name is Experiment.penalties:
        return _penalties(runs, seed, learned, advance)
    if name.value.startswith("robot"):
        return _robot(name, runs, seed, learned, advance)
    return _simulations(name, runs, seed, learned, sampler, advance)


def _example1(seed: int) -> Found:
    from crashbo.reproduce.example1 import example1

    result = example1(seed=seed)
    return result.summary(), result.words(), result.draw


def _cases(seed: int) -> Found:
    from crashbo.reproduce.cases import make_case

    cases = [make_case(number, seed=seed) for number in (1, 2, 3, 4)]

    def draw(folder: Path) -> list[Path]:
        from crashbo.reproduce.figures import draw_cases

        return draw_cases(cases, folder)

    found = {"name": "cases", "cases": [case.summary() for case in cases]}
    return found, "\n".join(case.words() for case in cases), draw


def _simulations(name: Experiment, runs: int, seed: int, learned: bool, sampler: str, advance: Progress) -> Found:
    """Run one simulation, or all of them for the statistical comparison."""
    from crashbo.reproduce.simulations import SIMULATIONS
    from crashbo.reproduce.simulations import reproduce as simulate

    every = name is Experiment.statistics
    reports = [
        simulate(one, runs=runs, seed=seed, learned=learned, sampler=sampler, progress=advance)
        for one in (SIMULATIONS if every else [name.value])
    ]

    def draw(folder: Path) -> list[Path]:
        from crashbo.reproduce.figures import draw_report, draw_statistics

        return draw_statistics(reports, folder) if every else draw_report(reports[0], folder, sampler=sampler)

    if not every:
        return reports[0].summary(), reports[0].words(), draw
    found = {"name": name.value, "simulations": {one.name: one.summary() for one in reports}}
    return found, "\n\n".join(one.words() for one in reports), draw


def _robot(name: Experiment, runs: int, seed: int, learned: bool, advance: Progress) -> Found:
    from crashbo.reproduce.robot import reproduce_robot

    report = reproduce_robot(name.value, runs=runs, seed=seed, learned=learned, progress=advance)

    def draw(folder: Path) -> list[Path]:
        from crashbo.reproduce.robot_figures import draw_robot

        return draw_robot(report, folder)

    return report.summary(), report.words(), draw


def _penalties(runs: int, seed: int, learned: bool, advance: Progress) -> Found:
    from crashbo.reproduce.penalties import reproduce_penalties

    report = reproduce_penalties(runs=runs, seed=seed, learned=learned, progress=advance)

    def draw(folder: Path) -> list[Path]:
        from crashbo.reproduce.robot_figures import draw_penalties

        return draw_penalties(report, folder)

    return report.summary(), report.words(), draw


def _all_crash(runs: int, seed: int, advance: Progress) -> Found:
    from crashbo.reproduce.simulations import reproduce_all_crash

    found = reproduce_all_crash(runs=runs, seed=seed, progress=advance)
    words = (
        f"Where 95 % of the square crashes, the first success took a median of "
        f"{found['median_trials_to_success']:g} trials; random search "
        f"{found['random']['median_trials_to_success']:g} ({runs} runs)."
    )
    return found, words, _no_pictures


def _no_pictures(folder: Path) -> list[Path]:
    return []


@contextmanager
def _progress(title: str) -> Iterator[Callable[[int, int], None]]:
    """A bar on stderr if a person watches; yields what to call with done and total."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(title, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
