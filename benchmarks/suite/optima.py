"""Look for the best point of a problem by brute force; how the stored optima were found."""

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.stats import qmc

from benchmarks.suite import engineering
from benchmarks.suite.problem import Array, Problem
from crashbo.problem.space import Categorical

_FUNCTIONS = {
    "gramacy": "ConstrainedGramacy",
    "chartmann6": "ConstrainedHartmann",
    "vessel": "PressureVessel",
    "reducer": "SpeedReducer",
    "beam": "WeldedBeamSO",
    "spring": "TensionCompressionString",
}
# The best cell of the robot's grid (docs/robot.md); among five weights the same controller is that with ones elsewhere.
_GRID_BEST = {
    "pole2d": (0.3125, 0.3875),
    "pole5d": (0.0, 0.3125, 0.0, 0.0, 0.3875),
    "arm2d": (0.7375, 0.2625),
    "arm5d": (0.044, 1.0, 0.948, 0.0, 0.441),
}


def find_optimum(problem: Problem, *, seed: int = 0, points: int = 17) -> tuple[float, tuple[float, ...]]:
    """Return the lowest cost found where trials succeed, and the row of it.

    Args:
        problem: to search.
        seed: of the search.
        points: log2 of how many Sobol points to look at first.
    """
    if problem.name in _GRID_BEST:
        starts = np.array([_GRID_BEST[problem.name]])
    else:
        X = sobol_rows(problem, points, seed)
        if problem.name in _FUNCTIONS:
            X = np.concatenate([X, _slsqp(problem, X, seed)])
        if problem.name == "michalewicz10":
            X = np.concatenate([X, _coordinate_wise(problem)])
        cost, succeeds = problem.truth(X)
        starts = X[np.argsort(np.where(succeeds, cost, np.inf))[:6]]
    rng = np.random.default_rng(seed)
    ends = [_polish(problem, start, rng, 6 if problem.experiment else 64) for start in starts]
    best = min(ends, key=lambda end: end[0])
    return best[0], tuple(best[1].tolist())


def sobol_rows(problem: Problem, points: int, seed: int) -> Array:
    """Return 2^points rows spread over the space."""
    unit = qmc.Sobol(len(problem.space), seed=np.random.default_rng(seed)).random_base2(points)
    low, high = _box(problem)
    choices = _choices(problem)
    rows = low + unit * (high - low)
    rows[:, choices] = np.minimum(np.floor(rows[:, choices]), high[choices] - 1)
    return np.asarray(rows)


def _coordinate_wise(problem: Problem, cells: int = 20_001) -> Array:
    """Minimise a sum over coordinates one by one on a fine grid, crashes ignored, and step aside at random."""
    d = len(problem.space)
    best = np.zeros(d)
    for index in range(d):
        rows = np.zeros((cells, d))
        rows[:, index] = np.linspace(0, 1, cells)
        best[index] = rows[problem.truth(rows)[0].argmin(), index]
    return (best + 1e-3 * np.random.default_rng(0).standard_normal((256, d))).clip(0, 1)


def _box(problem: Problem) -> tuple[Array, Array]:
    """Bounds of the rows; a choice among k goes from 0 to k."""
    pairs = [(0.0, float(one.size)) if isinstance(one, Categorical) else _range(one) for one in problem.space.values()]
    return np.array([low for low, _ in pairs]), np.array([high for _, high in pairs])


def _range(parameter: object) -> tuple[float, float]:
    return float(parameter.low), float(parameter.high)  # type: ignore[attr-defined]


def _choices(problem: Problem) -> NDArray[np.bool_]:
    return np.array([isinstance(one, Categorical) for one in problem.space.values()])


def _polish(problem: Problem, start: Array, rng: np.random.Generator, batch: int) -> tuple[float, Array]:
    """Improve a row by random steps, wider after a success and narrower after a failure."""
    low, high = _box(problem)
    free = ~_choices(problem)
    best, value, width = start, float(np.where(*_pair(problem, start[None]))[0]), 0.1
    while width > 1e-10 and (batch > 6 or width > 3e-3):
        steps = width * rng.standard_normal((batch, len(start))) * (high - low) * free
        tried = (best + steps * rng.choice([1.0, 0.0], (batch, len(start)), p=[0.7, 0.3])).clip(low, high)
        tried[:, ~free] = best[~free]
        costs = np.where(*_pair(problem, tried))
        if costs.min() < value:
            best, value, width = tried[costs.argmin()], float(costs.min()), min(0.2, width * 1.3)
        else:
            width *= 0.85
    return value, best


def _pair(problem: Problem, X: Array) -> tuple[Array, Array, float]:
    """Success, cost and infinity, as `np.where` takes them."""
    cost, succeeds = problem.truth(X)
    return np.asarray(succeeds), cost, np.inf


def _slsqp(problem: Problem, X: Array, seed: int, starts: int = 40) -> Array:
    """Solve with the constraints in sight, from random starts, a hair inside the constraints."""
    import torch

    function = engineering.constrained_function(_FUNCTIONS[problem.name])
    low, high = _box(problem)

    def slack(unit: Array) -> Array:
        row = torch.from_numpy(low + unit * (high - low))[None]
        return np.nan_to_num(function.evaluate_slack_true(row)[0].numpy(), nan=-1e6, posinf=1e6, neginf=-1e6)

    def cost(unit: Array) -> float:
        return float(function.evaluate_true(torch.from_numpy(low + unit * (high - low))[None])[0])

    found = []
    scale = np.abs([slack((row - low) / (high - low)) for row in X[:256]]).mean(0).clip(1e-12)
    inside = {"type": "ineq", "fun": lambda unit: slack(unit) / scale - 1e-10}
    for row in np.random.default_rng(seed).choice(X, starts, replace=False):
        begin = (row - low) / (high - low)
        result = minimize(cost, begin, method="SLSQP", bounds=[(0, 1)] * len(low), constraints=[inside], tol=1e-12)
        found.append(low + result.x.clip(0, 1) * (high - low))
    return np.array(found)
