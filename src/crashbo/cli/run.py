"""`crashbo run`: tune any program in any language."""

import math
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crashbo.cli.options import (
    BudgetOption,
    ChoiceOption,
    ConstraintOption,
    FloatOption,
    IntOption,
    JsonOption,
    LogOption,
    RiskOption,
    StorageOption,
    StrategyOption,
    StudyOption,
    UnitOption,
    print_json,
    say,
    stay,
)
from crashbo.cli.studies import MaximizeOption, SeedChoice, SpaceOption, define
from crashbo.errors import InputError

if TYPE_CHECKING:
    from crashbo.store.asking import Asked
    from crashbo.store.definition import Definition
    from crashbo.store.programs import Ending
    from crashbo.store.study import Study

_INTERRUPTED = 130


def run(
    command: Annotated[
        list[str], typer.Argument(metavar="-- COMMAND [ARGS]...", help="With {name} for parameters, after `--`.")
    ],
    trials: Annotated[int, typer.Option(min=1, help="How many shall have ended, crashed ones too.")] = 30,
    workers: Annotated[int, typer.Option(min=1, help="How many programs run at the same time.")] = 1,
    timeout: Annotated[float | None, typer.Option(min=0.001, help="Seconds; longer is a crash.")] = None,
    transient_exit: Annotated[
        str, typer.Option(metavar="CODES", help="Exit codes that say nothing about the params, as 75,111.")
    ] = "",
    logs: Annotated[Path | None, typer.Option(help="Folder that keeps the output of every trial.")] = None,
    space: SpaceOption = None,
    floats: FloatOption = None,
    logscale: LogOption = None,
    ints: IntOption = None,
    choices: ChoiceOption = None,
    constraints: ConstraintOption = None,
    maximize: MaximizeOption = False,
    seed: SeedChoice = None,
    strategy: StrategyOption = None,
    units: UnitOption = None,
    risk: RiskOption = None,
    crash_budget: BudgetOption = None,
    storage: StorageOption = None,
    study: StudyOption = None,
    json_output: JsonOption = False,
) -> None:
    """Tune any program: `crashbo run --float kp 0 10 -- ./simulate {kp}`; the same command resumes.

    Its last line of output is the cost, or a line of JSON: {"objective": 0.7, "reach": 11.2}. It also finds its
    parameters in CRASHBO_KP and CRASHBO_PARAMS. A non-zero exit, a signal or a timeout is a crash.
    """
    stay()
    options = {"risk": risk, "crash_budget": crash_budget}
    definition = define(space, floats, logscale, ints, choices, constraints, maximize, seed, units, options, strategy)
    codes = _codes(transient_exit)
    if shutil.which(command[0]) is None and "{" not in command[0]:
        raise InputError(f"`command` must be a program that can be found; got {command[0]!r}. Check its path.")
    if definition is not None:
        _check_names(command, definition)
    opened = _open_patiently(storage, study, definition)
    _check_names(command, opened.definition)
    from crashbo.store.programs import Program
    from crashbo.store.running import Runner

    program = Program(tuple(command), timeout, codes, logs)
    with _display(opened, trials) as display:
        runner = Runner(opened, program, trials, workers, display.notice, display.warn)
        with _stopping(runner.interrupt):
            interrupted = runner.run()
    _conclude(opened, json_output, interrupted)
    if interrupted:
        raise typer.Exit(_INTERRUPTED)


def _check_names(command: list[str], definition: "Definition") -> None:
    """Let a wrong placeholder show before anything is made or run."""
    from crashbo.store.programs import fill

    fill(command, definition, dict.fromkeys(definition.space), 0)


def _codes(text: str) -> frozenset[int]:
    words = [word.strip() for word in text.split(",") if word.strip()]
    wrong = [word for word in words if not word.isdigit() or not 0 < int(word) < 256]
    if wrong:
        raise InputError(f"`--transient-exit` must be exit codes from 1 to 255, as 75,111; got {wrong[0]!r}.")
    return frozenset(int(word) for word in words)


def _open_patiently(storage: str | None, name: str | None, definition: "Definition | None") -> "Study":
    """Open or make the study; a server that is away is waited for, as during the run."""
    from crashbo.store.patience import Patience
    from crashbo.store.storage import StudyError, find_place

    place = find_place(storage, name)
    if place.file is not None:
        return _open_or_make(storage, name, definition)
    patience = Patience(math.inf, lambda words: typer.echo(f"{place} is away ({words}): waiting for it.", err=True))
    try:
        with _stopping(patience.stop.set):
            return patience.repeat(lambda: _open_or_make(storage, name, definition))
    except StudyError as error:
        if patience.stop.is_set():
            raise typer.Exit(_INTERRUPTED) from error
        raise


def _open_or_make(storage: str | None, name: str | None, definition: "Definition | None") -> "Study":
    """Open the study; make it if it is missing and the options say what it is about."""
    from crashbo.store.storage import StudyError, find_place
    from crashbo.store.study import create_study, open_study, study_exists

    place = find_place(storage, name)
    if definition is not None and not study_exists(place):
        try:
            return create_study(place, definition)
        except StudyError:
            if not study_exists(place):  # otherwise another run made it at the same moment
                raise
    opened = open_study(place)
    if definition is not None and definition != opened.definition:
        from crashbo.store.words import differences

        raise StudyError(
            f"The study {opened.place.study!r} in {opened.place} differs: "
            f"{'; '.join(differences(definition, opened.definition))}. Leave the space and settings out to go on with "
            "it, change it with `crashbo edit`, or say another name with --study."
        )
    return opened


@contextmanager
def _stopping(stop: Callable[[], None]) -> Iterator[None]:
    """Let Ctrl-C, SIGTERM and a closed terminal end the run in good order."""
    signals = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {number: signal.signal(number, lambda *_: stop()) for number in signals}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@dataclass
class _Display:
    """Progress on stderr: a bar for a person, a line for each trial."""

    study: "Study"
    bar: Any
    task: Any
    crashed: int = 0
    under_way: set[int] = field(default_factory=set)

    def notice(self, asked: "Asked", ending: "Ending | None") -> None:
        from crashbo.store.values import sentence

        if ending is None:
            self.under_way.add(asked.number)
            self.bar.update(self.task, words=self._words())
            return
        self.under_way.discard(asked.number)
        self.warn(f"trial {asked.number}: {_outcome(ending)}   {sentence(asked.params)}")
        self.update()

    def warn(self, line: str) -> None:
        """Print a line; if it cannot be printed the run goes on."""
        from crashbo.store.values import visible

        with suppress(OSError):
            self.bar.console.print(visible(line), markup=False, soft_wrap=True)

    def update(self) -> None:
        """Read the study, which other machines may work on too."""
        from crashbo.store.study import best_seen, counts

        records = self.study.records()
        tally = counts(self.study.definition, records)
        seen = best_seen(self.study.definition, records)
        best = "" if seen is None else f"best {seen.objective:.6g} (trial {seen.number})"
        done, self.crashed = tally["finished"] + tally["crashed"], tally["crashed"]
        self.bar.update(self.task, completed=done, words=self._words(), best=best)

    def _words(self) -> str:
        return f"{self.crashed} crashed, {len(self.under_way)} under way"


@contextmanager
def _display(study: "Study", trials: int) -> Iterator[_Display]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console = Console(stderr=True, highlight=False)
    texts = (TextColumn("{task.fields[words]}"), TextColumn("{task.fields[best]}"))
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), *texts, TimeElapsedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as bar:
        task = bar.add_task(study.place.study, total=trials, words="", best="")
        display = _Display(study, bar, task)
        display.update()
        yield display


def _outcome(ending: "Ending") -> str:
    if ending.objective is not None:
        return f"{ending.objective:.6g}"
    status = "transient" if ending.status == "unreadable" else ending.status
    return f"{status} ({ending.reason})" if ending.reason else status


def _conclude(study: "Study", json_output: bool, interrupted: bool) -> None:
    """Say where the study stands."""
    from crashbo.cli.tables import best_words
    from crashbo.store.study import best_seen, counts

    records = study.records()
    tally = counts(study.definition, records)
    outlook = None
    if tally["finished"] + tally["crashed"] and not interrupted:
        from crashbo.store.model import look

        outlook = look(study)
    seen = best_seen(study.definition, records)
    if json_output:
        trial = None if seen is None else {"number": seen.number, "objective": seen.objective, "params": seen.params}
        best = None if outlook is None else {**vars(outlook.best), **outlook.to_json()}
        print_json({"counts": tally, "interrupted": interrupted, "best": best, "best_trial": trial})
        return
    words = "Interrupted; the same command goes on from here. " if interrupted else ""
    typer.echo(f"{words}{tally['finished']} trials finished, {tally['crashed']} crashed.")
    if outlook is not None:
        say(best_words(study.definition, outlook, seen))
