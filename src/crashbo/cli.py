"""The command line. Commands import what they need when they run: `--help` stays fast."""

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

import crashbo
from crashbo.errors import CrashBOError

app = typer.Typer(
    name="crashbo",
    help="Bayesian optimization of experiments that can crash.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


class Experiment(StrEnum):
    """Experiments of the paper that can be reproduced."""

    example1 = "example1"


JsonOption = Annotated[bool, typer.Option("--json", help="Print results as JSON.")]
SeedOption = Annotated[int, typer.Option(help="Same seed, same result.")]


def _version(value: bool) -> None:
    if value:
        typer.echo(f"crashbo {crashbo.__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Bayesian optimization of experiments that can crash."""


@app.command()
def demo(
    folder: Annotated[Path, typer.Option(help="Where the pictures go.")] = Path("crashbo-demo"),
    json_output: JsonOption = False,
    seed: SeedOption = 0,
) -> None:
    """Show what the model does with three costs and two crashes (the paper's Example 1)."""
    _example1(folder, json_output, seed)


@app.command()
def reproduce(
    name: Annotated[Experiment, typer.Argument(help="Which experiment of the paper.")],
    plots: Annotated[Path | None, typer.Option(help="Folder for the pictures; none without it.")] = None,
    json_output: JsonOption = False,
    seed: SeedOption = 0,
) -> None:
    """Reproduce an experiment of the paper."""
    if name is Experiment.example1:
        _example1(plots, json_output, seed)


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


def main() -> None:
    """Run the command line; errors we raise on purpose become one line and exit code 2."""
    try:
        app()
    except (CrashBOError, OSError) as error:
        typer.echo(f"crashbo: {error}", err=True)
        sys.exit(2)
