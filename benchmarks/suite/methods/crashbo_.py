"""CrashBO, as shipped, and with parts of it switched off."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from benchmarks.suite.problem import Problem
from crashbo import CRASHED, Optimizer, Options
from crashbo.model.numbers import NUMBERS
from crashbo.search.default import DefaultStrategy


class CrashBO:
    """`crashbo.Optimizer` with its defaults, told a cost or a crash and nothing else.

    It starts as its users have it, with fewer trials of the same Sobol sequence than the shared design, unless
    `own_start` is false. `numbers` are hand-set numbers that differ from the defaults, further keywords are options
    that do.
    """

    def __init__(
        self,
        problem: Problem,
        seed: int,
        *,
        workers: int = 1,
        own_start: bool = True,
        numbers: Mapping[str, Any] | None = None,
        **options: Any,
    ) -> None:
        if not own_start:
            options["initial"] = problem.initial
        strategy = DefaultStrategy(replace(NUMBERS, **numbers)) if numbers else "default"
        self._optimizer = Optimizer(problem.space, seed=seed, strategy=strategy, options=Options(**options))
        self.workers, self.own_start = workers, own_start
        self.success_probability: float | None = None
        self.ask_times: tuple[float, float] | None = None

    def ask(self) -> dict[str, Any]:
        suggestion = self._optimizer.ask()
        self.success_probability = suggestion.why.success_probability
        return suggestion

    def tell(self, params: Mapping[str, Any], cost: float | None) -> None:
        self._optimizer.tell(params, CRASHED if cost is None else cost)
