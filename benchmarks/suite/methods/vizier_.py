"""Google Vizier's default designer, told which trials are infeasible."""

import logging
import warnings
from collections.abc import Mapping
from typing import Any

import jax
from vizier import algorithms
from vizier import pyvizier as vz
from vizier._src.algorithms.designers.gp_ucb_pe import VizierGPUCBPEBandit  # the public path needs cvxpy and more

from benchmarks.suite.methods.base import Sequential
from benchmarks.suite.problem import Problem
from crashbo.problem.space import Categorical

_METRIC = "cost"


class Vizier(Sequential):
    """The GP bandit that the service takes by default; a crash is an infeasible trial, handled by Vizier's own rule."""

    def __init__(self, problem: Problem, seed: int) -> None:
        logging.getLogger("absl").setLevel(logging.CRITICAL)
        jax.config.update("jax_enable_x64", True)
        self._space, self._told = problem.space, 0
        statement = vz.ProblemStatement()
        root = statement.search_space.root
        for name, one in problem.space.items():
            if isinstance(one, Categorical):
                root.add_categorical_param(name, list(one.choices))
            else:
                root.add_float_param(name, one.low, one.high)
        goal = vz.ObjectiveMetricGoal.MINIMIZE
        statement.metric_information.append(vz.MetricInformation(_METRIC, goal=goal))
        self._designer = VizierGPUCBPEBandit(statement, rng=jax.random.PRNGKey(seed))

    def ask(self) -> dict[str, Any]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            (suggestion,) = self._designer.suggest(1)
        found = {name: suggestion.parameters.get_value(name) for name in self._space}
        return self._space.validate(self._inside(found))

    def _inside(self, params: dict[str, Any]) -> dict[str, Any]:
        """Params without what rounding adds to a bound."""
        return {
            name: params[name] if isinstance(one, Categorical) else min(max(params[name], one.low), one.high)
            for name, one in self._space.items()
        }

    def tell(self, params: Mapping[str, Any], cost: float | None) -> None:
        self._told += 1
        trial = vz.Trial(id=self._told, parameters=dict(params))
        if cost is None:
            trial.complete(vz.Measurement(), infeasibility_reason="crashed")
        else:
            trial.complete(vz.Measurement(metrics={_METRIC: cost}))
        self._designer.update(algorithms.CompletedTrials([trial]), algorithms.ActiveTrials())
