"""What models of all outputs can be asked, and what they say about limits and causes of crashes."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from crashbo.problem.arrays import Array
from crashbo.problem.history import OBJECTIVE


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
