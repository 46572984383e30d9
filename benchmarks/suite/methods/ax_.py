"""Ax's Client, with the ways its users handle crashes."""

import logging
import warnings
from collections.abc import Mapping
from typing import Any, Literal

import torch
from ax.adapter.registry import MBM_X_trans, Y_trans
from ax.adapter.transforms.add_execution_viability import EXECUTION_VIABLE_METRIC_NAME, AddExecutionViability
from ax.api.client import Client
from ax.api.configs import ChoiceParameterConfig, RangeParameterConfig
from ax.api.utils.generation_strategy_dispatch import choose_generation_strategy
from ax.api.utils.structs import GenerationStrategyDispatchStruct
from ax.generation_strategy.generation_strategy import GenerationStrategy

from benchmarks.suite.methods.base import Sequential
from benchmarks.suite.problem import Problem
from crashbo.problem.space import Categorical, Int, Parameter

_METRIC = "cost"


class Ax(Sequential):
    """The Client with its default ("fast") strategy, which starts after the shared design.

    A crash is an abandoned or a failed trial. With `viability`, Ax's transform AddExecutionViability models abandoned
    trials, at its default threshold of 0.8; it comes first, so that all others apply to what it adds.
    """

    def __init__(
        self, problem: Problem, seed: int, *, crash: Literal["abandoned", "failed"], viability: bool = False
    ) -> None:
        logging.getLogger("ax").setLevel(logging.CRITICAL)
        for name in list(logging.root.manager.loggerDict):
            if name.startswith("ax."):
                logging.getLogger(name).setLevel(logging.CRITICAL)
        self._crash, self._seed, self._told = crash, seed, 0
        self._client = Client(random_seed=seed)
        self._client.configure_experiment([_parameter(name, one) for name, one in problem.space.items()])
        self._client.configure_optimization(objective=f"-{_METRIC}")
        if viability:  # otherwise Ax 1.3 looks for a metric the experiment does not have
            self._client.configure_tracking_metrics([EXECUTION_VIABLE_METRIC_NAME])
        self._client.set_generation_strategy(_strategy(problem, seed, viability))
        self._out: tuple[int, dict[str, Any]] | None = None

    def ask(self) -> dict[str, Any]:
        torch.manual_seed(1000 * self._seed + self._told)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ((index, params),) = self._client.get_next_trials(max_trials=1).items()
        self._out = index, dict(params)
        return dict(params)

    def tell(self, params: Mapping[str, Any], cost: float | None) -> None:
        self._told += 1
        if self._out is not None and self._out[1] == dict(params):
            index = self._out[0]
        else:
            index = self._client.attach_trial(dict(params))
        self._out = None
        if cost is not None:
            self._client.complete_trial(index, {_METRIC: cost})
        elif self._crash == "failed":
            self._client.mark_trial_failed(index, failed_reason="crashed")
        else:
            self._client.mark_trial_abandoned(index)


def _strategy(problem: Problem, seed: int, viability: bool) -> GenerationStrategy:
    """The Client's own choice, with the transform added if wanted."""
    struct = GenerationStrategyDispatchStruct(
        method="fast",
        initialization_budget=problem.initial,
        initialization_random_seed=seed,
        initialize_with_center=False,
        use_existing_trials_for_initialization=True,
        min_observed_initialization_trials=None,
        allow_exceeding_initialization_budget=True,
        torch_device=None,
    )
    strategy = choose_generation_strategy(struct)
    if viability:
        kwargs = strategy._nodes[-1].generator_specs[0].generator_kwargs
        kwargs["transforms"] = [AddExecutionViability, *MBM_X_trans, *Y_trans]
    return strategy


def _parameter(name: str, parameter: Parameter) -> RangeParameterConfig | ChoiceParameterConfig:
    if isinstance(parameter, Categorical):
        return ChoiceParameterConfig(name=name, values=list(parameter.choices), parameter_type="str", is_ordered=False)
    bounds, kind = (parameter.low, parameter.high), "int" if isinstance(parameter, Int) else "float"
    scaling = "log" if parameter.log else None
    return RangeParameterConfig(name=name, bounds=bounds, parameter_type=kind, scaling=scaling)
