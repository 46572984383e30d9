"""A worker on a shared study, made to be killed."""

import os
import time
import warnings
from pathlib import Path

import optuna
from optuna.storages import RDBStorage
from optuna.trial import FrozenTrial

import crashbo
from crashbo.adapters.optuna import crashing, lost_worker
from tests.adapters.optuna.helpers import light, square

GRACE = 2  # seconds without a sign of life
LONG_GRACE = 600  # where nobody is lost: on a busy machine a living worker may be silent for a while


def open_storage(url: str, grace: int = GRACE) -> RDBStorage:
    """A storage that notices lost workers."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        return RDBStorage(url, heartbeat_interval=1, grace_period=grace, heartbeat_stale_trial_callback=lost_worker)


@crashing
def slow_square(trial: optuna.Trial) -> float:
    cost = square(trial)
    time.sleep(0.05)  # so that kills meet trials under way
    return cost


def work(url: str, ledger: str, n_trials: int, grace: int = GRACE) -> None:
    """Say that it is ready, then run trials; each that Optuna says is finished goes to the ledger, on disk."""

    def note(study: optuna.Study, trial: FrozenTrial) -> None:
        with open(ledger, "a") as handle:
            handle.write(f"{trial.number} {trial.state.name} {trial.value}\n")
            handle.flush()
            os.fsync(handle.fileno())

    optuna.logging.set_verbosity(optuna.logging.CRITICAL)
    warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
    Path(f"{ledger}.ready").touch()
    study = optuna.load_study(study_name="shared", storage=open_storage(url, grace), sampler=light())
    study.optimize(slow_square, n_trials=n_trials, catch=(crashbo.Crash,), callbacks=[note])
