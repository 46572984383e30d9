"""Methods that learn nothing."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from benchmarks.suite.methods.base import Sequential
from benchmarks.suite.problem import Problem


class Random(Sequential):
    """Uniform trials after the shared design."""

    def __init__(self, problem: Problem, seed: int) -> None:
        self._space = problem.space
        self._rng = np.random.default_rng([seed, 77])

    def ask(self) -> dict[str, Any]:
        return self._space.sample(1, self._rng)[0]

    def tell(self, params: Mapping[str, Any], cost: float | None) -> None:
        pass


class Sobol(Sequential):
    """The sequence of the shared design, continued."""

    def __init__(self, problem: Problem, seed: int) -> None:
        self._points = problem.space.sobol(problem.budget, seed)
        self._told = 0

    def ask(self) -> dict[str, Any]:
        return self._points[self._told]

    def tell(self, params: Mapping[str, Any], cost: float | None) -> None:
        self._told += 1
