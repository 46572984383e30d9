"""One run: a method on a problem with a seed, trial by trial."""

import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.suite.methods import make_method
from benchmarks.suite.methods.base import Method
from benchmarks.suite.problem import Outcome, Problem
from benchmarks.suite.problems import find_problem
from benchmarks.suite.records import Key, Row


@dataclass(frozen=True)
class _Asked:
    """A suggestion that is out, and what it took."""

    params: Mapping[str, Any]
    seconds: float
    cpu_seconds: float
    success_probability: float | None
    due: float


def run_one(key: Key, trials: int | None = None) -> list[Row]:
    """Run a method on a problem and return its rows.

    Args:
        key: problem, method and seed.
        trials: fewer than the problem's budget, to try things out.
    """
    name, method_name, seed = key
    problem = find_problem(name)
    return run_method(key, problem, make_method(method_name, problem, seed), trials)


def run_method(key: Key, problem: Problem, method: Method, trials: int | None = None) -> list[Row]:
    """The rows of a method that is made already.

    The shared design is told first, unless the method starts on its own. Then the method is asked for a trial whenever
    fewer than its workers are out. Durations of trials are drawn evenly between 0.5 and 1.5, so with several workers
    trials end in mixed order.
    """
    seed = key[2]
    budget = min(problem.budget, trials or problem.budget)
    rows: list[Row] = []
    for params in [] if method.own_start else problem.design(seed)[:budget]:
        outcome = problem.run(params, seed, len(rows) + 1)
        method.tell(params, outcome.cost)
        rows.append(_row(key, problem, rows, outcome, None))
    rng, clock, out = np.random.default_rng([seed, 4]), 0.0, list[_Asked]()
    while len(rows) < budget:
        while len(out) < min(method.workers, budget - len(rows)):
            out.append(_ask(method, clock + float(rng.uniform(0.5, 1.5))))
        asked = min(out, key=lambda one: one.due)
        out = [one for one in out if one is not asked]
        clock = asked.due
        outcome = problem.run(asked.params, seed, len(rows) + 1)
        method.tell(asked.params, outcome.cost)
        rows.append(_row(key, problem, rows, outcome, asked))
    return rows


def _ask(method: Method, due: float) -> _Asked:
    begin, cpu = time.perf_counter(), time.process_time()
    params = method.ask()
    seconds, cpu_seconds = method.ask_times or (time.perf_counter() - begin, time.process_time() - cpu)
    return _Asked(params, seconds, cpu_seconds, method.success_probability, due)


def _row(key: Key, problem: Problem, rows: list[Row], outcome: Outcome, asked: _Asked | None) -> Row:
    best = min(rows[-1].best if rows else math.inf, outcome.value)
    return Row(
        *key,
        trial=len(rows) + 1,
        crashed=outcome.cost is None,
        value=None if outcome.cost is None else outcome.value,
        best=best,
        regret=best - problem.optimum,
        ask_seconds=None if asked is None else asked.seconds,
        ask_cpu_seconds=None if asked is None else asked.cpu_seconds,
        success_probability=None if asked is None else asked.success_probability,
    )
