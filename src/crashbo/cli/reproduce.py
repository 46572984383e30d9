"""The command that reproduces the paper."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crashbo.cli.options import JsonOption
from crashbo.errors import InputError

if TYPE_CHECKING:
    from crashbo.research.reproduce.methods import PaperSettings

_RUNS, _SEED = 20, 1000  # seeds from 1000 on were never used while developing


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


class StrategyName(StrEnum):
    """Which strategies run."""

    paper = "paper"
    default = "default"
    both = "both"


class Hyperparameters(StrEnum):
    """Where the hyperparameters of the paper's strategy come from."""

    fixed = "fixed"
    learned = "learned"


class Sampler(StrEnum):
    """How the paper's strategy samples the minimum."""

    virtual = "virtual"
    pathwise = "pathwise"


_TAKES = {
    Experiment.example1: ("plots",),
    Experiment.cases: ("seed", "strategy", "plots"),
    Experiment.all_crash: ("runs", "seed", "strategy"),
}
_ALL = ("runs", "seed", "strategy", "hyperparameters", "sampler", "starts", "plots")
_PAPER_ONLY = ("hyperparameters", "sampler", "starts")


def reproduce(
    name: Annotated[Experiment, typer.Argument(help="Which experiment of the paper.")],
    runs: Annotated[
        int | None, typer.Option(min=1, help="How many runs, with seeds from --seed on.  [default: 20]")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(min=0, help="Same seed and machine, same result.  [default: 1000]")
    ] = None,
    strategy: Annotated[
        StrategyName | None, typer.Option(help="The paper's method, CrashBO's default, or both.  [default: both]")
    ] = None,
    hyperparameters: Annotated[
        Hyperparameters | None, typer.Option(help="Of the paper's method.  [default: fixed, as in the paper]")
    ] = None,
    sampler: Annotated[
        Sampler | None, typer.Option(help="Of the minimum, paper's method.  [default: virtual, as in the paper]")
    ] = None,
    starts: Annotated[
        int | None, typer.Option(min=1, help="Random points before a virtual search; 1 is as printed.  [default: 200]")
    ] = None,
    plots: Annotated[Path | None, typer.Option(help="Folder for the pictures.")] = None,
    json_output: JsonOption = False,
) -> None:
    """Reproduce an experiment of the paper: its method, CrashBO's default, and random search on the same seeds."""
    given = {
        "runs": runs,
        "seed": seed,
        "strategy": strategy,
        "hyperparameters": hyperparameters,
        "sampler": sampler,
        "starts": starts,
        "plots": plots,
    }
    asked = _check(name, {key: value for key, value in given.items() if value is not None})
    if plots is not None:
        plots.mkdir(parents=True, exist_ok=True)  # better refused now than after an hour
    with _progress(str(name.value)) as advance:
        found, words, draw = _experiment(name, asked, advance)
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


@dataclass(frozen=True)
class _Asked:
    """What the command was asked for, complete."""

    runs: int
    seed: int
    strategy: str
    learned: bool
    sampler: str
    starts: int

    @property
    def paper(self) -> "PaperSettings":
        from crashbo.research.reproduce.methods import PaperSettings

        return PaperSettings(self.learned, self.sampler, self.starts)

    @property
    def shared(self) -> dict[str, Any]:
        """What every experiment with runs takes."""
        return {"runs": self.runs, "seed": self.seed, "strategy": self.strategy}


def _check(name: Experiment, given: dict[str, Any]) -> _Asked:
    """Refuse what an experiment does not take, and fill in the rest."""
    takes = _TAKES.get(name, _ALL)
    for option in given:
        if option not in takes:
            allowed = ", ".join(f"--{one}" for one in takes)
            raise InputError(f"`--{option}` must be left out with {name.value}, which takes {allowed}.")
        if option in _PAPER_ONLY and given.get("strategy") == StrategyName.default:
            raise InputError(
                f"`--{option}` must be left out with `--strategy default`: only the paper's method takes it."
            )
    if "starts" in given and given.get("sampler") == Sampler.pathwise:
        raise InputError("`--starts` must be left out with `--sampler pathwise`: only virtual evaluations take it.")
    return _Asked(
        given.get("runs", _RUNS),
        given.get("seed", _SEED),
        str(given.get("strategy", StrategyName.both)),
        given.get("hyperparameters") == Hyperparameters.learned,
        str(given.get("sampler", Sampler.virtual)),
        given.get("starts", 200),
    )


def _experiment(name: Experiment, asked: _Asked, advance: Progress) -> Found:
    """Run an experiment; numbers, words, and what draws its pictures into a folder."""
    if name is Experiment.example1:
        return _example1()
    if name is Experiment.cases:
        return _cases(asked)
    if name is Experiment.all_crash:
        return _all_crash(asked, advance)
    if name is Experiment.penalties:
        return _penalties(asked, advance)
    if name.value.startswith("robot"):
        return _robot(name, asked, advance)
    return _simulations(name, asked, advance)


def _example1() -> Found:
    from crashbo.research.reproduce.example1 import example1

    result = example1()
    return result.summary(), result.words(), result.draw


def _cases(asked: _Asked) -> Found:
    from crashbo.research.reproduce.cases import make_case
    from crashbo.research.reproduce.methods import methods_of

    strategies = [one for one in methods_of(asked.strategy) if one != "random"]
    cases = [[make_case(number, seed=asked.seed, strategy=one) for number in (1, 2, 3, 4)] for one in strategies]

    def draw(folder: Path) -> list[Path]:
        from crashbo.research.reproduce.figures import draw_cases

        return [path for group in cases for path in draw_cases(group, folder)]

    flat = [case for group in cases for case in group]
    found = {"name": "cases", "cases": [case.summary() for case in flat]}
    return found, "\n".join(case.words() for case in flat), draw


def _simulations(name: Experiment, asked: _Asked, advance: Progress) -> Found:
    """Run one simulation, or all of them for the statistical comparison."""
    from crashbo.research.reproduce.simulations import SIMULATIONS
    from crashbo.research.reproduce.simulations import reproduce as simulate

    every = name is Experiment.statistics
    reports = [
        simulate(one, **asked.shared, paper=asked.paper, progress=advance)
        for one in (SIMULATIONS if every else [name.value])
    ]

    def draw(folder: Path) -> list[Path]:
        from crashbo.research.reproduce.figures import draw_report, draw_statistics

        return draw_statistics(reports, folder) if every else draw_report(reports[0], folder, paper=asked.paper)

    if not every:
        return reports[0].summary(), reports[0].words(), draw
    found = {"name": name.value, "simulations": {one.name: one.summary() for one in reports}}
    return found, "\n\n".join(one.words() for one in reports), draw


def _robot(name: Experiment, asked: _Asked, advance: Progress) -> Found:
    from crashbo.research.reproduce.robot import reproduce_robot

    report = reproduce_robot(name.value, **asked.shared, paper=asked.paper, progress=advance)

    def draw(folder: Path) -> list[Path]:
        from crashbo.research.reproduce.robot_figures import draw_robot

        return draw_robot(report, folder, paper=asked.paper)

    return report.summary(), report.words(), draw


def _penalties(asked: _Asked, advance: Progress) -> Found:
    from crashbo.research.reproduce.penalties import reproduce_penalties

    report = reproduce_penalties(**asked.shared, paper=asked.paper, progress=advance)

    def draw(folder: Path) -> list[Path]:
        from crashbo.research.reproduce.robot_figures import draw_penalties

        return draw_penalties(report, folder)

    return report.summary(), report.words(), draw


def _all_crash(asked: _Asked, advance: Progress) -> Found:
    from crashbo.research.reproduce.methods import METHODS
    from crashbo.research.reproduce.simulations import reproduce_all_crash

    found = reproduce_all_crash(**asked.shared, progress=advance)
    counts = "; ".join(
        f"{METHODS[method]} {one['median_trials_to_success']:g}" for method, one in found["methods"].items()
    )
    words = f"Where 95 % of the square crashes, median trials to the first success ({asked.runs} runs each): {counts}."
    return found, words, lambda folder: []


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
