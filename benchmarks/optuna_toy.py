"""Crash-aware and crash-blind samplers on the same Optuna study.

    python -m benchmarks.optuna_toy [--seeds 10] [--trials 40] [--json]

Maximise x + y on the unit square; the trial crashes where x + y > 1.2, so the best point lies on the border.
Optuna's own samplers drop failed trials.
"""

import argparse
import json
import statistics
import time
import warnings
from collections.abc import Callable

import optuna

import crashbo
from crashbo.adapters.optuna import CrashBOSampler

SAMPLERS: dict[str, Callable[[int], optuna.samplers.BaseSampler]] = {
    "CrashBO": lambda seed: CrashBOSampler(seed=seed),
    "CrashBO, risk=0.1": lambda seed: CrashBOSampler(seed=seed, options=crashbo.Options(risk=0.1)),
    "CrashBO, crash_budget=5": lambda seed: CrashBOSampler(seed=seed, options=crashbo.Options(crash_budget=5)),
    'CrashBO, crashes="absorb"': lambda seed: CrashBOSampler(seed=seed, options=crashbo.Options(crashes="absorb")),
    "GPSampler": lambda seed: optuna.samplers.GPSampler(seed=seed),
    "TPESampler": lambda seed: optuna.samplers.TPESampler(seed=seed),
    "RandomSampler": lambda seed: optuna.samplers.RandomSampler(seed=seed),
}


def objective(trial: optuna.Trial) -> float:
    """The toy: best on the border of the crashes."""
    total = trial.suggest_float("x", 0.0, 1.0) + trial.suggest_float("y", 0.0, 1.0)
    if total > 1.2:
        raise crashbo.Crash("x + y > 1.2")
    return total


def run(sampler: optuna.samplers.BaseSampler, trials: int) -> tuple[float, int]:
    """The best value of one study, and how many of its trials crashed."""
    study = optuna.create_study(direction="maximize", sampler=sampler)
    study.optimize(objective, n_trials=trials, catch=(crashbo.Crash,))
    values = [trial.value for trial in study.trials if trial.value is not None]
    return max(values, default=float("-inf")), trials - len(values)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.CRITICAL)
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
    results = {}
    for name, make in SAMPLERS.items():
        begin = time.perf_counter()
        runs = [run(make(seed), arguments.trials) for seed in range(arguments.seeds)]
        results[name] = {
            "median_best": statistics.median(best for best, _ in runs),
            "worst_best": min(best for best, _ in runs),
            "mean_crashes": statistics.mean(crashes for _, crashes in runs),
            "most_crashes": max(crashes for _, crashes in runs),
            "seconds_per_study": (time.perf_counter() - begin) / arguments.seeds,
        }
        if not arguments.json:
            row = results[name]
            print(
                f"{name:14s} best {row['median_best']:.4f} (worst {row['worst_best']:.4f}), "
                f"{row['mean_crashes']:.1f} crashes of {arguments.trials} (most {row['most_crashes']}), "
                f"{row['seconds_per_study']:.1f} s",
                flush=True,
            )
    if arguments.json:
        print(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
