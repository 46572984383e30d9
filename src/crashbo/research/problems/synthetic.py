"""The paper's simulations on the unit square, and one problem where nearly everything crashes."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from crashbo.problem.arrays import Array
from crashbo.problem.space import Space

Outcome: TypeAlias = dict[str, float | None]


@dataclass(frozen=True)
class Problem:
    """A noisy experiment that can crash, with known truth.

    Attributes:
        objective: noise-free objective as a function of the params, also where it crashes.
        measure: noise-free outcome as a function of the params: a value for each output, or None where it crashed
            (the objective) or was violated (a constraint).
        minimum: the lowest objective among the params that neither crash nor violate a constraint.
        minimiser: the params of that minimum.
        thresholds: limits by output; missing for an output whose failure does not depend on its own value.
        constraints: names of the outputs besides "objective".
    """

    name: str
    space: Space
    objective: Callable[..., Any]
    measure: Callable[..., Outcome]
    minimum: float
    minimiser: Mapping[str, float]
    thresholds: Mapping[str, float]
    constraints: tuple[str, ...] = ()
    noise_std: float = 0.01

    def evaluate(self, params: Mapping[str, object], rng: np.random.Generator) -> Outcome:
        """Run the experiment: labels depend on the noise-free values, then noise is added to each value."""
        truth = self.measure(**self.space.validate(params))
        noise = rng.normal(0.0, self.noise_std, len(truth)).tolist()
        return {
            name: None if value is None else value + error
            for (name, value), error in zip(truth.items(), noise, strict=True)
        }

    def value(self, params: Mapping[str, object]) -> float:
        """Return the noise-free objective, also where it crashes."""
        return float(self.objective(**self.space.validate(params)))

    def feasible(self, params: Mapping[str, object]) -> bool:
        """Return whether the params neither crash nor violate a constraint."""
        return None not in self.measure(**self.space.validate(params)).values()


def gardner(x1: float | Array, x2: float | Array) -> Any:
    """Return the objective of Simulation I, with its second frequency corrected.

    Math: `cos(10 x1) cos(5 x2) + sin(5 x1) + 2`
    """
    return np.cos(10 * x1) * np.cos(5 * x2) + np.sin(5 * x1) + 2


def branin(x1: float | Array, x2: float | Array) -> Any:
    """Return the Branin function on the unit square, with its brackets corrected.

    Math: `(v - 5.1 / (4 pi^2) u^2 + 5 / pi u - 6)^2 + 10 (1 - 1 / (8 pi)) cos(u) + 10`, `u = 15 x1 - 5`, `v = 15 x2`
    """
    u, v = 15 * x1 - 5, 15 * x2
    valley = v - 5.1 / (4 * math.pi**2) * u**2 + 5 / math.pi * u - 6
    return valley**2 + 10 * (1 - 1 / (8 * math.pi)) * np.cos(u) + 10


def circle(x1: float, x2: float) -> float | None:
    """Return the constraint of Simulation II, None outside the circle, where the root does not exist.

    Math: `-sqrt(2/9 - (x1 - 0.5)^2 - (x2 - 0.5)^2) <= 0`
    """
    inside = 2 / 9 - (x1 - 0.5) ** 2 - (x2 - 0.5) ** 2
    return -math.sqrt(inside) if inside >= 0 else None


def bowl(x1: float | Array, x2: float | Array) -> Any:
    """Return a quadratic with its minimum 0 at (0.75, 0.28)."""
    return 40 * (x1 - 0.75) ** 2 + 80 * (x2 - 0.28) ** 2


def _sim1(x1: float, x2: float) -> Outcome:
    return {"objective": _below(1.5, gardner(x1, x2))}


def _sim2(x1: float, x2: float) -> Outcome:
    return {"objective": float(branin(x1, x2)), "g": circle(x1, x2)}


def _case2(x1: float, x2: float) -> Outcome:
    return {"objective": None if circle(x1, x2) is None else float(branin(x1, x2))}


def _case4(x1: float, x2: float) -> Outcome:
    return {"objective": _below(20.0, branin(x1, x2)), "g": circle(x1, x2)}


def _all_crash(x1: float, x2: float) -> Outcome:
    stable = math.pi * ((x1 - 0.72) ** 2 + (x2 - 0.31) ** 2) <= 0.05  # a disc of area 0.05
    return {"objective": float(bowl(x1, x2)) if stable else None}


def _below(threshold: float, value: float) -> float | None:
    return float(value) if value <= threshold else None


_SQUARE = Space({"x1": (0.0, 1.0), "x2": (0.0, 1.0)})
_BRANIN_MINIMUM = 10 / (8 * math.pi)
_BRANIN_MINIMISER = {"x1": (math.pi + 5) / 15, "x2": 2.275 / 15}

# Self-constrained: the objective is its own constraint.
SIM1 = Problem("sim1", _SQUARE, gardner, _sim1, 0.0, {"x1": 0.3 * math.pi, "x2": 0.0}, {"objective": 1.5})
# A constraint with a value where satisfied; the objective never crashes.
SIM2 = Problem("sim2", _SQUARE, branin, _sim2, _BRANIN_MINIMUM, _BRANIN_MINIMISER, {"g": 0.0}, ("g",))
# The same constraint without a value: the objective crashes where it is violated.
CASE2 = Problem("case2", _SQUARE, branin, _case2, _BRANIN_MINIMUM, _BRANIN_MINIMISER, {})
# Both: each output is seen or labelled on its own.
CASE4 = Problem(
    "case4", _SQUARE, branin, _case4, _BRANIN_MINIMUM, _BRANIN_MINIMISER, {"objective": 20.0, "g": 0.0}, ("g",)
)
# 95 % of the square crashes.
ALL_CRASH = Problem("all_crash", _SQUARE, bowl, _all_crash, 0.0, {"x1": 0.75, "x2": 0.28}, {})

SYNTHETIC = {problem.name: problem for problem in (SIM1, SIM2, CASE2, CASE4, ALL_CRASH)}
