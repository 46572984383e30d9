"""CrashBO, as shipped."""

from collections.abc import Mapping
from typing import Any, Literal

from benchmarks.suite.problem import Problem
from crashbo import CRASHED, Optimizer, Options


class CrashBO:
    """`crashbo.Optimizer` with its defaults, told a cost or a crash and nothing else."""

    def __init__(
        self,
        problem: Problem,
        seed: int,
        *,
        crashes: Literal["absorb", "separate", "coupled"] | None = None,
        workers: int = 1,
    ) -> None:
        options = Options() if crashes is None else Options(crashes=crashes)
        self._optimizer = Optimizer(problem.space, seed=seed, options=options)
        self.workers = workers
        self.success_probability: float | None = None
        self.ask_times: tuple[float, float] | None = None

    def ask(self) -> dict[str, Any]:
        suggestion = self._optimizer.ask()
        self.success_probability = suggestion.why.success_probability
        return suggestion

    def tell(self, params: Mapping[str, Any], cost: float | None) -> None:
        self._optimizer.tell(params, CRASHED if cost is None else cost)
