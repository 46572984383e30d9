"""CrashBO beside version 0.1.0 and others with 10, 20 and 30 parameters.

    python -m benchmarks.many [--seeds 1000-1004] [--trials 80] [--methods crashbo,crashbo-0.1.0,...] [--out FILE]

Two problems in every dimension: a bowl that crashes where costs are high, and Ackley's function that crashes beyond a
plane unrelated to it. Prints the median over the seeds of regret over random search's, and the crashes. Finished runs
are kept in the file; the same command goes on where it stopped.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import json
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.progress import track
from rich.table import Table

from benchmarks.suite.__main__ import parse_draws
from benchmarks.suite.methods import make_method
from benchmarks.suite.problem import Problem
from benchmarks.suite.runs import run_method
from crashbo.problem.space import Float, Space

Array = NDArray[np.float64]
RANDOM = "random"


def bowl(d: int) -> Problem:
    """A bowl of widths 1 to 3 around a point inside; the highest half of the costs crashes."""
    centre = np.random.default_rng([d, 1]).uniform(0.2, 0.8, d)
    weights = np.geomspace(1.0, 9.0, d)

    def cost(X: Array) -> Array:
        return np.asarray(np.square(X - centre) @ weights)

    limit = float(np.median(cost(np.random.default_rng([d, 2]).random((4096, d)))))
    return _problem(f"bowl{d}", d, lambda X: (cost(X), cost(X) <= limit), centre)


def ackley(d: int) -> Problem:
    """Ackley's function around a point inside; two fifths of the space, beyond a plane, crash."""
    rng = np.random.default_rng([d, 3])
    centre, normal = rng.uniform(0.3, 0.7, d), rng.standard_normal(d)
    offset = float(np.quantile(rng.random((4096, d)) @ normal, 0.6))
    if centre @ normal > offset:
        normal, offset = -normal, -offset

    def cost(X: Array) -> Array:
        far = 4 * (X - centre)
        valley = -20 * np.exp(-0.2 * np.sqrt(np.square(far).mean(-1)))
        return np.asarray(valley - np.exp(np.cos(2 * np.pi * far).mean(-1)) + 20 + np.e)

    return _problem(f"ackley{d}", d, lambda X: (cost(X), X @ normal <= offset), centre)


def _problem(name: str, d: int, truth: object, centre: Array) -> Problem:
    space = Space({f"x{i}": Float(0.0, 1.0) for i in range(d)})
    return Problem(name, "many", space, 1000, truth, 0.0, tuple(centre))  # type: ignore[arg-type]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", default="1000-1004")
    parser.add_argument("--trials", type=int, default=80)
    parser.add_argument("--dimensions", default="10,20,30")
    parser.add_argument("--methods", default="crashbo,crashbo-0.1.0,tpe-pruned,gpsampler-worst")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/many.json"))
    asked = parser.parse_args()
    seeds, methods = list(parse_draws(asked.seeds)), [RANDOM, *asked.methods.split(",")]
    problems = [make(int(d)) for d in asked.dimensions.split(",") for make in (bowl, ackley)]
    kept: dict[str, tuple[float, int]] = json.loads(asked.out.read_text()) if asked.out.exists() else {}
    asked.out.parent.mkdir(parents=True, exist_ok=True)
    keys = [(problem, method, seed) for problem in problems for seed in seeds for method in methods]
    for problem, method, seed in track(keys, console=Console(stderr=True), description="runs"):
        key = f"{problem.name} {method} {seed} {asked.trials}"
        if key not in kept:
            made = make_method(method, problem, seed)
            rows = run_method((problem.name, method, seed), problem, made, asked.trials)
            kept[key] = (rows[-1].regret, sum(row.crashed for row in rows))
            asked.out.write_text(json.dumps(kept))
    table = Table("problem", *methods[1:])
    for problem in problems:
        cells = []
        for method in methods[1:]:
            mine, base = (
                np.array([kept[f"{problem.name} {one} {seed} {asked.trials}"] for seed in seeds])
                for one in (method, RANDOM)
            )
            cells.append(f"{np.median(mine[:, 0] / base[:, 0]):.3g} ({mine[:, 1].mean():.1f} crashes)")
        table.add_row(problem.name, *cells)
    Console().print(table)


if __name__ == "__main__":
    main()
