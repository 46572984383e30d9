"""What an optimizer gives: a suggestion with its reason, the best guess, and its whole state."""

import math
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
        expected, expected_std: what the objective is expected to be there, and how sure that is; None if unknown.
        best: of the trials so far that did not fail; None without one.
        better: whether what is expected is better than that.
    """

    mode: str
    value: float | None = None
    success_probability: float | None = None
    thresholds: Mapping[str, float] = field(default_factory=dict)
    seconds: float = 0.0
    relation: Mapping[str, float] = field(default_factory=dict)
    deviations: Mapping[str, float] = field(default_factory=dict)
    expected: float | None = None
    expected_std: float | None = None
    best: float | None = None
    better: bool = False

    def __str__(self) -> str:
        if self.mode in ("initial", "given"):
            return "an initial point" if self.mode == "initial" else "a point you gave"
        likely = f"{self.success_probability:.0%} likely to succeed".replace("%", " %")
        if self.mode == "success":
            return f"no point is known to be safe, and this one is {likely}, more than any other"
        aims = {
            "gain": "most likely place of an improvement" if self.better else "uncertain enough to be an improvement",
            "mes": "tells most about the lowest cost",
            "mesco": "tells most about the lowest cost where constraints hold",
        }
        parts = [] if self.expected is None else [f"expected {self.expected:.4g} ± {self.expected_std or 0.0:.2g}"]
        parts += [] if self.best is None else [f"best so far {self.best:.4g}"]
        return f"{aims.get(self.mode, self.mode)}: {', '.join(parts)}; {likely}".replace(": ;", ";")


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
        cost = "no cost seen yet" if math.isnan(self.mean) else f"{self.mean:.6g} ± {self.std:.2g}"
        return f"{values}: {cost}, success {self.success_probability:.1%}.{doubt}"


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
