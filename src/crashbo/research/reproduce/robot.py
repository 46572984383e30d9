"""The paper's robot experiments on the simulated robot: the paper's strategy, the default and random search."""

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from crashbo.errors import InputError
from crashbo.optimizer import Optimizer
from crashbo.problem.history import OBJECTIVE
from crashbo.problem.options import FixedModel
from crashbo.problem.outcome import CRASHED, is_number
from crashbo.research.problems.pole.reference import grid_reference
from crashbo.research.problems.pole.rollout import Outcome
from crashbo.research.problems.pole.tuning import POLES, PoleTuning, Told, repeat
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
    table,
)

REEVALUATIONS = 5


@dataclass(frozen=True)
class Robot:
    """One of the paper's robot experiments.

    Attributes:
        evaluations: roll-outs per run.
        lengthscale: of the paper's kernel.
    """

    evaluations: int
    lengthscale: float

    def fixed(self, tuning: PoleTuning) -> dict[str, FixedModel]:
        """The paper's hyperparameters by output."""
        noise = {OBJECTIVE: 0.03} | {one.name: 0.01 for one in tuning.constraints}
        return {name: FixedModel(self.lengthscale, 25.0, std, (0.0, 10.0)) for name, std in noise.items()}


ROBOTS = {
    "robot2d": Robot(30, 0.1),
    "robot2d-mixed": Robot(30, 0.1),
    "robot5d": Robot(80, 0.2),
    "robot2d-mujoco": Robot(30, 0.1),
}


@dataclass(frozen=True)
class Run:
    """One run.

    Attributes:
        seed: of the run.
        method: in `METHODS`.
        best: the final best guess.
        best_value, best_std: its cost over fresh roll-outs, mean and standard deviation of those that
            did not fail; None where there are too few.
        stable: whether none of them failed.
        costs: of each trial, None where it failed.
        curve: lowest cost up to each trial, None before the first.
        crashes: failed trials.
        reasons: how often each reason ended a trial.
        recovered: failures after which the safe controller regained balance; the others were stopped.
        first_success: number of trials until the first success, None if there was none.
        limits: value and deviation by output, as the strategy reports them at the end.
        limit_curves: the values after every trial, None where there was none.
        seconds_per_ask: mean time of a suggestion.
        penalty: told as the cost of a crash, None if a crash was told as a crash.
    """

    seed: int
    method: str
    best: dict[str, Any]
    best_value: float | None
    best_std: float | None
    stable: bool
    costs: list[float | None]
    curve: list[float | None]
    crashes: int
    reasons: dict[str, int]
    recovered: int
    first_success: int | None
    limits: dict[str, dict[str, float]]
    limit_curves: dict[str, list[float | None]]
    seconds_per_ask: float
    penalty: float | None = None


def run_once(
    name: str, seed: int, *, method: str = "paper", paper: PaperSettings | None = None, penalty: float | None = None
) -> Run:
    """Tune the robot once.

    Args:
        name: in `ROBOTS`.
        seed: of optimizer, noise and random search.
        method: in `METHODS`; "random" is uniform trials with the paper's models for the best guess.
        paper: how the paper's strategy is run.
        penalty: tell a crash as this cost.
    """
    if penalty is not None:
        _check_penalty(name, penalty)
    tuned = tune(name, seed, method=method, paper=paper, penalty=penalty)
    return replace(_run(POLES[name], seed, method, tuned), penalty=penalty)


@dataclass(frozen=True)
class Tuned:
    """A run with everything it left.

    Attributes:
        optimizer: at the end.
        outcomes: of the roll-outs, in the order tried.
        limits: as the strategy reported them after every trial.
        seconds_per_ask: mean time of a suggestion.
    """

    optimizer: Optimizer
    outcomes: list[Outcome]
    limits: LimitCurves
    seconds_per_ask: float


def tune(
    name: str, seed: int, *, method: str = "paper", paper: PaperSettings | None = None, penalty: float | None = None
) -> Tuned:
    """Tune the robot once and keep everything; arguments as in `run_once`."""
    tuning, robot = POLES[name], ROBOTS[name]
    optimizer = make_optimizer(tuning.space, tuning.constraints, seed, method, robot.fixed(tuning), paper)
    draw = np.random.default_rng([seed, 3])
    outcomes: list[Outcome] = []
    limits = LimitCurves.of(one.name for one in tuning.constraints)
    seconds = 0.0
    for number in range(robot.evaluations):
        params: Any = tuning.space.sample(1, draw)[0] if method == "random" else optimizer.ask()
        seconds += params.why.seconds if method != "random" else 0.0
        outcomes.append(tuning.rollout(params, rollout_seed(seed, 1, number)))
        tell(optimizer, params, tuning.told(outcomes[-1]), penalty)
        limits.add(optimizer)
    return Tuned(optimizer, outcomes, limits, seconds / robot.evaluations)


def tell(optimizer: Optimizer, params: Any, told: Told, penalty: float | None = None) -> None:
    """Tell the optimizer what came of a roll-out, a crash as the penalty if there is one."""
    objective = penalty if told.objective is CRASHED and penalty is not None else told.objective
    optimizer.tell(params, objective, reason=told.reason, **told.constraints)


def _run(tuning: PoleTuning, seed: int, method: str, tuned: Tuned) -> Run:
    best, outcomes = tuned.optimizer.best().params, tuned.outcomes
    again = repeat(tuning, best, [rollout_seed(seed, 2, number) for number in range(REEVALUATIONS)])
    costs = [None if tuning.failure(one) else one.cost for one in outcomes]
    reasons = [reason for one in outcomes if (reason := tuning.failure(one))]
    stable = [number for number, cost in enumerate(costs) if cost is not None]
    return Run(
        seed=seed,
        method=method,
        best=best,
        best_value=_finite(again.mean),
        best_std=_finite(again.std),
        stable=again.stable,
        costs=costs,
        curve=_lowest_so_far(costs),
        crashes=len(reasons),
        reasons={reason: reasons.count(reason) for reason in sorted(set(reasons))},
        recovered=sum(one.recovered is True for one in outcomes),
        first_success=stable[0] + 1 if stable else None,
        limits=final_limits(tuned.optimizer),
        limit_curves=tuned.limits.values,
        seconds_per_ask=tuned.seconds_per_ask,
    )


def rollout_seed(seed: int, kind: int, number: int) -> int:
    """The seed of a roll-out of a run: kind 1 while tuning, 2 when the best guess is tried again."""
    return int(np.random.SeedSequence([seed, kind, number]).generate_state(1)[0])


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _lowest_so_far(costs: Sequence[float | None]) -> list[float | None]:
    lowest: float | None = None
    curve = []
    for cost in costs:
        if cost is not None:
            lowest = cost if lowest is None else min(lowest, cost)
        curve.append(lowest)
    return curve


def reproduce_robot(
    name: str,
    *,
    runs: int,
    seed: int = 1000,
    strategy: str = "both",
    paper: PaperSettings | None = None,
    progress: Progress | None = None,
) -> "RobotReport":
    """Tune the robot `runs` times, with seeds from `seed` on, and by random search beside it.

    Args:
        name: in `ROBOTS`.
        runs: how many of each method.
        seed: of the first.
        strategy: "paper", "default" or "both".
        paper: how the paper's strategy is run.
        progress: called with finished and total jobs.
    """
    if name not in ROBOTS:
        raise InputError(f"`name` must be one of {', '.join(ROBOTS)}; got {name!r}.")
    paper = paper or PaperSettings()
    jobs: list[Job] = [
        (run_once, (name, seed + number), {"method": method, "paper": paper})
        for number in range(runs)
        for method in methods_of(strategy)
    ]
    finished: list[Run] = counted(side_by_side(jobs), len(jobs), progress)
    order = list(METHODS)
    return RobotReport(name, paper.words, sorted(finished, key=lambda run: (order.index(run.method), run.seed)))


def _check_penalty(name: str, penalty: object) -> None:
    if not (is_number(penalty) and math.isfinite(float(penalty))):  # type: ignore[arg-type]
        raise InputError(f"`penalty` must be a finite number; got {penalty!r}.")
    if POLES[name].mixed:
        raise InputError(f"`penalty` must be left out for {name}; got {penalty!r}. Its constraint has no penalty.")


@dataclass(frozen=True)
class RobotReport:
    """All runs of a robot experiment.

    Attributes:
        name: in `ROBOTS`.
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
        true = POLES[self.name].thresholds
        return {method: robot_statistics(self.of(method), true) for method in METHODS if self.of(method)}

    def summary(self) -> dict[str, Any]:
        """Plain numbers, ready for JSON."""
        return {
            "name": self.name,
            "paper": self.paper,
            "seeds": sorted({run.seed for run in self.runs}),
            "evaluations": len(self.runs[0].costs),
            "methods": self.methods,
            "reference": grid_reference().summary(),
            "hidden_limits": POLES[self.name].thresholds,
            "runs": [asdict(run) for run in self.runs],
        }

    def words(self) -> str:
        """A table and a few sentences, for a person."""
        seeds, reference = sorted({run.seed for run in self.runs}), grid_reference()
        head = (
            f"{self.name}: seeds {seeds[0]} to {seeds[-1]}, {len(self.runs[0].costs)} roll-outs each. Paper's method: "
            f"{self.paper}."
        )
        columns = {METHODS[method]: one for method, one in self.methods.items()}
        said = [
            f"Best of a {reference.cells} x {reference.cells} grid over two weights: {reference.best_value:.3g}; of a "
            f"random search over five: {reference.five_value:.3g}; safe gains: {reference.safe_value:.3g}."
        ]
        said += limit_lines(columns, POLES[self.name].thresholds, "hidden")
        said += [_marginal_words(title, one["marginal"]) for title, one in columns.items() if one["marginal"]]
        return "\n".join([head, *table(columns, TABLE_ROWS), *filter(None, said)])


def _marginal_words(title: str, marginal: dict[str, Any]) -> str:
    if marginal["before"] is None or marginal["after"] is None:
        return ""
    return (
        f"The costliest controller that balanced, {title}: {marginal['cost']:.3g} (seed {marginal['seed']}, "
        f"trial {marginal['trial']}); the limit went from {marginal['before']:.3g} to "
        f"{marginal['after']:.3g}, no restart."
    )


TABLE_ROWS = {
    "stable_runs": f"best guess stable in all {REEVALUATIONS} roll-outs",
    "unstable_share": "share of unstable best guesses",
    "mean_best_value": "mean cost of the stable best guesses",
    "std_best_value": "its deviation over runs",
    "mean_best_std": "deviation over roll-outs",
    "mean_crashes": "mean failed trials",
    "mean_recovered": "of them recovered by the safe gains",
    "mean_first_success": "trials to the first success",
    "seconds_per_ask": "seconds per ask",
}


def robot_statistics(runs: Sequence[Run], true: Mapping[str, float] | None = None) -> dict[str, Any]:
    """Statistics over runs; costs are those of best guesses that were stable in all roll-outs.

    Args:
        runs: of one method.
        true: hidden limits, as far as they can be learned.
    """
    values = [run.best_value for run in runs if run.stable and run.best_value is not None]
    firsts = [run.first_success for run in runs if run.first_success is not None]
    deviations = [run.best_std for run in runs if run.stable and run.best_std is not None]
    better = sum(value < grid_reference().best_value for value in values)
    return {
        "number_of_runs": len(runs),
        "stable_runs": sum(run.stable for run in runs),
        "unstable_share": 1 - sum(run.stable for run in runs) / len(runs),
        "successful_runs": len(firsts),
        "better_than_grid_runs": better,
        "mean_best_value": statistics.mean(values) if values else None,
        "std_best_value": deviation(values) if values else None,
        "mean_best_std": statistics.mean(deviations) if deviations else None,
        "mean_crashes": statistics.mean(run.crashes for run in runs),
        "mean_recovered": statistics.mean(run.recovered for run in runs),
        "mean_first_success": statistics.mean(firsts) if firsts else None,
        "limits": limit_statistics(runs, true or {}),
        "marginal": marginal_controller(runs),
        "seconds_per_ask": statistics.mean(run.seconds_per_ask for run in runs),
    }


def marginal_controller(runs: Sequence[Run]) -> dict[str, Any] | None:
    """Find the costliest controller that still balanced, and what it did to the threshold.

    Returns:
        Seed, trial (from 1), cost, and the threshold before and after it; None if nothing balanced.
    """
    seen = [(cost, run, number) for run in runs for number, cost in enumerate(run.costs) if cost is not None]
    if not seen:
        return None
    cost, run, number = max(seen, key=lambda one: one[0])
    curve = run.limit_curves[OBJECTIVE]
    return {
        "seed": run.seed,
        "trial": number + 1,
        "cost": cost,
        "before": curve[number - 1] if number else None,
        "after": curve[number],
    }
