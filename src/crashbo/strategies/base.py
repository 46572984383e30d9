"""What a strategy is, and what it says about its models."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from crashbo.arrays import Array
from crashbo.history import OBJECTIVE, History


@dataclass(frozen=True)
class Limit:
    """A limit of an output, in the units of the output.

    Attributes:
        value: the known limit, or the most probable one.
        deviation: half of the range in which it lies with a probability of 68 %; 0 if it is known.
        range: in which it lies with a probability of 95 %; None: two deviations to both sides.
    """

    value: float
    deviation: float = 0.0
    range: tuple[float, float] | None = None

    @property
    def interval(self) -> tuple[float, float]:
        """Lowest and highest limit that are still likely, with a probability of 95 % between them."""
        return self.range or (self.value - 2 * self.deviation, self.value + 2 * self.deviation)

    def times(self, sign: float) -> "Limit":
        """The same limit of an output that is multiplied with 1 or -1."""
        ends = self.range if sign > 0 or self.range is None else (-self.range[1], -self.range[0])
        return Limit(sign * self.value, self.deviation, ends)


@dataclass(frozen=True)
class Relation:
    """How crashes are related to the objective: probabilities of the possible causes, which add up to 1.

    Attributes:
        high: a crash is a high cost.
        unrelated: crashes have a region of their own, unrelated to the cost.
        low: crashes happen where costs are low.
        random: crashes happen anywhere, at random.
        rate: probability that a trial crashes, if crashes are random.
        rarer: number of trials with a cost or number of crashes, whichever is smaller: how much data this rests on.
    """

    high: float
    unrelated: float
    low: float
    random: float = 0.0
    rate: float = 0.0
    rarer: int | None = None


@dataclass(frozen=True)
class Place:
    """A named reason of crashes that has a place of its own."""

    reason: str  # as told
    count: int  # crashes with it
    relation: Relation  # to the objective
    point: Array  # d, the crashed trial where it is most probable
    probability: float  # of that reason there


class Surrogate(Protocol):
    """The models of all outputs at one moment. Points lie in the unit cube, the objective is minimised."""

    @property
    def any_cost(self) -> bool:
        """Whether any trial has a cost."""

    @property
    def outputs(self) -> tuple[str, ...]:
        """The objective and all constraints that have a model."""

    def moments(self, X: Array, output: str = OBJECTIVE) -> tuple[Array, Array]:
        """Mean and standard deviation of an output at `p x d`, in its own units."""

    def success(self, X: Array, output: str | None = None) -> Array:
        """Probability at `p x d` that nothing fails, or that the given output does not."""

    @property
    def limits(self) -> Mapping[str, Limit]:
        """The limits of all outputs that have one."""

    @property
    def relation(self) -> Relation | None:
        """How crashes are related to the objective; None while there are no data to tell."""


@dataclass(frozen=True)
class Suggested:
    """A point to try.

    Attributes:
        point: `d`, a valid point of the unit cube.
        mode: "initial", or the name of the rule that chose it.
        value: value of the score that was maximised; None for initial points.
        success_probability: probability that nothing fails there; None for initial points.
    """

    point: Array
    mode: str
    value: float | None = None
    success_probability: float | None = None


@dataclass(frozen=True)
class Guess:
    """The best guess.

    Attributes:
        point: `d`, a valid point of the unit cube.
        feasible: whether success is likely enough there; if not, this is the point most likely to succeed.
    """

    point: Array
    feasible: bool


class Score(Protocol):
    """The score that a strategy maximises."""

    @property
    def mode(self) -> str:
        """The mode, as in `Suggested`."""

    def __call__(self, X: Array) -> Array:
        """At `p x d`."""

    def gain(self, X: Array) -> Array | None:
        """The score without the price of failures; None if the strategy has none."""


class Strategy(Protocol):
    """Decides what to try next. All methods are pure functions of the history."""

    def suggest(self, history: History) -> Suggested:
        """The next point to try."""

    def guess(self, history: History) -> Guess:
        """The best guess."""

    def surrogate(self, history: History) -> Surrogate:
        """The models of all outputs; the history has at least one trial."""

    def score(self, history: History) -> Score:
        """The score that the next suggestion maximises, for pictures."""
