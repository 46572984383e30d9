"""What an optimizer gives: a suggestion with its reason, and the best guess."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Reason:
    """Why a point was suggested; `print` it for the reason in words.

    Attributes:
        mode: "initial", "given" (by the user), "success" (no safe point is known, so one is looked for), "gain", or
            the name of the acquisition function.
        value: value of the score that was maximised; None for initial points.
        success_probability: probability that nothing fails there; None for initial points.
        thresholds: the most probable limits at that moment.
        relation: causes of crashes at that moment, as probabilities (see `Relation`); empty while unknown.
        seconds: how long the suggestion took.
        deviations: standard deviations of the limits.
        expected, expected_std: mean and standard deviation of the objective there, as predicted; None if unknown.
        best: objective of the best trial so far that did not fail; None without one.
        better: whether `expected` is better than `best`.
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
    """Suggested params: a dict with two attributes, `number` and `why` (a `Reason`)."""

    def __init__(self, params: Mapping[str, Any], number: int, why: Reason) -> None:
        super().__init__(params)
        self.number = number
        self.why = why


@dataclass(frozen=True)
class Best:
    """The best guess.

    Attributes:
        params: the parameters.
        mean, std: mean and standard deviation of the objective there, as predicted; NaN while no trial has a cost.
        success_probability: probability that nothing fails there.
        feasible: whether the success probability, not counting random crashes, reaches 1 - delta. If not, this is the
            point most likely to succeed.
    """

    params: dict[str, Any]
    mean: float
    std: float
    success_probability: float
    feasible: bool

    def __str__(self) -> str:
        doubt = "" if self.feasible else " No point is safe enough yet: this one is the most likely to succeed."
        short = {name: f"{one:.5g}" if isinstance(one, float) else one for name, one in self.params.items()}
        values = ", ".join(f"{name} = {one}" for name, one in short.items())
        cost = "no cost seen yet" if math.isnan(self.mean) else f"{self.mean:.6g} ± {self.std:.2g}"
        return f"{values}: {cost}, success {self.success_probability:.1%}.{doubt}"
