"""The command line. Commands import what they need when they run: `--help` stays fast."""

import atexit
import gc
import importlib
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

import crashbo
from crashbo.cli.options import SpaceCommand
from crashbo.errors import CrashBOError

if TYPE_CHECKING:
    app: typer.Typer  # all commands; made on first use

_STUDIES, _RECORDS, _SHELF, _PAPER = "Tune something", "Trials", "Studies", "The paper"
_SPACE: dict[str, Any] = {"cls": SpaceCommand}
# A value may be negative, and must not be taken for an option.
_NUMBERS: dict[str, Any] = {"context_settings": {"ignore_unknown_options": True}}
# By name: heading in the help, module and function, settings.
_COMMANDS: dict[str, tuple[str, str, str, dict[str, Any]]] = {
    "new": (_STUDIES, "studies", "new", _SPACE),
    "ask": (_STUDIES, "studies", "ask", {}),
    "tell": (_STUDIES, "record", "tell", _NUMBERS),
    "crash": (_STUDIES, "record", "crash", _NUMBERS),
    "skip": (_STUDIES, "record", "skip", {}),
    "status": (_STUDIES, "studies", "status", {}),
    "best": (_STUDIES, "studies", "best", {}),
    "run": (_STUDIES, "run", "run", _SPACE),
    "report": (_STUDIES, "report", "report", {}),
    "console": (_STUDIES, "console", "console", {}),
    "show": (_RECORDS, "studies", "show", {}),
    "correct": (_RECORDS, "record", "correct", _NUMBERS),
    "delete": (_RECORDS, "record", "delete", {}),
    "restore": (_RECORDS, "record", "restore", {}),
    "import": (_RECORDS, "studies", "import_", {}),
    "export": (_RECORDS, "studies", "export", {}),
    "list": (_SHELF, "manage", "list_", {}),
    "edit": (_SHELF, "manage", "edit", _SPACE),
    "rename": (_SHELF, "manage", "rename", {}),
    "remove": (_SHELF, "manage", "remove", {}),
    "demo": (_PAPER, "demo", "demo", {}),
    "reproduce": (_PAPER, "reproduce", "reproduce", {}),
}
# What wrong options raise; where it lives differs between versions of Typer.
_USAGE: type[Exception] = next(one for one in typer.BadParameter.__mro__ if one.__name__ == "ClickException")


def _version(value: bool) -> None:
    if value:
        typer.echo(f"crashbo {crashbo.__version__}")
        raise typer.Exit


def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Bayesian optimization of experiments that can crash."""


def make_app(names: Iterable[str] = tuple(_COMMANDS)) -> typer.Typer:
    """Return the command line with these commands; the modules of others are not imported."""
    made = typer.Typer(
        name="crashbo",
        help="Bayesian optimization of experiments that can crash.",
        no_args_is_help=True,
        add_completion=True,
        pretty_exceptions_enable=False,
    )
    made.callback()(root)
    for name in names:
        panel, module, function, settings = _COMMANDS[name]
        command = getattr(importlib.import_module(f"crashbo.cli.{module}"), function)
        made.command(name, rich_help_panel=panel, **settings)(command)
    return made


def __getattr__(name: str) -> Any:
    if name == "app":
        return make_app()
    raise AttributeError(f"module 'crashbo.cli' has no attribute {name!r}")


def main() -> None:
    """Run the command line; wrong options and errors we raise on purpose become one line and exit code 2."""
    gc.set_threshold(500_000)  # a command makes 250,000 objects and hardly any garbage; see also `stay`
    atexit.register(gc.freeze)  # when it ends, the system takes all memory back: nothing has to be looked through
    called = [word for word in sys.argv[1:2] if word in _COMMANDS]
    app = make_app(called or _COMMANDS)  # setting up all of them takes longer than many a command
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
    from crashbo.store.values import visible

    typer.echo(visible(f"crashbo: {words}"), err=True)
    sys.exit(code)


def _one_line(error: Any) -> str:
    """What is wrong with an option, and where to look."""
    words = " ".join(error.format_message().split())
    command = getattr(getattr(error, "ctx", None), "command_path", "crashbo")
    return f"{words}{'' if words.endswith(('.', '?')) else '.'} See `{command} --help`."
