"""Trials to the first success where almost everything crashes: discs and slivers placed at random.

    python -m benchmarks.first_success [--places 30] [--trials 200] [--json]

In two and in three dimensions the feasible set is a disc, or a sliver ten times as long as it is wide, of 20, 5 and 1 %
of the space. Beside CrashBO: random search, a Sobol sequence, and Optuna's TPE, told the crashes as pruned trials.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import json
import math
from collections.abc import Callable

import numpy as np
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.suite.methods import make_method
from benchmarks.suite.problem import Problem
from crashbo import Space

METHODS = ("crashbo", "random", "sobol", "tpe-pruned")
SHARES = (0.8, 0.95, 0.99)
Inside = Callable[[np.ndarray], np.ndarray]


def place(shape: str, d: int, crashing: float, rng: np.random.Generator) -> Inside:
    """A feasible set of the right volume, wholly inside the unit cube, at a random place and angle."""
    stretch = np.ones(d)
    if shape == "sliver":
        stretch[0] = 10.0
    ball = math.pi ** (d / 2) / math.gamma(d / 2 + 1)
    width = ((1 - crashing) / (ball * stretch.prod())) ** (1 / d)
    turn, _ = np.linalg.qr(rng.standard_normal((d, d)))
    for _ in range(10_000):
        centre = rng.random(d)
        reach = np.sqrt(np.square(turn * width * stretch).sum(-1))
        if ((centre - reach >= 0) & (centre + reach <= 1)).all():
            break
        turn, _ = np.linalg.qr(rng.standard_normal((d, d)))
    return lambda X: np.square((X - centre) @ turn / (width * stretch)).sum(-1) <= 1


def trials_needed(method: str, d: int, inside: Inside, seed: int, most: int) -> float:
    """Trials up to and with the first success; infinity if there is none."""

    def truth(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return np.zeros(len(X)), inside(X)

    space = Space({f"x{i}": (0.0, 1.0) for i in range(d)})
    problem = Problem("place", "", space, most, truth, 0.0, (0.0,) * d)
    optimizer = make_method(method, problem, seed)
    for trial in range(1, most + 1):
        params = optimizer.ask()
        if inside(problem.row(params)[None])[0]:
            return trial
        optimizer.tell(params, None)
    return math.inf


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--places", type=int, default=30)
    parser.add_argument("--trials", type=int, default=200)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    cases = [(shape, d, share) for shape in ("disc", "sliver") for d in (2, 3) for share in SHARES]
    cases = [case for case in cases if case[0] == "disc" or case[2] > 0.9]  # a sliver of 20 % is wider than the cube
    found: dict[str, dict[str, list[float]]] = {}
    for shape, d, share in track(cases, console=Console(stderr=True), description="cases"):
        name = f"{shape}, {d}-D, {share:.0%} crash"
        found[name] = {method: [] for method in METHODS}
        for seed in range(asked.places):
            inside = place(shape, d, share, np.random.default_rng([seed, d, round(100 * share), len(shape)]))
            for method in METHODS:
                found[name][method].append(trials_needed(method, d, inside, seed, asked.trials))
    if asked.json:
        print(json.dumps(found))
        return
    table = Table(
        "feasible set", *METHODS, title=f"median trials to the first success (found in {asked.trials} trials)"
    )
    for name, row in found.items():
        cells = [f"{np.median(row[one]):.0f} ({np.mean(np.isfinite(row[one])):.0%})" for one in METHODS]
        table.add_row(name, *cells)
    Console().print(table)


if __name__ == "__main__":
    main()
