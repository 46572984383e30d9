"""The average over hyperparameters against brute-force integration, on eight small data sets.

    python -m benchmarks.average [--count 8000]

Prints mean errors of the mean, the standard deviation and the success probability at 40 points, and processor time of
learning. The truth is importance sampling from the prior.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import time
from collections.abc import Callable
from dataclasses import replace

import numpy as np
from rich.console import Console
from rich.table import Table
from tests.model.data import integrate, small_block
from tests.model.test_average import SETS, errors

from crashbo.model.average import ModelSet, learn, weigh, weigh_all
from crashbo.model.belief import Output
from crashbo.model.block import Block
from crashbo.model.numbers import NUMBERS

MORE = [(2, 8, 1, "own"), (3, 8, 1, "high"), (6, 10, 2, "own"), (7, 10, 2, "high")]
ONE = replace(NUMBERS, most_models=1)
WAYS: dict[str, Callable[[Block], ModelSet]] = {
    "the most probable hyperparameters alone": lambda block: weigh(learn(block, ONE), block),
    "all averaged, twelve kept (the default)": lambda block: weigh(learn(block), block),
    "all averaged, all kept": weigh_all,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=8000)
    count = parser.parse_args().count
    points = np.random.default_rng(9).random((40, 2))
    found: dict[str, list[np.ndarray]] = {name: [] for name in WAYS}
    for seed, n, d, relation in SETS + MORE:
        block = small_block(seed, n, d, relation)
        truth = integrate(block, points[:, :d], count)
        for name, way in WAYS.items():
            begin = time.process_time()
            models = way(block)
            seconds = time.process_time() - begin
            found[name].append(np.array([*errors(Output(models), truth, points[:, :d]), seconds]))
    table = Table("", "mean (standard deviations)", "log standard deviation", "success probability", "seconds")
    for name, each in found.items():
        table.add_row(name, *(f"{value:.3f}" for value in np.mean(each, 0)))
    Console().print(table)


if __name__ == "__main__":
    main()
