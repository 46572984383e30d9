"""What a problem of the suite is: an experiment that returns a cost or crashes, with its truth laid open."""

import math
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from crashbo.problem.space import Categorical, Space

Array: TypeAlias = NDArray[np.float64]
Truth: TypeAlias = Callable[[Array], tuple[Array, NDArray[np.bool_]]]
Experiment: TypeAlias = Callable[[dict[str, Any], np.random.Generator], float | None]


@dataclass(frozen=True)
class Outcome:
    """The end of one trial.

    Attributes:
        cost: what the method is told; None if it crashed.
        value: the noise-free cost; infinity if it crashed, or would crash when repeated.
    """

    cost: float | None
    value: float


@dataclass(frozen=True)
class Problem:
    """A problem of the suite, always minimised.

    Attributes:
        name: short, used in files and tables.
        group: what crashes have to do with the cost.
        space: the parameters.
        budget: trials of a run.
        truth: noise-free costs of `n x d` points in the units of the space (a choice is its number), and whether
            each succeeds.
        optimum: the lowest cost of a point that succeeds, or the lowest known.
        minimiser: a point that reaches it, as a row for `truth`.
        noise_std: of the cost that is told.
        crash_rate: of crashes that depend on nothing.
        experiment: runs a trial instead of `truth`, where the noise is not Gaussian.
    """

    name: str
    group: str
    space: Space
    budget: int
    truth: Truth
    optimum: float
    minimiser: tuple[float, ...]
    noise_std: float = 0.0
    crash_rate: float = 0.0
    experiment: Experiment | None = None

    @property
    def noisy(self) -> bool:
        """Whether the same params give another cost when repeated."""
        return self.noise_std > 0 or self.experiment is not None

    @property
    def initial(self) -> int:
        """Trials of the design that all methods share: 2 d, at least 3, at most 10."""
        return max(3, min(10, 2 * self.space.dimension))

    def design(self, seed: int) -> list[dict[str, Any]]:
        """Return the design that all methods share: a scrambled Sobol sequence."""
        return self.space.sobol(self.initial, seed)

    def row(self, params: Mapping[str, Any]) -> Array:
        """Return the params as a row for `truth`."""
        return np.array([_number(self.space[name], value) for name, value in self.space.validate(params).items()])

    def run(self, params: Mapping[str, Any], seed: int, trial: int) -> Outcome:
        """Run one trial. Noise and random crashes follow from seed and trial alone, whatever the method."""
        rng = np.random.default_rng([seed, trial, zlib.crc32(self.name.encode())])
        values, succeeds = self.truth(self.row(params)[None])
        value = float(values[0]) if succeeds[0] else math.inf
        if self.experiment is not None:
            cost = self.experiment(self.space.validate(params), rng)
            return Outcome(cost, math.inf if cost is None else value)
        unlucky, noise = rng.random() < self.crash_rate, self.noise_std * rng.standard_normal()
        return Outcome(None, math.inf) if unlucky or not succeeds[0] else Outcome(value + noise, value)


def _number(parameter: Any, value: Any) -> float:
    return float(parameter.choices.index(value)) if isinstance(parameter, Categorical) else float(value)
