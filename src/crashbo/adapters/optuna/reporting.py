"""Say on a running trial what came of it, before Optuna is told."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import optuna

from crashbo.adapters.optuna.codec import checked
from crashbo.adapters.optuna.transactions import CONSTRAINT, CRASH, TRANSIENT
from crashbo.problem.outcome import CRASHED, Crash, labelled

R = TypeVar("R")


def report(trial: optuna.Trial, **values: Any) -> None:
    """Write constraint values, or `crashbo.VIOLATED`, on a running trial: `report(trial, reach=11.2)`.

    Raises:
        InputError: if a name or a value is invalid; then nothing is written.
    """
    for name, value in labelled(checked(CRASHED, values).constraints).items():
        trial.set_user_attr(f"{CONSTRAINT}{name}", value)


def report_crash(trial: optuna.Trial, reason: str = "", **values: Any) -> None:
    """Store why a running trial crashed and the values seen before; then tell Optuna that it failed."""
    trial.set_user_attr(CRASH, str(reason))
    report(trial, **values)


def report_transient(trial: optuna.Trial, reason: str = "") -> None:
    """Mark the failure of a running trial as transient: nothing is learned, and its params are offered again."""
    trial.set_user_attr(TRANSIENT, str(reason))


def crashing(objective: Callable[..., R], *, transient: Sequence[type[BaseException]] = ()) -> Callable[..., R]:
    """Wrap an objective so that the reason of a failure is stored with the trial; the exception is raised again.

    `crashbo.Crash` keeps its reason and partial values; use `study.optimize(..., catch=(crashbo.Crash,))`.

    Args:
        objective: a function whose first argument is an `optuna.Trial`.
        transient: exceptions to mark as transient, such as `ConnectionError`; Ctrl-C always is.
    """
    passing: tuple[type[BaseException], ...] = (KeyboardInterrupt, *transient)

    @functools.wraps(objective)
    def recorded(trial: optuna.Trial, *args: Any, **kwargs: Any) -> R:
        try:
            return objective(trial, *args, **kwargs)
        except Crash as crash:
            report_crash(trial, crash.reason, **crash.values)
            raise
        except passing as error:
            report_transient(trial, str(error) or type(error).__name__)
            raise

    return recorded
