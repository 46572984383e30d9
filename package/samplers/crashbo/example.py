"""Maximise x + y where trials crash beyond x + y = 1.2."""

import optuna
import optunahub


def objective(trial: optuna.Trial) -> float:
    """An experiment that crashes where its best results are."""
    total = trial.suggest_float("x", 0.0, 1.0) + trial.suggest_float("y", 0.0, 1.0)
    if total > 1.2:
        raise RuntimeError("crashed")
    return total


if __name__ == "__main__":
    sampler = optunahub.load_module("samplers/crashbo").CrashBOSampler(seed=0)
    study = optuna.create_study(direction="maximize", sampler=sampler)
    study.optimize(objective, n_trials=20, catch=(RuntimeError,))
    print(study.best_trial.params, study.best_value)
