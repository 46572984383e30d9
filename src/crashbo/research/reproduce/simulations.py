"""The paper's simulations and statistics: the paper's strategy, the default and random search on the same seeds."""

import statistics
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from crashbo.optimizer import Optimizer
from crashbo.problem.options import FixedModel
from crashbo.problem.outcome import CRASHED, VIOLATED, Constraint
from crashbo.research.problems import SYNTHETIC, Problem
from crashbo.research.reproduce.jobs import Job, Progress, counted, side_by_side
from crashbo.research.reproduce.methods import (
    METHODS,
    LimitCurves,
    PaperSettings,
    deviation,
    final_limits,
    limit_lines,
    limit_statistics,
    make_optimizer,
    methods_of,
    standard_error,
    table,
)

# The paper fixes all hyperparameters "to conservative values" without stating them; these are ours:
# Matern 3/2 as in the paper, a lengthscale of a quarter of the square, variances the size of the outputs.
_BRANIN = FixedModel(lengthscale=0.25, variance=100.0**2, noise_std=0.01, threshold_prior=(0.0, 50.0))
_CIRCLE = FixedModel(lengthscale=0.25, variance=0.25, noise_std=0.01, threshold_prior=(0.0, 2.0))
_GARDNER = FixedModel(lengthscale=0.25, variance=1.0, noise_std=0.01, threshold_prior=(0.0, 5.0))
_BOWL = FixedModel(lengthscale=0.25, variance=20.0**2, noise_std=0.01, threshold_prior=(0.0, 50.0))


@dataclass(frozen=True)
class Simulation:
    """One of the paper's cases.

    Attributes:
        problem: name in `crashbo.research.problems.SYNTHETIC`.
        evaluations: trials per run.
        fixed: hyperparameters of the paper's strategy, by output.
    """

    problem: str
    evaluations: int
    fixed: dict[str, FixedModel]


SIMULATIONS = {
    "sim1": Simulation("sim1", 30, {"objective": _GARDNER}),
    "case2": Simulation("case2", 50, {"objective": _BRANIN}),
    "sim2": Simulation("sim2", 50, {"objective": _BRANIN, "g": _CIRCLE}),
    "case4": Simulation("case4", 50, {"objective": _BRANIN, "g": _CIRCLE}),
}

_ROWS = {
    "median_regret": "median final regret (feasible)",
    "mean_regret": "mean final regret (feasible)",
    "error_regret": "its standard error",
    "mean_best_value": "mean best value (feasible)",
    "std_best_value": "its deviation over runs",
    "infeasible_share": "share of infeasible best guesses",
    "mean_crashes": "mean failed trials",
    "seconds_per_ask": "seconds per ask",
}


@dataclass(frozen=True)
class Run:
    """One run.

    Attributes:
        seed: of the run.
        method: in `METHODS`.
        regret: per trial, of the best guess then (noise-free); None where that guess is infeasible.
        best: the final best guess.
        best_value: its noise-free objective.
        feasible: whether it truly satisfies everything.
        crashes: trials that crashed or violated a constraint.
        first_success: number of trials until the first success, None if there was none.
        limits: value and deviation by output, as the strategy reports them at the end.
        limit_curves: the values after every trial, None where there was none.
        seconds_per_ask: mean time of a suggestion.
    """

    seed: int
    method: str
    regret: list[float | None]
    best: dict[str, Any]
    best_value: float
    feasible: bool
    crashes: int
    first_success: int | None
    limits: dict[str, dict[str, float]]
    limit_curves: dict[str, list[float | None]]
    seconds_per_ask: float


def evaluate(optimizer: Optimizer, problem: Problem, params: Any, rng: np.random.Generator) -> None:
    """Run one simulated experiment and tell its outcome."""
    outcome = problem.evaluate(params, rng)
    labels: dict[str, Any] = {
        name: VIOLATED if outcome[name] is None else outcome[name] for name in problem.constraints
    }
    optimizer.tell(params, CRASHED if outcome["objective"] is None else outcome["objective"], **labels)


def simulated(name: str, seed: int, *, method: str = "paper", paper: PaperSettings | None = None) -> Optimizer:
    """The optimizer of a simulation before its first trial; arguments as in `run_once`."""
    simulation = SIMULATIONS[name]
    problem = SYNTHETIC[simulation.problem]
    constraints = [Constraint(one) for one in problem.constraints]
    return make_optimizer(problem.space, constraints, seed, method, simulation.fixed, paper)


def run_once(
    name: str, seed: int, *, method: str = "paper", paper: PaperSettings | None = None, curve: bool = True
) -> Run:
    """Run one simulation.

    Args:
        name: in `SIMULATIONS`.
        seed: of optimizer, noise and random search.
        method: in `METHODS`; "random" is uniform trials with the paper's models for the best guess.
        paper: how the paper's strategy is run.
        curve: whether to take best guess and limits after every trial.
    """
    problem, count = SYNTHETIC[SIMULATIONS[name].problem], SIMULATIONS[name].evaluations
    optimizer = simulated(name, seed, method=method, paper=paper)
    rng, draw = np.random.default_rng([seed, 1]), np.random.default_rng([seed, 2])
    curves, regret, seconds = LimitCurves.of(problem.constraints), list[float | None](), 0.0
    for number in range(count):
        params: Any = problem.space.sample(1, draw)[0] if method == "random" else optimizer.ask()
        seconds += 0.0 if method == "random" else params.why.seconds
        evaluate(optimizer, problem, params, rng)
        if curve or number == count - 1:
            regret.append(_regret(problem, optimizer.best().params))
            curves.add(optimizer)
    best = optimizer.best().params
    successes = [trial.number for trial in optimizer.trials if not trial.failed]
    return Run(
        seed=seed,
        method=method,
        regret=regret,
        best=best,
        best_value=problem.value(best),
        feasible=problem.feasible(best),
        crashes=sum(trial.failed for trial in optimizer.trials),
        first_success=successes[0] + 1 if successes else None,
        limits=final_limits(optimizer),
        limit_curves=curves.values,
        seconds_per_ask=seconds / count,
    )


def _regret(problem: Problem, params: Any) -> float | None:
    return problem.value(params) - problem.minimum if problem.feasible(params) else None


def reproduce(
    name: str,
    *,
    runs: int,
    seed: int = 1000,
    strategy: str = "both",
    paper: PaperSettings | None = None,
    progress: Progress | None = None,
) -> "Report":
    """Run a simulation `runs` times with seeds from `seed` on, random search beside it.

    Args:
        name: in `SIMULATIONS`.
        runs: how many of each method.
        seed: of the first.
        strategy: "paper", "default" or "both".
        paper: how the paper's strategy is run.
        progress: called with finished and total jobs.
    """
    paper = paper or PaperSettings()
    jobs: list[Job] = [
        (run_once, (name, seed + number), {"method": method, "paper": paper})
        for number in range(runs)
        for method in methods_of(strategy)
    ]
    finished: list[Run] = counted(side_by_side(jobs), len(jobs), progress)
    order = list(METHODS)
    return Report(name, paper.words, sorted(finished, key=lambda run: (order.index(run.method), run.seed)))


@dataclass(frozen=True)
class Report:
    """All runs of a simulation.

    Attributes:
        name: in `SIMULATIONS`.
        paper: how the paper's strategy was run, in words.
        runs: of all methods.
    """

    name: str
    paper: str
    runs: list[Run] = field(default_factory=list)

    def of(self, method: str) -> list[Run]:
        """The runs of a method."""
        return [run for run in self.runs if run.method == method]

    @property
    def methods(self) -> dict[str, dict[str, Any]]:
        """Statistics by method."""
        true = SYNTHETIC[SIMULATIONS[self.name].problem].thresholds
        return {method: run_statistics(self.of(method), true) for method in METHODS if self.of(method)}

    def summary(self) -> dict[str, Any]:
        """Plain numbers, ready for JSON."""
        return {
            "name": self.name,
            "paper": self.paper,
            "seeds": sorted({run.seed for run in self.runs}),
            "methods": self.methods,
            "true_limits": dict(SYNTHETIC[SIMULATIONS[self.name].problem].thresholds),
            "runs": [asdict(run) for run in self.runs],
        }

    def words(self) -> str:
        """A table and sentences, for a person."""
        seeds = sorted({run.seed for run in self.runs})
        head = (
            f"{self.name}: seeds {seeds[0]} to {seeds[-1]}, {len(self.runs[0].regret)} trials each. Paper's method: "
            f"{self.paper}."
        )
        columns = {METHODS[method]: one for method, one in self.methods.items()}
        true = SYNTHETIC[SIMULATIONS[self.name].problem].thresholds
        return "\n".join([head, *table(columns, _ROWS), *limit_lines(columns, true)])


def run_statistics(runs: list[Run], true: Mapping[str, float]) -> dict[str, Any]:
    """Statistics over runs; regrets and values are those of feasible best guesses, None where there is none.

    Args:
        runs: of one method.
        true: limits, as far as they are known.
    """
    values = [run.best_value for run in runs if run.feasible]
    finals = [regret for run in runs if (regret := run.regret[-1]) is not None]
    return {
        "number_of_runs": len(runs),
        "median_regret": statistics.median(finals) if finals else None,
        "mean_regret": statistics.mean(finals) if finals else None,
        "error_regret": standard_error(finals) if finals else None,
        "mean_best_value": statistics.mean(values) if values else None,
        "std_best_value": deviation(values) if values else None,
        "infeasible_share": 1 - len(values) / len(runs),
        "mean_crashes": statistics.mean(run.crashes for run in runs),
        "limits": limit_statistics(runs, true),
        "seconds_per_ask": statistics.mean(run.seconds_per_ask for run in runs),
    }


def first_success(seed: int, *, method: str = "paper", limit: int = 200) -> int:
    """Count trials until the first success where 95 % of the square crashes."""
    problem = SYNTHETIC["all_crash"]
    optimizer = make_optimizer(problem.space, (), seed, method, {"objective": _BOWL})
    rng, draw = np.random.default_rng([seed, 1]), np.random.default_rng([seed, 2])
    for number in range(1, limit + 1):
        params = problem.space.sample(1, draw)[0] if method == "random" else optimizer.ask()
        if problem.feasible(params):
            return number
        evaluate(optimizer, problem, params, rng)
    return limit


def reproduce_all_crash(
    *, runs: int, seed: int = 1000, strategy: str = "both", progress: Progress | None = None
) -> dict[str, Any]:
    """Count trials to the first success where 95 % of the square crashes, by method."""
    methods = methods_of(strategy)
    found: dict[str, list[int]] = {}
    for method in methods:
        jobs: list[Job] = [(first_success, (seed + number,), {"method": method}) for number in range(runs)]
        found[method] = sorted(counted(side_by_side(jobs), runs, progress))
    return {
        "name": "all-crash",
        "methods": {name: {"median_trials_to_success": statistics.median(one)} for name, one in found.items()},
        "runs": found,
    }
