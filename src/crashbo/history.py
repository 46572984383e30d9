"""What has happened so far, frozen: all that a strategy decides from."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np

from crashbo.arrays import Array, Bools
from crashbo.options import Options
from crashbo.outcome import Constraint, Trial
from crashbo.space import Space

Direction = Literal["minimize", "maximize"]
OBJECTIVE = "objective"


@dataclass(frozen=True)
class History:
    """A problem, the settings, and the trials so far. Equal histories give equal suggestions.

    Attributes:
        space, constraints, direction, options, acquisition, seed: as given to the `Optimizer`.
        trials: finished ones, in the order told.
        pending: params of the trials under way.
        asked: how many suggestions were made.
    """

    space: Space
    constraints: tuple[Constraint, ...] = ()
    direction: Direction = "minimize"
    options: Options = field(default_factory=Options)
    acquisition: str = "auto"
    seed: int = 0
    trials: tuple[Trial, ...] = ()
    pending: tuple[Mapping[str, Any], ...] = ()
    asked: int = 0

    @property
    def sign(self) -> float:
        """1, or -1 if the objective is maximised: what costs are multiplied with before they are modelled."""
        return 1.0 if self.direction == "minimize" else -1.0

    @cached_property
    def points(self) -> Array:
        """`n x d`, where the trials were made, in the unit cube."""
        return self.space.encode_valid([trial.params for trial in self.trials])

    @cached_property
    def pending_points(self) -> Array:
        """`m x d`, trials under way."""
        return self.space.encode_valid(self.pending)

    @cached_property
    def failed(self) -> Bools:
        """`n`, whether each trial crashed or violated a limit, known or not."""
        return np.array([trial.failed_under(self.constraints) for trial in self.trials], dtype=bool)

    @cached_property
    def costs(self) -> list[float | None]:
        """`n`, minimised; None where there is none."""
        return [None if trial.objective is None else self.sign * trial.objective for trial in self.trials]

    def first(self, count: int) -> "History":
        """The first trials alone, nothing under way."""
        return replace(self, trials=self.trials[:count], pending=(), asked=0)

    def generator(self, *purpose: int) -> np.random.Generator:
        """A source of randomness for this suggestion."""
        return np.random.default_rng([self.seed, self.asked, *purpose])
