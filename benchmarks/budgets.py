"""What runs with a crash budget reach: regret and crashes for budgets of 0, 1, 3 and 5, from a known success.

    python -m benchmarks.budgets [--draws 1000-1029] [--trials 50] [--budgets 0,1,3,5] [--json]

Problems are draws of the suite without random crashes, which no budget can avoid. Every run begins with the same known
success, the median of the successes among 64 random points, and is told how many trials it has. Regret is divided by
the known success's own: 1 means that nothing was gained.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import json
import math
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.suite.__main__ import parse_draws
from benchmarks.suite.draws import draw
from benchmarks.suite.problem import Problem
from crashbo import CRASHED, Optimizer, Options

NO_BUDGET = -1


def known_success(problem: Problem, seed: int) -> dict[str, Any] | None:
    """The median of what succeeds among random points; None where nothing does."""
    points = problem.space.sample(64, np.random.default_rng([seed, 9]))
    values, succeeds = problem.truth(np.stack([problem.row(point) for point in points]))
    held = sorted((float(value), i) for i, value in enumerate(values) if succeeds[i])
    return points[held[len(held) // 2][1]] if held else None


def regrets(problem: Problem, seed: int, start: dict[str, Any], budget: int, trials: int) -> tuple[list[float], int]:
    """Regret after every trial over that of the known success, and the number of crashes."""
    options = Options(crash_budget=None if budget == NO_BUDGET else budget, n_trials=trials)
    optimizer = Optimizer(problem.space, seed=seed, options=options)
    first = problem.run(start, seed, 0)
    optimizer.tell(start, first.value if first.cost is None else first.cost)
    best, crashes, found = first.value, 0, []
    for trial in range(1, trials):
        params = optimizer.ask()
        outcome = problem.run(params, seed, trial)
        optimizer.tell(params, CRASHED if outcome.cost is None else outcome.cost)
        crashes += outcome.cost is None
        best = min(best, outcome.value)
        found.append((best - problem.optimum) / max(first.value - problem.optimum, 1e-300))
    return found, crashes


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draws", default="1000-1029")
    parser.add_argument("--trials", type=int, default=50)
    parser.add_argument("--budgets", default="0,1,3,5,-1", help="numbers with commas; -1 is no budget")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    console = Console(stderr=True)
    rows: dict[int, list[tuple[float, float, int]]] = {int(one): [] for one in asked.budgets.split(",")}
    for number in track(list(parse_draws(asked.draws)), console=console, description="draws"):
        problem = draw(number)
        start = known_success(problem, number)
        if problem.crash_rate > 0 or start is None:
            continue
        for budget, kept in rows.items():
            found, crashes = regrets(problem, number, start, budget, asked.trials)
            kept.append((found[min(20, asked.trials) - 2], found[-1], crashes))
    if asked.json:
        print(json.dumps(rows))
        return
    table = Table("crash budget", "problems", "regret at 20", f"at {asked.trials}", "mean crashes", "most", "above it")
    for budget, kept in rows.items():
        early, late, crashes = (np.array(part, dtype=float) for part in zip(*kept, strict=True))
        name = "none" if budget == NO_BUDGET else str(budget)
        above = "-" if budget == NO_BUDGET else f"{np.mean(crashes > budget):.0%}"
        geometric = [f"{math.exp(np.log(np.maximum(part, 1e-6)).mean()):.3g}" for part in (early, late)]
        table.add_row(name, str(len(kept)), *geometric, f"{crashes.mean():.1f}", f"{crashes.max():.0f}", above)
    Console().print(table)


if __name__ == "__main__":
    main()
