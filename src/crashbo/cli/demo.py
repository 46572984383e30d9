"""The demo on the command line: a live view while the robot is tuned, a summary, a report."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crashbo.cli.options import JsonOption, SeedOption

if TYPE_CHECKING:
    from crashbo.research.demo import Step


def demo(
    folder: Annotated[Path, typer.Option(help="Where study, pictures and report go.")] = Path("crashbo-demo"),
    trials: Annotated[int, typer.Option(min=5, help="How many to run.")] = 30,
    json_output: JsonOption = False,
    seed: SeedOption = 0,
) -> None:
    """Tune the simulated pole-balancing robot, watch it learn from crashes, and leave a report."""
    from rich.console import Console

    console = Console(stderr=json_output)
    console.print("A robot barely balances a pole. Two numbers shape its controller; many choices make it crash.")
    with _live(console, trials) as watch:
        from crashbo.research.demo import run_demo

        result = run_demo(folder, seed=seed, trials=trials, watch=watch)
    if json_output:
        typer.echo(json.dumps(result.summary(), indent=2))
        return
    typer.echo(f"\n{result.words()}\n")
    typer.echo(f"Report: {result.files[0]}")
    for path in result.files[1:]:
        typer.echo(f"Picture: {path}")
    typer.echo(f"Open it by hand: crashbo console --storage {result.place} --study {result.place.study}")


@contextmanager
def _live(console: "object", trials: int) -> Iterator[Callable[["Step"], None]]:
    """A bar and the latest numbers if a person watches, else a line every five trials."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    assert isinstance(console, Console)
    columns = (
        TextColumn("trial"),
        MofNCompleteColumn(),
        BarColumn(bar_width=24),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task("starting", total=trials)

        def watch(step: "Step") -> None:
            words = _words(step)
            bar.update(task, completed=step.number, description=words)
            if not console.is_terminal and (step.number % 5 == 0 or step.number == step.total):
                console.print(f"trial {step.number} of {step.total}: {words}", soft_wrap=True, highlight=False)

        yield watch


def _words(step: "Step") -> str:
    best = "none yet" if step.best is None else f"{step.best:.3g}"
    limit = "" if step.threshold is None else f", crash threshold {step.threshold:.3g}"
    return f"{step.crashes} crashed, best cost {best}{limit} | last {step.last}"
