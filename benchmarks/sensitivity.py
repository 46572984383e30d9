"""What every hand-set number of the default strategy does when it is halved and doubled, on tuning draws.

    python -m benchmarks.sensitivity [--draws 0-59] [--trials 20] [--only price_step,debts]

Prints, for each number, the geometric mean over the draws of regret relative to the default's, and its standard error
as a factor. Finished settings are kept in the file; the same command goes on where it stopped.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.suite.__main__ import parse_draws
from benchmarks.suite.draws import draw
from benchmarks.suite.methods.crashbo_ import CrashBO
from benchmarks.suite.runs import run_method
from crashbo.model.numbers import NUMBERS, Numbers

LEAST, MOST = 1e-3, 1e3  # ratios of one draw that count
PARTS = {  # numbers that are several, each moved alone: what is moved, its place, and whether it is a logarithm
    "lengthscale": (("centre", 0, True), ("common", 1, False), ("own", 2, False)),
    "variance": (("spread", 1, False),),  # its centre, 1, is that of standardised values
    "noise": (("centre", 0, True), ("spread", 1, False)),
    "threshold": (("mean", 0, False), ("spread", 1, False)),
}
SKIPPED = ("reason_count",)  # no draw has crashes with named reasons


def settings(numbers: Numbers = NUMBERS) -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    """Each number's name, with the changes that halve and double it."""
    found: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}
    for field in fields(numbers):
        name, now = field.name, getattr(numbers, field.name)
        if name in SKIPPED:
            continue
        if name in PARTS:
            for part, place, logarithm in PARTS[name]:
                found[f"{name}, {part}"] = _both(name, _move_part(now, place, logarithm))
        elif isinstance(now, (int, float)):
            found[name] = _both(name, _move(now))
        elif name == "debts":
            found[name] = _both(name, lambda factor, bounds=now: tuple(factor * bound for bound in bounds))
        else:
            found[name] = _both(name, _move_table(name, now))
    return found


def _both(name: str, moved: Callable[[float], Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    return {name: moved(0.5)}, {name: moved(2.0)}


def _move(now: float) -> Callable[[float], float]:
    return lambda factor: type(now)(now * factor)


def _move_part(now: tuple[float, ...], place: int, logarithm: bool) -> Callable[[float], tuple[float, ...]]:
    def moved(factor: float) -> tuple[float, ...]:
        one = now[place] + math.log(factor) if logarithm else now[place] * factor
        return (*now[:place], one, *now[place + 1 :])

    return moved


def _move_table(name: str, now: tuple[tuple[Any, float], ...]) -> Callable[[float], tuple[tuple[Any, float], ...]]:
    """Of a table with prior weights: the entries; of correlations their atanh; of kernels the odds of the second."""

    def moved(factor: float) -> tuple[tuple[Any, float], ...]:
        if name == "kernels":
            odds = factor * now[1][1] / now[0][1]
            return (now[0][0], 1 / (1 + odds)), (now[1][0], odds / (1 + odds))
        if name == "correlations":
            return tuple((math.tanh(factor * math.atanh(rho)), prior) for rho, prior in now)
        return tuple((entry * factor, prior) for entry, prior in now)

    return moved


def regrets(numbers: Mapping[str, Any], draws: list[int], trials: int, console: Console) -> list[float]:
    """Regret of every draw after the last trial."""
    found = []
    for number in track(draws, console=console, transient=True, description=", ".join(numbers) or "default"):
        problem = draw(number)
        rows = run_method((problem.name, "", number), problem, CrashBO(problem, number, numbers=numbers), trials)
        found.append(rows[-1].regret)
    return found


def relative(mine: list[float], base: list[float]) -> tuple[float, float]:
    """Geometric mean of the ratio of regrets, and its standard error as a factor, over runs with a success."""
    held = [(a, b) for a, b in zip(mine, base, strict=True) if math.isfinite(a) and math.isfinite(b)]
    logs = np.log(np.clip([max(a, 1e-300) / max(b, 1e-300) for a, b in held], LEAST, MOST))
    return math.exp(logs.mean()), math.exp(logs.std(ddof=1) / math.sqrt(len(logs)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", default="0-59")
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--only", help="Numbers with commas; all if not given.")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/sensitivity.json"))
    asked = parser.parse_args()
    console = Console(stderr=True)
    draws = list(parse_draws(asked.draws))
    kept: dict[str, list[float]] = json.loads(asked.out.read_text()) if asked.out.exists() else {}
    asked.out.parent.mkdir(parents=True, exist_ok=True)

    def measured(name: str, numbers: Mapping[str, Any]) -> list[float]:
        key = f"{name} {asked.draws} {asked.trials}"
        if key not in kept:
            kept[key] = regrets(numbers, draws, asked.trials, console)
            asked.out.write_text(json.dumps(kept))
        return kept[key]

    base = measured("default", {})
    table = Table("number", "halved", "standard error", "doubled", "standard error")
    only = asked.only.split(",") if asked.only else None
    for name, changes in settings().items():
        if only is not None and name.split(",")[0] not in only:
            continue
        pair = [
            relative(measured(f"{name} {word}", one), base)
            for word, one in zip(("halved", "doubled"), changes, strict=True)
        ]
        table.add_row(name, *(f"{value:.2f}" for one in pair for value in one))
    Console().print(table)


if __name__ == "__main__":
    main()
