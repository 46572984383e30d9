"""Problems that run somebody else's code: BoTorch's constrained functions, Gymnasium's Ant; and the robot."""

from collections.abc import Callable
from functools import cache
from typing import Any, TypeAlias

import numpy as np
import torch
from botorch.test_functions import synthetic
from numpy.typing import NDArray

from crashbo.problem.outcome import Label
from crashbo.problem.space import Space
from crashbo.research.problems.ant import SPACE, Ant
from crashbo.research.problems.pole import POLES

Array: TypeAlias = NDArray[np.float64]
Result: TypeAlias = tuple[Array, NDArray[np.bool_]]

REPEATS = 20
"""Roll-outs, always the same ones, whose mean cost counts as the true cost of a controller."""
_FIRST_SEED = 2_000_000  # far from the seeds of the trials


def constrained_function(name: str) -> Any:
    """Return a constrained test function of BoTorch by the name of its class."""
    return getattr(synthetic, name)(dtype=torch.float64)


def function_space(function: Any) -> Space:
    """Return the space of a test function of BoTorch, in its own units."""
    return Space({f"x{i + 1}": (float(low), float(high)) for i, (low, high) in enumerate(function.bounds.T.tolist())})


def function_truth(function: Any) -> Callable[[Array], Result]:
    """Return costs and successes of a test function; a trial succeeds where no constraint is violated."""

    def truth(X: Array) -> Result:
        points = torch.from_numpy(np.ascontiguousarray(X))
        with torch.no_grad():
            cost = function.evaluate_true(points).numpy()
            slack = function.evaluate_slack_true(points).numpy()
        # A point that divides by zero, as some corners of these boxes do, fails too.
        finite = np.isfinite(cost) & np.isfinite(slack).all(-1)
        return cost, finite & (slack >= 0).all(-1)

    return truth


def pole_truth(name: str) -> Callable[[Array], Result]:
    """Return mean costs over the same roll-outs; a controller succeeds if it balances in all of them."""
    robot = POLES[name].without_recovery()

    def one(row: Array) -> float:
        params = dict(zip(robot.space.names, row.tolist(), strict=True))
        costs = []
        for seed in range(_FIRST_SEED, _FIRST_SEED + REPEATS):
            cost = robot.rollout(params, seed).cost
            if cost is None:
                return np.inf
            costs.append(cost)
        return float(np.mean(costs))

    def truth(X: Array) -> Result:
        cost = np.array([one(row) for row in X])
        return cost, np.isfinite(cost)

    return truth


def pole_experiment(name: str) -> Callable[[dict[str, Any], np.random.Generator], float | None]:
    """Return one roll-out as an experiment: its cost, None if it was cut short."""
    robot = POLES[name].without_recovery()

    def experiment(params: dict[str, Any], rng: np.random.Generator) -> float | None:
        told = robot.evaluate(params, int(rng.integers(1_000_000))).objective
        return None if isinstance(told, Label) else float(told)

    return experiment


_ANT_REPEATS = 5


@cache
def _ant() -> Ant:
    return Ant()


def ant_truth(X: Array) -> Result:
    """Return mean costs over the same roll-outs of Gymnasium's Ant; a gait succeeds if it never falls in them."""

    def one(row: Array) -> float:
        params = dict(zip(SPACE.names, row.tolist(), strict=True))
        costs = []
        for seed in range(_FIRST_SEED, _FIRST_SEED + _ANT_REPEATS):
            cost = _ant().rollout(params, seed).cost
            if cost is None:
                return np.inf
            costs.append(cost)
        return float(np.mean(costs))

    cost = np.array([one(row) for row in X])
    return cost, np.isfinite(cost)


def ant_experiment(params: dict[str, Any], rng: np.random.Generator) -> float | None:
    """One walk: its cost, None after a fall."""
    return _ant().rollout(params, int(rng.integers(1_000_000))).cost
