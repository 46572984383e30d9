"""What a strategy found, in the outputs' own units: why a point is suggested, limits, the best guess."""

import math

import numpy as np

from crashbo.errors import InputError
from crashbo.model.surrogate import Limit, Surrogate
from crashbo.problem.history import History
from crashbo.problem.problem import OBJECTIVE
from crashbo.problem.suggestion import Best, Reason
from crashbo.search.strategy import Guess, Suggested


def limits_in(history: History, surrogate: Surrogate) -> dict[str, Limit]:
    """The limits; one that is neither known nor was ever broken says nothing."""
    said = {one.name for one in history.constraints if one.threshold is not None}
    said |= {name for trial in history.trials for name, value in trial.constraints.items() if value is None}
    said |= {OBJECTIVE} if any(trial.crashed for trial in history.trials) else set()
    found = surrogate.limits if said else {}
    return {
        name: limit.times(history.sign) if name == OBJECTIVE else limit for name, limit in found.items() if name in said
    }


def reason_for(history: History, surrogate: Surrogate, found: Suggested) -> Reason:
    """Why a point that models chose is suggested."""
    mean, deviation = (float(one[0]) for one in surrogate.moments(found.point[None]))
    limits, known, sign = limits_in(history, surrogate), surrogate.any_cost, history.sign
    best = None if history.best_trial is None else history.best_trial.objective
    causes = {} if surrogate.relation is None else vars(surrogate.relation)
    return Reason(
        found.mode,
        found.value,
        found.success_probability,
        thresholds={name: limit.value for name, limit in limits.items()},
        relation={name: value for name, value in causes.items() if value is not None},
        deviations={name: limit.deviation for name, limit in limits.items()},
        expected=sign * mean if known else None,
        expected_std=deviation if known else None,
        best=best,
        better=best is not None and mean < sign * best,
    )


def best_at(history: History, surrogate: Surrogate, guess: Guess) -> Best:
    """The best guess with what is expected there."""
    mean, deviation = (float(one[0]) for one in surrogate.moments(guess.point[None]))
    success = float(surrogate.success(guess.point[None])[0])
    if not surrogate.any_cost:
        mean, deviation = math.nan, math.nan
    return Best(history.space.decode(guess.point), history.sign * mean, deviation, success, guess.feasible)


def only_guess(history: History) -> Best:
    """The best guess where there is nothing to choose: plain statistics of the trials."""
    if not history.trials:
        raise InputError("`trials` must hold at least one trial before there is a best guess; got none. Tell one.")
    costs = [trial.objective for trial in history.trials if trial.objective is not None]
    success = 1 - float(np.mean(history.failed))
    mean, deviation = (float(np.mean(costs)), float(np.std(costs))) if costs else (math.nan, math.nan)
    params = dict(history.trials[0].params)
    return Best(params, mean, deviation, success, success >= 1 - history.options.delta)
