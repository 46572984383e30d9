"""The paper's robot experiments on the simulated robot: repeated runs, random search beside them."""

import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from crashbo.errors import InputError
from crashbo.models.surrogates import FixedModel
from crashbo.optimizer import Optimizer
from crashbo.outcome import CRASHED, is_number
from crashbo.problems.pole.reference import grid_reference
from crashbo.problems.pole.rollout import Outcome
from crashbo.problems.pole.tuning import POLES, PoleTuning, Told, repeat
from crashbo.reproduce.simulations import Job, side_by_side
from crashbo.search import Options

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

    def options(self, tuning: PoleTuning, learned: bool) -> Options:
        """The search: ours with learned hyperparameters, or with the paper's."""
        if learned:
            return Options()
        noise = {"objective": 0.03} | {one.name: 0.01 for one in tuning.constraints}
        fixed = {name: FixedModel(self.lengthscale, 25.0, std, (0.0, 10.0)) for name, std in noise.items()}
        return Options(initial=1, random_start=True, delta=0.05, fixed=fixed)


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
        method: "crashbo", "random" or "penalty".
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
        thresholds: learned, at the end.
        threshold_curve: of the objective, as the search saw it at each trial; None where it had none.
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
    thresholds: dict[str, float]
    threshold_curve: list[float | None]
    seconds_per_ask: float
    penalty: float | None = None


def run_once(
    name: str, seed: int, *, method: str = "crashbo", learned: bool = True, penalty: float | None = None
) -> Run:
    """Tune the robot once.

    Args:
        name: in `ROBOTS`.
        seed: of optimizer, noise and random search.
        method: "crashbo", or "random": uniform trials, the same models for the best guess.
        learned: learn hyperparameters instead of the paper's fixed ones.
        penalty: tell a crash as this cost.
    """
    tuned = tune(name, seed, method=method, learned=learned, penalty=penalty)
    run = _run(POLES[name], seed, method, tuned)
    return run if penalty is None else replace(run, method="penalty", penalty=penalty)


@dataclass(frozen=True)
class Tuned:
    """A run with everything it left.

    Attributes:
        optimizer: at the end.
        outcomes: of the roll-outs, in the order tried.
        limits: threshold of the objective as the search saw it at each trial; None where it had none.
        seconds_per_ask: mean time of a suggestion.
    """

    optimizer: Optimizer
    outcomes: list[Outcome]
    limits: list[float | None]
    seconds_per_ask: float


def tune(name: str, seed: int, *, method: str = "crashbo", learned: bool = True, penalty: float | None = None) -> Tuned:
    """Tune the robot once and keep everything; arguments as in `run_once`."""
    tuning, robot = POLES[name], ROBOTS[name]
    optimizer = Optimizer(
        tuning.space, constraints=tuning.constraints, seed=seed, options=robot.options(tuning, learned)
    )
    draw = np.random.default_rng([seed, 3])
    outcomes: list[Outcome] = []
    limits: list[float | None] = []
    seconds = 0.0
    for number in range(robot.evaluations):
        params: Any = tuning.space.sample(1, draw)[0] if method == "random" else optimizer.ask()
        seconds += params.why.seconds if method != "random" else 0.0
        limits.append(params.why.thresholds.get("objective") if method != "random" else None)
        outcomes.append(tuning.rollout(params, rollout_seed(seed, 1, number)))
        tell(optimizer, params, tuning.told(outcomes[-1]), penalty)
    return Tuned(optimizer, outcomes, limits, seconds / robot.evaluations)


def tell(optimizer: Optimizer, params: Any, told: Told, penalty: float | None = None) -> None:
    """Tell the optimizer what came of a roll-out, a crash as the penalty if there is one."""
    objective = penalty if told.objective is CRASHED and penalty is not None else told.objective
    optimizer.tell(params, objective, reason=told.reason, **told.constraints)


def _run(tuning: PoleTuning, seed: int, method: str, tuned: Tuned) -> Run:
    best, outcomes = tuned.optimizer.best().params, tuned.outcomes
    again = repeat(tuning, best, [rollout_seed(seed, 2, number) for number in range(REEVALUATIONS)])
    costs = [one.cost for one in outcomes]
    reasons = [one.reason for one in outcomes if one.failed]
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
        thresholds=tuned.optimizer.thresholds,
        threshold_curve=tuned.limits,
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
    seed: int = 0,
    learned: bool | None = None,
    progress: Callable[[int, int], None] | None = None,
    penalty: float | None = None,
) -> "RobotReport":
    """Tune the robot `runs` times, with seeds from `seed` on, and by random search beside it.

    Args:
        name: in `ROBOTS`.
        runs: how many.
        seed: of the first.
        learned: hyperparameters learned (the default) or the paper's fixed ones.
        progress: called with finished and total jobs.
        penalty: tell crashes as this cost instead, without random search beside it.
    """
    if name not in ROBOTS:
        raise InputError(f"`name` must be one of {', '.join(ROBOTS)}; got {name!r}.")
    if penalty is not None:
        _check_penalty(name, penalty)
    learned = True if learned is None else learned
    methods = ("crashbo", "random") if penalty is None else ("penalty",)
    jobs: list[Job] = [
        (run_once, (name, seed + number), {"learned": learned, "penalty": penalty, "method": method})
        for number in range(runs)
        for method in methods
    ]
    finished: list[Run] = []
    for run in side_by_side(jobs):
        finished.append(run)
        if progress is not None:
            progress(len(finished), len(jobs))
    finished.sort(key=lambda run: (run.method, run.seed))
    return RobotReport(name, "learned" if learned else "fixed", finished, penalty)


def _check_penalty(name: str, penalty: object) -> None:
    if not (is_number(penalty) and math.isfinite(float(penalty))):  # type: ignore[arg-type]
        raise InputError(f"`penalty` must be a finite number; got {penalty!r}.")
    if POLES[name].mixed:
        raise InputError(f"`penalty` must be left out for {name}; got {penalty!r}. Its constraint has no penalty.")


@dataclass(frozen=True)
class RobotReport:
    """All runs of a robot experiment."""

    name: str
    hyperparameters: str
    runs: list[Run] = field(default_factory=list)
    penalty: float | None = None

    def summary(self) -> dict[str, Any]:
        """Plain numbers, ready for JSON: the optimizer's at the top, random search's beside them."""
        ours, random = self._ours(), self._of("random")
        return {
            "name": self.name,
            "hyperparameters": self.hyperparameters,
            "penalty": self.penalty,
            "evaluations": len(self.runs[0].costs),
            **robot_statistics(ours),
            "reference": grid_reference().summary(),
            "hidden_thresholds": POLES[self.name].thresholds,
            "random": robot_statistics(random) if random else None,
            "runs": [asdict(run) for run in self.runs],
        }

    def words(self) -> str:
        """A table and a few sentences, for a person."""
        ours, random = robot_statistics(self._ours()), self._of("random")
        beside = [robot_statistics(random)] if random else []
        title = "CrashBO" if self.penalty is None else f"penalty {self.penalty:g}"
        rows = [
            f"{self.name}: {ours['number_of_runs']} runs, {len(self.runs[0].costs)} roll-outs each, "
            f"hyperparameters {self.hyperparameters}.",
            f"{'':38}{title:>14}" + (f"{'random':>12}" if beside else ""),
        ]
        for key, text in TABLE_ROWS.items():
            rows.append(f"{text:38}{as_text(ours[key]):>14}" + "".join(f"{as_text(one[key]):>12}" for one in beside))
        return "\n".join([*rows, *self._sentences(ours)])

    def _sentences(self, ours: dict[str, Any]) -> list[str]:
        reference = grid_reference()
        said = [f"Best of a {reference.cells} x {reference.cells} grid in 2D: {reference.best_value:.3g}."]
        for name, one in ours["thresholds"].items():
            hidden = POLES[self.name].thresholds.get(name)
            truth = "" if hidden is None else f" (hidden: {hidden:g})"
            said.append(f"Learned threshold of {name}: {one['mean']:.4g} ± {one['std']:.2g}{truth}.")
        marginal = ours["marginal"]
        if marginal is not None and marginal["before"] is not None and marginal["after"] is not None:
            said.append(
                f"The costliest controller that balanced cost {marginal['cost']:.3g} (seed {marginal['seed']}, trial "
                f"{marginal['trial']}); the threshold went from {marginal['before']:.3g} to {marginal['after']:.3g}, "
                "no restart."
            )
        return said

    def _ours(self) -> list[Run]:
        return self._of("crashbo" if self.penalty is None else "penalty")

    def _of(self, method: str) -> list[Run]:
        return [run for run in self.runs if run.method == method]


TABLE_ROWS = {
    "stable_runs": f"best guess stable in all {REEVALUATIONS} roll-outs",
    "mean_best_value": "mean cost of the best guess",
    "std_best_value": "its deviation over runs",
    "mean_best_std": "deviation over roll-outs",
    "mean_crashes": "mean failed trials",
    "mean_recovered": "of them recovered by the safe gains",
    "mean_first_success": "trials to the first success",
    "seconds_per_ask": "seconds per ask",
}


def as_text(value: float | None) -> str:
    """Four digits, or a dash."""
    return "-" if value is None else f"{value:.4g}"


def robot_statistics(runs: Sequence[Run]) -> dict[str, Any]:
    """Statistics over runs; costs of best guesses are over the roll-outs that did not fail."""
    values = [run.best_value for run in runs if run.best_value is not None]
    names = sorted({name for run in runs for name in run.thresholds})
    firsts = [run.first_success for run in runs if run.first_success is not None]
    deviations = [run.best_std for run in runs if run.best_std is not None]
    better = sum(value < grid_reference().best_value for value in values)
    return {
        "number_of_runs": len(runs),
        "stable_runs": sum(run.stable for run in runs),
        "successful_runs": len(firsts),
        "better_than_grid_runs": better,
        "mean_best_value": statistics.mean(values) if values else None,
        "std_best_value": _deviation(values) if values else None,
        "mean_best_std": statistics.mean(deviations) if deviations else None,
        "mean_crashes": statistics.mean(run.crashes for run in runs),
        "mean_recovered": statistics.mean(run.recovered for run in runs),
        "mean_first_success": statistics.mean(firsts) if firsts else None,
        "thresholds": {
            name: _spread([run.thresholds[name] for run in runs if name in run.thresholds]) for name in names
        },
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
    curve = run.threshold_curve
    return {
        "seed": run.seed,
        "trial": number + 1,
        "cost": cost,
        "before": curve[number],
        "after": curve[number + 1] if number + 1 < len(curve) else run.thresholds.get("objective"),
    }


def _spread(values: Sequence[float]) -> dict[str, float]:
    return {"mean": statistics.mean(values), "std": _deviation(values)}


def _deviation(values: Sequence[float]) -> float:
    return statistics.stdev(values) if len(values) > 1 else 0.0
