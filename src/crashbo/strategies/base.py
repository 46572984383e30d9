"""What a strategy is, and what it says about its models."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from crashbo.history import OBJECTIVE, History

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Limit:
    """A limit of an output, in its own units (minimised).

    Attributes:
        value: the most probable one, or the known one.
        deviation: its standard deviation; 0 if known.
    """

    value: float
    deviation: float = 0.0


@dataclass(frozen=True)
class Relation:
    """What crashes have to do with the objective: probabilities that add up to 1.

    Attributes:
        high: a crash is a high cost.
        unrelated: crashes have a place of their own.
        low: crashes lie where costs are low.
        random: crashes strike anywhere.
        rate: if they do, probability that a trial crashes wherever it is made.
        rarer: trials with a cost or crashes, whichever are fewer: what it is told from.
    """

    high: float
    unrelated: float
    low: float
    random: float = 0.0
    rate: float = 0.0
    rarer: int | None = None


@dataclass(frozen=True)
class Place:
    """A named reason of crashes that has a place of its own.

    Attributes:
        reason: as told.
        count: crashes with it.
        relation: to the objective.
        point: `d`, the crashed trial where it is most probable.
        probability: of that reason there.
    """

    reason: str
    count: int
    relation: Relation
    point: Array
    probability: float


class Surrogate(Protocol):
    """The models of all outputs at one moment. Points lie in the unit cube, the objective is minimised."""

    @property
    def any_cost(self) -> bool:
        """Whether any trial has a cost."""
        ...

    @property
    def outputs(self) -> tuple[str, ...]:
        """The objective and all constraints that have a model."""
        ...

    def moments(self, X: Array, output: str = OBJECTIVE) -> tuple[Array, Array]:
        """Mean and standard deviation of an output at `p x d`, in its own units."""
        ...

    def success(self, X: Array, output: str | None = None) -> Array:
        """Probability that nothing fails at `p x d`, or that one output does not."""
        ...

    @property
    def limits(self) -> Mapping[str, Limit]:
        """The limits of all outputs that have one."""
        ...

    @property
    def relation(self) -> Relation | None:
        """What crashes have to do with the objective; None while there is nothing to tell it from."""
        ...


@dataclass(frozen=True)
class Suggested:
    """A point to try.

    Attributes:
        point: `d`, in the unit cube, valid.
        mode: "initial", or what it was chosen by.
        value: of what was maximised; None for initial points.
        success_probability: that nothing fails there; None for initial points.
    """

    point: Array
    mode: str
    value: float | None = None
    success_probability: float | None = None


@dataclass(frozen=True)
class Guess:
    """The best guess.

    Attributes:
        point: `d`.
        feasible: whether success is likely enough there; if not, this is the point most likely to succeed.
    """

    point: Array
    feasible: bool


class Score(Protocol):
    """What a strategy maximises."""

    @property
    def mode(self) -> str:
        """As in `Suggested`."""
        ...

    def __call__(self, X: Array) -> Array:
        """At `p x d`."""
        ...

    def gain(self, X: Array) -> Array | None:
        """The same without regard to failures; None where there is no such thing."""
        ...


class Strategy(Protocol):
    """Decides what to try next. All its answers are pure functions of the history."""

    def suggest(self, history: History) -> Suggested:
        """The next point to try."""
        ...

    def guess(self, history: History) -> Guess:
        """The best guess."""
        ...

    def surrogate(self, history: History) -> Surrogate:
        """The models of at least one trial."""
        ...

    def score(self, history: History) -> Score:
        """What the next suggestion maximises, for pictures."""
        ...
