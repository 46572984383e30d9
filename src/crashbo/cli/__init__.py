"""The command line. Commands import what they need when they run: `--help` stays fast."""

import atexit
import gc
import sys
from typing import Annotated, Any, NoReturn

import typer

import crashbo
from crashbo.cli import console, demo, manage, record, report, reproduce, run, studies
from crashbo.cli.options import SpaceCommand
from crashbo.errors import CrashBOError

app = typer.Typer(
    name="crashbo",
    help="Bayesian optimization of experiments that can crash.",
    no_args_is_help=True,
    add_completion=True,
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


_STUDIES, _RECORDS, _SHELF, _PAPER = "Tune something", "Trials", "Studies", "The paper"
# What wrong options raise; where it lives differs between versions of Typer.
_USAGE: type[Exception] = next(one for one in typer.BadParameter.__mro__ if one.__name__ == "ClickException")
app.command(cls=SpaceCommand, rich_help_panel=_STUDIES)(studies.new)
app.command(rich_help_panel=_STUDIES)(studies.ask)
app.command(rich_help_panel=_STUDIES, context_settings=_NUMBERS)(record.tell)
app.command(rich_help_panel=_STUDIES, context_settings=_NUMBERS)(record.crash)
app.command(rich_help_panel=_STUDIES)(record.skip)
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
app.command("list", rich_help_panel=_SHELF)(manage.list_)
app.command(cls=SpaceCommand, rich_help_panel=_SHELF)(manage.edit)
app.command(rich_help_panel=_SHELF)(manage.rename)
app.command(rich_help_panel=_SHELF)(manage.remove)
app.command(rich_help_panel=_PAPER)(demo.demo)
app.command(rich_help_panel=_PAPER)(reproduce.reproduce)


def main() -> None:
    """Run the command line; wrong options and errors we raise on purpose become one line and exit code 2."""
    gc.set_threshold(500_000)  # a command makes 250,000 objects and hardly any garbage; see also `stay`
    atexit.register(gc.freeze)  # when it ends, the system takes all memory back: nothing has to be looked through
    try:
        code = app(prog_name="crashbo", standalone_mode=False)
    except typer.Abort:
        _fail("stopped; nothing was written.", 1)
    except (CrashBOError, OSError) as error:
        _fail(str(error))
    except _USAGE as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # its message is the whole help
            typer.echo(str(error))
            sys.exit(2)
        _fail(_one_line(error))
    sys.exit(code if isinstance(code, int) else 0)


def _fail(words: str, code: int = 2) -> NoReturn:
    from crashbo.studies.values import visible

    typer.echo(visible(f"crashbo: {words}"), err=True)
    sys.exit(code)


def _one_line(error: Any) -> str:
    """What is wrong with an option, and where to look."""
    words = " ".join(error.format_message().split())
    command = getattr(getattr(error, "ctx", None), "command_path", "crashbo")
    return f"{words}{'' if words.endswith(('.', '?')) else '.'} See `{command} --help`."
