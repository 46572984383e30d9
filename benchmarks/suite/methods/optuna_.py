"""Optuna's samplers, with the ways its users handle crashes."""

import warnings
from collections.abc import Mapping
from typing import Any, Literal

import optuna
from optuna.distributions import BaseDistribution, CategoricalDistribution, FloatDistribution, IntDistribution
from optuna.trial import TrialState

from benchmarks.suite.methods.base import Sequential, worst
from benchmarks.suite.problem import Problem
from crashbo.problem.space import Categorical, Int, Parameter

_STATES = {"pruned": TrialState.PRUNED, "failed": TrialState.FAIL}


class Optuna(Sequential):
    """A study with TPE or the GP sampler.

    A crash is pruned, failed, or told as the worst value so far; a crash before the first success waits until there is
    a worst value. TPE keeps its ten start-up trials; the GP sampler starts after the shared design and is told
    whether costs are exact.
    """

    def __init__(
        self, problem: Problem, seed: int, *, sampler: Literal["tpe", "gp"], crash: Literal["pruned", "failed", "worst"]
    ) -> None:
        optuna.logging.set_verbosity(optuna.logging.ERROR)
        warnings.simplefilter("ignore", optuna.exceptions.ExperimentalWarning)
        self._crash = crash
        self._distributions = {name: _distribution(one) for name, one in problem.space.items()}
        self._study = optuna.create_study(sampler=_sampler(sampler, problem, seed))
        self._costs: list[float | None] = []
        self._waiting: list[dict[str, Any]] = []
        self._asked: optuna.Trial | None = None

    def ask(self) -> dict[str, Any]:
        self._asked = self._study.ask(self._distributions)
        return dict(self._asked.params)

    def tell(self, params: Mapping[str, Any], cost: float | None) -> None:
        self._costs.append(cost)
        if self._asked is None or dict(params) != self._asked.params:
            self._study.enqueue_trial(dict(params))
            self._asked = self._study.ask(self._distributions)
        asked, self._asked = self._asked, None
        if cost is not None:
            self._study.tell(asked, cost)
            self._told_worst()
        elif self._crash != "worst":
            self._study.tell(asked, state=_STATES[self._crash])
        elif (bad := worst(self._costs)) is not None:
            self._study.tell(asked, bad)
        else:
            self._study.tell(asked, state=TrialState.FAIL)
            self._waiting.append(dict(params))

    def _told_worst(self) -> None:
        """Tell crashes from before the first success, now that there is a worst value."""
        for params in self._waiting:
            trial = optuna.trial.create_trial(params=params, distributions=self._distributions, value=self._costs[-1])
            self._study.add_trial(trial)
        self._waiting = []


def _sampler(kind: str, problem: Problem, seed: int) -> optuna.samplers.BaseSampler:
    if kind == "tpe":
        return optuna.samplers.TPESampler(seed=seed)
    return optuna.samplers.GPSampler(
        seed=seed, n_startup_trials=problem.initial, deterministic_objective=not problem.noisy
    )


def _distribution(parameter: Parameter) -> BaseDistribution:
    if isinstance(parameter, Categorical):
        return CategoricalDistribution(list(parameter.choices))
    if isinstance(parameter, Int):
        return IntDistribution(parameter.low, parameter.high, log=parameter.log, step=parameter.step)
    return FloatDistribution(parameter.low, parameter.high, log=parameter.log, step=parameter.step)
