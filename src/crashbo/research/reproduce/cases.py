"""The paper's four cases in one dimension: what is told decides which models there are."""

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from crashbo.optimizer import Optimizer
from crashbo.problem.options import FixedModel, Options
from crashbo.problem.outcome import Constraint
from crashbo.problem.space import Space
from crashbo.research.problems import Problem
from crashbo.research.problems.synthetic import Outcome
from crashbo.research.reproduce.methods import METHODS, final_limits
from crashbo.research.reproduce.simulations import evaluate

_LINE = Space({"x": (0.0, 1.0)})
_MODEL = FixedModel(lengthscale=0.13, variance=1.0, noise_std=0.01, threshold_prior=(0.0, 5.0))
_COST_LIMIT, _LIMIT = 0.9, 0.4
_TRIED = {1: (0.05, 0.22, 0.38, 0.6, 0.85), 2: (0.05, 0.3, 0.45, 0.55, 0.8, 0.95), 3: (0.05, 0.3, 0.45, 0.55, 0.8)}
_TITLES = {
    1: "Case 1: the cost is its own limit",
    2: "Case 2: crashes for any reason, labels only",
    3: "Case 3: a constraint, seen while it holds",
    4: "Case 4: both",
}


def _cost(x: float) -> float:
    return 0.9 * math.sin(9.0 * x + 0.6) + 0.7 * x


def _bump(x: float) -> float:
    return 1.1 * math.exp(-(((x - 0.5) / 0.16) ** 2)) - 0.4


@dataclass(frozen=True)
class Case:
    """One of the four cases after a few trials.

    Attributes:
        number: from 1 to 4.
        title: for people.
        problem: the truth.
        optimizer: after the trials.
        strategy: "paper" or "default".
    """

    number: int
    title: str
    problem: Problem
    optimizer: Optimizer
    strategy: str = "paper"

    def summary(self) -> dict[str, Any]:
        """Plain numbers, ready for JSON."""
        best = self.optimizer.best()
        return {
            "number": self.number,
            "title": self.title,
            "trials": len(self.optimizer.trials),
            "failed": sum(trial.failed for trial in self.optimizer.trials),
            "strategy": self.strategy,
            "limits": final_limits(self.optimizer),
            "true_limits": dict(self.problem.thresholds),
            "best": best.params,
            "success_probability": best.success_probability,
            "minimiser": self.problem.minimiser,
        }

    def words(self) -> str:
        """What the model makes of the trials, for a person."""
        found = self.summary()
        limits = "; ".join(
            f"{'cost' if name == 'objective' else name} up to {one['value']:.2f} ± {one['deviation']:.2g}"
            f"{self._truth(name)}"
            for name, one in found["limits"].items()
        )
        return (
            f"{self.title}. {found['trials']} trials, {found['failed']} failed. {METHODS[self.strategy].capitalize()}: "
            f"limits learned: {limits or 'none'}. "
            f"Best guess x = {found['best']['x']:.3f} (true minimum {found['minimiser']['x']:.3f})."
        )

    def _truth(self, name: str) -> str:
        true = self.problem.thresholds.get(name)
        return "" if true is None else f" (true {true:g})"


def hidden_constraint(number: int, x: np.ndarray) -> tuple[np.ndarray, float] | None:
    """Values and limit of what makes trials crash without being told; None in cases 3 and 4."""
    if number > 2:
        return None
    truth, limit = (_cost, _COST_LIMIT) if number == 1 else (_bump, _LIMIT)
    return np.array([truth(place) for place in x.tolist()]), limit


def make_case(number: int, *, seed: int = 0, strategy: str = "paper") -> Case:
    """Return one of the four cases with its trials told.

    Args:
        number: from 1 to 4.
        seed: of noise and search.
        strategy: "paper", with fixed hyperparameters, or "default".
    """
    problem = _problem(number)
    constraints = [Constraint(name) for name in problem.constraints]
    fixed = dict.fromkeys(("objective", *problem.constraints), _MODEL) if strategy == "paper" else {}
    options = Options(initial=1, fixed=fixed)
    optimizer = Optimizer(_LINE, constraints=constraints, seed=seed, strategy=strategy, options=options)
    rng = np.random.default_rng(seed)
    for x in _TRIED.get(number, _TRIED[3]):
        evaluate(optimizer, problem, {"x": x}, rng)
    return Case(number, _TITLES[number], problem, optimizer, strategy)


def _problem(number: int) -> Problem:
    """The truth of a case. Minimum and minimiser are those of a fine grid."""
    constraints = ("g",) if number >= 3 else ()

    def measure(x: float) -> Outcome:
        cost, limited = _cost(x), _bump(x)
        failed = {1: cost > _COST_LIMIT, 2: limited > _LIMIT, 3: False, 4: cost > _COST_LIMIT}[number]
        outcome: Outcome = {"objective": None if failed else cost}
        return outcome | ({"g": None if limited > _LIMIT else limited} if constraints else {})

    places = np.linspace(0, 1, 2001).tolist()
    fine = [x for x in places if None not in measure(x).values()]
    best = min(fine, key=_cost)
    limits = {1: {"objective": _COST_LIMIT}, 2: {}, 3: {"g": _LIMIT}, 4: {"objective": _COST_LIMIT, "g": _LIMIT}}[
        number
    ]
    return Problem(f"case{number}-1d", _LINE, _cost, measure, _cost(best), {"x": best}, limits, constraints)
