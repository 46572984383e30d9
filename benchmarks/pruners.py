"""Samplers beside pruners: what becomes of trials that are stopped early.

    python -m benchmarks.pruners [--seeds 10] [--trials 40] [--samplers 'CrashBO;TPE;GP'] [--workers 2] [--json FILE]

Four learning curves of 27 steps. "bowl": every curve falls by the same amount; "branin": in proportion to its final
value; "network": the learning rate decides how fast it falls, so curves cross, and a trial diverges (raises) where the
rate is too high; "noisy": every reported value has noise. The regret is that of the best finished trial.
"""

import argparse
import json
import math
import statistics
import time
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import optuna

import crashbo
from crashbo.adapters.optuna import CrashBOSampler

STEPS = 27
Task = Callable[[optuna.Trial, np.random.Generator], Iterator[float]]


def _falling(step: int, rate: float = 6.0) -> float:
    return math.exp(-step / rate)


def bowl(trial: optuna.Trial, random: np.random.Generator) -> Iterator[float]:
    """A bowl in two dimensions; the lowest value is 0 at (0.7, -0.3)."""
    final = (trial.suggest_float("x", -1, 1) - 0.7) ** 2 + (trial.suggest_float("y", -1, 1) + 0.3) ** 2
    yield from (final + 2 * _falling(step) for step in range(1, STEPS))
    yield final


def branin(trial: optuna.Trial, random: np.random.Generator) -> Iterator[float]:
    """Branin's function less its minimum."""
    x, y = trial.suggest_float("x", -5, 10), trial.suggest_float("y", 0, 15)
    final = (y - 5.1 / (4 * math.pi**2) * x**2 + 5 / math.pi * x - 6) ** 2
    final += 10 * (1 - 1 / (8 * math.pi)) * math.cos(x) + 10 - 0.397887
    yield from (final * (1 + 3 * _falling(step)) for step in range(1, STEPS))
    yield final


def network(trial: optuna.Trial, random: np.random.Generator) -> Iterator[float]:
    """Loss of a network: a high rate learns fast and ends higher, the highest ones diverge; 0 at the best."""
    rate = math.log10(trial.suggest_float("rate", 1e-5, 1.0, log=True))
    width = trial.suggest_int("width", 8, 512, log=True)
    drop = trial.suggest_float("dropout", 0, 0.8)
    if rate > -0.8 - 0.3 * math.log2(width / 64):
        raise crashbo.Crash("diverged")
    final = 0.15 * (rate + 2.5) ** 2 + 0.05 * (math.log2(width) - 7) ** 2 + (drop - 0.25) ** 2
    yield from (final + 2 * _falling(step, 2 - 3 * rate) for step in range(1, STEPS))
    yield final


def noisy(trial: optuna.Trial, random: np.random.Generator) -> Iterator[float]:
    """The bowl with noise of 0.1 on every value before the last."""
    curve = list(bowl(trial, random))
    yield from (value + 0.1 * random.normal() for value in curve[:-1])
    yield curve[-1]


TASKS: dict[str, Task] = {"bowl": bowl, "branin": branin, "network": network, "noisy": noisy}
PRUNERS: dict[str, Callable[[], optuna.pruners.BasePruner]] = {
    "Median": lambda: optuna.pruners.MedianPruner(n_startup_trials=5),
    "Hyperband": lambda: optuna.pruners.HyperbandPruner(min_resource=1, max_resource=STEPS, reduction_factor=3),
}
SAMPLERS: dict[str, Callable[[int], optuna.samplers.BaseSampler]] = {
    "CrashBO": lambda seed: CrashBOSampler(seed=seed),
    "TPE": lambda seed: optuna.samplers.TPESampler(seed=seed),
    "GP": lambda seed: optuna.samplers.GPSampler(seed=seed),
    "CrashBO value": lambda seed: CrashBOSampler(seed=seed, prune_as="value"),
    "CrashBO crash": lambda seed: CrashBOSampler(seed=seed, prune_as="crash"),
    "CrashBO ignore": lambda seed: CrashBOSampler(seed=seed, prune_as="ignore"),
}
DEFAULT = ("CrashBO", "TPE", "GP")
CONTINUED = "TPE, then CrashBO"  # half of the trials each


@dataclass(frozen=True)
class Ran:
    """One study: the best finished value, how many trials were pruned or crashed, and steps computed."""

    task: str
    pruner: str
    sampler: str
    seed: int
    best: float
    pruned: int
    crashed: int
    steps: int
    seconds: float


def run(task: str, pruner: str, sampler: str, seed: int, trials: int) -> Ran:
    """Run one study."""
    begin, random, steps = time.perf_counter(), np.random.default_rng(seed), [0]

    def objective(trial: optuna.Trial) -> float:
        value = math.nan
        for step, value in enumerate(TASKS[task](trial, random), start=1):
            steps[0] += 1
            if step < STEPS:
                trial.report(value, step)
                if trial.should_prune():
                    raise optuna.TrialPruned
        return value

    study = optuna.create_study(pruner=PRUNERS[pruner](), study_name=f"{task} {seed}")
    halves = ["TPE", "CrashBO"] if sampler == CONTINUED else [sampler]
    for name in halves:
        study.sampler = SAMPLERS[name](seed)
        study.optimize(objective, n_trials=trials // len(halves), catch=(crashbo.Crash,))
    states = [trial.state.name for trial in study.trials]
    values = [trial.value for trial in study.trials if trial.state.name == "COMPLETE" and trial.value is not None]
    best = min(values, default=math.inf)
    took = time.perf_counter() - begin
    return Ran(task, pruner, sampler, seed, best, states.count("PRUNED"), states.count("FAIL"), steps[0], took)


def table(runs: list[Ran]) -> str:
    """The table of docs/optuna.md: medians over the seeds."""
    lines = [
        "| curve | pruner | sampler | regret | worst | pruned | crashed | steps |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for key in dict.fromkeys((one.task, one.pruner, one.sampler) for one in runs):
        mine = [one for one in runs if (one.task, one.pruner, one.sampler) == key]
        best = [max(one.best, 0.0) for one in mine]
        counts = [statistics.median(getattr(one, name) for one in mine) for name in ("pruned", "crashed", "steps")]
        numbers = [f"{statistics.median(best):.2g}", f"{max(best):.2g}", *(f"{count:g}" for count in counts)]
        lines.append(f"| {' | '.join([*key, *numbers])} |")
    return "\n".join(lines)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--samplers", default=";".join((*DEFAULT, CONTINUED)), help="separated by ;")
    parser.add_argument("--tasks", default=";".join(TASKS), help="separated by ;")
    parser.add_argument("--workers", type=int, default=1, help="processes")
    parser.add_argument("--json", type=Path, help="file that all runs are written to")
    arguments = parser.parse_args()
    samplers, tasks = arguments.samplers.split(";"), arguments.tasks.split(";")
    wanted = [
        (task, pruner, sampler, seed, arguments.trials)
        for seed in range(arguments.seeds)
        for task in tasks
        for pruner in PRUNERS
        for sampler in samplers
    ]
    runs = []
    with ProcessPoolExecutor(arguments.workers, initializer=_quiet) as pool:
        for one in pool.map(run, *zip(*wanted, strict=True)):
            runs.append(one)
            if arguments.json:  # at once: a run that is stopped leaves what it has
                arguments.json.write_text(json.dumps([asdict(each) for each in runs], indent=1) + "\n")
    print(table(runs))


def _quiet() -> None:
    optuna.logging.set_verbosity(optuna.logging.CRITICAL)
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)


if __name__ == "__main__":
    main()
