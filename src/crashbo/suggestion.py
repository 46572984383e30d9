"""What an optimizer gives: a suggestion with its reason, the best guess, and its whole state."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from crashbo.outcome import Trial
from crashbo.settings import Settings
from crashbo.space import Space


@dataclass(frozen=True)
class Reason:
    """Why a point was suggested.

    Attributes:
        mode: "initial", "given", "success" (no safe point known: look for one), "gain", or the acquisition's name.
        value: of what was maximised; None for initial points.
        success_probability: that nothing fails there; None for initial points.
        thresholds: the most probable limits then.
        relation: what crashes had to do with the objective then, as probabilities; empty while unknown.
        seconds: the suggestion took.
        deviations: standard deviations of those limits.
    """

    mode: str
    value: float | None = None
    success_probability: float | None = None
    thresholds: Mapping[str, float] = field(default_factory=dict)
    seconds: float = 0.0
    relation: Mapping[str, float] = field(default_factory=dict)
    deviations: Mapping[str, float] = field(default_factory=dict)

    def __str__(self) -> str:
        if self.mode in ("initial", "given"):
            return "an initial point" if self.mode == "initial" else "a point you gave"
        aims = {
            "success": "the point most likely to succeed, no safe one being known",
            "gain": "the largest expected gain, less the price of a crash",
        }
        return f"{aims.get(self.mode, self.mode)}; success probability {self.success_probability:.2f}"


class Suggestion(dict[str, Any]):
    """Suggested params, a plain dict that also knows its number and its reason."""

    def __init__(self, params: Mapping[str, Any], number: int, why: Reason) -> None:
        super().__init__(params)
        self.number = number
        self.why = why


@dataclass(frozen=True)
class Best:
    """The best guess.

    Attributes:
        params: where.
        mean, std: of the objective there, as modelled; NaN while no trial has a cost.
        success_probability: that nothing fails there.
        feasible: whether that reaches 1 - delta, random crashes aside. If not, this is the likeliest to succeed.
    """

    params: dict[str, Any]
    mean: float
    std: float
    success_probability: float
    feasible: bool

    def __str__(self) -> str:
        doubt = "" if self.feasible else " No point is safe enough yet: this one is the most likely to succeed."
        values = ", ".join(f"{name} = {_short(value)}" for name, value in self.params.items())
        return f"{values}: {self.mean:.6g} ± {self.std:.2g}, success {self.success_probability:.1%}.{doubt}"


@dataclass(frozen=True)
class Saved:
    """All that makes an optimizer what it is.

    Attributes:
        space: the parameters.
        settings: everything else it was told when it was made.
        initial_points: suggested first, in this order.
        asked: how many suggestions were made.
        trials: finished ones, in the order told.
        pending: suggestions that are out.
        errors: in words, of those among them that ended in an error of the program itself, by number.
    """

    space: Space
    settings: Settings
    initial_points: Sequence[Mapping[str, Any]] = ()
    asked: int = 0
    trials: Sequence[Trial] = ()
    pending: Sequence[Suggestion] = ()
    errors: Mapping[int, str] = field(default_factory=dict)


def _short(value: Any) -> str:
    return f"{value:.5g}" if isinstance(value, float) else str(value)
