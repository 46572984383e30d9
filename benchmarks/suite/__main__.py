"""The suite's command: run, scores, table, plots, calibration, optima."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before anything imports torch; workers inherit it

import math
import sys
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from crashbo.errors import InputError

app = typer.Typer(
    help="CrashBO beside the other ways to handle crashes.", no_args_is_help=True, pretty_exceptions_enable=False
)
Out = Annotated[Path, typer.Option(help="Folder of the results.")]
Problems = Annotated[str, typer.Option(help="Names with commas, or 'all'; `list` shows them.")]
Methods = Annotated[str, typer.Option(help="Names with commas, or 'all' that are installed; `list` shows them.")]
Draws = Annotated[str, typer.Option(help="Drawn problems, as 0-99 or 3,1000-1009.")]
_OUT = Path("benchmarks/results")


@app.command("list")
def list_() -> None:
    """Show the problems and the methods."""
    from benchmarks.suite.methods import installed, method_names
    from benchmarks.suite.problems import GROUPS, problems

    for group, words in GROUPS.items():
        typer.echo(f"{group}: {words}")
        for problem in problems().values():
            if problem.group == group:
                facts = f"{len(problem.space)}D, {problem.budget} trials, {problem.initial} of them the shared design"
                typer.echo(f"  {problem.name:18} {facts}, optimum {problem.optimum:.6g}")
    typer.echo("methods:")
    for name in method_names():
        typer.echo(f"  {name:24} {'' if installed(name) else 'not installed'}")


@app.command()
def run(
    problems: Problems = "all",
    methods: Methods = "all",
    seeds: Annotated[str, typer.Option(help="As 0-19 or 0,3,5. A draw has one seed, its number.")] = "0-19",
    draws: Draws = "",
    out: Out = _OUT,
    workers: Annotated[int, typer.Option(min=1, help="Processes at a time.")] = 1,
    trials: Annotated[int | None, typer.Option(min=1, help="Fewer than the budgets, to try things out.")] = None,
) -> None:
    """Run what is not on disk yet. Safe to kill: the same command goes on where it stopped.

    With `--draws` alone no listed problem is run.
    """
    from benchmarks.suite.jobs import FAILURES, Finished, left_to_do, list_draws, list_jobs, run_jobs

    listed = [] if draws and problems == "all" else _pick_problems(problems)
    jobs = list_jobs(listed, _pick_methods(methods), parse_seeds(seeds))
    jobs += list_draws(parse_draws(draws), _pick_methods(methods))
    console = Console(stderr=True)
    todo = left_to_do(out, jobs, trials)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, TimeRemainingColumn(), console=console) as bar:
        task = bar.add_task("runs", total=len(jobs), completed=len(jobs) - len(todo))

        def report(finished: Finished) -> None:
            bar.advance(task)
            bar.console.print(_line(finished), highlight=False)

        try:
            failed = run_jobs(out, jobs, workers=workers, trials=trials, report=report)
        except KeyboardInterrupt:
            console.print("Stopped. Finished runs are kept; the same command goes on.")
            raise typer.Exit(130) from None
    if failed:
        console.print(f"{failed} runs failed: see {out / FAILURES}. The same command tries them again.")
        raise typer.Exit(1)


@app.command()
def table(out: Out = _OUT, problems: Problems = "all", methods: Methods = "all") -> None:
    """Print the tables and keep them as table.md."""
    from benchmarks.suite.tables import render

    text = render(_rows(out, problems, methods))
    (out / "table.md").write_text(text)
    typer.echo(text)


@app.command()
def scores(
    out: Out = _OUT,
    draws: Draws = "",
    methods: Methods = "all",
    against: Annotated[str, typer.Option(help="A method to compare with each other one, draw by draw.")] = "",
    at: Annotated[str, typer.Option(help="Trials at which to score, with commas.")] = "20,50",
    json: Annotated[bool, typer.Option("--json", help="Numbers for programs instead of Markdown.")] = False,
) -> None:
    """Print the scores over drawn problems: regret over random search's, crashes, ranks."""
    from json import dumps

    from benchmarks.suite.methods import method_names
    from benchmarks.suite.scores import make_report, render

    if against:
        _pick("against", against, list(method_names()))
    if not all(one.strip().isdigit() and int(one) > 0 for one in at.split(",")):
        raise typer.BadParameter(f"`--at` must be numbers of trials with commas; got {at!r}.")
    checkpoints = sorted({int(one) for one in at.split(",")})
    report = make_report(_drawn_rows(out, draws, methods), against=against or None, checkpoints=checkpoints)
    typer.echo(dumps(report.to_json(), indent=1) if json else render(report))


@app.command()
def calibration(
    out: Out = _OUT,
    problems: Problems = "all",
    methods: Methods = "all",
    first: Annotated[int, typer.Option(min=1, help="Trials before this one are left out.")] = 20,
) -> None:
    """Print how well predicted success probabilities are calibrated, over all problems and for each."""
    from benchmarks.suite.tables import calibration as over_all
    from benchmarks.suite.tables import calibration_by_problem

    rows = _rows(out, problems, methods)
    typer.echo(over_all(rows, first=first) + "\n\n" + calibration_by_problem(rows, first=first))


@app.command()
def plots(out: Out = _OUT, problems: Problems = "all", methods: Methods = "all", theme: str = "light") -> None:
    """Draw regret and crashes of each problem, and the overview, into the folder."""
    from benchmarks.suite.pictures import draw_all

    for path in draw_all(_rows(out, problems, methods), out, theme):
        typer.echo(path)


@app.command()
def optima(problems: Problems = "all", seed: int = 0, draws: Draws = "") -> None:
    """Search the best point of each problem by brute force and compare with the stored one (minutes).

    With `--draws` those are searched instead, and what is better than the file's is written to it.
    """
    if draws:
        _draw_optima(parse_draws(draws), seed)
        return
    from benchmarks.suite.optima import find_optimum
    from benchmarks.suite.problems import problems as known

    for name in _pick_problems(problems):
        value, row = find_optimum(known()[name], seed=seed)
        typer.echo(f'    "{name}": ({value!r}, {row!r}),  # stored {known()[name].optimum!r}')


def parse_seeds(text: str) -> list[int]:
    """Return the seeds of "0-19", "0,3,5" or a mix of both."""
    seeds: list[int] = []
    for part in text.split(","):
        first, _, last = part.strip().partition("-")
        if not first.isdigit() or (last and not last.isdigit()):
            raise InputError(f"`seeds` must look like 0-19 or 0,3,5; got {text!r}.")
        seeds.extend(range(int(first), int(last or first) + 1))
    return list(dict.fromkeys(seeds))


def parse_draws(text: str) -> list[int]:
    """Return the numbers of the draws of "0-99" or "3,1000-1009"; none of an empty text."""
    try:
        return parse_seeds(text) if text else []
    except InputError as error:
        raise InputError(f"`draws` must look like 0-99 or 3,1000-1009; got {text!r}.") from error


def _draw_optima(numbers: list[int], seed: int) -> None:
    from benchmarks.suite.draws.optimum import search_and_store

    for number, before, value in search_and_store(numbers, seed=seed):
        typer.echo(f"draw-{number}: {value!r}, stored {before!r}")


def _drawn_rows(out: Path, draws: str, methods: str) -> list:  # type: ignore[type-arg]
    from benchmarks.suite.draws import draw_number
    from benchmarks.suite.methods import method_names
    from benchmarks.suite.records import read_rows
    from benchmarks.suite.scores import REFERENCE

    wanted = {*_pick("methods", methods, list(method_names())), REFERENCE}
    numbers = set(parse_draws(draws))
    found = [(draw_number(row.problem), row) for row in read_rows(out) if row.method in wanted]
    rows = [row for number, row in found if number is not None and (not numbers or number in numbers)]
    if not any(row.method == REFERENCE for row in rows):
        raise InputError(f"`out` must hold runs of {REFERENCE} on these draws; got none in {out}. Run them first.")
    return rows


def _pick_problems(text: str) -> list[str]:
    from benchmarks.suite.problems import problems

    return _pick("problems", text, list(problems()))


def _pick_methods(text: str) -> list[str]:
    from benchmarks.suite.methods import installed, method_names

    if text == "all":
        return [name for name in method_names() if installed(name)]
    return _pick("methods", text, list(method_names()))


def _pick(what: str, text: str, known: list[str]) -> list[str]:
    if text == "all":
        return known
    wanted = [part.strip() for part in text.split(",")]
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise InputError(f"`{what}` must be among {', '.join(known)}; got {', '.join(unknown)}.")
    return wanted


def _rows(out: Path, problems: str, methods: str) -> list:  # type: ignore[type-arg]
    from benchmarks.suite.methods import method_names
    from benchmarks.suite.problems import problems as known
    from benchmarks.suite.records import read_rows

    names, wanted = _pick("problems", problems, list(known())), _pick("methods", methods, list(method_names()))
    rows = [row for row in read_rows(out) if row.problem in names and row.method in wanted]
    if not rows:
        raise InputError(f"`out` must hold results of these problems and methods; got none in {out}. Run them first.")
    return rows


def _line(finished: object) -> str:
    problem, method, seed = finished.key  # type: ignore[attr-defined]
    head = f"{problem} {method} seed {seed}:"
    if finished.error:  # type: ignore[attr-defined]
        return f"{head} FAILED, {finished.error.strip().splitlines()[-1]}"  # type: ignore[attr-defined]
    rows = finished.rows  # type: ignore[attr-defined]
    regret = rows[-1].regret
    asks = sum(row.ask_seconds or 0.0 for row in rows)
    end = "nothing succeeded" if math.isinf(regret) else f"regret {regret:.3g}"
    return f"{head} {end}, {sum(row.crashed for row in rows)} crashes of {len(rows)}, {asks:.1f} s asking"


def main() -> None:
    """Run the command; a mistake of the user's is one line, not a traceback."""
    try:
        app()
    except InputError as error:
        typer.echo(f"Error: {error}", err=True)
        sys.exit(2)


if __name__ == "__main__":
    main()
