"""What a strategy is: which point to try next, the best guess, and the models and the score behind them."""

from dataclasses import dataclass
from typing import Protocol

from crashbo.model.surrogate import Surrogate
from crashbo.problem.arrays import Array
from crashbo.problem.history import History


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
