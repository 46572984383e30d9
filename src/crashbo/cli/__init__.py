"""The command line. Commands import what they need when they run: `--help` stays fast."""

import gc
import sys
from typing import Annotated

import typer

import crashbo
from crashbo.cli import console, demo, record, report, reproduce, run, studies
from crashbo.cli.options import SpaceCommand
from crashbo.errors import CrashBOError

app = typer.Typer(
    name="crashbo",
    help="Bayesian optimization of experiments that can crash.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

# A value may be negative, and must not be taken for an option.
_NUMBERS = {"ignore_unknown_options": True}


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


_STUDIES, _RECORDS, _PAPER = "Tune something", "Trials", "The paper"
app.command(cls=SpaceCommand, rich_help_panel=_STUDIES)(studies.new)
app.command(rich_help_panel=_STUDIES)(studies.ask)
app.command(rich_help_panel=_STUDIES, context_settings=_NUMBERS)(record.tell)
app.command(rich_help_panel=_STUDIES, context_settings=_NUMBERS)(record.crash)
app.command(rich_help_panel=_STUDIES)(studies.status)
app.command(rich_help_panel=_STUDIES)(studies.best)
app.command(cls=SpaceCommand, rich_help_panel=_STUDIES)(run.run)
app.command(rich_help_panel=_STUDIES)(report.report)
app.command(rich_help_panel=_STUDIES)(console.console)
app.command(rich_help_panel=_RECORDS)(studies.show)
app.command(rich_help_panel=_RECORDS, context_settings=_NUMBERS)(record.correct)
app.command(rich_help_panel=_RECORDS)(record.delete)
app.command(rich_help_panel=_RECORDS)(record.restore)
app.command("import", rich_help_panel=_RECORDS)(studies.import_)
app.command(rich_help_panel=_RECORDS)(studies.export)
app.command(rich_help_panel=_PAPER)(demo.demo)
app.command(rich_help_panel=_PAPER)(reproduce.reproduce)


def main() -> None:
    """Run the command line; errors we raise on purpose become one line and exit code 2."""
    gc.set_threshold(50_000)  # imports make many objects and no garbage
    try:
        app()
    except (CrashBOError, OSError) as error:
        from crashbo.studies.values import visible

        typer.echo(visible(f"crashbo: {error}"), err=True)
        sys.exit(2)
