"""What a suggestion costs in the middle of a run, beside Optuna's GPSampler and LogEI times a classifier.

    python -m benchmarks.suggestions [--json] [--growth]

Each method is told the same trials at random points, a quarter of them crashed, then asked and told in turn.
Reported is processor time per suggestion: the mean over several asks, so that learning hyperparameters, which
does not happen at every trial, is counted at its share, and the first one, of a process that has just been
started. `--growth` shows CrashBO alone, up to 1000 trials, and where its time goes.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before anything imports torch: for the peers, CrashBO sees to it itself

import argparse
import json
import time
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.table import Table

from benchmarks.suite.methods import make_method
from benchmarks.suite.problem import Problem
from crashbo import CRASHED, Optimizer, Space

PEERS = {"crashbo": 10, "gpsampler-worst": 10, "logei-classifier": 2}  # asks of each
SIZES = [(n, d) for d in (2, 6, 10) for n in (30, 100, 300)]


def truth(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A smooth cost of any dimension; a quarter of the cube crashes, for reasons of its own."""
    cost = np.square(X - 0.6).sum(-1) + 0.3 * np.sin(6 * X).sum(-1)
    other = np.cos(3 * X[:, 0] + 1) + np.cos(4 * X[:, 1] + 2)
    return cost, other <= -0.25


def problem(d: int) -> Problem:
    """The problem in the unit cube."""
    return Problem("smooth", "", Space({f"x{i}": (0.0, 1.0) for i in range(d)}), 1000, truth, 0.0, (0.6,) * d)


def measure(name: str, n: int, d: int, asks: int) -> tuple[float, float]:
    """Processor seconds of the first suggestion after n trials, and the mean of those after it."""
    one = problem(d)
    method = make_method(name, one, 0)
    for number, params in enumerate(one.space.sample(n, np.random.default_rng(1))):
        method.tell(params, one.run(params, 0, number).cost)
    times = []
    for number in range(n, n + asks + 1):
        begin = time.process_time()
        params = method.ask()
        times.append(time.process_time() - begin)
        method.tell(params, one.run(params, 0, number).cost)
    return times[0], float(np.mean(times[1:]))


def compare(sizes: list[tuple[int, int]]) -> list[dict[str, Any]]:
    """Times of all methods, in milliseconds."""
    rows = []
    for n, d in sizes:
        row: dict[str, Any] = {"n": n, "d": d}
        for name, asks in PEERS.items():
            first, mean = measure(name, n, d, asks)
            row |= {name: 1e3 * mean, f"{name} first": 1e3 * first}
        for name in ("gpsampler-worst", "logei-classifier"):
            row[f"share of {name}"] = row["crashbo"] / row[name]
        rows.append(row)
    return rows


def grow(sizes: list[tuple[int, int]]) -> list[dict[str, Any]]:
    """CrashBO's parts, in milliseconds: learning from scratch, from nearby, one more trial, minima, the search."""
    rows = []
    for n, d in sizes:
        one = problem(d)
        optimizer = Optimizer(one.space)
        for number, params in enumerate(one.space.sample(n, np.random.default_rng(1))):
            cost = one.run(params, 0, number).cost
            optimizer.tell(params, CRASHED if cost is None else cost)
        row: dict[str, Any] = {"n": n, "d": d}
        size = min(n, 250)  # more is not learned from
        _, row["learn from scratch"] = _timed(optimizer._build, size)
        before = optimizer._build(size - size // 10 - 1)
        _, row["learn from nearby"] = _timed(partial(optimizer._build, relearn=True), size, before)
        _, row["one more trial"] = _timed(optimizer._build, n, optimizer._build(min(n - 1, 250)))
        optimizer.surrogates()
        search = optimizer.search()
        _, row["samples of the minimum"] = _timed(search._minima, search.models)
        _, row["decide, all in all"] = _timed(search.next)
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
        table.add_row(*(f"{value:.2f}" if "share" in name else f"{value:.0f}" for name, value in row.items()))
    Console(width=160).print(table)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print the figures as JSON")
    parser.add_argument("--growth", action="store_true", help="CrashBO alone, up to 1000 trials")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    measure("crashbo", 10, 2, 1)
    sizes = [(n, d) for d in (2, 6) for n in (10, 30, 100, 300, 1000)] if arguments.growth else SIZES
    rows = grow(sizes) if arguments.growth else compare(sizes)
    if arguments.json:
        print(json.dumps(rows, indent=2))
    else:
        show(rows, "milliseconds of processor time, one thread")


if __name__ == "__main__":
    main()
