"""Tune with Optuna where trials crash: change the sampler, nothing else."""

import optuna

import crashbo
from crashbo.integrations.optuna import CrashBOSampler, crashing

optuna.logging.set_verbosity(optuna.logging.ERROR)  # a crash is a result here, not an alarm


@crashing  # keeps the reason of a crash with its trial
def rollout(trial: optuna.Trial) -> float:
    """A controller whose best gains lie close to where it starts to oscillate."""
    kp, kd = trial.suggest_float("kp", 0.0, 10.0), trial.suggest_float("kd", 0.01, 1.0, log=True)
    if kp * (1.1 - kd) > 6.0:
        raise crashbo.Crash("oscillates")
    return (kp - 7.0) ** 2 + 10.0 * (kd - 0.3) ** 2


sampler = CrashBOSampler(seed=0)
study = optuna.create_study(sampler=sampler)  # storage="sqlite:///gains.db" keeps it, and shares it
study.optimize(rollout, n_trials=15, catch=(crashbo.Crash,))

crashed = [trial for trial in study.trials if trial.state.name == "FAIL"]
print(f"{len(crashed)} of {len(study.trials)} trials crashed.")
print(f"Best seen: {study.best_value:.3f} at {study.best_params}")
print(f"Best guess: {sampler.best(study)}")
print(f"Why the last one: {study.trials[-1].user_attrs['crashbo:why']}")
