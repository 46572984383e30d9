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
    sim1 = "sim1"
    case2 = "case2"
    sim2 = "sim2"
    case4 = "case4"
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
    if name is Experiment.example1:
        _example1(plots, json_output, seed)
        return
    if plots is not None and name not in _DRAWN:
        drawn = ", ".join(one.value for one in (Experiment.example1, *_DRAWN))
        raise InputError(f"`--plots` must go with one of {drawn}; got {name.value}. Leave it out.")
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


_DRAWN = (Experiment.sim1, Experiment.case2, Experiment.sim2, Experiment.case4)
Progress = Callable[[int, int], None]
Draw = Callable[[Path], list[Path]]


def _experiment(
    name: Experiment, runs: int, seed: int, learned: bool, sampler: str, advance: Progress
) -> tuple[dict[str, Any], str, Draw]:
    """Run an experiment; numbers, words, and what draws its pictures into a folder."""
    if name is Experiment.all_crash:
        return _all_crash(runs, seed, advance)
    if name is Experiment.penalties or name.value.startswith("robot"):
        return _robot(name, runs, seed, learned, advance)
    from crashbo.reproduce.simulations import reproduce as simulate

    report = simulate(name.value, runs=runs, seed=seed, learned=learned, sampler=sampler, progress=advance)

    def draw(folder: Path) -> list[Path]:
        from crashbo.reproduce.figures import draw_report

        return draw_report(report, folder)

    return report.summary(), report.words(), draw


def _robot(
    name: Experiment, runs: int, seed: int, learned: bool, advance: Progress
) -> tuple[dict[str, Any], str, Draw]:
    from crashbo.reproduce.robot import reproduce_penalties, reproduce_robot

    if name is Experiment.penalties:
        penalties = reproduce_penalties(runs=runs, seed=seed, learned=learned, progress=advance)
        return penalties.summary(), penalties.words(), _no_pictures
    report = reproduce_robot(name.value, runs=runs, seed=seed, learned=learned, progress=advance)
    return report.summary(), report.words(), _no_pictures


def _all_crash(runs: int, seed: int, advance: Progress) -> tuple[dict[str, Any], str, Draw]:
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


def _example1(folder: Path | None, json_output: bool, seed: int) -> None:
    from crashbo.reproduce.example1 import example1

    result = example1(seed=seed)
    pictures = result.draw(folder) if folder is not None else []
    if json_output:
        typer.echo(json.dumps(result.summary() | {"pictures": [str(path) for path in pictures]}, indent=2))
        return
    typer.echo(result.words())
    for path in pictures:
        typer.echo(f"Picture: {path}")
