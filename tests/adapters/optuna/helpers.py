"""Shared by the tests of the Optuna sampler."""

from typing import Any

import optuna
from optuna.distributions import BaseDistribution, FloatDistribution
from optuna.trial import FrozenTrial, TrialState, create_trial

import crashbo
from crashbo.adapters.optuna import CrashBOSampler

FIXED = {"objective": crashbo.FixedModel(lengthscale=0.3, variance=1.0, noise_std=0.05)}
UNIT = FloatDistribution(0.0, 1.0)


def light(**settings: Any) -> CrashBOSampler:
    """A sampler with a fast model and a fast search."""
    options = crashbo.Options(initial=3, raw=64, samples=3, fixed=FIXED)
    return CrashBOSampler(**{"seed": 0, "options": options} | settings)


def make_study(sampler: CrashBOSampler | None = None, **settings: Any) -> optuna.Study:
    return optuna.create_study(sampler=sampler or light(), **settings)


def old(
    value: float | None = None,
    *,
    space: dict[str, BaseDistribution] | None = None,
    attrs: dict[str, Any] | None = None,
    state: TrialState | None = None,
    **params: Any,
) -> FrozenTrial:
    """A trial of the past; without a value it failed."""
    state = state or (TrialState.FAIL if value is None else TrialState.COMPLETE)
    space = space or dict.fromkeys(params, UNIT)
    return create_trial(state=state, value=value, params=params, distributions=space, user_attrs=attrs or {})


def square(trial: optuna.Trial) -> float:
    """A cost on the unit square that crashes beyond x + y = 1.2."""
    x, y = trial.suggest_float("x", 0.0, 1.0), trial.suggest_float("y", 0.0, 1.0)
    if x + y > 1.2:
        raise crashbo.Crash("too much")
    return (x - 0.7) ** 2 + (y - 0.6) ** 2


def params_of(study: optuna.Study) -> list[dict[str, Any]]:
    return [trial.params for trial in study.trials]
