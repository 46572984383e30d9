"""Commands that show the paper: `demo` and `reproduce`."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from crashbo.cli.options import JsonOption, SeedOption


class Experiment(StrEnum):
    """Experiments of the paper that can be reproduced."""

    example1 = "example1"
    sim1 = "sim1"
    case2 = "case2"
    sim2 = "sim2"
    case4 = "case4"
    all_crash = "all-crash"


class Hyperparameters(StrEnum):
    """Where the models' hyperparameters come from."""

    auto = "auto"
    fixed = "fixed"
    learned = "learned"


def demo(
    folder: Annotated[Path, typer.Option(help="Where the pictures go.")] = Path("crashbo-demo"),
    json_output: JsonOption = False,
    seed: SeedOption = 0,
) -> None:
    """Show what the model does with three costs and two crashes (the paper's Example 1)."""
    _example1(folder, json_output, seed)


def reproduce(
    name: Annotated[Experiment, typer.Argument(help="Which experiment of the paper.")],
    runs: Annotated[int, typer.Option(min=1, help="How many runs, with seeds from --seed on.")] = 20,
    seed: SeedOption = 0,
    hyperparameters: Annotated[
        Hyperparameters,
        typer.Option(help="Fixed as in the paper, learned, or what works better for the experiment (auto)."),
    ] = Hyperparameters.auto,
    sampler: Annotated[
        str, typer.Option(help="Samples of the minimum: pathwise, or virtual as in the paper.")
    ] = "pathwise",
    plots: Annotated[Path | None, typer.Option(help="Folder for the pictures of example1.")] = None,
    json_output: JsonOption = False,
) -> None:
    """Reproduce an experiment of the paper, random search beside it."""
    if name is Experiment.example1:
        _example1(plots, json_output, seed)
        return
    from crashbo.reproduce.simulations import reproduce as simulate
    from crashbo.reproduce.simulations import reproduce_all_crash

    with _progress(str(name.value)) as advance:
        if name is Experiment.all_crash:
            found = reproduce_all_crash(runs=runs, seed=seed, progress=advance)
            words = (
                f"Where 95 % of the square crashes, the first success took a median of "
                f"{found['median_trials_to_success']:g} trials; random search "
                f"{found['random']['median_trials_to_success']:g} ({runs} runs)."
            )
        else:
            learned = None if hyperparameters is Hyperparameters.auto else hyperparameters is Hyperparameters.learned
            report = simulate(name.value, runs=runs, seed=seed, learned=learned, sampler=sampler, progress=advance)
            found, words = report.summary(), report.words()
    typer.echo(json.dumps(found, indent=2) if json_output else words)


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
