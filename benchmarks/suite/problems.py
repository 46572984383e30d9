"""The problems of the suite, by name."""

import math
from functools import cache

from benchmarks.suite import engineering, functions
from benchmarks.suite.best import BEST
from benchmarks.suite.draws import BUDGET, draw, draw_number
from benchmarks.suite.problem import Problem, Truth
from crashbo.problem.space import Categorical, Float, Space
from crashbo.research.problems.ant import SPACE as ANT

GROUPS = {
    "paper": "the paper's cases, everything hidden on violation",
    "robot": "a robot that balances a pole, another that walks",
    "checkerboard": "crashes where the product of sin(2 pi x_i) is positive",
    "constrained": "BoTorch's constrained functions, everything hidden on violation",
    "random": "crashes that depend on nothing",
    "noisy": "noise and discs that crash",
    "categorical": "a choice and two numbers",
    "unrelated": "crashes unrelated to the cost",
}


def _cube(d: int) -> Space:
    return Space({f"x{i + 1}": (0.0, 1.0) for i in range(d)})


def _make(name: str, group: str, space: Space, budget: int, truth: Truth, **more: object) -> Problem:
    optimum, minimiser = BEST.get(name, (math.nan, ()))
    return Problem(name, group, space, budget, truth, optimum, minimiser, **more)  # type: ignore[arg-type]


def _botorch(name: str, kind: str, budget: int) -> Problem:
    function = engineering.constrained_function(kind)
    return _make(
        name, "constrained", engineering.function_space(function), budget, engineering.function_truth(function)
    )


def _pole(name: str, robot: str, d: int, budget: int) -> Problem:
    return _make(
        name,
        "robot",
        _cube(d),
        budget,
        engineering.pole_truth(robot),
        experiment=engineering.pole_experiment(robot),
    )


@cache
def problems() -> dict[str, Problem]:
    """Return all problems by name, in the order of the tables."""
    square = _cube(2)
    wide = Space({"x1": Float(-5.0, 5.0), "x2": Float(-5.0, 5.0)})
    tools = Space({"x1": (0.0, 1.0), "x2": (0.0, 1.0), "tool": Categorical(["mill", "drill", "laser"])})
    # Of the paper's cases 2 and 3 (Simulation II) nothing is left to tell apart once everything is hidden on violation.
    listed = [
        _make("sim1", "paper", square, 30, functions.sim1, noise_std=0.01),
        _make("case2", "paper", square, 50, functions.case2, noise_std=0.01),
        _make("case4", "paper", square, 50, functions.case4, noise_std=0.01),
        _pole("pole2d", "robot2d-v1", 2, 50),
        _pole("pole5d", "robot5d-v1", 5, 80),
        _pole("arm2d", "robot2d", 2, 50),
        _pole("arm5d", "robot5d", 5, 80),
        _make("ant", "robot", ANT, 80, engineering.ant_truth, experiment=engineering.ant_experiment),
        _make("eggcrate", "checkerboard", square, 50, functions.egg_crate),
        _make("hartmann6", "checkerboard", _cube(6), 100, functions.hartmann6),
        _make("michalewicz10", "checkerboard", _cube(10), 120, functions.michalewicz),
        _botorch("gramacy", "ConstrainedGramacy", 50),
        _botorch("chartmann6", "ConstrainedHartmann", 100),
        _botorch("vessel", "PressureVessel", 80),
        _botorch("reducer", "SpeedReducer", 100),
        _botorch("beam", "WeldedBeamSO", 80),
        _botorch("spring", "TensionCompressionString", 80),
        _make("random-branin", "random", square, 50, functions.plain_branin, crash_rate=0.15),
        _make("random-hartmann3", "random", _cube(3), 60, functions.plain_hartmann3, crash_rate=0.25),
        _make("noisy-ackley", "noisy", square, 60, functions.ackley_disks, noise_std=0.2),
        _make("machine", "categorical", tools, 60, functions.machine),
        _make("disks", "unrelated", wide, 50, functions.disks),
        _make("fence", "unrelated", square, 50, functions.fence),
        _make("corners", "unrelated", square, 50, functions.corners),
        _make("bands", "unrelated", square, 50, functions.bands),
    ]
    return {problem.name: problem for problem in listed}


def find_problem(name: str) -> Problem:
    """Return the problem of a name, listed or drawn."""
    number = draw_number(name)
    return problems()[name] if number is None else draw(number)


def find_budget(name: str) -> int:
    """Return the trials of a run, without making a drawn problem."""
    return problems()[name].budget if draw_number(name) is None else BUDGET
