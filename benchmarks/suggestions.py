"""What a suggestion costs in the middle of a run, beside Optuna's GPSampler and LogEI times a classifier.

    python -m benchmarks.suggestions [--json] [--growth]

Each method is told the same trials at random points, a quarter of them crashed, then asked and told in turn.
Reported is processor time per suggestion, and time on the clock: the mean over several asks, so that learning
hyperparameters, which does not happen at every trial, is counted at its share, and the first one, of a process that
has just been started. Methods that are not installed are left out (`make v010` installs CrashBO 0.1.0, the extra
`botorch` LogEI). `--growth` shows CrashBO alone, up to 1000 trials, and where its time goes.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # for the peers, CrashBO sees to it itself

import argparse
import json
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from benchmarks.suite.methods import installed, make_method
from benchmarks.suite.problem import Problem
from crashbo import CRASHED, Optimizer, Space

PEERS = {"crashbo": 10, "crashbo-0.1.0": 10, "gpsampler-worst": 10, "logei-classifier": 2}  # asks of each
SIZES = [(n, d) for d in (2, 6, 10) for n in (30, 100, 300)]


def truth(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A smooth cost of any dimension; a quarter of the cube crashes, for reasons of its own."""
    cost = np.square(X - 0.6).sum(-1) + 0.3 * np.sin(6 * X).sum(-1)
    other = np.cos(3 * X[:, 0] + 1) + np.cos(4 * X[:, 1] + 2)
    return cost, other <= -0.25


def problem(d: int) -> Problem:
    """The problem in the unit cube."""
    return Problem("smooth", "", Space({f"x{i}": (0.0, 1.0) for i in range(d)}), 1000, truth, 0.0, (0.6,) * d)


def measure(name: str, n: int, d: int, asks: int) -> tuple[float, float, float]:
    """Processor seconds of the first suggestion after n trials, mean of those after it, and the same on the clock."""
    one = problem(d)
    method = make_method(name, one, 0)
    for number, params in enumerate(one.space.sample(n, np.random.default_rng(1))):
        method.tell(params, one.run(params, 0, number).cost)
    walls, times = [], []
    for number in range(n, n + asks + 1):
        wall, begin = time.perf_counter(), time.process_time()
        params = method.ask()
        here = time.perf_counter() - wall, time.process_time() - begin
        wall, spent = getattr(method, "ask_times", None) or here  # a method in another process measures there
        walls.append(wall)
        times.append(spent)
        method.tell(params, one.run(params, 0, number).cost)
    return times[0], float(np.mean(times[1:])), float(np.mean(walls[1:]))


def compare(sizes: list[tuple[int, int]]) -> list[dict[str, Any]]:
    """Times of all methods, in milliseconds."""
    rows = []
    for n, d in sizes:
        row: dict[str, Any] = {"n": n, "d": d}
        peers = {name: asks for name, asks in PEERS.items() if installed(name)}
        for name, asks in peers.items():
            first, mean, wall = measure(name, n, d, asks)
            row |= {name: 1e3 * mean, f"{name} first": 1e3 * first, f"{name} clock": 1e3 * wall}
        for name in list(peers)[1:]:
            row[f"share of {name}"] = row["crashbo"] / row[name]
        rows.append(row)
    return rows


def by_method(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The times of `compare` with a row for each method."""
    found = []
    for row in rows:
        for name in (name for name in PEERS if name in row):
            times = {"processor": row[name], "first": row[f"{name} first"], "clock": row[f"{name} clock"]}
            share = row["crashbo"] / row[name]
            found.append({"n": row["n"], "d": row["d"], "method": name, **times, "CrashBO's share": share})
    return found


def grow(sizes: list[tuple[int, int]]) -> list[dict[str, Any]]:
    """CrashBO's parts, in milliseconds: the models, a suggestion, the best guess, the models of one more trial."""
    rows = []
    for n, d in sizes:
        one = problem(d)
        optimizer = Optimizer(one.space)
        for number, params in enumerate(one.space.sample(n, np.random.default_rng(1))):
            cost = one.run(params, 0, number).cost
            optimizer.tell(params, CRASHED if cost is None else cost)
        row: dict[str, Any] = {"n": n, "d": d}
        _, row["models from scratch"] = _timed(optimizer.surrogate)
        _, row["suggestion"] = _timed(optimizer.copy().ask)
        _, row["best guess"] = _timed(optimizer.best)
        more = optimizer.copy()
        more.tell(one.space.sobol(1, 9)[0], 1.0)
        _, row["models of one more trial"] = _timed(more.surrogate)
        rows.append(row)
    return rows


def _timed(job: Callable[..., Any], *arguments: Any) -> tuple[Any, float]:
    begin = time.process_time()
    found = job(*arguments)
    return found, 1e3 * (time.process_time() - begin)


def show(rows: list[dict[str, Any]], title: str) -> None:
    """Print a table."""
    table = Table(title=title)
    for name in rows[0]:
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(*(_cell(name, value) for name, value in row.items()))
    Console(width=160).print(table)


def _cell(name: str, value: Any) -> str:
    return value if isinstance(value, str) else f"{value:.2f}" if "share" in name else f"{value:.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--growth", action="store_true", help="CrashBO alone, up to 1000 trials")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    measure("crashbo", 10, 2, 1)
    sizes = [(n, d) for d in (2, 6) for n in (10, 30, 100, 300, 1000)] if arguments.growth else SIZES
    rows = grow(sizes) if arguments.growth else compare(sizes)
    if arguments.json:
        print(json.dumps(rows, indent=2))
    else:
        show(rows if arguments.growth else by_method(rows), "milliseconds, one thread")


if __name__ == "__main__":
    main()
