"""SMAC's black-box facade, a Gaussian process with expected improvement, with a crash cost."""

import logging
import tempfile
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ConfigSpace import Categorical as Choice
from ConfigSpace import Configuration, ConfigurationSpace, Float, Integer
from smac import BlackBoxFacade, Scenario
from smac.runhistory.dataclasses import TrialInfo, TrialValue
from smac.runhistory.enumerations import StatusType

from benchmarks.suite.methods.base import Sequential, worst
from benchmarks.suite.problem import Problem
from crashbo.problem.space import Categorical, Int

_CHALLENGERS, _SEARCHES = 500, 4  # half of SMAC's own numbers, so that a hundred runs take minutes


class Smac(Sequential):
    """Crashed trials are told as such, with the worst cost so far as crash cost, kept up to date.

    Until something succeeded, the crash cost is 0; any number says the same then. Each setting is tried once.
    """

    def __init__(self, problem: Problem, seed: int) -> None:
        logging.getLogger("smac").setLevel(logging.CRITICAL)
        self._space = problem.space
        self._folder = tempfile.TemporaryDirectory(prefix="suite-smac-")
        self._configurations = _configurations(problem, seed)
        scenario = Scenario(
            self._configurations,
            deterministic=True,
            n_trials=problem.budget,
            seed=seed,
            output_directory=Path(self._folder.name),
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._facade = BlackBoxFacade(
                scenario,
                _never_called,
                initial_design=BlackBoxFacade.get_initial_design(scenario, n_configs=0),
                acquisition_maximizer=BlackBoxFacade.get_acquisition_maximizer(
                    scenario, challengers=_CHALLENGERS, local_search_iterations=_SEARCHES
                ),
                logging_level=False,
            )
        self._crashes: list[TrialInfo] = []
        self._costs: list[float | None] = []
        self._out: tuple[TrialInfo, dict[str, Any]] | None = None

    def ask(self) -> dict[str, Any]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            info = self._facade.ask()
        self._out = info, self._space.validate(dict(info.config))
        return dict(self._out[1])

    def tell(self, params: Mapping[str, Any], cost: float | None) -> None:
        self._costs.append(cost)
        if self._out is not None and self._out[1] == dict(params):
            info = self._out[0]
        else:
            info = TrialInfo(Configuration(self._configurations, values=dict(params)), seed=0)
        self._out = None
        if cost is not None:
            self._facade.tell(info, TrialValue(cost=cost), save=False)
        else:
            self._crashes.append(info)
        bad = worst(self._costs)
        value = TrialValue(cost=0.0 if bad is None else bad, status=StatusType.CRASHED)
        for crash in self._crashes:
            self._facade.tell(crash, value, save=False)


def _configurations(problem: Problem, seed: int) -> ConfigurationSpace:
    space = ConfigurationSpace(seed=seed)
    for name, one in problem.space.items():
        if isinstance(one, Categorical):
            space.add(Choice(name, items=list(one.choices)))
        else:
            kind = Integer if isinstance(one, Int) else Float
            space.add(kind(name, bounds=(one.low, one.high), log=one.log))
    return space


def _never_called(config: Configuration, seed: int = 0) -> float:
    raise AssertionError("trials are told, not run by SMAC")
