"""Samplers on studies where the parameters of a trial depend on what it chose before.

    python -m benchmarks.conditional [--seeds 10] [--first 0] [--trials 40]

Three objectives, each with a minimum of 0. "two": the branch with the minimum has twice the parameters of the other
and is worse on average. "three": one shared parameter and three branches, the harder the better. "nested": a choice
within a choice, where the branch with the minimum crashes near it. The regret is that of the best finished trial.
"""

import argparse
import math
import statistics
import time
import warnings
from collections.abc import Callable

import optuna

import crashbo
from crashbo.adapters.optuna import CrashBOSampler


def two(trial: optuna.Trial) -> float:
    """A flat branch of one parameter, and a steep one of two with the minimum."""
    if trial.suggest_categorical("kind", ["flat", "steep"]) == "flat":
        return 0.15 + 0.3 * (trial.suggest_float("x", 0, 1) - 0.3) ** 2
    return 2 * (trial.suggest_float("y", 0, 1) - 0.85) ** 2 + 2 * (trial.suggest_float("z", 0, 1) - 0.15) ** 2


def three(trial: optuna.Trial) -> float:
    """One shared parameter; a branch of one parameter, one of two, and one of three with a curved valley."""
    shared = (trial.suggest_float("shared", -1, 1) - 0.4) ** 2
    kind = trial.suggest_categorical("kind", ["easy", "medium", "hard"])
    if kind == "easy":
        return shared + 0.2 + 0.5 * (trial.suggest_float("a", 0, 1) - 0.5) ** 2
    if kind == "medium":
        return shared + 0.1 + (trial.suggest_float("b", 0, 1) - 0.8) ** 2 + (trial.suggest_float("c", 0, 1) - 0.3) ** 2
    p, q = trial.suggest_float("p", -1, 1), trial.suggest_float("q", -1, 1)
    valley = (q - p**2) ** 2 + 0.5 * (p - 0.6) ** 2
    return shared + 2 * valley + (trial.suggest_float("r", 0, 1) - 0.7) ** 2


def nested(trial: optuna.Trial) -> float:
    """A tree, or a machine with one of two kernels; the kernel with the minimum crashes where it is too wide."""
    if trial.suggest_categorical("model", ["tree", "machine"]) == "tree":
        depth, leaf = trial.suggest_int("depth", 1, 20), trial.suggest_float("leaf", 1e-3, 0.5, log=True)
        return 0.15 + 0.002 * (depth - 7) ** 2 + 0.05 * math.log10(leaf / 0.02) ** 2
    c = math.log10(trial.suggest_float("C", 1e-3, 1e3, log=True))
    if trial.suggest_categorical("kernel", ["polynomial", "radial"]) == "polynomial":
        return 0.1 + 0.1 * (c - 1) ** 2 + 0.05 * (trial.suggest_int("degree", 1, 6) - 3) ** 2
    gamma = math.log10(trial.suggest_float("gamma", 1e-4, 10.0, log=True))
    if c + gamma > 1:
        raise crashbo.Crash("no solution")
    return 0.1 * (c - 2) ** 2 + 0.2 * (gamma + 1.2) ** 2


OBJECTIVES: dict[str, Callable[[optuna.Trial], float]] = {"two": two, "three": three, "nested": nested}
SAMPLERS: dict[str, Callable[[int], optuna.samplers.BaseSampler]] = {
    "CrashBO": lambda seed: CrashBOSampler(seed=seed),
    "TPE": lambda seed: optuna.samplers.TPESampler(seed=seed),
    "GPSampler": lambda seed: optuna.samplers.GPSampler(seed=seed),
}


def run(objective: str, sampler: str, seed: int, trials: int) -> float:
    """Regret of one study."""
    study = optuna.create_study(sampler=SAMPLERS[sampler](seed))
    study.optimize(OBJECTIVES[objective], n_trials=trials, catch=(crashbo.Crash,))
    return min((trial.value for trial in study.trials if trial.value is not None), default=math.inf)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=10, help="how many")
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--trials", type=int, default=40)
    parser.add_argument("--samplers", default=";".join(SAMPLERS), help="separated by ;")
    parser.add_argument("--objectives", default=";".join(OBJECTIVES), help="separated by ;")
    arguments = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.CRITICAL)
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
    print("| objective | sampler | median regret | worst | processor seconds per study |\n|---|---|---|---|---|")
    for objective in arguments.objectives.split(";"):
        for sampler in arguments.samplers.split(";"):
            begin = time.process_time()
            seeds = range(arguments.first, arguments.first + arguments.seeds)
            regrets = [run(objective, sampler, seed, arguments.trials) for seed in seeds]
            took = (time.process_time() - begin) / arguments.seeds
            middle, worst = statistics.median(regrets), max(regrets)
            print(f"| {objective} | {sampler} | {middle:.2g} | {worst:.2g} | {took:.1f} |", flush=True)


if __name__ == "__main__":
    main()
