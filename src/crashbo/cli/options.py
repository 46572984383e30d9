"""Options that several commands share."""

import contextlib
import gc
import json
import os
import sys
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from crashbo.errors import InputError

JsonOption = Annotated[bool, typer.Option("--json", help="Print results as JSON.")]
SeedOption = Annotated[int, typer.Option(help="Same seed and machine, same result.")]
StorageOption = Annotated[
    str | None,
    typer.Option(help="A SQLite file or an Optuna storage URL; also CRASHBO_STORAGE.  [default: crashbo.db]"),
]
StudyOption = Annotated[
    str | None, typer.Option("--study", help="The study's name; also CRASHBO_STUDY.  [default: the only one]")
]
StrategyOption = Annotated[
    str | None,
    typer.Option("--strategy", metavar="NAME", help="default, or paper: the paper's method.  [default: default]"),
]
FloatOption = Annotated[list[str] | None, typer.Option("--float", metavar="NAME LOW HIGH", help="A real number.")]
LogOption = Annotated[
    list[str] | None, typer.Option("--log", metavar="NAME LOW HIGH", help="A real number on a log scale.")
]
IntOption = Annotated[list[str] | None, typer.Option("--int", metavar="NAME LOW HIGH", help="An integer.")]
ChoiceOption = Annotated[list[str] | None, typer.Option("--choice", metavar="NAME A,B,...", help="One of some words.")]
ConstraintOption = Annotated[
    list[str] | None,
    typer.Option(
        "--constraint", metavar="NAME[=LIMIT]", help="An output to keep below a limit; without one it is learned."
    ),
]
UnitOption = Annotated[list[str] | None, typer.Option("--unit", metavar="NAME=UNIT", help="For people: kp=N/m.")]
ByOption = Annotated[str, typer.Option(envvar="CRASHBO_BY", help="Who says so; kept with it.", show_default=False)]
KeyOption = Annotated[
    str | None, typer.Option(metavar="TEXT", help="Repeated with the same key it is stored once.", show_default=False)
]
RiskOption = Annotated[
    float | None,
    typer.Option(min=0.001, max=1.0, help="Share of trials that may crash; 1 takes every risk.  [default: 0.2]"),
]
TryOption = Annotated[
    list[str] | None, typer.Option("--try", metavar="NAME=VALUE ...", help="A point to try first; repeat it for more.")
]
YesOption = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
BudgetOption = Annotated[
    int | None, typer.Option(min=0, help="How many trials may crash, all told: the fewer are left, the more care.")
]

_SEPARATOR = "\x1f"
_OPEN = ("--try", "--was")  # take name=value words, as many as follow
_LENGTHS = {"--float": 3, "--log": 3, "--int": 3, "--choice": 2}


class SpaceCommand(TyperCommand):
    """A command with repeated options of several values, `--float kp 0 10`, which Typer cannot declare."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Join the values of such an option into one, up to `--`."""
        end = args.index("--") if "--" in args else len(args)
        return super().parse_args(ctx, [*join_values(args[:end]), *args[end:]])


def join_values(args: list[str]) -> list[str]:
    """Return arguments with the values of options of several values joined."""
    joined: list[str] = []
    left = list(args)
    while left:
        word = left.pop(0)
        joined.append(word)
        count = _LENGTHS.get(word, 0) if word not in _OPEN else _pairs(left)
        if count:
            joined.append(_SEPARATOR.join(left[:count]))
            del left[:count]
    return joined


def _pairs(words: list[str]) -> int:
    """How many words at the beginning are name=value."""
    ends = [index for index, word in enumerate(words) if word.startswith("--") or "=" not in word]
    return min(ends, default=len(words))


def split_point(text: str) -> dict[str, str]:
    """Return the names and texts of a point given as name=value words."""
    from crashbo.store.values import split_pairs

    return split_pairs(text.split(_SEPARATOR))


def confirm(question: str, yes: bool) -> None:
    """Ask a person; without one, refuse.

    Raises:
        InputError: if there is nobody to ask.
        typer.Abort: if the answer is no.
    """
    if yes:
        return
    if not sys.stdin.isatty():
        raise InputError(f"{question} There is nobody to ask: say --yes if that is meant.")
    typer.confirm(question, abort=True)


def split_values(option: str, text: str) -> list[str]:
    """Return the values of one option of several values."""
    values = text.split(_SEPARATOR)
    if len(values) != _LENGTHS[option] or any(value.startswith("--") for value in values):
        shape = "NAME LOW HIGH" if _LENGTHS[option] == 3 else "NAME A,B,..."
        raise typer.BadParameter(f"{option} takes {shape}; got {' '.join(values) or 'nothing'}.")
    return values


def stay() -> None:
    """Look for garbage more often than other commands do: this one may run for days."""
    gc.set_threshold(50_000)


def say(text: str) -> None:
    """Print lines; whatever they hold does nothing to a terminal."""
    from crashbo.store.values import visible

    typer.echo("\n".join(visible(line) for line in text.split("\n")))


def say_stored(text: str) -> None:
    """Print what was stored. If that cannot be printed it is stored all the same: a line on stderr, and no error."""
    try:
        say(text)
        sys.stdout.flush()
    except (OSError, UnicodeError) as error:
        _give_up_stdout()
        with contextlib.suppress(OSError, UnicodeError):
            typer.echo(f"crashbo: It is stored, but that could not be printed ({error}).", err=True)


def _give_up_stdout() -> None:
    """Let nothing else fail on an output that is full or closed, such as its last flush."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_json(data: Any) -> None:
    """Print plain data as JSON; NaN, which JSON lacks, becomes null."""
    typer.echo(to_json(data))


def to_json(data: Any) -> str:
    """Return plain data as JSON; NaN, which JSON lacks, becomes null."""
    return json.dumps(_plain(data), indent=2)


def _plain(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _plain(value) for key, value in data.items()}
    if isinstance(data, (list, tuple)):
        return [_plain(value) for value in data]
    return None if isinstance(data, float) and data != data else data
