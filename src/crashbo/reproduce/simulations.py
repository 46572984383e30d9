"""The paper's simulations and statistics: repeated runs, with random search beside them."""

import os
import statistics
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field
from multiprocessing import get_context
from typing import Any, Literal, TypeAlias

import numpy as np

from crashbo.models.surrogates import FixedModel
from crashbo.optimizer import Optimizer
from crashbo.outcome import CRASHED, VIOLATED, Constraint
from crashbo.problems import SYNTHETIC, Problem
from crashbo.search import Options

Job: TypeAlias = tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]

# The paper fixes all hyperparameters "to conservative values" without stating them; these are ours:
# Matern 3/2 as in the paper, a lengthscale of a quarter of the square, variances the size of the outputs.
_BRANIN = FixedModel(lengthscale=0.25, variance=100.0**2, noise_std=0.01, threshold_prior=(0.0, 50.0))
_CIRCLE = FixedModel(lengthscale=0.25, variance=0.25, noise_std=0.01, threshold_prior=(0.0, 2.0))
_GARDNER = FixedModel(lengthscale=0.25, variance=1.0, noise_std=0.01, threshold_prior=(0.0, 5.0))


@dataclass(frozen=True)
class Simulation:
    """One of the paper's cases.

    Attributes:
        problem: name in `crashbo.problems.SYNTHETIC`.
        evaluations: trials per run.
        fixed: the paper-like hyperparameters by output.
        crashes: what a crash says about the cost, where hyperparameters are learned.
    """

    problem: str
    evaluations: int
    fixed: dict[str, FixedModel]
    crashes: Literal["auto", "absorb"] = "auto"


SIMULATIONS = {
    "sim1": Simulation("sim1", 30, {"objective": _GARDNER}),
    "case2": Simulation("case2", 50, {"objective": _BRANIN}),
    "sim2": Simulation("sim2", 50, {"objective": _BRANIN, "g": _CIRCLE}),
    "case4": Simulation("case4", 50, {"objective": _BRANIN, "g": _CIRCLE}, crashes="absorb"),
}


_ROWS = {
    "median_regret": "median final regret",
    "mean_regret": "mean final regret",
    "mean_best_value": "mean best value",
    "std_best_value": "its deviation",
    "mean_crashes": "mean failed trials",
    "feasible_share": "best guess feasible",
    "seconds_per_ask": "seconds per ask",
}


@dataclass(frozen=True)
class Run:
    """One run.

    Attributes:
        seed: of the run.
        method: "crashbo" or "random".
        regret: per trial, of the best guess then (noise-free).
        best: the final best guess.
        best_value: its noise-free objective.
        feasible: whether it truly satisfies everything.
        crashes: trials that crashed or violated a constraint.
        first_success: number of trials until the first success, None if there was none.
        thresholds: learned, at the end.
        seconds_per_ask: mean time of a suggestion.
    """

    seed: int
    method: str
    regret: list[float]
    best: dict[str, Any]
    best_value: float
    feasible: bool
    crashes: int
    first_success: int | None
    thresholds: dict[str, float]
    seconds_per_ask: float


def evaluate(optimizer: Optimizer, problem: Problem, params: Any, rng: np.random.Generator) -> None:
    """Run one simulated experiment and tell its outcome."""
    outcome = problem.evaluate(params, rng)
    labels = {name: VIOLATED if outcome[name] is None else outcome[name] for name in problem.constraints}
    optimizer.tell(params, CRASHED if outcome["objective"] is None else outcome["objective"], **labels)  # type: ignore[arg-type]


def make_optimizer(name: str, seed: int, *, learned: bool = True, sampler: str = "pathwise") -> Optimizer:
    """Set up the optimizer of a simulation; arguments as in `run_once`."""
    simulation = SIMULATIONS[name]
    problem = SYNTHETIC[simulation.problem]
    options = Options(
        initial=None if learned else 1,
        random_start=not learned,
        fixed={} if learned else simulation.fixed,
        sampler=sampler,
        crashes=simulation.crashes,
    )
    constraints = [Constraint(one) for one in problem.constraints]
    return Optimizer(problem.space, constraints=constraints, seed=seed, options=options)


def run_once(
    name: str,
    seed: int,
    *,
    method: str = "crashbo",
    learned: bool = True,
    sampler: str = "pathwise",
    curve: bool = True,
) -> Run:
    """Run one simulation.

    Args:
        name: in `SIMULATIONS`.
        seed: of optimizer, noise and random search.
        method: "crashbo", or "random": uniform trials, the same models for the best guess.
        learned: learn hyperparameters instead of the paper-like fixed ones.
        sampler: of the minimum.
        curve: whether to take the best guess after every trial.
    """
    problem = SYNTHETIC[SIMULATIONS[name].problem]
    evaluations = SIMULATIONS[name].evaluations
    optimizer = make_optimizer(name, seed, learned=learned, sampler=sampler)
    rng, draw = np.random.default_rng([seed, 1]), np.random.default_rng([seed, 2])
    regret, seconds = [], 0.0
    for number in range(evaluations):
        if method == "random":
            params: Any = problem.space.sample(1, draw)[0]
        else:
            params = optimizer.ask()
            seconds += params.why.seconds
        evaluate(optimizer, problem, params, rng)
        if curve or number == evaluations - 1:
            regret.append(problem.value(optimizer.best().params) - problem.minimum)
    best = optimizer.best()
    successes = [trial.number for trial in optimizer.trials if not trial.failed]
    return Run(
        seed=seed,
        method=method,
        regret=regret,
        best=best.params,
        best_value=problem.value(best.params),
        feasible=problem.feasible(best.params),
        crashes=sum(trial.failed for trial in optimizer.trials),
        first_success=successes[0] + 1 if successes else None,
        thresholds=optimizer.thresholds,
        seconds_per_ask=seconds / evaluations,
    )


def first_success(seed: int, *, method: str = "crashbo", limit: int = 200) -> int:
    """Count trials until the first success where 95 % of the square crashes."""
    problem = SYNTHETIC["all_crash"]
    optimizer = Optimizer(problem.space, seed=seed, options=Options(initial=1, random_start=True))
    rng, draw = np.random.default_rng([seed, 1]), np.random.default_rng([seed, 2])
    for number in range(1, limit + 1):
        params = problem.space.sample(1, draw)[0] if method == "random" else optimizer.ask()
        if problem.feasible(params):
            return number
        evaluate(optimizer, problem, params, rng)
    return limit


def reproduce(
    name: str,
    *,
    runs: int,
    seed: int = 0,
    learned: bool = True,
    sampler: str = "pathwise",
    progress: Callable[[int, int], None] | None = None,
) -> "Report":
    """Run a simulation `runs` times, with seeds from `seed` on, and random search beside it.

    Args:
        name: in `SIMULATIONS`.
        runs: how many.
        seed: of the first.
        learned: hyperparameters learned, or fixed to paper-like values.
        sampler: of the minimum: "pathwise" or "virtual".
        progress: called with finished and total jobs.
    """
    named = {"learned": learned, "sampler": sampler}
    jobs: list[Job] = [
        (run_once, (name, seed + number), {**named, "method": method})
        for number in range(runs)
        for method in ("crashbo", "random")
    ]
    finished: list[Run] = []
    for run in side_by_side(jobs):
        finished.append(run)
        if progress is not None:
            progress(len(finished), len(jobs))
    return Report(name, "learned" if learned else "fixed", sorted(finished, key=lambda run: (run.method, run.seed)))


def reproduce_all_crash(
    *, runs: int, seed: int = 0, progress: Callable[[int, int], None] | None = None
) -> dict[str, Any]:
    """Count trials to the first success where 95 % of the square crashes, beside random search."""
    found: dict[str, list[int]] = {}
    for method in ("crashbo", "random"):
        jobs: list[Job] = [(first_success, (seed + number,), {"method": method}) for number in range(runs)]
        found[method] = []
        for trials in side_by_side(jobs):
            found[method].append(trials)
            if progress is not None:
                progress(sum(map(len, found.values())), 2 * runs)
    return {
        "name": "all-crash",
        "median_trials_to_success": statistics.median(found["crashbo"]),
        "random": {"median_trials_to_success": statistics.median(found["random"])},
        "runs": {method: sorted(trials) for method, trials in found.items()},
    }


@dataclass(frozen=True)
class Report:
    """All runs of a simulation."""

    name: str
    hyperparameters: str
    runs: list[Run] = field(default_factory=list)

    def summary(self) -> dict[str, Any]:
        """Plain numbers, ready for JSON: the optimizer's at the top, random search's beside them."""
        ours, random = self._of("crashbo"), self._of("random")
        return {
            "name": self.name,
            "hyperparameters": self.hyperparameters,
            **_statistics(ours),
            "random": _statistics(random) if random else None,
            "runs": [asdict(run) for run in self.runs],
        }

    def words(self) -> str:
        """A table and a sentence, for a person."""
        ours, random = self._of("crashbo"), self._of("random")
        rows = [
            f"{self.name}: {len(ours)} runs, {len(ours[0].regret)} trials each, hyperparameters {self.hyperparameters}."
        ]
        rows.append(f"{'':22}{'CrashBO':>12}{'random':>12}")
        both = _statistics(ours), _statistics(random)
        for key, title in _ROWS.items():
            rows.append(f"{title:22}" + "".join(f"{one[key]:12.4g}" for one in both))
        for name, one in both[0]["thresholds"].items():
            truth = SYNTHETIC[SIMULATIONS[self.name].problem].thresholds.get(name)
            said = "no true value" if truth is None else f"true value {truth:g}"
            rows.append(f"Learned threshold of {name}: {one['mean']:.4g} ± {one['std']:.2g} ({said}).")
        return "\n".join(rows)

    def _of(self, method: str) -> list[Run]:
        return sorted((run for run in self.runs if run.method == method), key=lambda run: run.seed)


def _statistics(runs: list[Run]) -> dict[str, Any]:
    values = [run.best_value for run in runs]
    finals = [run.regret[-1] for run in runs]
    names = sorted({name for run in runs for name in run.thresholds})
    return {
        "median_regret": statistics.median(finals),
        "mean_regret": statistics.mean(finals),
        "mean_best_value": statistics.mean(values),
        "std_best_value": statistics.stdev(values) if len(values) > 1 else 0.0,
        "mean_crashes": statistics.mean(run.crashes for run in runs),
        "thresholds": {
            name: _spread([run.thresholds[name] for run in runs if name in run.thresholds]) for name in names
        },
        "feasible_share": statistics.mean(run.feasible for run in runs),
        "seconds_per_ask": statistics.mean(run.seconds_per_ask for run in runs),
    }


def _spread(values: list[float]) -> dict[str, float]:
    return {"mean": statistics.mean(values), "std": statistics.stdev(values) if len(values) > 1 else 0.0}


def _job(arguments: Job) -> Any:
    import torch

    torch.set_num_threads(1)
    function, positional, named = arguments
    return function(*positional, **named)


def side_by_side(jobs: list[Job]) -> Iterator[Any]:
    """Run jobs in as many processes as there are cores, one thread each; yields as they finish."""
    workers = min(len(jobs), os.cpu_count() or 1)
    if workers == 1:
        yield from map(_job, jobs)
        return
    with ProcessPoolExecutor(workers, mp_context=get_context("spawn")) as pool:
        futures = [pool.submit(_job, job) for job in jobs]
        try:
            for future in as_completed(futures):
                yield future.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
